"""The durable file of an index: what a call that returned has written survives kill -9 and the loss of power.

SQLite in WAL mode, from the standard library, holds the log of `segments.py`. A batch is one transaction, on disk
(fsync) before the call returns. One writer, by a lock of the operating system; readers see committed batches only
and never wait.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from quorumhash.codes import MOST_BITS, n_bytes
from quorumhash.errors import IndexFileError, ParameterError
from quorumhash.index.arguments import checked_codes, checked_ids, checked_number
from quorumhash.index.database import create, translated
from quorumhash.index.idset import IdSet
from quorumhash.index.segmentreader import SegmentReader
from quorumhash.index.segments import ADDED, REMOVED, Codes, Done, Head, Ids, Segment, split
from quorumhash.index.writerlock import WriterLock


class SegmentFile(SegmentReader):
    """Codes and ids in one file; made when it is not there and `readonly` is false.

    Parameters
    ----------
    path : path
        The file; SQLite keeps `-wal` and `-shm` beside it while it is open, the writer's lock is `-lock`.
    n_bits : int, optional
        Bits per code; needed for a new file, must agree with that of an old one.
    readonly : bool
        True: read only, beside a writer and other readers.
    checks_ids : bool
        False where the caller has made sure that added ids are new and removed ones are there; saves 8 bytes an item.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, SegmentFile(folder + "/items.qhx", n_bits=8) as file:
    ...     file.append(np.array([[7], [9]], dtype=np.uint8), [10, 20])
    ...     file.remove([10])
    ...     codes, ids = file.load()
    >>> codes.tolist(), ids.tolist()
    ([[9]], [20])
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        n_bits: int | None = None,
        *,
        readonly: bool = False,
        checks_ids: bool = True,
    ) -> None:
        super().__init__(path, readonly)
        self._checks_ids = checks_ids
        self._known: IdSet | None = None  # what is there; read when it is first needed
        self._lock: WriterLock | None = None
        try:
            with translated(self.path):
                self._open(n_bits)
        except BaseException:
            self.close()
            raise

    def _open(self, n_bits: int | None) -> None:
        if not self.readonly:
            self._lock = WriterLock(self._target)
            if not self._target.exists():
                create(self._target, Head(_checked_bits(n_bits)))
        self.n_bits = self._connect().n_bits
        if n_bits is not None and n_bits != self.n_bits:
            raise ParameterError(
                f"The index file {self.path} holds codes of {self.n_bits} bits, got n_bits={n_bits}; leave n_bits "
                "out, or give another path."
            )
        self._no_codes = np.empty((0, n_bytes(self.n_bits)), dtype=np.uint8)  # of a segment of removals

    def append(self, codes: npt.ArrayLike, ids: npt.ArrayLike, model: str = "", *, done: Done | None = None) -> None:
        """Add items (n, width) under new ids (n,), all or none; `model` is remembered, another one refused.

        `done` is called with the number of items of every segment that is written.
        """
        rows, names = self._checked(codes, ids)
        with self._writing():
            known = self._require_ids(names, are_new=True)
            self._put(split(ADDED, names, rows), self._head_for(model), done)
        self._known = known and known.with_added(names)

    def next_id(self) -> int:
        """The number after the largest id; 0 where there is no item."""
        with self._reading():
            ids = self._items()[1]
        self._known = IdSet(ids)
        return int(ids.max(initial=-1)) + 1

    def remove(self, ids: npt.ArrayLike, *, done: Done | None = None) -> None:
        """Take items away by id, all or none; `done` is called as by `check`, where ids must be read."""
        names = checked_ids(ids)
        with self._writing():
            known = self._require_ids(names, are_new=False, done=done)
            self._put([*split(REMOVED, names, self._no_codes)], self._head())
        self._known = known and known.without(names)

    def replace(self, codes: npt.ArrayLike, ids: npt.ArrayLike, model: str = "") -> None:
        """Give items that are there new codes, all or none."""
        rows, names = self._checked(codes, ids)
        with self._writing():
            self._known = self._require_ids(names, are_new=False)
            self._put([*split(REMOVED, names, self._no_codes), *split(ADDED, names, rows)], self._head_for(model))

    def compact(self, *, done: Done | None = None) -> None:
        """Write the items that are there anew, without removed ones, in as few segments as can be; shrink the file.

        `done` is called as by `check`, then with the number of items of every segment that is written.
        """
        with self._writing():
            codes, ids = self._items(done=done)
            head = self._head()
            self._sql("DELETE FROM segments")
            fresh = Head(head.n_bits, head.model, head.generation + 1)
            self._put(split(ADDED, ids, codes), fresh, done)
        with self._turn, translated(self.path):
            self._sql("VACUUM")
            self._sql("PRAGMA wal_checkpoint(TRUNCATE)")

    def refresh(self) -> bool:
        """Whether another process has committed a batch since `load`; to the one writer nothing is news."""
        return self.readonly and super().refresh()

    def close(self) -> None:
        """Close the file and let another writer in; a second call does nothing."""
        super().close()
        if self._lock is not None:
            if self._process == os.getpid():
                self._lock.release()
            else:
                self._lock.abandon()
            self._lock = None

    @contextmanager
    def _writing(self) -> Iterator[None]:
        if self.readonly:
            raise IndexFileError(f"The index file {self.path} is open for reading only; open it with readonly=False.")
        with self._turn, translated(self.path):
            self._sql("BEGIN IMMEDIATE")
            try:
                yield
                self._sql("COMMIT")
            finally:
                if self._connection is not None and self._connection.in_transaction:
                    self._sql("ROLLBACK")

    def _head_for(self, model: str) -> Head:
        """The head as it will be with codes of `model`."""
        head = self._head()
        if model and head.model and model != head.model:
            raise ParameterError(
                f"The index file {self.path} holds codes of the model {head.model[:12]}, got codes of {model[:12]}; "
                "encode with that model, or give another file."
            )
        return dataclasses.replace(head, model=head.model or model)

    def _put(self, segments: Iterable[Segment], head: Head, done: Done | None = None) -> None:
        """Write segments behind those there, and the head that states them."""
        number, chain, n_items, n_rows = head.n_segments, head.chain, head.n_items, head.n_rows
        for segment in segments:
            chain = segment.chained(number, chain)
            self._sql("INSERT INTO segments VALUES (?, ?, ?, ?, ?)", segment.row(number, chain))
            n_items += len(segment.ids) if segment.kind == ADDED else -len(segment.ids)
            n_rows, number = n_rows + len(segment.codes), number + 1
            if done is not None:
                done(len(segment.ids))
        head = dataclasses.replace(head, n_segments=number, n_items=n_items, n_rows=n_rows, chain=chain)
        self._sql("INSERT OR REPLACE INTO head VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", head.row())

    def _require_ids(self, ids: Ids, are_new: bool, done: Done | None = None) -> IdSet | None:
        """What is there now; refuses ids that are there though new, or not there though old."""
        if not self._checks_ids:
            return None
        known = self._known or IdSet(self._items(done=done)[1])
        wrong = ids[known.has(ids) == are_new]
        if len(wrong):
            found, advice = (
                ("already", "remove it first, or give another id") if are_new else ("not", "give ids that were added")
            )
            raise ParameterError(f"id {wrong[0]} is {found} in the index file {self.path}; {advice}.")
        return known

    def _checked(self, codes: npt.ArrayLike, ids: npt.ArrayLike) -> tuple[Codes, Ids]:
        rows = checked_codes(codes, self.n_bits, "codes")
        return rows, checked_ids(ids, len(rows))


def _checked_bits(n_bits: int | None) -> int:
    if n_bits is None:
        raise ParameterError("n_bits must be given for a new index file; give the length of the codes.")
    return checked_number(n_bits, "n_bits", 1, MOST_BITS)
