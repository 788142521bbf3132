"""Kernels, bandwidths and the truncated graph against plain forms."""

import numpy as np
import pytest

from quorumhash.errors import ParameterError
from quorumhash.similarity import (
    collect_at_landmarks,
    graph_bandwidth,
    kernel_bandwidth,
    nearest_landmarks,
    rbf_kernel,
    spread_to_rows,
    squared_distances,
)

rng = np.random.default_rng(0)
X, Z = rng.standard_normal((40, 5)), rng.standard_normal((9, 5))
SQUARES = ((X[:, None] - Z[None]) ** 2).sum(-1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_squared_distances(dtype):
    got = squared_distances(X.astype(dtype), Z.astype(dtype))
    assert got.dtype == dtype
    np.testing.assert_allclose(got, SQUARES, rtol=1e-4, atol=1e-5)


def test_a_point_is_at_distance_zero_and_never_below():
    same = squared_distances(X * 1e3, X * 1e3)
    assert (same >= 0).all()
    np.testing.assert_allclose(np.diag(same), 0, atol=1e-6)


def test_rbf_kernel():
    np.testing.assert_allclose(rbf_kernel(SQUARES, 1.7), np.exp(-SQUARES / (2 * 1.7**2)))


def test_bandwidth_rules():
    seventh = np.sort(np.sqrt(SQUARES), axis=1)[:, 6].mean()
    assert kernel_bandwidth(SQUARES) == pytest.approx(seventh)
    assert 2 * kernel_bandwidth(SQUARES, "median") ** 2 == pytest.approx(np.median(SQUARES))
    third = np.sort(np.sqrt(SQUARES), axis=1)[:, 2].mean()
    assert graph_bandwidth(SQUARES, 3) == pytest.approx(third**2)
    with pytest.raises(ParameterError, match="bandwidth must be one of seventh, median, got 'mean'"):
        kernel_bandwidth(SQUARES, "mean")


def test_bandwidths_scale_with_the_data_and_are_never_zero():
    assert kernel_bandwidth(SQUARES * 9) == pytest.approx(3 * kernel_bandwidth(SQUARES))
    for rule in ("seventh", "median"):
        assert kernel_bandwidth(np.zeros((5, 8)), rule) == 1.0
        assert kernel_bandwidth(np.diag(np.ones(8)), rule) > 0
    assert graph_bandwidth(np.zeros((5, 8)), 3) == 1.0


@pytest.mark.parametrize("k", [1, 3, 9, 20])
def test_graph_rows_hold_the_nearest_landmarks_and_sum_to_one(k):
    near = nearest_landmarks(SQUARES, k, 0.8)
    k = min(k, 9)
    assert near.positions.shape == near.weights.shape == (40, k)
    np.testing.assert_allclose(near.weights.sum(1), 1)
    np.testing.assert_array_equal(near.positions, np.argsort(SQUARES, axis=1, kind="stable")[:, :k])
    chosen = np.exp(-np.take_along_axis(SQUARES, near.positions, 1) / 0.8)
    np.testing.assert_allclose(near.weights, chosen / chosen.sum(1, keepdims=True))


def test_far_rows_do_not_become_zero_by_zero():
    near = nearest_landmarks(np.array([[1e6, 2e6, 3e6]]), 2, 1e-3)
    np.testing.assert_allclose(near.weights, [[1.0, 0.0]])


def test_ties_go_to_the_lower_landmark_and_the_input_is_left():
    squares = np.ones((2, 4))
    np.testing.assert_array_equal(nearest_landmarks(squares, 2, 1.0).positions, [[0, 1], [0, 1]])
    assert (squares == 1).all()


def test_spread_and_collect_are_products_with_the_graph():
    near = nearest_landmarks(SQUARES, 3, 0.8)
    F = np.zeros((40, 9))
    F[np.arange(40)[:, None], near.positions] = near.weights
    table = rng.standard_normal((9, 4))
    np.testing.assert_allclose(spread_to_rows(near.positions, near.weights, table), F @ table)
    np.testing.assert_allclose(collect_at_landmarks(near.positions, near.weights, X, 9), F.T @ X)
