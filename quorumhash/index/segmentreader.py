"""Reading an index file: snapshots of committed batches, every byte checked, beside one writer and other readers."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from quorumhash.errors import IndexFileError
from quorumhash.index.database import connect, translated
from quorumhash.index.segments import (
    FORMAT_VERSION,
    Codes,
    Done,
    Head,
    Ids,
    Segment,
    parse_head,
    parse_segments,
    replay,
)
from quorumhash.progress import begin_stage


class SegmentReader:
    """The reading half of `SegmentFile`; a file that is not there is an error.

    Calls may come from several threads, one at a time does its work. After a fork the file must be opened again.
    """

    def __init__(self, path: str | os.PathLike[str], readonly: bool = True) -> None:
        self.path, self.readonly = Path(path), readonly
        self._target = Path(os.path.realpath(path))
        self._process, self._turn = os.getpid(), threading.RLock()
        self._seen: Head | None = None  # of the items that were loaded last, or could have been when it was opened
        self._connection: sqlite3.Connection | None = None

    def _connect(self) -> Head:
        self._connection = connect(self._target, self.readonly)
        self._seen = self._head()
        return self._seen

    @property
    def model(self) -> str:
        """Fingerprint of the model whose codes these are; empty when none was given."""
        with self._reading():
            return self._head().model

    def __len__(self) -> int:
        with self._reading():
            return self._head().n_items

    @property
    def n_seen(self) -> int:
        """Items when it was opened, or last loaded."""
        return 0 if self._seen is None else self._seen.n_items

    def load(self, newest: bool = True) -> tuple[Codes, Ids]:
        """Every item that is there: codes uint8 (n, width) and ids int64 (n,), every byte checked.

        With newest=False those that were there when it was opened, or last loaded, unless it was compacted meanwhile.
        """
        with self._reading():
            head, seen = self._head(), self._seen
            if not newest and self.readonly and seen is not None and seen.generation == head.generation:
                return self._items(seen, begin_stage("reading", 2 * seen.n_rows - seen.n_items, "ids"))
            found = self._items(done=begin_stage("reading", 2 * head.n_rows - head.n_items, "ids"))
            self._seen = head
            return found

    def _items(self, seen: Head | None = None, done: Done | None = None) -> tuple[Codes, Ids]:
        """The items now; or those under an earlier head: until a compaction, segments are only put behind others."""
        head = self._head()
        text = "SELECT number, kind, ids, codes, chain FROM segments {} ORDER BY number"
        if seen is None or seen == head:  # all of them: one too many is damage
            return replay(_counted(parse_segments(self._sql(text.format("")), head), done), head)
        rows = self._sql(text.format("WHERE number < ?"), (seen.n_segments,))
        return replay(_counted(parse_segments(rows, seen), done), seen)

    def refresh(self) -> bool:
        """Whether a batch was committed since it was opened, or since `load`, which then gives it."""
        with self._reading():
            return self._head() != self._seen

    def info(self) -> dict[str, Any]:
        """Facts about the file, name -> value; reads its head only."""
        with self._reading():
            head = self._head()
        sizes = {name: Path(f"{self._target}{end}") for name, end in (("file_bytes", ""), ("wal_bytes", "-wal"))}
        return {
            "path": str(self.path), "format_version": FORMAT_VERSION, "bits": head.n_bits, "items": head.n_items,
            "removed": head.n_rows - head.n_items, "segments": head.n_segments, "generation": head.generation,
            "model": head.model, **{name: p.stat().st_size if p.exists() else 0 for name, p in sizes.items()},
        }  # fmt: skip

    def check(self, *, done: Done | None = None) -> list[str]:
        """Read everything and compare every checksum; a sentence for each fault, none when the file is sound.

        `done` is called with the ids of every segment that is read: those of items, and once more of removed ones.
        """
        try:
            with self._reading():
                self._items(done=done)
                faults = [str(row[0]) for row in self._sql("PRAGMA integrity_check")]
        except IndexFileError as error:
            return [str(error)]
        return [f"The index file {self.path} is damaged: {fault}." for fault in faults if fault != "ok"]

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        if self._process != os.getpid():  # after a fork it is the parent's
            return
        with self._turn:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _sql(self, text: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        if self._process != os.getpid():
            raise IndexFileError("was opened by another process; open it again after a fork")
        if self._connection is None:
            raise IndexFileError("is closed; open it again")
        return self._connection.execute(text, values)

    def _head(self) -> Head:
        return parse_head(self._sql("SELECT * FROM head LIMIT 2").fetchall())

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """A snapshot: whatever is committed meanwhile is not seen."""
        with self._turn, translated(self.path):
            if self._connection is not None and self._connection.in_transaction:
                yield
                return
            self._sql("BEGIN")
            try:
                yield
            finally:
                if self._connection is not None and self._connection.in_transaction:
                    self._sql("ROLLBACK")


def _counted(segments: Iterable[Segment], done: Done | None) -> Iterator[Segment]:
    for segment in segments:
        yield segment
        if done is not None:
            done(len(segment.ids))
