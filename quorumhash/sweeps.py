"""One block of one sweep of the consensus ADMM: what happens to a few rows (consensus.py tells the whole story)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace, device, is_numpy_array

from quorumhash.proximal import SpectralShrinkage, row_norms, row_shrinkage, shrink_entries

FloatArray = npt.NDArray[np.float64]

SLICE_ROWS = 512  # smaller slices fit the cache better, but threads then wait for the interpreter's lock


@dataclass(frozen=True)
class Sweep:
    """The small numbers of one sweep, the same for every block."""

    left: (
        FloatArray  # (R, r), with right (r, R) the operator of the singular-value step; or (R, R), it less the identity
    )
    right: FloatArray | None
    error_threshold: float
    penalty: float
    next_dual_scale: float  # penalty / next penalty, because duals are kept divided by it


LOW = 0.25  # rank over R below which two thin products, and a pass more, are quicker than one square product


def low_rank_factors(shrinkage: SpectralShrinkage) -> tuple[FloatArray, FloatArray | None]:
    """`left` and `right` of a Sweep."""
    if shrinkage.rank <= LOW * len(shrinkage.basis):
        return shrinkage.basis * shrinkage.factors, shrinkage.basis.T
    return shrinkage.operator - np.eye(len(shrinkage.basis)), None


def _low_rank_move(sweep: Sweep, block: Any) -> Any:
    """What the singular-value step makes of rows, less the rows themselves."""
    if sweep.right is None:
        return block @ sweep.left
    move = (block @ sweep.left) @ sweep.right
    move -= block
    return move


@dataclass(frozen=True)
class Pull:
    """How the targets pull on the consensus in a coupled K-step."""

    projection: FloatArray
    bias: FloatArray
    beta: float
    curvature: float  # 2 beta |W|_2^2, a bound on the second derivative


def sweep_rows(sweep: Sweep, error_norm: str, pull: Pull | None, targets: Any, kernel: Any, *rest: Any) -> Any:
    """One block of a sweep, in place: kernel, duals, and facts (1, 3): largest residual; error norm and misfit before.

    Walked in slices small enough for a processor's cache: a sweep is some thirty passes over a slice and three
    products. A device takes the block whole: it waits for every call, and its cache holds no slice worth a call.
    """
    xp = array_namespace(kernel)
    slice_rows = SLICE_ROWS if str(device(kernel)) == "cpu" else max(kernel.shape[0], 1)
    n_views = len(rest) // 2
    facts = []
    for start in range(0, kernel.shape[0], slice_rows):
        rows = slice(start, start + slice_rows)
        parts = [part[rows] for part in rest]
        wanted = None if targets is None else targets[rows]
        facts.append(
            _sweep_slice(sweep, error_norm, pull, wanted, kernel[rows], parts[: n_views + 1], parts[n_views + 1 :])
        )
    together = xp.stack([xp.stack(column) for column in zip(*facts, strict=True)])
    summary = xp.stack([xp.max(together[0]), xp.sum(together[1]), xp.sum(together[2])])
    return kernel, *rest[: n_views + 1], summary[None, :]


def _sweep_slice(
    sweep: Sweep,
    error_norm: str,
    pull: Pull | None,
    targets: Any,
    kernel: Any,
    duals: Sequence[Any],
    views: Sequence[Any],
) -> Any:
    """Moves are proposals minus the current kernel; Khat takes the mean move, then each dual is what was refused it."""
    xp = array_namespace(kernel)
    moves = [_low_rank_move(sweep, kernel - duals[0])]
    error = 0.0
    for view, dual in zip(views, duals[1:], strict=True):
        move = view - kernel
        error = error + _size(move, error_norm)
        move += dual
        moves.append(_less_error(move, sweep.error_threshold, error_norm))
    total = moves[0] + moves[1]
    for move in moves[2:]:
        total += move
    misfit = None if pull is None else kernel @ pull.projection + (pull.bias - targets)
    new = k_step(kernel, total, pull, misfit, sweep.penalty, len(moves))
    kernel -= new
    residuals = []
    for move, dual in zip(moves, duals, strict=True):
        move += kernel  # the proposal minus the new kernel
        dual -= move  # the primal residual of this voice
        residuals.append(_largest(dual))
        xp.multiply(move, sweep.next_dual_scale, out=dual)
    kernel[...] = new
    return xp.max(xp.stack(residuals)), error, 0.0 * error if misfit is None else xp.sum(misfit**2)


def k_step(kernel: Any, total_move: Any, pull: Pull | None, misfit: Any, penalty: float, n_voices: int) -> Any:
    """Khat nearest to the mean proposal, non-negative; coupled, also to what gives the targets.

    Minimises penalty / 2 sum |Khat - proposal|^2 + beta |Khat W + 1 b - Y|^2 over Khat >= 0 by one majorised step from
    the current kernel, whose misfit Khat W + 1 b - Y is given: the last term is replaced by its bound with curvature
    2 beta |W|^2, which touches it there. The step never raises the objective and its fixed point is the exact solution;
    clipping the unconstrained solution is not (W W^T is not diagonal). Changes `total_move` in place.
    """
    curvature = penalty * n_voices + (0.0 if pull is None else pull.curvature)
    total_move *= penalty / curvature
    if pull is not None:
        total_move += (misfit * (-2.0 * pull.beta / curvature)) @ pull.projection.T
    total_move += kernel
    return total_move.clip(0.0, None)


def _less_error(block: Any, threshold: float, error_norm: str) -> Any:
    """v - shrink(v), what stays of v when its error is taken out; in place where that is quicker."""
    if error_norm == "l1":
        return block - shrink_entries(block, threshold)
    block *= 1.0 - row_shrinkage(block, threshold)[:, None]
    return block


def _largest(block: Any) -> Any:
    """The largest absolute value."""
    if is_numpy_array(block):
        return np.maximum(block.max(), -block.min())
    xp = array_namespace(block)
    return xp.linalg.vector_norm(block, ord=xp.inf)  # one pass


def _size(block: Any, error_norm: str) -> Any:
    xp = array_namespace(block)
    return xp.sum(row_norms(block)) if error_norm == "l21" else xp.sum(xp.abs(block))
