"""What is expected of views that may be wrong: against sums over sets written out, and what must stay as it is."""

import itertools

import numpy as np
import pytest
from test_repair import WIDTHS, views_of_one_thing

from quorumhash.expectation import shares_and_told
from quorumhash.repair import joined_rows, learn_repair, repair_rows


def expected_rows(model, belief, *rows):
    """Coordinates (n, q) of rows, every view as is expected of it."""
    joined = joined_rows(model, *rows)
    shares, told = shares_and_told(model, belief, joined)
    return np.repeat(shares, WIDTHS, axis=1) * joined + told


@pytest.fixture(scope="module")
def sample():
    return views_of_one_thing(500)


@pytest.fixture(scope="module")
def model(sample):
    return learn_repair(sample, np.ones((500, 3)))


def test_rows_become_the_sum_over_the_sets_that_may_be_right(model, sample):
    rng = np.random.default_rng(1)
    belief = rng.uniform(0.2, 0.8, (40, 3))
    belief[:10, 0], belief[10:20, 1] = 0.0, 1.0
    rows = [part[:40] for part in sample]
    expected = np.zeros((40, sum(WIDTHS)))
    total = np.zeros(40)
    for z in itertools.product((0.0, 1.0), repeat=3):
        if any(z):
            chance = np.prod(np.where(z, belief, 1.0 - belief), axis=1)
            expected += chance[:, None] * repair_rows(model, np.broadcast_to(np.array(z), (40, 3)), *rows)
            total += chance
    found = expected_rows(model, belief, *rows)
    np.testing.assert_allclose(
        found, expected / total[:, None], atol=0.02 * np.abs(expected).max()
    )  # rare sets left out


def test_rows_that_are_surely_right_stay_bit_by_bit_beside_others(model, sample):
    belief = np.ones((50, 3))
    belief[::2, 1] = 0.4
    rows = [part[:50] for part in sample]
    found = expected_rows(model, belief, *rows)
    assert np.array_equal(found[1::2], joined_rows(model, *rows)[1::2])
    assert not np.allclose(found[::2, 3:5], joined_rows(model, *rows)[::2, 3:5])
    assert np.array_equal(found[::2, :3], joined_rows(model, *rows)[::2, :3])


def test_a_view_of_which_nothing_is_kept_does_not_matter(model, sample):
    belief = np.tile([1.0, 0.0, 0.7], (30, 1))
    rows = [part[:30] for part in sample]
    other = [rows[0], 1e3 + rows[1], rows[2]]
    np.testing.assert_allclose(expected_rows(model, belief, *rows), expected_rows(model, belief, *other))


def test_one_model_is_not_asked_with_the_predictors_of_another(model, sample):
    """Predictors of sets are kept by the model they belong to."""
    belief = np.tile([1.0, 0.0, 1.0], (20, 1))
    rows = [part[:20] for part in sample]
    first = expected_rows(model, belief, *rows)
    turned = [sample[0], sample[1][::-1], sample[2]]  # views that have nothing to do with each other
    expected_rows(learn_repair(turned, np.ones((500, 3))), belief, *rows)
    np.testing.assert_array_equal(expected_rows(model, belief, *rows), first)
    stranger = expected_rows(learn_repair(turned, np.ones((500, 3))), belief, *rows)
    assert np.abs(stranger[:, 3:5]).mean() < 0.5 * np.abs(first[:, 3:5]).mean()
