"""The kernels in NumPy: the same answers where no C was compiled, one query after the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from quorumhash._native.layout import Bytes, Part, from_tiles
from quorumhash.codes import hamming_distances

Ids = npt.NDArray[np.int64]
Distances = npt.NDArray[np.uint16]
Costs = npt.NDArray[np.float64]


def nearest(parts: Sequence[Part], queries: Bytes, k: int) -> tuple[Ids, Distances]:
    """The k nearest items of each query, ties by id: (q, k)."""
    ids, distances = np.empty((len(queries), k), dtype=np.int64), np.empty((len(queries), k), dtype=np.uint16)
    if not k:
        return ids, distances
    codes, rows, items = _items(parts)
    for i in range(len(queries)):
        found = hamming_distances(queries[i : i + 1], codes)[0][rows]
        order = _smallest(found, items, k)
        ids[i], distances[i] = items[order], found[order]
    return ids, distances


def ranked(parts: Sequence[Part], queries: Bytes, tables: Costs, k: int) -> tuple[Ids, Costs, Distances]:
    """The k cheapest items of each query, ties by id; `tables` (q, n_bytes, 256) is what each value of a byte costs."""
    ids, costs = np.empty((len(tables), k), dtype=np.int64), np.empty((len(tables), k))
    distances = np.empty((len(tables), k), dtype=np.uint16)
    if not k:
        return ids, costs, distances
    codes, rows, items = _items(parts)
    for i in range(len(tables)):
        found = np.zeros(len(codes))
        for column, table in zip(codes.T, tables[i], strict=True):
            found += table[column]  # in the order of the bytes, as in C: sums round alike
        order = _smallest(found[rows], items, k)
        ids[i], costs[i] = items[order], found[rows[order]]
        distances[i] = hamming_distances(queries[i : i + 1], codes[rows[order]])[0]
    return ids, costs, distances


def within(parts: Sequence[Part], queries: Bytes, radius: int) -> tuple[Ids, Ids, Distances]:
    """All items within the radius of each query, nearest first, ties by id: offsets, ids, distances."""
    offsets = np.zeros(len(queries) + 1, dtype=np.int64)
    ids, distances = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.uint16)]
    if not parts:
        return offsets, ids[0], distances[0]
    codes, rows, items = _items(parts)
    for i in range(len(queries)):
        found = hamming_distances(queries[i : i + 1], codes)[0][rows]
        near = np.flatnonzero(found <= radius)
        near = near[np.lexsort((items[near], found[near]))]
        ids.append(items[near])
        distances.append(found[near])
        offsets[i + 1] = offsets[i] + len(near)
    return offsets, np.concatenate(ids), np.concatenate(distances)


def _items(parts: Sequence[Part]) -> tuple[Bytes, npt.NDArray[np.intp], Ids]:
    """All distinct codes (n_rows, n_bytes); of each item that counts its row among them, and its id."""
    codes = np.concatenate([from_tiles(part.tiles, part.n_rows) for part in parts])
    rows, ids, start = [], [], 0
    for part in parts:
        row = np.arange(part.n_rows)
        row = row if part.offsets is None else np.repeat(row, part.offsets[1:] - part.offsets[:-1])
        counts = slice(None) if part.allowed is None else np.flatnonzero(part.allowed)
        rows.append(row[counts] + start)
        named = part.first_id + np.arange(len(row)) if part.ids is None else part.ids[: len(row)]
        ids.append(named[counts])
        start += part.n_rows
    return codes, np.concatenate(rows), np.concatenate(ids)


def _smallest(values: npt.NDArray[np.uint16] | Costs, ids: Ids, k: int) -> npt.NDArray[np.intp]:
    """Positions of the k smallest values, ties by id."""
    last = np.partition(values, k - 1)[k - 1]
    chosen = np.flatnonzero(values <= last)
    return chosen[np.lexsort((ids[chosen], values[chosen]))[:k]]
