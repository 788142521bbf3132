"""Which kernel searches and sweeps, and its calls: C where it was compiled, NumPy elsewhere, with the same answers.

`QUORUMHASH_KERNEL` names one of `available()`; where it is not set, the fastest that this processor can run is taken.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from quorumhash._native import fallback
from quorumhash._native.layout import Bytes, Part, Words
from quorumhash.errors import ParameterError

try:
    from quorumhash._native import _hamming
except ImportError:  # no compiler when it was installed
    _hamming = None  # type: ignore[assignment]

Ids = npt.NDArray[np.int64]
Distances = npt.NDArray[np.uint16]

VARIABLE = "QUORUMHASH_KERNEL"


class Effort(NamedTuple):
    """How a call went about it: pairs of a query and a part that were scanned, and that bands answered."""

    scanned: int
    looked_up: int


class Costs(NamedTuple):
    """Nanoseconds, by which a scan is weighed against looking up bands."""

    scan: float = 0.0  # a row; negative: never scan where there are bands
    look_up: float = 0.0  # a value of a band
    candidate: float = 0.0  # a row met there


class Search(NamedTuple):
    """What is searched and how, as the extension reads it."""

    kernel: str
    n_bits: int
    parts: Sequence[Part]
    stage: int = 0  # bytes after which a tile may be given up; 0: all at once
    costs: Costs = Costs()


@cache
def available() -> tuple[str, ...]:
    """Kernels that can run here, the fastest first; the last is always "numpy".

    >>> available()[-1]
    'numpy'
    """
    return (*(_hamming.kernels() if _hamming is not None else ()), "numpy")


def chosen() -> str:
    """The kernel in use."""
    wanted = os.environ.get(VARIABLE, "")
    if wanted and wanted not in available():
        raise ParameterError(
            f"{VARIABLE} must be one of {', '.join(available())} on this machine, got {wanted!r}; leave it unset for "
            "the fastest."
        )
    return wanted or available()[0]


def nearest(search: Search, queries: Bytes, k: int) -> tuple[Ids, Distances, Effort]:
    """The k nearest items of each query (q, n_bytes), ties by id; k is at most the number of items that count."""
    if search.kernel == "numpy":
        return *fallback.nearest(search.parts, queries, k), Effort(len(queries) * len(search.parts), 0)
    ids, distances = np.empty((len(queries), k), dtype=np.int64), np.empty((len(queries), k), dtype=np.uint16)
    effort = _hamming.nearest(search, queries, len(queries), k, ids, distances)
    return ids, distances, Effort(*effort)


def ranked(
    search: Search, queries: Bytes, tables: npt.NDArray[np.float64], k: int
) -> tuple[Ids, npt.NDArray[np.float64], Distances, Effort]:
    """The k cheapest items of each query, ties by id, their costs, and how many bits differ from `queries`.

    `tables` (q, n_bytes, 256) is what each value of a byte costs; `queries` (q, n_bytes) costs nothing.
    """
    if search.kernel == "numpy":
        return *fallback.ranked(search.parts, queries, tables, k), Effort(len(tables) * len(search.parts), 0)
    ids, costs = np.empty((len(tables), k), dtype=np.int64), np.empty((len(tables), k))
    distances = np.empty((len(tables), k), dtype=np.uint16)
    effort = _hamming.ranked(search, queries, tables, len(tables), k, ids, costs, distances)
    return ids, costs, distances, Effort(*effort)


def within(search: Search, queries: Bytes, radius: int) -> tuple[Ids, Ids, Distances, Effort]:
    """All items within the radius of each query: offsets (q + 1), ids, distances; nearest first, ties by id."""
    if search.kernel == "numpy":
        return *fallback.within(search.parts, queries, radius), Effort(len(queries) * len(search.parts), 0)
    offsets = np.zeros(len(queries) + 1, dtype=np.int64)
    ids, distances, *effort = _hamming.within(search, queries, len(queries), radius, offsets)
    return offsets, np.frombuffer(ids, np.int64), np.frombuffer(distances, np.uint16), Effort(*effort)


def fill_band(words: Words, start: int, width: int) -> tuple[Any, ...]:
    """Rows of `words` in the order of one band's bits, as the extension reads a band; C only."""
    n_rows, n_words = words.shape
    offsets, rows = np.empty((1 << width) + 1, dtype=np.uint32), np.empty(n_rows, dtype=np.uint32)
    codes = np.empty(n_rows, dtype=np.uint64) if n_words == 1 else None
    _hamming.fill_band(words, n_rows, n_words, start, width, offsets, rows, codes)
    return start, width, offsets, rows, words if codes is None else codes


def serves_sweep(*blocks: Any) -> bool:
    """Whether `sweep_together` takes these blocks: kernel, shown, duals, views (n, R); C only."""
    if chosen() == "numpy" or not all(isinstance(block, np.ndarray) and block.flags.c_contiguous for block in blocks):
        return False
    state, views = blocks[: len(blocks) // 2 + 1], blocks[len(blocks) // 2 + 1 :]
    types = {view.dtype for view in views}
    is_state = all(part.dtype == np.float64 and part.flags.aligned and part.flags.writeable for part in state)
    return is_state and types in ({np.dtype("f4")}, {np.dtype("f8")})


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
    """As quorumhash/sweepkernel.py has it for devices: state in place; largest residual and sum of error norms."""
    is_single = views[0].dtype == np.float32
    views = [np.require(view, requirements="A") for view in views]  # what came to a worker lies anywhere in its message
    return _hamming.sweep(
        chosen(), error_norm == "l21", is_single, numbers, kernel, shown, low_rank, pulled, duals, views
    )
