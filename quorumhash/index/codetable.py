"""The codes of an index in memory: distinct codes with lists of the items that have them.

Items come in batches. A batch becomes a segment: its codes sorted, each distinct one kept once, with its ids in rising
order. A segment is joined to the one before it once it is no longer much smaller, so that there are few of them and an
item is moved about log2(n) times in all. A removed item is marked, and dropped when its segment is next made anew.

Memory: n_bytes a distinct code; 8 bytes an item for its id, and 4 a distinct code for its list where codes repeat.
Where repeats are kept and the ids of a batch run on without a gap, codes stay in the order of their ids: nothing is
sorted, an id takes no memory, and segments are joined up to a size that keeps the joining cheap.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from quorumhash._native.layout import Bytes, Part, from_tiles, to_tiles, to_words
from quorumhash.errors import ParameterError
from quorumhash.index.bands import Bands
from quorumhash.progress import expected

Ids = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_MAX_ITEMS = 2**32 - 1  # of a segment: lists are found by 32-bit offsets
_FEW = 8  # ids so few that comparing with each is faster than sorting
_ORDER_SECONDS = 3e-7  # a word of a code in a sort, about
_MAX_RUNNING = 1 << 26  # items of a segment of running ids: what joining takes is twice that
_MAX_DEAD = 0.25  # share of removed items at which a segment is made anew


@dataclass(eq=False)
class Segment:
    """A batch of items, or several joined; see Part for what the arrays hold."""

    tiles: Bytes
    n_rows: int
    offsets: npt.NDArray[np.uint32] | None
    ids: Ids | None  # None: running numbers from first_id
    is_there: npt.NDArray[np.uint8] | None = None  # (n_items) 0 where an item was removed; None: all are there
    n_removed: int = 0
    bands: Bands | None = field(default=None, repr=False)
    saved_seconds: float = 0.0  # that bands would have saved the searches so far
    first_id: int = 0

    def __len__(self) -> int:
        return self.n_items - self.n_removed

    @property
    def n_items(self) -> int:
        """Items, removed ones included."""
        return self.n_rows if self.ids is None else len(self.ids)

    def names(self) -> Ids:
        """The id of each item, removed ones included."""
        return np.arange(self.first_id, self.first_id + self.n_rows) if self.ids is None else self.ids

    def places(self, ids: Ids) -> npt.NDArray[np.intp]:
        """Where those of the ids are that are there, rising."""
        if self.ids is None:
            places = np.sort(ids[(ids >= self.first_id) & (ids < self.first_id + self.n_rows)] - self.first_id)
        elif len(ids) <= _FEW:
            found = np.zeros(len(self.ids), dtype=bool)
            for wanted in ids:
                found |= self.ids == wanted
            places = np.flatnonzero(found)
        else:
            places = np.flatnonzero(np.isin(self.ids, ids))
        return places if self.is_there is None else places[self.is_there[places] != 0]

    def rows(self) -> npt.NDArray[np.intp]:
        """The row of each item's code."""
        every = np.arange(self.n_rows)
        return every if self.offsets is None else np.repeat(every, self.offsets[1:] - self.offsets[:-1])

    def items(self) -> tuple[Bytes, Ids]:
        """Codes and ids of the items that are there, by code, then id."""
        codes = from_tiles(self.tiles, self.n_rows)
        if self.is_there is None:
            return (codes if self.offsets is None else codes[self.rows()]), self.names()
        there = np.flatnonzero(self.is_there)
        return codes[self.rows()[there]], self.names()[there]

    def part(self, allowed: Mask | None, has_bands: bool) -> Part:
        """The segment as kernels read it; `allowed` says of each item whether it may be found."""
        counts = self.is_there
        if allowed is not None:
            counts = allowed.view(np.uint8) if counts is None else counts & allowed.view(np.uint8)
        bands = self.bands.native if has_bands and self.bands is not None else None
        return Part(self.n_rows, self.n_items, self.tiles, self.offsets, self.ids, counts, bands, self.first_id)


class CodeTable:
    """Codes of `n_bytes` bytes under ids; what the caller gives is checked by the caller.

    >>> table = CodeTable(n_bytes=1)
    >>> table.add(np.array([[7], [9], [7]], dtype=np.uint8), np.array([10, 20, 30]))
    >>> len(table), table.n_distinct, table.contains(np.array([20, 21])).tolist()
    (3, 2, [True, False])
    """

    def __init__(self, n_bytes: int, deduplicate: bool = True) -> None:
        self.n_bytes = n_bytes
        self.deduplicate = deduplicate
        self.segments: list[Segment] = []
        self.next_id = 0  # larger than every id that was added, and at least 0

    def __len__(self) -> int:
        return sum(len(segment) for segment in self.segments)

    @property
    def n_distinct(self) -> int:
        """Codes stored; a code in several segments counts in each."""
        return sum(segment.n_rows for segment in self.segments)

    def ids(self) -> Ids:
        """All ids, in rising order."""
        parts = [s.names() if s.is_there is None else s.names()[s.is_there != 0] for s in self.segments]
        return np.sort(np.concatenate([np.empty(0, dtype=np.int64), *parts]))

    def items(self) -> Iterator[tuple[Bytes, Ids]]:
        """Codes and ids, segment by segment."""
        return (segment.items() for segment in self.segments)

    def contains(self, ids: Ids) -> Mask:
        """Whether each id is there; ids beyond the largest are known without a look."""
        found = np.zeros(len(ids), dtype=bool)
        if len(ids) and ids.min() < self.next_id:
            for segment, places in self._places(ids):
                found |= np.isin(ids, places + segment.first_id if segment.ids is None else segment.ids[places])
        return found

    def add(self, codes: Bytes, ids: Ids) -> None:
        """Add items under ids that are new."""
        if not len(ids):
            return
        self.segments.append(_segment(codes, ids, self.deduplicate))
        self.next_id = max(self.next_id, int(ids.max()) + 1)
        while len(self.segments) > 1 and _are_joined(self.segments[-2], self.segments[-1]):
            self._join_last()

    def remove(self, ids: Ids) -> None:
        """Take away items that are there."""
        for segment, places in self._places(ids):
            if segment.is_there is None:
                segment.is_there = np.ones(segment.n_items, dtype=np.uint8)
            segment.is_there[places] = 0
            segment.n_removed += len(places)
        small = [s for s in self.segments if s.n_removed > _MAX_DEAD * s.n_items]
        for segment in small:
            place = self.segments.index(segment)
            self.segments[place : place + 1] = [_segment(*segment.items(), self.deduplicate)] if len(segment) else []

    def compact(self) -> None:
        """Join all segments, so that every distinct code is stored once, and drop what was removed."""
        while len(self.segments) > 1 and not _are_full(*self.segments[-2:]):
            self._join_last()
        self.segments = [s if not s.n_removed else _segment(*s.items(), self.deduplicate) for s in self.segments]

    def _join_last(self) -> None:
        codes, ids = zip(*(segment.items() for segment in self.segments[-2:]), strict=True)
        del self.segments[-2:]
        self.segments.append(_segment(np.concatenate(codes), np.concatenate(ids), self.deduplicate))

    def _places(self, ids: Ids) -> Iterator[tuple[Segment, npt.NDArray[np.intp]]]:
        """Each segment with the places of those of the ids that are there."""
        for segment in self.segments:
            places = segment.places(ids)
            if len(places):
                yield segment, places


def _are_joined(older: Segment, newer: Segment) -> bool:
    """Whether a segment is joined to the one before it: few segments, and no item moved often."""
    return len(older) <= 2 * len(newer) and not _are_full(older, newer)


def _are_full(older: Segment, newer: Segment) -> bool:
    """Whether two segments of running ids are too large to be joined, which would save nothing."""
    return older.ids is None and newer.ids is None and len(older) + len(newer) > _MAX_RUNNING


def _segment(codes: Bytes, ids: Ids, deduplicate: bool) -> Segment:
    if len(ids) > _MAX_ITEMS:
        raise ParameterError(f"a HammingIndex must have at most {_MAX_ITEMS:,} items, got {len(ids):,}; use several.")
    if len(ids) > 1 and (ids[1:] < ids[:-1]).any():
        by_id = np.argsort(ids)
        codes, ids = codes[by_id], ids[by_id]
    if not deduplicate and len(ids) and int(ids[-1]) - int(ids[0]) + 1 == len(ids):
        return Segment(to_tiles(codes), len(ids), None, None, first_id=int(ids[0]))
    words = to_words(codes)
    with expected("putting codes in order", _ORDER_SECONDS * words.size):
        order = np.lexsort(words.T[::-1])  # stable: ids of equal codes stay in rising order
    words = words[order]
    is_first = np.ones(len(ids), dtype=bool)
    if deduplicate:
        is_first[1:] = (words[1:] != words[:-1]).any(axis=1)
    firsts = np.flatnonzero(is_first)
    offsets = None if len(firsts) == len(ids) else np.append(firsts, len(ids)).astype(np.uint32)
    return Segment(to_tiles(codes[order[firsts]]), len(firsts), offsets, ids[order])
