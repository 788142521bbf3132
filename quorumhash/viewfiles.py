"""Views, labels and codes in files: .npz with one array per view, .csv, .parquet and .lance tables (see tablefiles.py),
or name=path for each view, where .npy files are memory-mapped.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from quorumhash.atomic import replacing
from quorumhash.errors import ParameterError, ViewsError
from quorumhash.lancefiles import SUFFIX, read_lance
from quorumhash.progress import counted
from quorumhash.tablefiles import read_csv, read_parquet
from quorumhash.views import Views


def read_views(sources: Sequence[str]) -> Views:
    """Views from one .npz, .csv, .parquet or .lance, or from arguments name=path, one per view.

    >>> read_views(["nowhere.npz"])
    Traceback (most recent call last):
    ...
    quorumhash.errors.ViewsError: there is no file nowhere.npz.
    """
    if len(sources) == 1 and ("=" not in sources[0] or Path(sources[0]).is_file()):
        return Views(_read_file(Path(sources[0])))
    pairs = [source.partition("=") for source in sources]
    for name, mark, path_text in pairs:
        if not (name and mark and path_text):
            raise ParameterError(f"several views must be given as name=path.npy each, got {name!r}; or give one .npz.")
    names = [name for name, _, _ in pairs]
    if len(set(names)) < len(names):
        raise ParameterError(f"a view is named twice in {', '.join(names)}: every name must stand once.")
    return Views({name: _read_view(Path(path_text)) for name, _, path_text in pairs})


def _read_file(path: Path) -> dict[str, npt.NDArray[Any]]:
    """All views of one file, by name."""
    if path.suffix not in READERS:
        kinds = f"{', '.join(list(READERS)[:-1])} or {list(READERS)[-1]}"
        raise ViewsError(f"views must be a {kinds}, or name=path for each view, got {path}.")
    if path.suffix != SUFFIX:  # a folder
        _require_file(path)
    return READERS[path.suffix](path)


def _read_view(path: Path) -> npt.NDArray[Any]:
    """The one view of a file that stands for a name."""
    if path.suffix not in READERS:  # whatever it is called, it may be an array
        return read_array(path)
    found = _read_file(path)
    if len(found) > 1:
        raise ViewsError(
            f"{path} must hold one view where it stands for a name, got {', '.join(found)}; give it alone."
        )
    return next(iter(found.values()))


def read_shard(path: Path) -> Views:
    """All views of some rows: a file of views, or a folder with a .npy for each view."""
    if path.is_dir():
        return Views({file.stem: read_array(file) for file in sorted(path.glob("*.npy"))})
    return read_views([str(path)])


def read_archive(path: Path) -> dict[str, npt.NDArray[Any]]:
    """All arrays of a .npz file by name; no objects, nothing is unpickled."""
    _require_file(path)
    try:
        with np.load(path, allow_pickle=False) as archive:
            names = counted(f"reading {path.name}", archive.files, len(archive.files), "views")
            views = {name: archive[name] for name in names}
    except (ValueError, OSError, EOFError, KeyError, BadZipFile, zlib.error) as error:
        raise ViewsError(f"{path} is no readable .npz of plain numbers; write it with numpy.savez.") from error
    if not views:
        raise ViewsError(f"{path} holds no array: every array in it is a view.")
    return views


def read_array(path: Path) -> npt.NDArray[Any]:
    """One array from a .npy file, memory-mapped; no objects, nothing is unpickled."""
    _require_file(path)
    try:
        array: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise ViewsError(f"{path} is no readable .npy of plain numbers; write it with numpy.save.") from error
    if not isinstance(array, np.ndarray):
        raise ViewsError(f"{path} is an archive, not one array: give it alone as .npz, or its arrays as .npy files.")
    return array


READERS: dict[str, Callable[[Path], dict[str, npt.NDArray[Any]]]] = {
    ".npz": read_archive,
    ".npy": lambda path: {path.stem: read_array(path)},
    ".csv": lambda path: dict(read_csv(path)),
    ".parquet": lambda path: dict(read_parquet(path)),
    SUFFIX: lambda path: dict(read_lance(path)),
}


def write_array(path: str | os.PathLike[str], array: npt.NDArray[Any]) -> None:
    """Write one array as .npy, whole or not at all."""
    try:
        with replacing(path) as file:
            np.save(file, array, allow_pickle=False)
    except OSError as error:
        raise ParameterError(
            f"{path} cannot be written ({error.strerror or error}): give a path in a folder that may be written to."
        ) from error


def require_writable(path: Path) -> None:
    """Refuse a target that cannot be written, before any work is done for it."""
    target = Path(os.path.realpath(path))
    folder = target.parent
    try:
        is_good = folder.is_dir() and os.access(folder, os.W_OK | os.X_OK) and (target.is_file() or not target.exists())
    except OSError:  # a folder on the way may not be looked into, or the name is too long
        is_good = False
    if not is_good:
        raise ParameterError(f"{path} cannot be written: give the path of a file in a folder that exists and is yours.")


def _require_file(path: Path) -> None:
    try:
        is_there, is_file = path.exists(), path.is_file()
    except OSError as error:  # a folder on the way may not be looked into, or the name is too long
        raise ViewsError(f"{path} cannot be read ({error.strerror}); check path and permissions.") from error
    if not is_there:
        raise ViewsError(f"there is no file {path}.")
    if not is_file:
        raise ViewsError(f"{path} is a folder or device; give the path of a file.")
