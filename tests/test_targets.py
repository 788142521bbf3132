"""SPEC tests T1 to T7: the low-rank target step against the dense N x N problem."""

import numpy as np
import pytest
from dense import best_view_targets, dense_a, full_objective, make_toy

from quorumhash.consensus import State, _sums
from quorumhash.targets import graph_factors, solve_targets, target_rows

SETTINGS = [(1e-2, 1.0, 1e-2), (1.0, 0.5, 0.1), (10.0, 1.0, 1.0), (100.0, 3.0, 1e-3)]  # gamma, beta, delta


def solve(toy, n_bits, gamma, beta, delta):
    factors = graph_factors(toy.graphs, gamma, toy.engine)
    kernel = toy.engine.put(toy.kernel)
    _, sums = _sums(State(kernel, kernel, (), 1.0, 1.0, 1.0), factors, toy.engine)
    targets = solve_targets(factors, sums, n_bits, beta=beta, delta=delta)
    rows = toy.engine.map_rows(target_rows, kernel, targets, factors.sizes, *factors.walked())
    return targets, toy.engine.get(rows)


@pytest.fixture(scope="module")
def toy():
    return make_toy()


@pytest.mark.parametrize(("gamma", "beta", "delta"), SETTINGS)
def test_t1_low_rank_targets_span_the_dense_eigenvectors(toy, gamma, beta, delta):
    n, p = len(toy.kernel), 6
    A = dense_a(toy, gamma, beta, delta)
    H = np.eye(n) - 1.0 / n
    c0 = 2 * len(toy.graphs) * gamma / (2 + gamma) + beta
    values, vectors = np.linalg.eigh(H @ (c0 * np.eye(n) - A) @ H)
    targets, Y = solve(toy, p, gamma, beta, delta)
    assert targets.objective == pytest.approx(n * np.sum(c0 - values[::-1][:p]), rel=1e-10)
    assert np.linalg.svd(vectors[:, ::-1][:, :p].T @ Y / np.sqrt(n), compute_uv=False).min() > 1 - 1e-10


@pytest.mark.parametrize(("gamma", "beta", "delta"), SETTINGS)
def test_t2_the_constant_vector_costs_nothing(toy, gamma, beta, delta):
    """A 1 = 0, so without Y^T 1 = 0 the first bit would be constant (E12)."""
    ones = np.ones(len(toy.kernel))
    np.testing.assert_allclose(dense_a(toy, gamma, beta, delta) @ ones, 0.0, atol=1e-10)


@pytest.mark.parametrize(("gamma", "beta", "delta"), SETTINGS)
def test_t3_targets_are_balanced_and_uncorrelated(toy, gamma, beta, delta):
    _, Y = solve(toy, 6, gamma, beta, delta)
    np.testing.assert_allclose(Y.sum(0), 0.0, atol=1e-9)
    np.testing.assert_allclose(Y.T @ Y / len(Y), np.eye(6), atol=1e-9)


@pytest.mark.parametrize(("gamma", "beta", "delta"), SETTINGS)
def test_t4_eliminated_and_full_objective_agree(toy, gamma, beta, delta):
    targets, Y = solve(toy, 6, gamma, beta, delta)
    Ys = best_view_targets(toy, Y, gamma)
    full = full_objective(toy, Y, Ys, targets.projection, targets.bias, gamma, beta, delta)
    assert np.trace(Y.T @ dense_a(toy, gamma, beta, delta) @ Y) == pytest.approx(full, rel=1e-8)
    assert targets.objective == pytest.approx(full, rel=1e-8)
    misfit = ((toy.kernel @ targets.projection + targets.bias - Y) ** 2).sum()
    assert targets.misfit == pytest.approx(misfit, rel=1e-8)


def test_t5_hash_functions_are_stationary(toy):
    gamma, beta, delta = SETTINGS[1]
    targets, Y = solve(toy, 6, gamma, beta, delta)
    misfit = toy.kernel @ targets.projection + targets.bias - Y
    np.testing.assert_allclose(toy.kernel.T @ misfit + delta * targets.projection, 0.0, atol=1e-8)
    np.testing.assert_allclose(misfit.sum(0), 0.0, atol=1e-8)


def test_t6_view_targets_are_stationary_and_follow_from_the_low_rank_form(toy):
    """Y_m = gamma / (2 + gamma) [Y + G T G^T Y] with T = ((1 + gamma / 2) I - G^T G)^-1 (SPEC 1.3 f)."""
    gamma = 1.0
    _, Y = solve(toy, 6, gamma, 0.5, 0.1)
    for S, Y_m, graph in zip(toy.dense_graphs, best_view_targets(toy, Y, gamma), toy.graphs, strict=True):
        np.testing.assert_allclose(2 * (np.eye(len(Y)) - S) @ Y_m + gamma * (Y_m - Y), 0.0, atol=1e-10)
        G = np.zeros((len(Y), graph.n_landmarks))
        G[np.arange(len(Y))[:, None], toy.engine.get(graph.positions)] = toy.engine.get(graph.weights)
        T = np.linalg.inv((1 + gamma / 2) * np.eye(graph.n_landmarks) - G.T @ G)
        np.testing.assert_allclose(gamma / (2 + gamma) * (Y + G @ T @ (G.T @ Y)), Y_m, atol=1e-10)
        np.testing.assert_allclose(G @ G.T, S, atol=1e-12)


def test_t7_rotation_leaves_the_objective(toy):
    gamma, beta, delta = SETTINGS[2]
    targets, Y = solve(toy, 6, gamma, beta, delta)
    rotation, _ = np.linalg.qr(np.random.default_rng(1).standard_normal((6, 6)))
    Ys = best_view_targets(toy, Y, gamma)
    before = full_objective(toy, Y, Ys, targets.projection, targets.bias, gamma, beta, delta)
    turned = [part @ rotation for part in (Y, *Ys, targets.projection, targets.bias)]
    after = full_objective(toy, turned[0], turned[1:-2], turned[-2], turned[-1], gamma, beta, delta)
    assert after == pytest.approx(before, rel=1e-12)


def test_targets_do_not_depend_on_the_cut_into_blocks():
    answers = [solve(make_toy(block_rows=rows), 6, 1.0, 0.5, 0.1)[1] for rows in (7, 60, 1000)]
    for answer in answers[1:]:
        np.testing.assert_allclose(answer, answers[0], atol=1e-8)


def test_permuting_views_leaves_the_targets(toy):
    _, Y = solve(toy, 6, 1.0, 0.5, 0.1)
    turned = make_toy()
    turned.graphs.reverse()
    turned.dense_graphs.reverse()
    np.testing.assert_allclose(np.abs(solve(turned, 6, 1.0, 0.5, 0.1)[1].T @ Y) / len(Y), np.eye(6), atol=1e-8)
