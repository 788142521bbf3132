"""What the methods of an index take, checked once: codes, scores, ids, filters, numbers."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.codes import Bytes, n_bytes
from quorumhash.errors import ParameterError

Ids = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float64]
Filter = Callable[[Ids], npt.NDArray[np.bool_]]  # ids -> which of them may be found


def checked_number(value: Any, name: str, low: int, high: int | None = None) -> int:
    """A whole number from `low` to `high`."""
    try:
        number = operator.index(value)
    except TypeError:
        number = low - 1
    if isinstance(value, bool | np.bool_) or number < low or (high is not None and number > high):
        bounds = f"from {low} up" if high is None else f"from {low} to {high}"
        raise ParameterError(f"{name} must be a whole number {bounds}, got {value!r}.")
    return number


def checked_codes(codes: npt.ArrayLike, n_bits: int, name: str) -> Bytes:
    """Packed codes (n, n_bytes), contiguous; one code (n_bytes,) is a row of its own."""
    values = np.asarray(codes)
    width = n_bytes(n_bits)
    values = values[None] if values.ndim == 1 and len(values) else values
    if values.dtype != np.uint8 or values.ndim != 2 or values.shape[1] != width:
        raise ParameterError(
            f"{name} must be packed codes of {n_bits} bits, uint8 of shape (n, {width}), got {values.dtype} of shape "
            f"{np.shape(codes)}; give what transform returns."
        )
    unused = values[:, -1] & ((1 << (8 * width - n_bits)) - 1) if n_bits % 8 else None
    if unused is not None and unused.any():
        raise ParameterError(
            f"{name} of {n_bits} bits must end in zero bits, got set ones in row {np.flatnonzero(unused)[0]}; give the "
            "codes of a model with as many bits as the index."
        )
    return values if values.flags.c_contiguous else np.ascontiguousarray(values)


def running_ids(start: int, n_items: int) -> Ids:
    """Whole numbers from `start` on, (n_items,), as ids of items that were given none."""
    if start + n_items > 2**63:
        raise ParameterError(f"running ids must be below {2**63}, got {start:,} as the next; give ids.")
    return np.arange(start, start + n_items, dtype=np.int64)


def checked_scores(scores: npt.NDArray[Any], n_bits: int) -> Scores:
    """Real scores (q, n_bits), finite; those of one query (n_bits,) are a row of their own."""
    values = scores[None] if scores.ndim == 1 else scores
    if values.ndim != 2 or values.shape[1] != n_bits:
        raise ParameterError(
            f"query must be real scores of shape (n, {n_bits}), or packed codes of {n_bits} bits, got {values.dtype} "
            f"of shape {scores.shape}; give what decision_function or transform returns."
        )
    wrong = ~np.isfinite(values)
    if wrong.any():
        row, bit = np.argwhere(wrong)[0]
        raise ParameterError(
            f"query must be finite scores, got {values[row, bit]} at row {row}, bit {bit}; leave such rows out."
        )
    return values.astype(np.float64)


def checked_ids(ids: npt.ArrayLike, n_items: int | None = None) -> Ids:
    """Whole numbers (n,), each once; `n_items` of them where given."""
    values = np.asarray(ids)
    values = values[None] if values.ndim == 0 else values
    if not values.size:
        values = values.astype(np.int64)
    if values.dtype.kind not in "iu" or values.ndim != 1 or (values.dtype == np.uint64 and (values >> 63).any()):
        raise ParameterError(f"ids must be whole numbers of 64 bits, got {values.dtype} of shape {np.shape(ids)}.")
    if n_items is not None and len(values) != n_items:
        raise ParameterError(f"ids must be as many as codes, {n_items}, got {len(values)}; give one per row.")
    if len(values) > 1 and not (values[1:] > values[:-1]).all():
        ordered = np.sort(values)
        twice = ordered[1:][ordered[1:] == ordered[:-1]]
        if len(twice):
            raise ParameterError(f"ids must be given once each, got {twice[0]} more than once; leave repeats out.")
    return np.ascontiguousarray(values, dtype=np.int64)


def checked_filter(where: npt.ArrayLike | None) -> Filter | None:
    """Allowed ids, or a boolean mask whose entry i is about id i; None allows all."""
    if where is None:
        return None
    values = np.asarray(where)
    if values.ndim != 1 or (values.dtype.kind not in "iub" and len(values)):
        raise ParameterError(
            f"where must be allowed ids (n,), or a boolean mask with an entry for each id, got {values.dtype} of shape "
            f"{values.shape}."
        )
    if values.dtype.kind != "b":
        wanted = values.astype(np.int64)
        return lambda ids: np.isin(ids, wanted)

    def look_up(ids: Ids) -> npt.NDArray[np.bool_]:
        wrong = (ids < 0) | (ids >= len(values))
        if wrong.any():
            raise ParameterError(
                f"where must have an entry for every id as a mask, got {len(values)} entries and the id "
                f"{ids[wrong][0]}; give the allowed ids instead."
            )
        return values[ids]

    return look_up


def fingerprint_of(model: Any) -> str:
    """The fingerprint of a fitted hasher, or the text itself; "" for None."""
    found = model.fingerprint() if callable(getattr(model, "fingerprint", None)) else model
    if found is not None and not isinstance(found, str):
        raise ParameterError(
            f"model must be a fitted hasher or the text of its fingerprint, got {type(model).__name__}."
        )
    return found or ""
