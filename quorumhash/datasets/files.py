"""Datasets in files: where they are looked for, and .npz archives among them.

QUORUMHASH_DATA names the folder of the data, or several, separated as in PATH. What is looked for after it: the folder
`data` of the cache, where `quorumhash datasets get` puts files if QUORUMHASH_DATA names no folder to write to.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.cachefolder import cache_folder
from quorumhash.errors import ParameterError, ViewsError
from quorumhash.viewfiles import read_archive

FOLDER_VARIABLE = "QUORUMHASH_DATA"


def read_arrays(file_name: str, names: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
    """The named arrays of a file of the data folder, all with one row per item; float16 comes back as float32.

    >>> read_arrays("no such file.npz", ["labels"])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    quorumhash.errors.ParameterError: ...
    """
    path = _path_of(file_name)
    held = read_archive(path)
    missing = [name for name in names if name not in held]
    if missing:
        raise ViewsError(
            f"{path} must hold the arrays {', '.join(names)}, it lacks {', '.join(missing)}; get the file anew."
        )
    arrays = {name: held[name] for name in names}
    counts = {name: len(array) if array.ndim else 0 for name, array in arrays.items()}
    if len(set(counts.values())) > 1:
        raise ViewsError(f"the arrays of {path} must have one row per item each, got {counts}; get the file anew.")
    return {name: array.astype(np.float32) if array.dtype == np.float16 else array for name, array in arrays.items()}


def data_folders() -> list[Path]:
    """The folders that QUORUMHASH_DATA names, in their order."""
    return [Path(part) for part in os.environ.get(FOLDER_VARIABLE, "").split(os.pathsep) if part]


def own_folders(dataset: str) -> list[Path]:
    """The folders of a dataset's own, first first: in every data folder, then in the cache.

    >>> own_folders("mnist")[-1].parts[-2:]
    ('data', 'mnist')
    """
    return [root / dataset for root in [*data_folders(), cache_folder("data", is_made=False)]]


def search_folders(dataset: str) -> list[Path]:
    """Where files with a name of their own are looked for: a dataset's own folders, each before the one it is in."""
    return [folder for own in own_folders(dataset) for folder in (own, own.parent)]


def download_folder(dataset: str) -> Path:
    """Where files of a dataset are put: in the first data folder that may be written to, else in the cache."""
    for root in data_folders():
        if root.is_dir() and os.access(root, os.W_OK):
            folder = root / dataset
            folder.mkdir(exist_ok=True)
            return folder
    return cache_folder("data", dataset)


def _path_of(file_name: str) -> Path:
    folders = data_folders()
    if not folders:
        raise ParameterError(
            f"{file_name} is looked for in the folder that {FOLDER_VARIABLE} names, which is not set: set it to the "
            "folder that holds the file."
        )
    for folder in folders:
        if (folder / file_name).is_file():
            return folder / file_name
    raise ParameterError(
        f"there is no {file_name} in {os.pathsep.join(map(str, folders))} ({FOLDER_VARIABLE}): put it there, or set "
        f"{FOLDER_VARIABLE} to the folder that holds it."
    )
