"""A sweep's work row by row as one Triton kernel: on a device a sweep waits for memory, not for arithmetic.

Written as array code (sweeps.py) it reads or writes some seventy times the state of one voice; here every number of the
state is read once and written once. One program takes a few rows whole, because an error's size is that of its row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from array_api_compat import array_namespace

try:
    import triton
    import triton.language as tl
except ImportError:  # it comes with the CUDA build of torch only
    triton = None

WIDEST = 4096  # columns that a program holds at once
ROWS, WARPS = 2, 4  # of a program; the quickest of those tried (benchmarks/speed/gpu.py)


if triton is not None:

    @triton.jit
    def _sweep(  # type: ignore[no-untyped-def]
        kernel, shown, low_rank, pulled, duals, views, numbers, residuals, errors, n_rows, n_columns, n_views,
        VIEW: tl.constexpr, BY_ROWS: tl.constexpr, IS_PULLED: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr,
    ):  # fmt: skip
        """`duals` and `views` are addresses of matrices (n_rows, n_columns), as those before are."""
        rows, columns = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, WIDTH)
        inside = (rows < n_rows)[:, None] & (columns < n_columns)[None, :]
        at = rows.to(tl.int64)[:, None] * n_columns + columns[None, :]
        threshold, share, scale = tl.load(numbers), tl.load(numbers + 1), tl.load(numbers + 2)
        old = tl.load(kernel + at, mask=inside, other=0.0)
        low = tl.load(low_rank + at, mask=inside, other=0.0)
        total, error = low, tl.zeros((ROWS,), dtype=tl.float64)
        for m in range(n_views):
            view = tl.load(tl.load(views + m).to(tl.pointer_type(VIEW)) + at, mask=inside, other=0.0).to(tl.float64)
            dual = tl.load(tl.load(duals + m).to(tl.pointer_type(tl.float64)) + at, mask=inside, other=0.0)
            total += _less_error(view - old + dual, threshold, BY_ROWS)
            error += tl.sqrt(tl.sum((view - old) * (view - old), 1)) if BY_ROWS else tl.sum(tl.abs(view - old), 1)
        new = total * share + old
        if IS_PULLED:
            new += tl.load(pulled + at, mask=inside, other=0.0)
        new = tl.maximum(new, 0.0)
        before = tl.load(shown + at, mask=inside, other=0.0)
        residual = tl.max(tl.abs(before + low - new), 1)
        tl.store(shown + at, new - scale * (low + (old - new)), mask=inside)
        for m in range(n_views):
            view = tl.load(tl.load(views + m).to(tl.pointer_type(VIEW)) + at, mask=inside, other=0.0).to(tl.float64)
            address = tl.load(duals + m).to(tl.pointer_type(tl.float64)) + at
            dual = tl.load(address, mask=inside, other=0.0)
            now = _less_error(view - old + dual, threshold, BY_ROWS) + (old - new)
            residual = tl.maximum(residual, tl.max(tl.abs(dual - now), 1))
            tl.store(address, now * scale, mask=inside)
        tl.store(kernel + at, new, mask=inside)
        tl.store(residuals + rows, residual, mask=rows < n_rows)
        tl.store(errors + rows, error, mask=rows < n_rows)

    @triton.jit
    def _less_error(block, threshold, BY_ROWS: tl.constexpr):  # type: ignore[no-untyped-def]
        """What stays of rows when their error is taken out."""
        if BY_ROWS:
            norms = tl.sqrt(tl.sum(block * block, 1))
            kept = 1.0 - tl.maximum(1.0 - threshold / tl.where(norms > 0, norms, 1.0), 0.0)
            block = block * kept[:, None]
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
    shape: tuple[int, int] = (ROWS, WARPS),
) -> tuple[Any, Any]:
    """New Khat, Khat - dual_0 and duals (n, R) in place; largest residual and sum of error norms, as scalars.

    `numbers`: threshold of the errors, share of the moves that Khat takes, factor of the new duals. `low_rank` and
    `pulled` (n, R) are how far the low-rank voice and the targets move it.
    """
    n_rows, n_columns = kernel.shape
    residuals, errors = kernel.new_empty(n_rows), kernel.new_empty(n_rows)
    whole = array_namespace(kernel).int64
    addresses = [kernel.new_tensor([part.data_ptr() for part in parts], dtype=whole) for parts in (duals, views)]
    kinds = {4: tl.float32, 8: tl.float64}
    _sweep[(-(-n_rows // shape[0]),)](
        kernel, shown, low_rank, kernel if pulled is None else pulled, *addresses, kernel.new_tensor(numbers),
        residuals, errors, n_rows, n_columns, len(views), VIEW=kinds[views[0].itemsize], BY_ROWS=error_norm == "l21",
        IS_PULLED=pulled is not None, ROWS=shape[0], WIDTH=triton.next_power_of_2(n_columns), num_warps=shape[1],
    )  # fmt: skip
    return residuals.max(), errors.sum()
