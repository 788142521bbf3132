"""What an index file holds: a log of checksummed segments and one sealed head, and how they are read back.

    segments   one row per segment, in order: ids (int64, little-endian), codes (packed, one after the other; none in a
               segment of removals), chain = SHA-256 of the chain before it, its number, kind, counts, ids and codes
    head       one row: bits per code, model, generation, counts, the last chain; seal = SHA-256 of all of these

An item is there when the last segment that names its id added it. A segment lost, changed, repeated or out of order
breaks the chain; a changed head breaks its seal.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from quorumhash.codes import n_bytes
from quorumhash.errors import IndexFileError

Codes = npt.NDArray[np.uint8]
Ids = npt.NDArray[np.int64]
Done = Callable[[int], None]  # told how many more ids are read or written

APPLICATION_ID, FORMAT_VERSION = 0x51485831, 1  # "QHX1"; the version is SQLite's user_version
SEGMENT_BYTES = 1 << 24  # a batch may be many segments, so that reading needs little beside the result

TABLES = {
    "head": "CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), n_bits INTEGER NOT NULL, model TEXT NOT NULL, "
    "generation INTEGER NOT NULL, n_segments INTEGER NOT NULL, n_items INTEGER NOT NULL, n_rows INTEGER NOT NULL, "
    "chain BLOB NOT NULL, seal BLOB NOT NULL)",
    "segments": "CREATE TABLE segments (number INTEGER PRIMARY KEY, kind INTEGER NOT NULL, ids BLOB NOT NULL, "
    "codes BLOB NOT NULL, chain BLOB NOT NULL)",
}

Kind: TypeAlias = Literal[0, 1]
REMOVED: Kind = 0
ADDED: Kind = 1


@dataclass(frozen=True)
class Head:
    """The state of the file in a few numbers; `n_rows` counts stored codes, removed ones included."""

    n_bits: int
    model: str = ""
    generation: int = 0
    n_segments: int = 0
    n_items: int = 0
    n_rows: int = 0
    chain: bytes = bytes(32)

    def seal(self) -> bytes:
        """SHA-256 of every field."""
        fields = asdict(self) | {"chain": self.chain.hex()}
        return hashlib.sha256(json.dumps([FORMAT_VERSION, fields], sort_keys=True).encode("ascii")).digest()

    def row(self) -> tuple[Any, ...]:
        """The row of the table head."""
        return 1, *asdict(self).values(), self.seal()


@dataclass(frozen=True, eq=False)
class Segment:
    """Ids that were added with their codes (n, width), or removed (codes of no row)."""

    kind: Kind
    ids: Ids
    codes: Codes

    def chained(self, number: int, before: bytes) -> bytes:
        """The chain after this segment, given its number and the chain before it."""
        digest = hashlib.sha256(before)
        digest.update(np.array([number, self.kind, len(self.ids), *self.codes.shape], dtype="<i8").data)
        digest.update(np.ascontiguousarray(self.ids, dtype="<i8").data)
        digest.update(np.ascontiguousarray(self.codes).data)
        return digest.digest()

    def row(self, number: int, chain: bytes) -> tuple[int, int, bytes, bytes, bytes]:
        """The row of the table segments."""
        return number, self.kind, self.ids.astype("<i8").tobytes(), self.codes.tobytes(), chain


def split(kind: Kind, ids: Ids, codes: Codes) -> Iterator[Segment]:
    """A batch as segments of bounded size; an empty one gives none."""
    step = max(1, SEGMENT_BYTES // (8 + codes.shape[1]))
    for start in range(0, len(ids), step):
        yield Segment(kind, ids[start : start + step], codes[start : start + step])


def parse_head(rows: Sequence[Any]) -> Head:
    """The head from what the table holds; damage is refused."""
    _require(len(rows) == 1 and len(rows[0]) == 9, "it has no head, or several")
    one, *fields, seal = rows[0]
    numbers = [fields[0], *fields[2:6]]
    is_whole = one == 1 and all(type(n) is int and 0 <= n < 2**62 for n in numbers) and isinstance(fields[1], str)
    _require(is_whole and isinstance(fields[6], bytes), "its head has missing or wrong fields")
    head = Head(*fields)
    _require(head.n_bits > 0 and head.seal() == seal, "its head was changed")
    return head


def parse_segments(rows: Iterable[Any], head: Head) -> Iterator[Segment]:
    """The segments from the rows of the table in order, each checked against the chain, the last against the head."""
    width, chain, number = n_bytes(head.n_bits), bytes(32), 0
    for row in rows:
        _require(number < head.n_segments, "it holds more segments than its head states")
        segment, stated = _parse_segment(row, number, width)
        chain = segment.chained(number, chain)
        _require(chain == stated, f"segment {number} was changed")
        yield segment
        number += 1
    _require(number == head.n_segments and chain == head.chain, f"segments after the first {number} are missing")


def _parse_segment(row: Any, number: int, width: int) -> tuple[Segment, bytes]:
    found, kind, ids, codes, chain = row
    is_typed = kind in (REMOVED, ADDED) and isinstance(ids, bytes) and isinstance(codes, bytes)
    _require(found == number and is_typed and isinstance(chain, bytes), f"segment {number} is missing or malformed")
    n_ids, n_codes = len(ids) // 8, len(ids) // 8 if kind == ADDED else 0
    _require(len(ids) == 8 * n_ids and len(codes) == n_codes * width, f"segment {number} has a wrong length")
    rows = np.frombuffer(codes, dtype=np.uint8).reshape(n_codes, width)
    return Segment(kind, np.frombuffer(ids, dtype="<i8").astype(np.int64, copy=False), rows), chain


def replay(segments: Iterable[Segment], head: Head) -> tuple[Codes, Ids]:
    """Codes (n, width) and ids (n,) of the items that are there, in the order in which they were added."""
    kept = list(segments)
    width = n_bytes(head.n_bits)
    ids = _joined([s.ids for s in kept], np.empty(0, dtype=np.int64))
    codes = _joined([s.codes for s in kept if s.kind == ADDED], np.empty((0, width), dtype=np.uint8))
    kinds = np.repeat(np.array([s.kind for s in kept], dtype=np.uint8), [len(s.ids) for s in kept])
    del kept
    _require(len(codes) == head.n_rows, "it does not hold the rows that its head states")
    if len(ids) and (len(codes) < len(ids) or not (ids[1:] > ids[:-1]).all()):
        order = np.argsort(ids, kind="stable")  # events of one id side by side, in the order of the log
        is_last = _last_events(ids[order], kinds[order])
        there = np.zeros(len(ids), dtype=bool)
        there[order[is_last]] = kinds[order[is_last]] == ADDED
        if not there.all():
            codes, ids = codes[there[kinds == ADDED]], ids[there]
    _require(len(ids) == head.n_items, "it does not hold the items that its head states")
    return codes, ids


def _last_events(ids: Ids, kinds: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """Which events are the last of their id; an id must be added, removed, added and so on in turn."""
    is_same = ids[1:] == ids[:-1]
    is_first = np.concatenate([[True], ~is_same])
    in_turn = bool((kinds[is_first] == ADDED).all()) and bool((kinds[1:] != kinds[:-1])[is_same].all())
    _require(in_turn, "it adds an item that is there, or removes one that is not")
    return np.concatenate([~is_same, [True]])


def _joined(parts: list[npt.NDArray[Any]], empty: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.concatenate(parts) if parts else empty


def _require(condition: bool, reason: str) -> None:
    if not condition:
        raise IndexFileError(f"is damaged: {reason}; restore it from a copy or build it again from the codes")
