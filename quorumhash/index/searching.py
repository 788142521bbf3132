"""A search spread over threads: by queries where there are enough, by parts of the table where there are few."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from quorumhash._native import kernels
from quorumhash._native.kernels import Effort, Search
from quorumhash._native.layout import TILE, Bytes, Part
from quorumhash.engines.threads import threads_wanted

Result = TypeVar("Result")
Ids = npt.NDArray[np.int64]
Distances = npt.NDArray[np.uint16]
Scores = npt.NDArray[np.float64]
Piece = tuple[Ids, Any, Distances, Effort]  # ids, what they are ranked by, distances

_SMALL = 4_000_000  # pairs of query and row that one thread has done before others have begun
_CHUNK = 64  # queries that share a walk through the table
_TABLES = 8192  # bytes of codes whose tables, 2 kB a byte, are held at once


def nearest(search: Search, queries: Bytes, k: int) -> tuple[Ids, Distances, Effort]:
    """As `kernels.nearest`, on all threads."""
    if not _is_shared(search, len(queries)):
        return kernels.nearest(search, queries, k)

    def work(piece: Search, rows: slice) -> Piece:
        ids, distances, effort = kernels.nearest(piece, queries[rows], min(k, n_counting(piece.parts)))
        return ids, distances, distances, effort

    ids, distances, _, effort = _merged(_spread(work, search, len(queries)), k)
    return ids, distances, effort


def ranked(search: Search, queries: Bytes, scores: Scores, k: int) -> tuple[Ids, Scores, Distances, Effort]:
    """As `kernels.ranked`, on all threads, from the scores (q, n_bits) whose signs are `queries`."""

    def work(piece: Search, rows: slice) -> Piece:
        tables = cost_tables(scores[rows])
        return kernels.ranked(piece, queries[rows], tables, min(k, n_counting(piece.parts)))

    return _merged(_spread(work, search, len(queries), max(1, _TABLES // queries.shape[1])), k)


def within(search: Search, queries: Bytes, radius: int) -> tuple[Ids, Ids, npt.NDArray[np.uint16], Effort]:
    """As `kernels.within`, on all threads."""
    slices = _slices(len(queries), search)
    found = _map(lambda rows: kernels.within(search, queries[rows], radius), slices)
    starts = np.cumsum([0, *(len(ids) for _, ids, _, _ in found)])
    offsets = [part[0][1:] + start for part, start in zip(found, starts, strict=False)]
    return (
        np.concatenate([np.zeros(1, dtype=np.int64), *offsets]),
        np.concatenate([part[1] for part in found]),
        np.concatenate([part[2] for part in found]),
        _sum([part[3] for part in found]),
    )


def n_counting(parts: Sequence[Part]) -> int:
    """Items that may be found."""
    return sum(p.n_items if p.allowed is None else int(np.count_nonzero(p.allowed)) for p in parts)


def thread_map(function: Callable[[Any], Result], values: Sequence[Any]) -> list[Result]:
    """`map` on as many threads as the library may use."""
    with ThreadPoolExecutor(min(threads_wanted(), len(values))) as pool:
        return list(pool.map(function, values))


def _map(function: Callable[[Any], Result], values: Sequence[Any]) -> list[Result]:
    return [function(value) for value in values] if len(values) < 2 else thread_map(function, values)


def _is_shared(search: Search, n_queries: int) -> bool:
    """Whether there is work for more than one thread."""
    return n_queries * sum([part.n_rows for part in search.parts]) > _SMALL and threads_wanted() > 1


def _slices(n_queries: int, search: Search, most: int | None = None) -> list[slice]:
    """Queries in one piece a thread, in whole chunks, in pieces of at most `most`; all in one where little is to do."""
    n_threads = threads_wanted() if _is_shared(search, n_queries) else 1
    step = max(-(-n_queries // n_threads), 1)
    step = step if step < _CHUNK else _CHUNK * -(-step // _CHUNK)
    step = min(step, most or step)
    return [slice(start, start + step) for start in range(0, max(n_queries, 1), step)]


def _spread(
    work: Callable[[Search, slice], Piece], search: Search, n_queries: int, most: int | None = None
) -> list[list[Piece]]:
    """Results of pieces: outer list by queries, inner list by parts of the table."""
    slices = _slices(n_queries, search, most)
    n_pieces = threads_wanted() // len(slices) if _is_shared(search, n_queries) else 1
    if n_pieces < 2 or any(part.bands is not None for part in search.parts):
        return [[result] for result in _map(lambda rows: work(search, rows), slices)]
    pieces = [search._replace(parts=piece) for piece in cut(search.parts, n_pieces)]
    results = _map(lambda job: work(*job), [(piece, rows) for rows in slices for piece in pieces])
    return [results[i : i + len(pieces)] for i in range(0, len(results), len(pieces))]


def cost_tables(scores: Scores) -> Scores:
    """What each value of each byte of a code costs: the sum of |score| over its wrong signs, (q, n_bytes, 256)."""
    n_queries, n_bits = scores.shape
    padded = np.zeros((n_queries, 8 * -(-n_bits // 8)))
    padded[:, :n_bits] = np.abs(scores)
    weights = padded.reshape(n_queries, -1, 8)
    values = np.arange(256, dtype=np.uint8)
    wrong = np.packbits(scores >= 0, axis=1)[:, :, None] ^ values
    tables = np.zeros(wrong.shape)
    for bit in range(8):  # in this order for one query and for many: sums round alike
        tables += weights[:, :, bit, None] * (wrong >> (7 - bit) & 1)
    return tables


def cut(parts: Sequence[Part], n_pieces: int) -> list[list[Part]]:
    """The parts, each cut into n_pieces ranges of rows."""
    pieces: list[list[Part]] = [[] for _ in range(n_pieces)]
    for part in parts:
        bounds = np.linspace(0, len(part.tiles), n_pieces + 1).astype(int)
        for piece, first, last in zip(pieces, bounds[:-1], bounds[1:], strict=True):
            rows = slice(int(first) * TILE, min(int(last) * TILE, part.n_rows))
            if rows.start < rows.stop:
                piece.append(_rows_of(part, rows, part.tiles[first:last]))
    return [piece for piece in pieces if piece]


def _rows_of(part: Part, rows: slice, tiles: Bytes) -> Part:
    offsets = None if part.offsets is None else part.offsets[rows.start : rows.stop + 1]
    items = rows if offsets is None else slice(int(offsets[0]), int(offsets[-1]))
    return Part(
        rows.stop - rows.start,
        items.stop - items.start,
        tiles,
        None if offsets is None else offsets - offsets[0],
        None if part.ids is None else part.ids[items],
        None if part.allowed is None else part.allowed[items],
        None,
        part.first_id + items.start,
    )


def _merged(results: list[list[Piece]], k: int) -> Piece:
    """The k nearest of what pieces of the table gave, for all queries."""
    rows = []
    for pieces in results:
        found = [np.concatenate([piece[i] for piece in pieces], axis=1) for i in range(3)]
        if len(pieces) > 1:
            order = np.lexsort((found[0], found[1]))[:, :k]
            found = [np.take_along_axis(values, order, 1) for values in found]
        rows.append(found)
    ids, values, distances = (np.concatenate(column) for column in zip(*rows, strict=True))
    return ids, values, distances, _sum([piece[3] for pieces in results for piece in pieces])


def _sum(efforts: Sequence[Effort]) -> Effort:
    return Effort(sum(effort.scanned for effort in efforts), sum(effort.looked_up for effort in efforts))
