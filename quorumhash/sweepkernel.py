"""A sweep's work row by row as one Triton kernel: on a device a sweep waits for memory, not for arithmetic.

Written as array code (sweeps.py) it reads or writes some seventy times the state of one voice; here every number of the
state is read once and written once. One program takes a row whole, because an error's size is that of its row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

try:
    import triton
    import triton.language as tl
except ImportError:  # it comes with the CUDA build of torch only
    triton = None

WIDEST = 4096  # columns that a program holds at once
NUMBERS_A_WARP = 512  # of one view; the quickest of those tried: two views of 500 columns by two to four warps


if triton is not None:

    @triton.jit
    def _sweep(  # type: ignore[no-untyped-def]
        kernel, shown, low_rank, pulled, duals, views, numbers, residuals, errors, n_columns,
        N_VIEWS: tl.constexpr, BY_ROWS: tl.constexpr, IS_PULLED: tl.constexpr, WIDTH: tl.constexpr,
    ):  # fmt: skip
        """Row `program`. Everything is asked of memory before anything is waited for."""
        row, columns = tl.program_id(0), tl.arange(0, WIDTH)
        inside = columns < n_columns
        at = row.to(tl.int64) * n_columns + columns
        threshold, share, scale = tl.load(numbers), tl.load(numbers + 1), tl.load(numbers + 2)
        old = tl.load(kernel + at, mask=inside, other=0.0)
        low = tl.load(low_rank + at, mask=inside, other=0.0)
        before = tl.load(shown + at, mask=inside, other=0.0)
        new = old
        if IS_PULLED:
            new = old + tl.load(pulled + at, mask=inside, other=0.0)
        gaps, given, moves = (), (), ()  # grown by sums: Triton knows no star
        for m in tl.static_range(N_VIEWS):
            given = given + (tl.load(duals[m] + at, mask=inside, other=0.0),)  # type: ignore[assignment]  # noqa: RUF005
            gaps = gaps + (tl.load(views[m] + at, mask=inside, other=0.0).to(tl.float64) - old,)  # type: ignore[assignment]  # noqa: RUF005
        total, error = low, 0.0
        for m in tl.static_range(N_VIEWS):
            moves = moves + (_less_error(gaps[m] + given[m], threshold, BY_ROWS),)  # type: ignore[assignment]  # noqa: RUF005
            total += moves[m]
            error += tl.sqrt(tl.sum(gaps[m] * gaps[m], 0)) if BY_ROWS else tl.sum(tl.abs(gaps[m]), 0)
        new = tl.maximum(new + total * share, 0.0)
        refused = old - new
        tl.store(kernel + at, new, mask=inside)
        tl.store(shown + at, new - scale * (low + refused), mask=inside)
        worst = tl.abs(before + low - new)
        for m in tl.static_range(N_VIEWS):
            now = moves[m] + refused
            worst = tl.maximum(worst, tl.abs(given[m] - now))
            tl.store(duals[m] + at, now * scale, mask=inside)
        tl.store(residuals + row, tl.max(worst, 0))
        tl.store(errors + row, error)

    @triton.jit
    def _less_error(block, threshold, BY_ROWS: tl.constexpr):  # type: ignore[no-untyped-def]
        """What stays of a row when its error is taken out."""
        if BY_ROWS:
            norm = tl.sqrt(tl.sum(block * block, 0))
            block = block * (1.0 - tl.maximum(1.0 - threshold / tl.where(norm > 0, norm, 1.0), 0.0))
        else:
            block = tl.minimum(tl.maximum(block, -threshold), threshold)
        return block


def is_available() -> bool:
    """Whether Triton is installed."""
    return triton is not None


def serves(*blocks: Any) -> bool:
    """Whether blocks on a device can be swept together: rows whole in memory, not too wide."""
    return is_available() and blocks[0].shape[1] <= WIDEST and all(block.is_contiguous() for block in blocks)


def sweep_together(
    error_norm: str,
    numbers: tuple[float, float, float],
    kernel: Any,
    shown: Any,
    low_rank: Any,
    pulled: Any,
    duals: Sequence[Any],
    views: Sequence[Any],
) -> tuple[Any, Any]:
    """New Khat, Khat - dual_0 and duals (n, R) in place; largest residual and sum of error norms, as scalars.

    `numbers`: threshold of the errors, share of the moves that Khat takes, factor of the new duals. `low_rank` and
    `pulled` (n, R) are how far the low-rank voice and the targets move it.
    """
    n_rows, n_columns = kernel.shape
    residuals, errors = kernel.new_empty(n_rows), kernel.new_empty(n_rows)
    width = triton.next_power_of_2(n_columns)
    n_warps = min(16, max(4, triton.next_power_of_2(width * len(views) // NUMBERS_A_WARP)))
    _sweep[(n_rows,)](
        kernel, shown, low_rank, kernel if pulled is None else pulled, tuple(duals), tuple(views),
        kernel.new_tensor(numbers), residuals, errors, n_columns, N_VIEWS=len(views),
        BY_ROWS=error_norm == "l21", IS_PULLED=pulled is not None, WIDTH=width, num_warps=n_warps,
    )  # fmt: skip
    return residuals.max(), errors.sum()
