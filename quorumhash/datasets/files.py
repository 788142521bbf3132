"""Datasets in files: .npz archives in the folder that the environment variable QUORUMHASH_DATA names."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

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


def _path_of(file_name: str) -> Path:
    folder = os.environ.get(FOLDER_VARIABLE, "")
    if not folder:
        raise ParameterError(
            f"{file_name} is looked for in the folder that {FOLDER_VARIABLE} names, which is not set: set it to the "
            "folder that holds the file."
        )
    path = Path(folder) / file_name
    if not path.is_file():
        raise ParameterError(
            f"there is no {file_name} in {folder} ({FOLDER_VARIABLE}): put it there, or set {FOLDER_VARIABLE} to the "
            "folder that holds it."
        )
    return path
