"""The paper's joint solver: one low-rank consensus of the views' kernels, and codes fitted to it together.

    minimise over Khat, E_1..E_M and the targets (targets.py)
        alpha |Khat|_*  +  lambda sum_m |E_m|_{2,1}  +  beta |Khat W + 1 b - Y|^2  + terms without Khat
    with K_m = Khat + E_m,  Khat >= 0         (N x R, samples as rows: |E|_{2,1} sums row norms)

Solved as a consensus ADMM. M + 1 voices each propose a kernel: view m proposes K_m minus its error, one
more voice proposes the low-rank kernel Q. Khat is the kernel nearest to their mean (and, coupled, to the targets);
each voice remembers how far it was overruled (its dual, divided by the penalty mu):

    proposal_m = Khat + v - shrink_rows(v, lambda / mu),  v = K_m + dual_m - Khat       [= K_m + dual_m - E_m]
    proposal_0 = shrink_singular_values(Khat - dual_0, alpha / mu) + dual_0             [= Q + dual_0]
    Khat       = K-step(mean of proposals)
    dual       = proposal - Khat

so the primal residuals K_m - Khat - E_m and Q - Khat are the changes of the duals. E_m and Q are never stored, and
dual_0 only as Khat - dual_0, which is what the next step is shown.

State per row: R numbers for Khat, Khat - dual_0 and each of M duals in float64, M kernels in float32, P targets in
float64.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace

from quorumhash.engines import Engine, Rows
from quorumhash.proximal import SpectralShrinkage, shrink_singular_values
from quorumhash.sweeps import Pull, Sweep, low_rank_factors, sweep_rows
from quorumhash.targets import (
    Graph,
    GraphFactors,
    KernelSums,
    Targets,
    cross_sums,
    graph_factors,
    kernel_sums,
    solve_targets,
    target_rows,
)

FloatArray = npt.NDArray[np.float64]
Progress = Callable[[dict[str, float]], None]

FIRST_PENALTY = 10.0  # times alpha / |mean kernel|_2, the low rank's own scale ...
FIRST_PENALTY_OF_ERRORS = 2.0  # ... but at most times lambda / typical error size, or heavy ranks freeze too early
PENALTY_GROWTH = 1.1
LARGEST_GROWTH = 1e8  # over all sweeps
SWEEPS_PER_TARGET = 4  # sweeps between two target steps; the eigenproblem costs more than a sweep on small data
RANK_FLOOR = 1e-6  # times |mean kernel|_2: singular values of the consensus below this are rounding


@dataclass(frozen=True)
class Weights:
    """The weights of the objective, in the paper's letters, and how its errors are measured."""

    alpha: float
    lambda_: float
    gamma: float
    beta: float
    delta: float
    error_norm: str = "l21"  # "l21": whole rows may be wrong; "l1": single entries
    is_coupled: bool = True  # whether the targets pull on the consensus (E8, E17)


@dataclass(frozen=True)
class Consensus:
    """The solution: the kernel all views agree on, the hash functions fitted to it, and how it was reached."""

    kernel: Rows  # (N, R) non-negative
    projection: FloatArray  # W (R, P)
    bias: FloatArray  # b (P,)
    basis: FloatArray  # (R, rank) span of the low-rank kernel
    history: list[dict[str, float]]

    @property
    def rank(self) -> int:
        """Rank of the low-rank kernel."""
        return int(self.basis.shape[1])


@dataclass(frozen=True)
class State:
    """What one sweep hands to the next."""

    kernel: Rows  # Khat
    shown: Rows  # Khat - dual_0, of which the low-rank voice shrinks the singular values
    duals: tuple[Rows, ...]  # of the views
    penalty: float
    largest_penalty: float
    norm: float  # |mean kernel|_2


@dataclass(frozen=True)
class Goal:
    """What the codes ask of the consensus until the next target step."""

    targets: Rows  # Y (N, P)
    pull: Pull
    fixed_cost: float  # the codes' part of the objective, less beta |Khat W + 1 b - Y|^2


def state_bytes_per_row(n_landmarks: int, n_views: int, n_bits: int) -> int:
    """Bytes of solver state per row of data: what `memory_budget` is compared with.

    >>> state_bytes_per_row(n_landmarks=300, n_views=2, n_bits=64)
    12512
    """
    return n_landmarks * (4 * n_views + 8 * (n_views + 2)) + 8 * n_bits


def solve_consensus(
    kernels: Sequence[Rows],
    graphs: Sequence[Graph],
    n_bits: int,
    weights: Weights,
    engine: Engine,
    *,
    max_iter: int = 40,
    tol: float = 1e-5,
    progress: Progress | None = None,
) -> Consensus:
    """Solve for the consensus kernel and the hash functions; `max_iter=0` keeps the mean kernel (no consensus step).

    Coupled, every fourth sweep starts from new targets. Uncoupled, nothing in the consensus depends on the targets, so
    the sweeps run first and the targets are solved once (E17: this is what the paper prints).
    """
    started = time.perf_counter()
    factors = graph_factors(graphs, weights.gamma, engine)
    state = _start(kernels, weights, engine)
    shrinkage, goal = None, None
    history: list[dict[str, float]] = []
    for sweep in range(max_iter):
        has_new_targets = weights.is_coupled and sweep % SWEEPS_PER_TARGET == 0
        spectrum, sums = _sums(state, factors, engine, for_targets=has_new_targets)
        floor = RANK_FLOOR * state.norm
        shrinkage = shrink_singular_values(spectrum, weights.alpha / state.penalty, floor, engine)
        if has_new_targets:
            goal = _new_goal(state, factors, sums, n_bits, weights, engine)
        state, told = _sweep(state, kernels, shrinkage, goal, weights, engine)
        nuclear_norm = _nuclear_norm(sums, state.kernel.n_rows)  # of before; a device is still at the sweep meanwhile
        facts = _facts(engine.get(told), goal, weights)
        facts["objective"] += weights.alpha * nuclear_norm
        facts |= {"rank": float(shrinkage.rank), "seconds": time.perf_counter() - started}
        history.append(facts)
        if progress is not None:
            progress(facts)
        if _is_done(history, tol):
            break
    spectrum, sums = _sums(state, factors, engine)
    targets = _solve(factors, sums, n_bits, weights, engine)
    basis = shrinkage.basis if shrinkage else shrink_singular_values(spectrum, 0.0, RANK_FLOOR * state.norm).basis
    return Consensus(state.kernel, targets.projection, targets.bias, basis, history)


def _solve(factors: GraphFactors, sums: KernelSums, n_bits: int, weights: Weights, engine: Engine) -> Targets:
    return solve_targets(factors, sums, n_bits, beta=weights.beta, delta=weights.delta, engine=engine)


def _new_goal(
    state: State, factors: GraphFactors, sums: KernelSums, n_bits: int, weights: Weights, engine: Engine
) -> Goal:
    targets = _solve(factors, sums, n_bits, weights, engine)
    rows = engine.map_rows(target_rows, state.kernel, targets, factors.sizes, *factors.walked())
    squares = np.linalg.eigvalsh(targets.projection.T @ targets.projection)  # of W's singular values
    curvature = 2.0 * weights.beta * float(squares[-1])
    pull = Pull(targets.projection, targets.bias, weights.beta, curvature)
    return Goal(rows, pull, targets.objective - weights.beta * targets.misfit)


def _start(kernels: Sequence[Rows], weights: Weights, engine: Engine) -> State:
    """Khat = mean of the kernels, duals zero."""
    kernel, shown, *duals = engine.map_rows(_first_rows, *kernels)
    gram = engine.sum_rows(_gram, kernel)
    norm = float(np.sqrt(np.linalg.eigvalsh(gram)[-1]))
    n_errors = kernel.n_rows * (1 if weights.error_norm == "l21" else len(gram))  # rows, or entries
    error_size = norm / np.sqrt(n_errors)
    penalty = min(FIRST_PENALTY * weights.alpha / norm, FIRST_PENALTY_OF_ERRORS * weights.lambda_ / error_size)
    return State(kernel, shown, tuple(duals), penalty, LARGEST_GROWTH * penalty, norm)


def mean_kernel(*kernels: Any) -> Any:
    """The mean of the views' kernels, float64."""
    xp = array_namespace(kernels[0])
    total = xp.astype(kernels[0], xp.float64, copy=True)
    for kernel in kernels[1:]:
        total += kernel
    total /= len(kernels)
    return total


def _first_rows(*kernels: Any) -> Any:
    mean = mean_kernel(*kernels)
    return mean, mean + 0.0, *(mean * 0.0 for _ in kernels)


def _gram(block: Any) -> Any:
    return block.T @ block


def _sums(
    state: State, factors: GraphFactors, engine: Engine, *, for_targets: bool = True
) -> tuple[FloatArray, KernelSums]:
    """One pass: the Gram matrix of what the singular-value step is shown, and the sums of the target step.

    What only the target step needs of the graphs, [G]^T K, is empty where there is none: it costs more than the rest.
    """
    sizes, walked = (factors.sizes, factors.walked()) if for_targets else ((), [])
    spectrum, gram, sums, cross = engine.sum_rows(_sum_block, sizes, state.kernel, state.shown, *walked)
    means = factors.means if for_targets else np.empty(0)
    return spectrum, kernel_sums(gram, sums, cross, means, state.kernel.n_rows)


def _sum_block(sizes: tuple[int, ...], kernel: Any, shown: Any, *pairs: Any) -> Any:
    cross = cross_sums(sizes, kernel, *pairs) if sizes else kernel[:0]
    return _gram(shown), _gram(kernel), kernel.sum(0), cross


def _nuclear_norm(sums: KernelSums, n_rows: int) -> float:
    squares = np.linalg.eigvalsh(sums.gram + n_rows * np.outer(sums.means, sums.means))
    return float(np.sum(np.sqrt(np.maximum(squares, 0.0))))


def _sweep(
    state: State,
    kernels: Sequence[Rows],
    shrinkage: SpectralShrinkage,
    goal: Goal | None,
    weights: Weights,
    engine: Engine,
) -> tuple[State, Rows]:
    """One sweep of the ADMM over all rows, and what its blocks tell of the state it started from (see `_facts`)."""
    next_penalty = min(PENALTY_GROWTH * state.penalty, state.largest_penalty)
    sweep = Sweep(
        *low_rank_factors(shrinkage), weights.lambda_ / state.penalty, state.penalty, state.penalty / next_penalty
    )
    pull, targets = (goal.pull, goal.targets) if goal else (None, None)
    old = [state.kernel, state.shown, *state.duals]
    kernel, shown, *duals, told = engine.map_rows(
        sweep_rows, sweep, weights.error_norm, pull, targets, *old, *kernels, reuse=old
    )
    return State(kernel, shown, tuple(duals), next_penalty, state.largest_penalty, state.norm), told


def _facts(told: FloatArray, goal: Goal | None, weights: Weights) -> dict[str, float]:
    """Largest residual of the sweep, and the objective before it less the rank's cost; `told` (n_blocks, 3)."""
    residuals, errors, misfits = told.T
    objective = weights.lambda_ * errors.sum() + (goal.fixed_cost + weights.beta * misfits.sum() if goal else 0.0)
    return {"objective": float(objective), "residual": float(residuals.max())}


def _is_done(history: Sequence[dict[str, float]], tol: float) -> bool:
    if len(history) < 2:
        return False
    before, now = history[-2]["objective"], history[-1]["objective"]
    return history[-1]["residual"] < tol and abs(now - before) <= tol * abs(before)
