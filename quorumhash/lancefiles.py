"""Views in Lance datasets: folders NAME.lance, whose columns name their view as those of a Parquet file do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.errors import MissingExtraError, ViewsError
from quorumhash.tablefiles import Matrices, columns_of_view, views_of_table

SUFFIX = ".lance"
NAME = re.compile(r"[A-Za-z0-9_.-]+")  # what lancedb opens
FAILURES = (RuntimeError, OSError, ValueError)  # of lancedb, where a folder or a file in it is not what it should be


def read_lance(path: Path) -> Matrices:
    """The views of a dataset by name, float64."""
    dataset = _opened(path)
    return views_of_table(_rows(path, dataset, None, 0, _n_rows(path, dataset)), path)


def read_lance_rows(path: Path, view: str, start: int, stop: int) -> npt.NDArray[np.float64]:
    """Rows start to stop of one view; no others are read."""
    dataset = _opened(path)
    columns = columns_of_view(path, dataset.schema, view)
    return next(iter(views_of_table(_rows(path, dataset, columns, start, stop), path).values()))


def n_lance_rows(path: Path) -> int:
    """How many rows a dataset has; those that were deleted do not count."""
    return _n_rows(path, _opened(path))


def lance_view_names(path: Path) -> list[str]:
    """The views that `read_lance` gives, from the first row."""
    return list(views_of_table(_rows(path, _opened(path), None, 0, 1), path))


def _opened(path: Path) -> Any:
    """The newest version of the dataset, a lancedb table."""
    if not path.is_dir():
        raise ViewsError(f"there is no Lance dataset {path}: it must be a folder.")
    try:
        import lancedb
    except ImportError as error:
        raise MissingExtraError(
            f"{SUFFIX} datasets need the package lancedb, which is not installed: pip install 'quorumhash[lancedb]', "
            "or give .parquet, .npz or .npy files."
        ) from error
    folder = path.absolute()
    if not NAME.fullmatch(folder.stem):
        raise ViewsError(
            f"a Lance dataset must have a name of letters, digits, _, - and . to be read, got {path}; rename it."
        )
    try:
        return lancedb.connect(str(folder.parent)).open_table(folder.stem)
    except FAILURES as error:
        raise _unreadable(path) from error


def _rows(path: Path, dataset: Any, columns: list[str] | None, start: int, stop: int) -> Any:
    """Rows start to stop, at least one, in the order in which they were written, a pyarrow table."""
    query = dataset.search() if columns is None else dataset.search().select(columns)
    try:
        return query.offset(start).limit(max(1, stop - start)).to_arrow()  # a limit of 0 would be none
    except FAILURES as error:
        raise _unreadable(path) from error


def _n_rows(path: Path, dataset: Any) -> int:
    try:
        return int(dataset.count_rows())
    except FAILURES as error:
        raise _unreadable(path) from error


def _unreadable(path: Path) -> ViewsError:
    return ViewsError(f"{path} is no readable Lance dataset; write it again.")
