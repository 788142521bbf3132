"""Views in Parquet files: a column of lists for each view, or a column for each feature called name__feature."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.errors import MissingExtraError, ViewsError
from quorumhash.views import GROUP_MARK


def read_parquet(path: Path, views: list[str] | None = None) -> dict[str, npt.NDArray[Any]]:
    """All views of a file, or those that are named, as 2-D arrays; a null is a missing value or view."""
    file = _open(path)
    groups = _groups(path, file.schema_arrow.names, views)
    table = file.read(columns=[column for columns in groups.values() for column in columns])
    return {name: _matrix(path, name, [table.column(c) for c in columns]) for name, columns in groups.items()}


def read_parquet_rows(path: Path, view: str, start: int, stop: int) -> npt.NDArray[Any]:
    """Rows start to stop of one view; only the groups of rows that hold them are read."""
    file = _open(path)
    columns = _groups(path, file.schema_arrow.names, [view])[view]
    sizes = [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]
    edges = np.concatenate([[0], np.cumsum(sizes)])
    wanted = [i for i in range(len(sizes)) if edges[i] < stop and edges[i + 1] > start]
    table = file.read_row_groups(wanted, columns=columns)
    first = int(edges[wanted[0]]) if wanted else 0
    return _matrix(path, view, [table.column(c) for c in columns])[start - first : stop - first]


def n_parquet_rows(path: Path) -> int:
    """How many rows a file has, from its footer."""
    return int(_open(path).metadata.num_rows)


def _open(path: Path) -> Any:
    try:
        import pyarrow as pa
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise MissingExtraError(
            "Parquet files need pyarrow, which is not installed: pip install 'quorumhash[dask]'."
        ) from error
    if not path.is_file():
        raise ViewsError(f"there is no file {path}.")
    try:
        return parquet.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise ViewsError(f"{path} is no readable Parquet file; write it again.") from error


def _groups(path: Path, columns: list[str], views: list[str] | None) -> dict[str, list[str]]:
    """The columns of each view, in their order."""
    groups: dict[str, list[str]] = {}
    for column in columns:
        groups.setdefault(column.partition(GROUP_MARK)[0], []).append(column)
    for name in views or ():
        if name not in groups:
            raise ViewsError(f"{path} has no view {name!r}; it has {', '.join(map(repr, groups))}.")
    return groups if views is None else {name: groups[name] for name in views}


def _matrix(path: Path, name: str, columns: list[Any]) -> npt.NDArray[Any]:
    """One view (n, d) from its column of lists, or from a column for each feature."""
    if not all(_is_number(column.type) or _is_list(column.type) for column in columns) or (
        len(columns) > 1 and any(_is_list(column.type) for column in columns)
    ):
        raise ViewsError(
            f"{path}, view {name!r}: must be one column of lists of numbers, or columns of numbers, got "
            f"{columns[0].type}; leave other columns out of the file."
        )
    if not _is_list(columns[0].type):
        return np.stack([column.to_numpy() for column in columns], axis=1)
    column = columns[0].combine_chunks() if columns[0].num_chunks else columns[0]
    there = ~np.asarray(column.is_null())
    values = np.asarray(column.drop_null().flatten().to_numpy(zero_copy_only=False) if len(column) else np.empty(0))
    n_there = int(there.sum())
    width = len(values) // n_there if n_there else 0
    lengths = column.drop_null().value_lengths() if hasattr(column, "value_lengths") else None
    if width * n_there != len(values) or (lengths is not None and (np.asarray(lengths) != width).any()):
        raise ViewsError(f"{path}, view {name!r} is ragged: every row must have the same number of features.")
    if n_there == len(there):
        return values.reshape(-1, width)
    rows = np.full((len(there), width), np.nan, dtype=values.dtype if values.dtype.kind == "f" else np.float64)
    rows[there] = values.reshape(-1, width)
    return rows


def _is_list(kind: Any) -> bool:
    return hasattr(kind, "value_type")


def _is_number(kind: Any) -> bool:
    return str(kind) in {"halffloat", "float", "double", "bool"} or str(kind).lstrip("u").startswith("int")
