"""One block of one sweep of the consensus ADMM: what happens to a few rows (consensus.py tells the whole story)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace, device, is_numpy_array, is_torch_array

from quorumhash._native import kernels
from quorumhash.proximal import SpectralShrinkage, row_norms, row_shrinkage, shrink_entries

FloatArray = npt.NDArray[np.float64]
OnePass = Callable[..., tuple[Any, Any]]  # as sweepkernel.sweep_together

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


def _low_rank_move(sweep: Sweep, shown: Any) -> Any:
    """What the singular-value step makes of rows, less the rows themselves."""
    if sweep.right is None:
        return shown @ sweep.left
    move = (shown @ sweep.left) @ sweep.right
    move -= shown
    return move


@dataclass(frozen=True)
class Pull:
    """How the targets pull on the consensus in a coupled K-step."""

    projection: FloatArray
    bias: FloatArray
    beta: float
    curvature: float  # 2 beta |W|_2^2, a bound on the second derivative


def sweep_rows(
    sweep: Sweep, error_norm: str, pull: Pull | None, targets: Any, kernel: Any, shown: Any, *rest: Any
) -> Any:
    """One block of a sweep, in place: Khat, Khat - dual_0, duals of the views; and facts (1, 3): largest residual;
    error norm and misfit before.

    Walked in slices small enough for a processor's cache: a sweep is some thirty passes over a slice and three
    products. A device takes the block whole: it waits for every call, and its cache holds no slice worth a call. Where
    C was compiled, or on a device Triton is installed, the thirty are one (_native/sweep.c, sweepkernel.py).
    """
    xp, n_views = array_namespace(kernel), len(rest) // 2
    slice_rows = SLICE_ROWS if str(device(kernel)) == "cpu" else max(kernel.shape[0], 1)
    one_pass = _one_pass(kernel, shown, *rest)
    swept = partial(_fused_slice, one_pass) if one_pass else _sweep_slice
    facts = []
    for start in range(0, kernel.shape[0], slice_rows):
        rows = slice(start, start + slice_rows)
        parts = [part[rows] for part in rest]
        misfit = None if pull is None else kernel[rows] @ pull.projection + (pull.bias - targets[rows])
        moved = swept(sweep, error_norm, pull, misfit, kernel[rows], shown[rows], (parts[:n_views], parts[n_views:]))
        facts.append((*moved, 0.0 * moved[1] if misfit is None else xp.sum(misfit**2)))
    together = xp.stack([xp.stack(column) for column in zip(*facts, strict=True)])
    summary = xp.stack([xp.max(together[0]), xp.sum(together[1]), xp.sum(together[2])])
    return kernel, shown, *rest[:n_views], summary[None, :]


def _sweep_slice(
    sweep: Sweep,
    error_norm: str,
    pull: Pull | None,
    misfit: Any,
    kernel: Any,
    shown: Any,
    duals_and_views: tuple[Sequence[Any], Sequence[Any]],
) -> tuple[Any, Any]:
    """Moves are proposals minus the current kernel; Khat takes the mean move, then each dual is what was refused it."""
    xp = array_namespace(kernel)
    low_rank = _low_rank_move(sweep, shown)
    moves, error = [], 0.0
    for dual, view in zip(*duals_and_views, strict=True):
        move = view - kernel
        error = error + _size(move, error_norm)
        move += dual
        moves.append(_less_error(move, sweep.error_threshold, error_norm))
    total = low_rank + moves[0]
    for move in moves[1:]:
        total += move
    new = k_step(kernel, total, pull, misfit, sweep.penalty, 1 + len(moves))
    shown += low_rank  # Q
    shown -= new
    residuals = [_largest(shown)]
    kernel -= new
    low_rank += kernel  # dual_0
    xp.multiply(low_rank, -sweep.next_dual_scale, out=shown)
    shown += new
    for move, dual in zip(moves, duals_and_views[0], strict=True):
        move += kernel  # the proposal minus the new kernel
        dual -= move  # the primal residual of this voice
        residuals.append(_largest(dual))
        xp.multiply(move, sweep.next_dual_scale, out=dual)
    kernel[...] = new
    return xp.max(xp.stack(residuals)), error


def _one_pass(*blocks: Any) -> OnePass | None:
    """What sweeps these blocks in one pass over memory, where something does."""
    if is_numpy_array(blocks[0]):
        return kernels.sweep_together if kernels.serves_sweep(*blocks) else None
    if not is_torch_array(blocks[0]) or not blocks[0].is_cuda:
        return None
    from quorumhash import sweepkernel  # where there is a device, so that Triton is not loaded in vain

    return sweepkernel.sweep_together if sweepkernel.serves(*blocks) else None


def _fused_slice(
    one_pass: OnePass,
    sweep: Sweep,
    error_norm: str,
    pull: Pull | None,
    misfit: Any,
    kernel: Any,
    shown: Any,
    duals_and_views: tuple[Sequence[Any], Sequence[Any]],
) -> tuple[Any, Any]:
    """The same; what follows the products is one pass over memory."""
    share, pulled = pulls(pull, misfit, sweep.penalty, 1 + len(duals_and_views[0]))
    numbers = sweep.error_threshold, share, sweep.next_dual_scale
    low_rank = _low_rank_move(sweep, shown)
    return one_pass(error_norm, numbers, kernel, shown, low_rank, pulled, *duals_and_views)


def k_step(kernel: Any, total_move: Any, pull: Pull | None, misfit: Any, penalty: float, n_voices: int) -> Any:
    """Khat nearest to the mean proposal, non-negative; coupled, also to what gives the targets.

    Minimises penalty / 2 sum |Khat - proposal|^2 + beta |Khat W + 1 b - Y|^2 over Khat >= 0 by one majorised step from
    the current kernel, whose misfit Khat W + 1 b - Y is given: the last term is replaced by its bound with curvature
    2 beta |W|^2, which touches it there. The step never raises the objective and its fixed point is the exact solution;
    clipping the unconstrained solution is not (W W^T is not diagonal). Changes `total_move` in place.
    """
    share, pulled = pulls(pull, misfit, penalty, n_voices)
    total_move *= share
    if pulled is not None:
        total_move += pulled
    total_move += kernel
    return total_move.clip(0.0, None)


def pulls(pull: Pull | None, misfit: Any, penalty: float, n_voices: int) -> tuple[float, Any]:
    """How far Khat follows the sum of the voices' moves, and how far the targets move it (n, R); None: they do not."""
    curvature = penalty * n_voices + (0.0 if pull is None else pull.curvature)
    return penalty / curvature, None if pull is None else (misfit * (-2.0 * pull.beta / curvature)) @ pull.projection.T


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
