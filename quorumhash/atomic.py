"""Files that are either the old one or the whole new one, never half of it."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a temporary file beside `path` that takes its place when the block ends without an error.

    The content is on disk (fsync) before the rename and the rename is on disk before this returns. On any
    error, Ctrl-C included, the temporary file is removed and `path` stays as it was.

    >>> with replacing("codes.bin") as file:  # doctest: +SKIP
    ...     _ = file.write(b"whole or nothing")
    """
    target = Path(os.path.realpath(path))  # a link keeps pointing where it did
    if target.exists() and not target.is_file():
        raise OSError(f"{os.fspath(path)} is no ordinary file")  # a device or a folder must not be replaced
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, _permissions(target))
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    sync_folder(target.parent)


def _permissions(target: Path) -> int:
    """Mode bits of the file that is replaced, or those an ordinary open() would give (mkstemp gives 0600)."""
    with contextlib.suppress(OSError):
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def sync_folder(folder: Path) -> None:
    """Put the names in a folder on disk: a file that was made or renamed there survives the loss of power."""
    if os.name != "posix":  # Windows cannot open a folder; its rename is durable by itself
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
