"""Which items dimensions are learned from."""

import numpy as np
import pytest

from quorumhash import teachers
from quorumhash.engines.threads import ThreadsEngine
from quorumhash.teachers import many_items


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(teachers, "SAMPLE_ROWS", 20)
    monkeypatch.setattr(teachers, "MOST_ITEMS", 50)


def items(n_rows, n_features=3):
    """Presence, and the views of so many rows, of which one was not given; a row holds its own number."""
    with ThreadsEngine(1, 16) as engine:
        values = np.repeat(np.arange(n_rows, dtype=np.float64)[:, None], n_features, axis=1)
        present, blocks = engine.put(values[:, :2] % 2 == 0), [engine.put(values), None]
        found = many_items(present, blocks, n_features, engine, 0)
        if found is None:
            return None, blocks
        taken = np.asarray(engine.get(found[0])), np.asarray(engine.get(found[1][0]))
        return (found[1], *taken), blocks


def test_where_the_sample_is_all_there_is_nothing_more():
    assert items(20)[0] is None


def test_up_to_the_limit_all_rows_teach_where_they_are():
    (found, _, _), blocks = items(50)
    assert found is blocks


def test_of_more_a_seeded_sample_teaches_with_its_presence():
    (found, present, values), _ = items(300)
    assert values.shape == (50, 3)
    assert len(np.unique(values[:, 0])) == 50
    np.testing.assert_array_equal(present[:, 0], values[:, 0] % 2 == 0)
    np.testing.assert_array_equal(values, items(300)[0][2])
    assert found[1] is None


def test_wide_rows_are_fewer_but_never_fewer_than_the_sample(monkeypatch):
    monkeypatch.setattr(teachers, "MOST_BYTES", 4 * 3 * 30)
    assert len(items(300)[0][2]) == 30
    assert len(items(300, n_features=30)[0][2]) == 20
