"""One writer per file, by a lock of the operating system that dies with the process that holds it."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

from quorumhash.errors import IndexLockedError

SUFFIX = "-lock"  # beside the file: a lock on the file itself could meet SQLite's own


class WriterLock:
    """Held from construction to `release`, or to the death of the process; the file `-lock` itself stays.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "items.qhx"
    ...     first = WriterLock(path)
    ...     try:
    ...         second = WriterLock(path)
    ...     except IndexLockedError as error:
    ...         print("already open for writing" in str(error))
    ...     first.release()
    True
    """

    def __init__(self, path: Path) -> None:
        self._descriptor: int | None = os.open(f"{path}{SUFFIX}", os.O_RDWR | os.O_CREAT, 0o666)
        try:
            _lock(self._descriptor)
        except OSError:
            holder = os.read(self._descriptor, 20).decode("ascii", "replace").strip()
            self._close()
            raise IndexLockedError(
                f"The index file {path} is already open for writing{f' (process {holder})' if holder else ''}: one "
                "writer at a time; close that one, or open this one with readonly=True."
            ) from None
        with contextlib.suppress(OSError):  # only for the sentence above; a full disk must not matter here
            os.ftruncate(self._descriptor, 0)
            os.write(self._descriptor, f"{os.getpid()}\n".encode("ascii"))

    def release(self) -> None:
        """Let another writer in; a second call does nothing."""
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, 0)
            _unlock(self._descriptor)
            self._close()

    def abandon(self) -> None:
        """Close a copy inherited by fork without taking the lock from the process that holds it."""
        self._close()

    def _close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


if sys.platform == "win32":
    import msvcrt

    _PLACE = 1 << 30  # a byte nobody reads: Windows keeps others from reading what is locked

    def _lock(descriptor: int) -> None:
        os.lseek(descriptor, _PLACE, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)

    def _unlock(descriptor: int) -> None:
        os.lseek(descriptor, _PLACE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
