"""SPEC tests T10 to T12: the ADMM and the coupled kernel step against convex references."""

import numpy as np
import pytest
from dense import consensus_objective, make_toy
from scipy.optimize import nnls

import quorumhash.consensus as module
from quorumhash.consensus import Weights, solve_consensus, state_bytes_per_row
from quorumhash.sweeps import Pull, k_step

UNCOUPLED = {"gamma": 1.0, "beta": 1.0, "delta": 0.1, "is_coupled": False}


def weights_of(toy, alpha_rel, lambda_=1.0, **more):
    alpha = alpha_rel * lambda_ * len(toy.kernels) * np.sqrt(len(toy.kernel))
    return Weights(alpha, lambda_, **{**UNCOUPLED, **more})


def solve(toy, weights, **more):
    rows = [toy.engine.put(kernel) for kernel in toy.kernels]
    return solve_consensus(rows, toy.graphs, 4, weights, toy.engine, **{"max_iter": 300, "tol": 1e-9, **more})


@pytest.fixture(scope="module")
def toy():
    return make_toy(n=150, n_views=3)


@pytest.mark.parametrize("norm", ["l21", "l1"])
def test_t10_admm_beats_zero_and_the_mean_kernel(toy, norm):
    weights = weights_of(toy, 0.05, error_norm=norm)
    kernel = toy.engine.get(solve(toy, weights).kernel)
    reached = consensus_objective(kernel, toy.kernels, weights.alpha, weights.lambda_, norm)
    for other in (np.zeros_like(kernel), toy.kernel):
        assert reached < consensus_objective(other, toy.kernels, weights.alpha, weights.lambda_, norm)


@pytest.mark.parametrize(("firsts", "growth"), [((0.1, 1.0, 10.0), 1.1), ((1.0, 10.0, 100.0), 1.01)])
def test_t10_same_objective_from_other_penalties(toy, monkeypatch, firsts, growth):
    """Up to the default; ten times the default needs slower growth, or it freezes early (SPEC 1.5)."""
    weights = weights_of(toy, 0.05)
    reached = []
    monkeypatch.setattr(module, "PENALTY_GROWTH", growth)
    monkeypatch.setattr(module, "FIRST_PENALTY_OF_ERRORS", np.inf)
    for first in firsts:
        monkeypatch.setattr(module, "FIRST_PENALTY", first)
        kernel = toy.engine.get(solve(toy, weights, max_iter=900).kernel)
        reached.append(consensus_objective(kernel, toy.kernels, weights.alpha, weights.lambda_))
    np.testing.assert_allclose(reached, reached[0], rtol=5e-4)


@pytest.mark.parametrize("alpha_rel", [0.005, 0.05, 0.3])
def test_the_shipped_schedule_ends_near_the_optimum(toy, alpha_rel, monkeypatch):
    """40 sweeps with the shipped penalties, against a slow schedule run to the end."""
    weights = weights_of(toy, alpha_rel)

    def reached(**options):
        kernel = toy.engine.get(solve(toy, weights, **options).kernel)
        return consensus_objective(kernel, toy.kernels, weights.alpha, weights.lambda_)

    quick = reached(max_iter=40)
    monkeypatch.setattr(module, "PENALTY_GROWTH", 1.01)
    assert quick <= reached(max_iter=900) * 1.005


@pytest.mark.parametrize("norm", ["l21", "l1"])
def test_admm_solution_satisfies_the_optimality_conditions(toy, norm, monkeypatch):
    """No small feasible change of the kernel lowers the convex objective: checked in many directions."""
    monkeypatch.setattr(module, "PENALTY_GROWTH", 1.03)
    weights = weights_of(toy, 0.05, error_norm=norm)
    kernel = toy.engine.get(solve(toy, weights, max_iter=800).kernel)
    reached = consensus_objective(kernel, toy.kernels, weights.alpha, weights.lambda_, norm)
    rng = np.random.default_rng(0)
    directions = [toy.kernel - kernel, -kernel, *(K - kernel for K in toy.kernels)]
    directions += [rng.standard_normal(kernel.shape) * kernel for _ in range(10)]
    for direction in directions:
        for step in (1e-1, 1e-2, 1e-3):
            moved = np.maximum(kernel + step * direction, 0.0)
            assert consensus_objective(moved, toy.kernels, weights.alpha, weights.lambda_, norm) > reached * (1 - 1e-6)


@pytest.mark.parametrize("alpha_rel", [0.05, 0.1, 0.3, 0.6])
def test_t11_rank_is_bounded_by_the_relative_weight(toy, alpha_rel):
    """rank <= 1 / alpha_rel^2 (SPEC 1.6)."""
    assert solve(toy, weights_of(toy, alpha_rel)).rank <= 1 / alpha_rel**2


def test_zero_is_found_where_it_is_the_solution(toy):
    """lambda |sum of row-normalised kernels|_2 <= alpha makes Khat = 0 optimal (SPEC 1.6)."""
    weights = weights_of(toy, 1.2)
    unit = sum(K / np.linalg.norm(K, axis=1, keepdims=True) for K in toy.kernels)
    assert np.linalg.norm(unit, 2) * weights.lambda_ <= weights.alpha
    assert solve(toy, weights).rank == 0


def test_rank_falls_as_its_weight_grows_down_to_nothing(toy):
    ranks = [solve(toy, weights_of(toy, alpha_rel)).rank for alpha_rel in (0.02, 0.1, 0.3, 1.2)]
    assert ranks == sorted(ranks, reverse=True)
    assert ranks[0] > ranks[-1] == 0


def test_t12_coupled_step_converges_to_non_negative_least_squares():
    rng = np.random.default_rng(0)
    n, r, p, beta, penalty, n_voices = 20, 7, 3, 0.8, 0.65, 2
    strength = penalty * n_voices
    mean, W = rng.standard_normal((n, r)), rng.standard_normal((r, p))
    b, Y = rng.standard_normal(p), rng.standard_normal((n, p))
    pull = Pull(W, b, beta, 2 * beta * np.linalg.norm(W, 2) ** 2)

    def objective(kernel):
        return strength / 2 * ((kernel - mean) ** 2).sum() + beta * ((kernel @ W + b - Y) ** 2).sum()

    kernel, values = np.abs(mean), []
    for _ in range(2_000):
        values.append(objective(kernel))
        kernel = k_step(kernel, n_voices * (mean - kernel), pull, kernel @ W + b - Y, penalty, n_voices)
    left = np.vstack([np.sqrt(strength / 2) * np.eye(r), np.sqrt(beta) * W.T])
    right = np.hstack([np.sqrt(strength / 2) * mean, np.sqrt(beta) * (Y - b)])
    exact = np.array([nnls(left, row)[0] for row in right])
    np.testing.assert_allclose(kernel, exact, atol=1e-8)
    assert (np.diff(values) <= 1e-9).all()
    assert (exact == 0).any()  # the constraint bites, so clipping the unconstrained solution would be another answer


def plain_admm(toy, weights, n_sweeps):
    """The sweeps written out with E, Q and multipliers as in the paper (samples as rows); residuals of every sweep."""
    K, alpha, lambda_ = toy.kernels, weights.alpha, weights.lambda_
    M, Khat = len(K), np.mean(K, axis=0)
    size = np.linalg.norm(Khat, 2)
    mu = min(10 * alpha / size, 2 * lambda_ * np.sqrt(len(Khat)) / size)
    A, B, residuals = [np.zeros_like(Khat) for _ in K], np.zeros_like(Khat), []
    for _ in range(n_sweeps):
        U, s, Vt = np.linalg.svd(Khat + B / mu, full_matrices=False)
        Q = (U * np.maximum(s - alpha / mu, 0)) @ Vt
        V = [K_m - Khat - A_m / mu for K_m, A_m in zip(K, A, strict=True)]
        E = [v * np.maximum(0, 1 - (lambda_ / mu) / np.linalg.norm(v, axis=1, keepdims=True)) for v in V]
        C = (Q - B / mu + sum(K_m - E_m - A_m / mu for K_m, E_m, A_m in zip(K, E, A, strict=True))) / (M + 1)
        Khat = np.maximum(C, 0)
        gaps = [Khat + E_m - K_m for E_m, K_m in zip(E, K, strict=True)] + [Khat - Q]
        A, B = [A_m + mu * gap for A_m, gap in zip(A, gaps[:-1], strict=True)], B + mu * gaps[-1]
        residuals.append(max(np.abs(gap).max() for gap in gaps))
        mu *= 1.1
    return Khat, residuals


def test_sweeps_and_residuals_are_those_of_the_admm_written_out(toy):
    weights = weights_of(toy, 0.05)
    solution = solve(toy, weights, max_iter=12, tol=0.0)
    kernel, residuals = plain_admm(toy, weights, 12)
    np.testing.assert_allclose(toy.engine.get(solution.kernel), kernel, atol=1e-9)
    np.testing.assert_allclose([facts["residual"] for facts in solution.history], residuals, rtol=1e-6, atol=1e-9)


def test_the_penalty_stops_growing_at_its_bound(toy, monkeypatch):
    weights = weights_of(toy, 0.05)
    monkeypatch.setattr(module, "LARGEST_GROWTH", 1.0)
    bounded = toy.engine.get(solve(toy, weights, max_iter=15).kernel)
    monkeypatch.setattr(module, "PENALTY_GROWTH", 1.0)
    np.testing.assert_array_equal(bounded, toy.engine.get(solve(toy, weights, max_iter=15).kernel))


def test_uncoupled_step_clips():
    kernel, mean = np.array([[0.5, 0.5]]), np.array([[-1.0, 2.0]])
    assert k_step(kernel, 3 * (mean - kernel), None, None, 1.7, 3).tolist() == [[0.0, 2.0]]


def test_coupling_changes_the_consensus_and_fits_the_targets_better(toy):
    free, joint = (
        solve(toy, weights_of(toy, 0.05), max_iter=60),
        solve(toy, weights_of(toy, 0.05, is_coupled=True), max_iter=60),
    )
    assert not np.allclose(toy.engine.get(free.kernel), toy.engine.get(joint.kernel))
    assert joint.history[-1]["objective"] < joint.history[0]["objective"]


def test_kernels_that_agree_are_their_own_consensus(toy):
    """With equal views and next to no weight on the rank nothing is left to mend."""
    same = make_toy(n=80, n_views=2)
    same.kernels = [same.kernels[0]] * 2
    kernel = same.engine.get(solve(same, weights_of(same, 1e-6)).kernel)
    np.testing.assert_allclose(kernel, same.kernels[0], atol=1e-4)


def test_a_broken_view_is_overruled_by_two_good_ones():
    """20 % of one view's rows are replaced by noise; the consensus stays with the other two views."""
    toy = make_toy(n=150, n_views=1)
    good = toy.kernels[0]
    rng = np.random.default_rng(3)
    broken = good.copy()
    rows = rng.choice(len(good), 30, replace=False)
    broken[rows] = rng.random((30, good.shape[1]))
    toy.kernels = [good, good.copy(), broken]
    kernel = toy.engine.get(solve(toy, weights_of(toy, 0.005)).kernel)
    wrong = np.linalg.norm((kernel - good)[rows], axis=1)
    assert wrong.max() < 0.2 * np.linalg.norm((np.mean(toy.kernels, axis=0) - good)[rows], axis=1).mean()


def test_no_sweeps_keep_the_mean_kernel(toy):
    solution = solve(toy, weights_of(toy, 0.05), max_iter=0)
    np.testing.assert_allclose(toy.engine.get(solution.kernel), toy.kernel)
    assert solution.history == []


def test_history_and_progress_tell_the_same(toy):
    seen = []
    solution = solve(toy, weights_of(toy, 0.05), max_iter=5, progress=seen.append)
    assert seen == solution.history
    assert set(seen[0]) == {"objective", "residual", "rank", "seconds"}


def test_history_objective_is_the_objective(toy):
    """At the start the kernel is the mean kernel, whose objective can be written down."""
    weights = weights_of(toy, 0.05)
    first = solve(toy, weights, max_iter=1).history[0]["objective"]
    assert first == pytest.approx(consensus_objective(toy.kernel, toy.kernels, weights.alpha, weights.lambda_))


def test_blocks_do_not_change_the_consensus(toy):
    answers = []
    for rows in (11, 64, 1000):
        other = make_toy(n=150, n_views=3, block_rows=rows)
        answers.append(other.engine.get(solve(other, weights_of(other, 0.05, is_coupled=True), max_iter=20).kernel))
    for answer in answers[1:]:
        np.testing.assert_allclose(answer, answers[0], atol=1e-7)


def test_state_bytes_count_what_is_kept():
    """Kernels float32, consensus and duals float64, targets float64."""
    assert state_bytes_per_row(10, 3, 16) == 10 * (3 * 4 + 5 * 8) + 16 * 8


def test_thin_products_give_the_sweeps_of_square_ones(toy, monkeypatch):
    weights = weights_of(toy, 0.2)
    found = []
    for low in (0.0, 1.0):
        monkeypatch.setattr("quorumhash.sweeps.LOW", low)
        solution = solve(toy, weights, max_iter=12)
        assert 0 < solution.rank < len(solution.projection)
        found.append(toy.engine.get(solution.kernel))
    np.testing.assert_allclose(found[1], found[0], atol=1e-10)
