"""All pairs of items near each other: every item asks for its neighbours, and keeps those of larger ids."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from quorumhash._native.layout import Bytes
from quorumhash.errors import RefusedError
from quorumhash.index.codetable import CodeTable
from quorumhash.index.matches import Neighbourhoods

_AT_ONCE = 8192  # items whose neighbours are looked up together


def all_pairs(
    table: CodeTable, within: Callable[[Bytes], Neighbourhoods], radius: int, max_pairs: int
) -> Neighbourhoods:
    """Of the i-th item, by id, the items of larger ids that `within` finds; refused beyond `max_pairs` in all."""
    parts = list(table.items())
    codes = np.concatenate([np.empty((0, table.n_bytes), dtype=np.uint8), *(codes for codes, _ in parts)])
    names = np.concatenate([np.empty(0, dtype=np.int64), *(ids for _, ids in parts)])
    order = np.argsort(names)
    counts, n_pairs = np.zeros(len(names) + 1, dtype=np.int64), 0
    ids, distances = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.uint16)]
    for start in range(0, len(names), _AT_ONCE):
        rows = order[start : start + _AT_ONCE]
        found = within(codes[rows])
        owners = np.repeat(np.arange(len(rows)), found.counts())
        is_later = found.ids > names[rows][owners]
        ids.append(found.ids[is_later])
        distances.append(found.distances[is_later])
        counts[start + 1 : start + 1 + len(rows)] = np.bincount(owners[is_later], minlength=len(rows))
        n_pairs += len(ids[-1])
        if n_pairs > max_pairs:
            raise RefusedError(
                f"pairs of radius {radius} must be at most max_pairs={max_pairs:,}, got {n_pairs:,} after "
                f"{start + len(rows):,} of {len(names):,} items; lower the radius or raise max_pairs."
            )
    return Neighbourhoods(np.cumsum(counts), np.concatenate(ids), np.concatenate(distances))
