"""One matrix of one view: what is accepted, what is refused, and which of its values are missing.

Used by the gate (views.py) alone. Matrices are kept as they came (dtype, order, memory map, sparse, tensor on a
device); nothing is copied unless it has to be. A sentence of refusal names the view and the place.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.errors import ViewsError, ViewsTypeError
from quorumhash.tensors import host_array, is_tensor, tensor_presence

Matrix = Any  # 2-D numpy array (or memory map) of numbers, a scipy CSR matrix, or a torch tensor

LARGEST_VALUE = 1e100  # beyond this, squared distances overflow
SCAN_VALUES = 4_000_000  # values looked at in one go, so that a memory map is never read whole


def is_sparse(matrix: Matrix) -> bool:
    """Whether this is a scipy sparse matrix or array (without importing scipy)."""
    return hasattr(matrix, "tocsr")


def is_sharded(matrix: Matrix) -> bool:
    """Whether these are rows of several files (shardedrows.py), read when they are asked for."""
    return hasattr(matrix, "scanned_presence")


def dense_rows(matrix: Matrix, rows: slice | npt.NDArray[np.intp]) -> npt.NDArray[Any]:
    """Rows of a matrix as an ordinary 2-D array, in the matrix's own dtype."""
    part = matrix[rows]
    if is_tensor(part):
        return host_array(part)
    return np.asarray(part.toarray() if is_sparse(part) else part)


def as_matrix(name: str, value: Any) -> Matrix:
    """Turn one view as given into a 2-D array of numbers, a CSR matrix or a plain tensor, or refuse it."""
    if is_tensor(value):
        matrix = _plain_tensor(name, value)
    elif is_sharded(value):
        matrix = value
    elif is_sparse(value):
        matrix = value.tocsr()
        if not matrix.has_canonical_format:  # an entry given twice is the sum of both, also where one is NaN
            matrix = matrix.copy()
            matrix.sum_duplicates()
    elif hasattr(value, "iloc"):
        matrix = _from_frame(name, value)
    elif isinstance(value, np.ma.MaskedArray):
        numbers = _to_numbers(name, np.ma.getdata(value)) if value.dtype.kind not in "fiub" else np.ma.getdata(value)
        matrix = np.where(np.ma.getmaskarray(value), np.nan, numbers.astype(np.float64))
    elif isinstance(value, np.ndarray):
        matrix = value if isinstance(value, np.memmap) else np.asarray(value)
    else:
        matrix = _from_sequence(name, value)
    if matrix.ndim != 2:
        raise ViewsError(
            f"view {name!r} must be 2-D (rows are items, columns are features), got {matrix.ndim}-D of "
            f"shape {tuple(matrix.shape)}. Reshape your data: array.reshape(-1, 1) for one feature, (1, -1) for one "
            "item."
        )
    if not is_tensor(matrix) and matrix.dtype.kind not in "fiub":
        matrix = _to_numbers(name, matrix)
    if matrix.shape[1] == 0:
        raise ViewsError(
            f"view {name!r} is empty: it has 0 feature(s) (shape={tuple(matrix.shape)}) while a minimum of 1 is "
            "required."
        )
    return matrix


def _plain_tensor(name: str, tensor: Any) -> Any:
    if str(tensor.layout) != "torch.strided":
        raise ViewsError(f"view {name!r} is a sparse tensor: give a dense one, or a scipy CSR matrix.")
    if tensor.is_complex():
        raise ViewsError(f"view {name!r}: Complex data not supported; give real and imaginary parts as features.")
    return tensor.detach()


def _from_sequence(name: str, value: Any) -> npt.NDArray[Any]:
    try:
        return np.asarray(value)
    except ValueError as error:
        raise ViewsError(f"view {name!r} is ragged: every row must have the same number of features.") from error


def _from_frame(name: str, frame: Any) -> npt.NDArray[Any]:
    for column, dtype in zip(getattr(frame, "columns", ()), getattr(frame, "dtypes", ()), strict=False):
        if dtype.kind not in "fiub":
            raise ViewsTypeError(
                f"view {name!r}, column {column!r}: every column must hold numbers, got {dtype}; "
                "leave the column out or encode it first."
            )
    return np.asarray(frame.to_numpy(dtype=np.float64, na_value=np.nan))


def _to_numbers(name: str, matrix: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    if matrix.dtype.kind == "c":
        raise ViewsError(f"view {name!r}: Complex data not supported; give real and imaginary parts as features.")
    if matrix.dtype.kind == "O" and not any(isinstance(value, str | bytes) for value in matrix.flat):
        try:
            return matrix.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            pass
    row, column = _first_non_number(matrix)
    raise ViewsTypeError(
        f"view {name!r}, row {row}, column {column}: every argument must be a real number, not a string or another "
        f"object that is no number, got {matrix[row, column]!r}; encode text as features first."
    )


def _first_non_number(matrix: npt.NDArray[Any]) -> tuple[int, int]:
    for row, values in enumerate(matrix):
        for column, value in enumerate(values):
            try:
                float(value + 0)  # a text such as "1.5" is text
            except (TypeError, ValueError, OverflowError):
                return row, column
    return 0, 0


def present_rows(name: str, matrix: Matrix) -> tuple[npt.NDArray[np.bool_], bool]:
    """Read a matrix once: which rows hold any value, and whether any value is missing. Refuses inf."""
    if is_tensor(matrix):
        present, any_missing, wrong = tensor_presence(matrix, LARGEST_VALUE)
        if wrong is not None:
            _refuse_value(name, *wrong)
        return present, any_missing
    if is_sharded(matrix):
        present, any_missing, wrong = matrix.scanned_presence()
        if wrong is not None:
            _refuse_value(name, *wrong)
        return present, any_missing
    present = np.ones(matrix.shape[0], dtype=bool)
    if matrix.dtype.kind != "f":
        return present, False
    if is_sparse(matrix):
        place = _first_too_large(matrix.data)
        if place is not None:
            row = int(np.searchsorted(matrix.indptr, place[0], side="right")) - 1
            _refuse_value(name, row, int(matrix.indices[place[0]]), matrix.data[place[0]])
        missing = np.isnan(matrix.data)
        rows = np.repeat(np.arange(len(present)), np.diff(matrix.indptr))[missing]
        return np.bincount(rows, minlength=len(present)) < matrix.shape[1], bool(missing.any())
    any_missing = False
    for rows in _row_slices(matrix.shape):
        block = matrix[rows]
        present[rows], is_missing, place = block_presence(block)
        any_missing |= is_missing
        if place is not None:
            _refuse_value(name, rows.start + place[0], place[1], block[place])
    return present, any_missing


def block_presence(block: npt.NDArray[Any]) -> tuple[npt.NDArray[np.bool_], bool, tuple[int, int] | None]:
    """Which rows of a block hold any value, whether any is missing, and the place of one that is too large."""
    present = np.ones(len(block), dtype=bool)
    if block.dtype.kind != "f":
        return present, False, None
    place = _first_too_large(block)
    missing = np.isnan(block)
    if not missing.any():
        return present, False, place
    return ~missing.all(axis=1), True, place


def _row_slices(shape: tuple[int, int]) -> Iterator[slice]:
    step = max(1, SCAN_VALUES // shape[1])
    for start in range(0, shape[0], step):
        yield slice(start, min(start + step, shape[0]))


def _first_too_large(values: npt.NDArray[Any]) -> Any:
    if values.size == 0:
        return None
    limit = min(LARGEST_VALUE, float(np.finfo(values.dtype).max))
    with np.errstate(invalid="ignore"):
        too_large = np.abs(values) > limit  # True for inf, False for NaN
    if not too_large.any():
        return None
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(too_large)), values.shape))


def _refuse_value(name: str, row: int, column: int, value: Any) -> None:
    what = "inf" if np.isinf(value) else f"{value:g}, too large to take a distance of"
    raise ViewsError(
        f"view {name!r}, row {row}, column {column}: values must be finite numbers up to {LARGEST_VALUE:g} or NaN for "
        f"missing, got {what}; replace infinity and such values by NaN or mend them."
    )
