"""Groups of rows that another model made."""

import numpy as np
import pytest

from quorumhash.evidence import learn_view
from quorumhash.findings import version_finding
from quorumhash.judging import judged_rows, learn_judge, learn_one_model_judge
from quorumhash.versions import FAR, far_from_core, find_version, is_other_version, learn_core

N_ROWS = 800


def made_parts(seed=0, share=0.25):
    """Two views of the same hidden numbers, a share of the first turned and moved by as much as rows differ."""
    rng = np.random.default_rng(seed)
    hidden = rng.standard_normal((N_ROWS, 10))
    first = hidden @ rng.standard_normal((10, 30)) + 0.3 * rng.standard_normal((N_ROWS, 30))
    second = hidden @ rng.standard_normal((10, 20)) + 0.3 * rng.standard_normal((N_ROWS, 20))
    rows = np.zeros(N_ROWS, dtype=bool)
    rows[rng.permutation(N_ROWS)[: round(share * N_ROWS)]] = True
    turn, away = np.linalg.qr(rng.standard_normal((30, 30)))[0], rng.standard_normal(30)
    spread = np.sqrt((first**2).sum(axis=1).mean())
    first[rows] = first[rows] @ turn + spread * away / np.linalg.norm(away)
    return [first, second], rows


@pytest.fixture(scope="module")
def everyone():
    return np.ones((N_ROWS, 2), dtype=bool)


def looked_for(parts, usable, seed=0):
    noisy = np.zeros(N_ROWS, dtype=bool)
    core = learn_core(parts[0], parts[0].shape[1], usable[:, 0])
    return find_version(parts, 0, noisy, usable, (core, parts[0]), seed)


def test_a_group_that_widens_all_spreads_is_far_from_the_core(everyone):
    """By the spreads of all rows it looks like any other: the masking that concentration undoes."""
    (first, _), rows = made_parts()
    nothing = np.zeros((30, 3))
    _, deviations = learn_view(first, 30, np.ones(N_ROWS), everyone[:, 0], (nothing, nothing[:0]))
    assert (deviations[rows] > FAR).mean() < 0.5
    far = far_from_core(learn_core(first, 30, everyone[:, 0]), first)
    assert far[rows].mean() > 0.98
    assert far[~rows].mean() < 0.02


def test_the_core_does_not_depend_on_the_order_of_rows(everyone):
    (first, _), _ = made_parts()
    order = np.random.default_rng(1).permutation(N_ROWS)
    far = far_from_core(learn_core(first, 30, everyone[:, 0]), first)
    assert np.array_equal(far_from_core(learn_core(first[order], 30, everyone[:, 0]), first[order]), far[order])


def test_another_version_is_found_by_the_core_and_one_model_is_not(everyone):
    parts, rows = made_parts()
    found = looked_for(parts, everyone)
    assert found is not None
    assert found.core is not None
    assert far_from_core(found.core, parts[0])[rows].mean() > 0.98
    assert looked_for(made_parts(share=0.0)[0], everyone) is None


def test_two_clusters_that_differ_in_content_are_no_versions(everyone):
    """Even where damage has blurred how far they differ, and the relation is another one in each."""
    parts, rows = made_parts()
    assert is_other_version(parts, 0, ~rows, rows, everyone, 0, content=10.0 / N_ROWS)
    parts[1] = parts[1] + 0.6 * rows[:, None] * parts[1].std(axis=0)
    assert is_other_version(parts, 0, ~rows, rows, everyone, 0, content=0.2)
    assert not is_other_version(parts, 0, ~rows, rows, everyone, 0, content=10.0 / N_ROWS)


def test_a_finding_says_how_many_rows_and_where():
    found = version_finding("image", np.array([3, 8, 20]), 100)
    assert (found.kind, found.share) == ("model_version", 0.03)
    assert "view 'image': 3 rows (3 %) between row 3 and row 20" in found.sentence


def four_views(hidden, seed=5):
    draw = np.random.default_rng(seed)
    maps = [draw.standard_normal((10, 12 + m)) for m in range(4)]
    noise = np.random.default_rng(len(hidden))
    return {f"view{m}": hidden @ w + 0.3 * noise.standard_normal((len(hidden), w.shape[1])) for m, w in enumerate(maps)}


def by_another_model(rows, seed=6):
    """Turned, and moved by as much as rows differ."""
    draw = np.random.default_rng(seed)
    turn, away = np.linalg.qr(draw.standard_normal((rows.shape[1],) * 2))[0], draw.standard_normal(rows.shape[1])
    return rows @ turn + np.sqrt(rows.shape[1] * 10.0) * away / np.linalg.norm(away)


def test_a_judge_that_was_not_taught_by_another_model_knows_its_rows():
    draw = np.random.default_rng(2)
    views, new = (four_views(draw.standard_normal((n, 10))) for n in (1_000, 300))
    strange = draw.random(1_000) < 0.3
    views["view1"][strange] = by_another_model(views["view1"][strange])
    present = np.ones((1_000, 4), dtype=bool)
    plain, knowing = (learn(views, present, [0, 1, 2, 3])[0] for learn in (learn_judge, learn_one_model_judge))
    old = {**new, "view1": by_another_model(new["view1"])}
    alarms = [(judged_rows(judge, present[:300], *old.values())[:, 1] < 0.01).mean() for judge in (plain, knowing)]
    assert alarms[0] < 0.5 < 0.95 < alarms[1]
    assert (judged_rows(knowing, present[:300], *new.values()) < 0.01).mean() < 0.03


def test_swaps_are_not_another_model():
    draw = np.random.default_rng(3)
    views = four_views(draw.standard_normal((1_000, 10)) + 4.0 * draw.integers(0, 3, (1_000, 1)))
    for values in views.values():
        rows = np.flatnonzero(draw.random(1_000) < 0.4)
        values[rows] = values[draw.permutation(rows)]
    present = np.ones((1_000, 4), dtype=bool)
    plain, knowing = (learn(views, present, [0, 1, 2, 3])[1] for learn in (learn_judge, learn_one_model_judge))
    np.testing.assert_array_equal(plain.trust, knowing.trust)
