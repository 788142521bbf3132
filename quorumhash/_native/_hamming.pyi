"""The compiled extension: buffers in, buffers out; its callers are in kernels.py."""

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

Buffer = npt.NDArray[Any]

Search = tuple[str, int, Sequence[tuple[Any, ...]], int, tuple[float, float, float]]

def kernels() -> tuple[str, ...]: ...
def nearest(
    search: Search, queries: Buffer, n_queries: int, k: int, ids: Buffer, distances: Buffer
) -> tuple[int, int]: ...
def ranked(
    search: Search,
    queries: Buffer,
    tables: Buffer,
    n_queries: int,
    k: int,
    ids: Buffer,
    costs: Buffer,
    distances: Buffer,
) -> tuple[int, int]: ...
def within(
    search: Search, queries: Buffer, n_queries: int, radius: int, offsets: Buffer
) -> tuple[bytearray, bytearray, int, int]: ...
def fill_band(
    words: Buffer,
    n_rows: int,
    n_words: int,
    start: int,
    width: int,
    offsets: Buffer,
    rows: Buffer,
    codes: Buffer | None,
) -> None: ...
def sweep(
    kernel: str,
    by_rows: bool,
    is_single: bool,
    numbers: tuple[float, float, float],
    consensus: Buffer,
    shown: Buffer,
    low_rank: Buffer,
    pulled: Buffer | None,
    duals: Sequence[Buffer],
    views: Sequence[Buffer],
) -> tuple[float, float]: ...
