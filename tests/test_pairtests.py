"""Agreement of two views: the likelihood ratio, and how many columns it looks at."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm
from sklearn.metrics import roc_auc_score

from quorumhash.pairtests import FEWER_COLUMNS, LARGEST_EVIDENCE, learn_pair, separations
from quorumhash.pairtests import pair_evidence as evidence_of

CORRELATIONS = np.array([0.8, 0.5, 0.2, 0.0])


def gaussian_pair(n_rows, seed=0):
    """Two views of 4 features with known canonical correlations, each mixed by a matrix of its own."""
    rng = np.random.default_rng(seed)
    u, own = rng.standard_normal((2, n_rows, 4))
    v = CORRELATIONS * u + np.sqrt(1 - CORRELATIONS**2) * own
    turns = [np.linalg.qr(np.random.default_rng(s).standard_normal((4, 4)))[0] for s in (7, 8)]
    return u, v, [u @ turns[0] + 1.0, v @ turns[1] - 2.0]


def gaussian_ratio(u, v, correlations):
    """The log of the joint normal density over the product of the two, summed over variates, by scipy."""
    total = np.zeros(len(u))
    for j, r in enumerate(correlations):
        both = np.stack([u[:, j], v[:, j]], axis=1)
        total += multivariate_normal([0, 0], [[1, r], [r, 1]]).logpdf(both)
        total -= norm.logpdf(u[:, j]) + norm.logpdf(v[:, j])
    return total


def learned(views, weights):
    return learn_pair((1, 0), views[1], views[0], weights)


def test_pair_evidence_is_the_ratio_of_normal_densities_in_the_learned_variates():
    _, _, views = gaussian_pair(20_000)
    pair = learned(views, np.ones(20_000))[0]
    u = views[1][:500] @ pair.left - pair.left_offset
    v = views[0][:500] @ pair.right - pair.right_offset
    r = pair.square / pair.product * 2
    wanted = np.clip(gaussian_ratio(u, v, r), -LARGEST_EVIDENCE, LARGEST_EVIDENCE)
    np.testing.assert_allclose(evidence_of(pair, views[1][:500], views[0][:500]), wanted, atol=1e-9)
    assert pair.base == pytest.approx(-0.5 * np.log(1 - r**2).sum())


def test_pair_evidence_is_near_that_of_the_true_model():
    u, v, views = gaussian_pair(20_000)
    pair = learned(views, np.ones(20_000))[0]
    found = np.zeros(4)
    found[: len(pair.product)] = pair.square / pair.product * 2
    np.testing.assert_allclose(found, CORRELATIONS, atol=0.03)
    wanted = gaussian_ratio(u, v, CORRELATIONS)
    got = evidence_of(pair, views[1], views[0])
    assert np.sqrt(np.mean((got - wanted) ** 2)) < 0.1 * wanted.std()


def test_matching_rows_speak_for_and_mismatched_rows_against():
    _, _, views = gaussian_pair(5_000)
    pair = learned(views, np.ones(5_000))[0]
    right = evidence_of(pair, views[1], views[0])
    wrong = evidence_of(pair, views[1], np.roll(views[0], 1, axis=0))
    assert right.mean() > 0 > wrong.mean()
    assert np.mean(np.exp(wrong)) == pytest.approx(1, abs=0.1)  # the mean likelihood ratio under the other model


def test_independent_views_tell_nothing():
    """By chance alone two views of 10 and 12 features seem to tell about 10 * 12 / (2 * 400) of each other."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        views = [rng.standard_normal((400, 10)), rng.standard_normal((400, 12))]
        assert learned(views, np.ones(400))[0].base < 0.3 * 10 * 12 / (2 * 400)


def test_rows_of_no_weight_teach_nothing():
    _, _, views = gaussian_pair(2_000)
    weights = np.ones(2_000)
    weights[1_500:] = 0
    spoiled = [views[0].copy(), views[1].copy()]
    spoiled[0][1_500:] = 1e3
    clean = learned([v[:1_500] for v in views], np.ones(1_500))[0]
    weighted = learned(spoiled, weights)[0]
    rows = views[1][:50], views[0][:50]
    np.testing.assert_allclose(evidence_of(weighted, *rows), evidence_of(clean, *rows), atol=1e-8)


def test_evidence_is_bounded_however_far_out_a_row_lies():
    _, _, views = gaussian_pair(1_000)
    pair = learned(views, np.ones(1_000))[0]
    far = evidence_of(pair, 1e6 * views[1], 1e6 * views[0])
    assert np.abs(far).max() <= LARGEST_EVIDENCE


def wide_pair(n_rows, share_wrong=0.0, n_features=100):
    """Two noisy views of six hidden features, columns in order of variance; some rows do not belong together."""
    rng = np.random.default_rng(0)
    hidden, other = rng.standard_normal((2, n_rows, 6))
    right = rng.random(n_rows) >= share_wrong
    other[right] = hidden[right]
    views = [part @ rng.standard_normal((6, n_features)) for part in (hidden, other)]
    views = [part + 2.0 * rng.standard_normal(part.shape) for part in views]
    return [view @ np.linalg.eigh(view.T @ view)[1][:, ::-1] for view in views]


def test_separation_is_the_area_under_the_curve_of_rows_against_mismatches():
    views = wide_pair(400)
    tests = learned([view[:200] for view in views], np.ones(200))
    first, second = views[1][200:], views[0][200:]
    found = separations(tests, first, second)
    assert len(found) == 1 + len(FEWER_COLUMNS)
    is_real = np.repeat([1, 0], 200)
    for test, value in zip(tests, found, strict=True):
        odds = [evidence_of(test, first, part) for part in (second, np.roll(second, 1 + 200 // 3, axis=0))]
        assert value == pytest.approx(roc_auc_score(is_real, np.concatenate(odds)), abs=1e-12)


def test_tests_by_fewer_columns_look_at_those_that_vary_most():
    tests = learned(wide_pair(400), np.ones(400))
    for test, n_columns in zip(tests, (100, *FEWER_COLUMNS), strict=True):
        for side in (test.left, test.right):
            assert np.flatnonzero(np.abs(side).sum(axis=1)).max() < n_columns  # columns come in order of variance
    narrow = learned([view[:, :12] for view in wide_pair(400)], np.ones(400))
    assert len(narrow) == 2  # all twelve, and eight


def test_few_right_rows_are_told_best_by_few_columns():
    """Of 150 rows a third is wrong: by all columns chance drowns what the others could tell. Of 5,000 it does not."""
    found = {}
    for n_rows in (150, 5_000):
        views = wide_pair(2 * n_rows, share_wrong=1 / 3)
        tests = learned([view[:n_rows] for view in views], np.ones(n_rows))
        found[n_rows] = separations(tests, views[1][n_rows:], views[0][n_rows:])
    assert np.argmax(found[150]) >= 2
    assert found[150].max() > found[150][0] + 0.1
    assert found[5_000].max() < found[5_000][0] + 0.02


def test_as_many_columns_as_rows_are_no_trouble():
    """Every correlation is 1 then: a decomposition that stops at equal values would refuse."""
    rng = np.random.default_rng(0)
    for n_rows in (8, 40, 128):
        views = [rng.standard_normal((n_rows, 128)) @ np.diag(np.geomspace(1, 1e-3, 128)) for _ in range(2)]
        views[1][:, :64] = views[0][:, :64]
        for weights in (np.ones(n_rows), np.full(n_rows, 1e-6)):
            for test in learned(views, weights):
                assert np.isfinite(evidence_of(test, views[1], views[0])).all()
