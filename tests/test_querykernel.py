"""The kernel of a new item: mean, project, robust."""

import numpy as np
import pytest

from quorumhash.querykernel import fill_absent, query_kernel, weighted_mean

rng = np.random.default_rng(0)
K = [rng.random((20, 8)) for _ in range(3)]
BASIS = np.linalg.qr(rng.standard_normal((8, 5)))[0]
ALL = np.ones((20, 3), dtype=bool)


def test_mean_is_the_mean_of_the_views_an_item_has():
    present = ALL.copy()
    present[4, 1] = False
    got = query_kernel("mean", BASIS, present, *K)
    np.testing.assert_allclose(got[0], np.mean([k[0] for k in K], axis=0))
    np.testing.assert_allclose(got[4], (K[0][4] + K[2][4]) / 2)


def test_a_view_nobody_has_may_be_none():
    present = ALL.copy()
    present[:, 1] = False
    for mode in ("mean", "project", "robust"):
        np.testing.assert_allclose(
            query_kernel(mode, BASIS, present, K[0], None, K[2]), query_kernel(mode, BASIS, present, *K)
        )


def test_project_is_the_nearest_point_of_the_span_made_non_negative():
    mean = np.mean(K, axis=0)
    coefficients = np.linalg.lstsq(BASIS, mean.T, rcond=None)[0]
    np.testing.assert_allclose(query_kernel("project", BASIS, ALL, *K), np.maximum(BASIS @ coefficients, 0).T)


def test_robust_minimises_the_sum_of_distances():
    """Against many points of the span; non-negativity is kept out of it by a basis of positive data."""
    basis = np.eye(8)
    got = query_kernel("robust", basis, ALL, *K)

    def cost(k):
        return sum(np.linalg.norm(view - k, axis=1) for view in K)

    for _ in range(200):
        assert (cost(got) <= cost(got + 0.05 * rng.standard_normal(got.shape)) + 1e-3).all()


def test_robust_stays_with_two_that_agree():
    wrong = rng.random((20, 8)) * 5
    got = query_kernel("robust", np.eye(8), ALL, K[0], K[0], wrong)
    np.testing.assert_allclose(got, K[0], atol=1e-2)
    mean = query_kernel("mean", np.eye(8), ALL, K[0], K[0], wrong)
    assert np.abs(mean - K[0]).max() > 0.5


def test_fill_absent_only_touches_absent_pairs():
    present = ALL.copy()
    present[3, 0] = present[3, 2] = False
    filled = fill_absent(present, *K)
    np.testing.assert_allclose(filled[0][3], K[1][3])
    np.testing.assert_allclose(filled[2][3], K[1][3])
    np.testing.assert_array_equal(filled[0][4:], K[0][4:])
    assert filled[0].dtype == K[0].dtype


def test_weighted_mean():
    weights = rng.random((20, 3))
    expected = sum(weights[:, m, None] * K[m] for m in range(3)) / weights.sum(1)[:, None]
    np.testing.assert_allclose(weighted_mean(weights, *K), expected)
    assert weighted_mean(weights, *[k.astype(np.float32) for k in K]).dtype == np.float64


@pytest.mark.parametrize("mode", ["project", "robust"])
def test_kernels_stay_non_negative(mode):
    assert (query_kernel(mode, BASIS, ALL, *K) >= 0).all()
