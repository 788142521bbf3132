"""SQLite's side of an index file: a new file made whole, connections that trust nothing, errors in words."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from quorumhash._version import __version__
from quorumhash.atomic import sync_folder
from quorumhash.errors import IndexFileError, QuorumHashError
from quorumhash.index.segments import APPLICATION_ID, FORMAT_VERSION, SEGMENT_BYTES, TABLES, Head

WAIT_SECONDS = 30.0  # for another connection's commit, which takes milliseconds
IMMUTABLE = "immutable=1"  # SQLite then looks at no -wal file, and calls the mode of every file "delete"
_RESTORE = "restore it from a copy or build it again from the codes"


def create(path: Path, head: Head) -> None:
    """Write a new file without items, whole or not at all; the caller holds the writer's lock."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    os.close(descriptor)
    try:
        connection = sqlite3.connect(temporary, isolation_level=None)
        try:
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
            for table in TABLES.values():
                connection.execute(table)
            connection.execute("INSERT INTO head VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", head.row())
            connection.execute("PRAGMA journal_mode = WAL")
        finally:
            connection.close()  # the last one: everything is in the file itself, and on disk
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    finally:
        for end in ("", "-wal", "-shm", "-journal"):
            with contextlib.suppress(OSError):
                os.unlink(temporary + end)
    sync_folder(path.parent)


def connect(path: Path, readonly: bool) -> sqlite3.Connection:
    """Open a file that is there and is an index file of a version that can be read."""
    if not path.exists():
        raise IndexFileError("does not exist; check the path")
    if not path.is_file():
        raise IndexFileError("is a folder or device; give the path of a file")
    if not readonly:
        return _connection(path, "mode=rw")
    try:
        return _connection(path, "mode=ro")
    except sqlite3.OperationalError:
        if Path(f"{path}-wal").exists():
            raise
        return _connection(path, IMMUTABLE)  # a folder that cannot be written to, and nobody writes


def _connection(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.as_uri()}?{mode}", uri=True, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 4 * SEGMENT_BYTES)  # before a forged length is allocated
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
        connection.execute("PRAGMA mmap_size = 0")  # a file cut short under a memory map ends the process
        for text in ("synchronous = FULL", "fullfsync = ON", "checkpoint_fullfsync = ON"):
            connection.execute(f"PRAGMA {text}")
        _require_format(connection, expected_mode="wal" if mode != IMMUTABLE else "delete")
    except BaseException:
        connection.close()
        raise
    return connection


def _require_format(connection: sqlite3.Connection, expected_mode: str) -> None:
    """Refuse what is no index file, or newer than this library, or not as this library writes it."""
    if _pragma(connection, "application_id") != APPLICATION_ID:
        raise IndexFileError("is no index file of quorumhash; give the path of a file that it wrote")
    version = _pragma(connection, "user_version")
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise IndexFileError(
            f"has format version {version}, but quorumhash {__version__} reads versions up to {FORMAT_VERSION}; "
            "upgrade quorumhash"
        )
    if version != FORMAT_VERSION or _pragma(connection, "journal_mode") != expected_mode:
        raise IndexFileError(f"is damaged: its header was changed; {_RESTORE}")
    found = connection.execute("SELECT type, name, sql FROM sqlite_master LIMIT 9").fetchall()
    if sorted(found) != sorted(("table", name, text) for name, text in TABLES.items()):
        raise IndexFileError(f"is damaged: its tables are not those of an index file; {_RESTORE}")


def _pragma(connection: sqlite3.Connection, name: str) -> object:
    row = connection.execute(f"PRAGMA {name}").fetchone()
    return None if row is None else row[0]


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Every error about the file as one IndexFileError that names it; other deliberate errors pass."""
    try:
        yield
    except IndexFileError as error:
        text = str(error)
        if text.startswith("The index file"):
            raise
        raise type(error)(f"The index file {path} {text}.") from error.__cause__
    except QuorumHashError:
        raise
    except sqlite3.Error as error:
        raise IndexFileError(f"The index file {path} {_in_words(error)}.") from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise IndexFileError(
            f"The index file {path} cannot be opened ({reason}); check path and permissions."
        ) from error
    except (TypeError, ValueError, OverflowError) as error:  # values in a forged row that are of no type we wrote
        raise IndexFileError(f"The index file {path} is damaged ({error}); {_RESTORE}.") from error


def _in_words(error: sqlite3.Error) -> str:
    name, reason = getattr(error, "sqlite_errorname", "") or "", str(error)
    if name.startswith(("SQLITE_FULL", "SQLITE_IOERR")):
        return f"cannot be written or read ({reason}): the items are those before the call; make room and try again"
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return f"is held by another program ({reason}); try again"
    if name.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH")):
        return f"cannot be opened ({reason}); check the permissions of the file and its folder"
    if name.startswith("SQLITE_NOTADB"):
        return "is no index file of quorumhash; give the path of a file that it wrote"
    return f"is damaged ({reason}); {_RESTORE}"
