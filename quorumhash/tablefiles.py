"""Views in tables: .csv and .parquet files and .lance datasets, whose columns name their view.

    gist__0, gist__1, words__0     columns of numbers, the views gist and words
    gist, words                    not in .csv: also whole views, columns of lists, one list of numbers an item; beside
                                   them only columns called as above
    a, b, c                        columns of numbers without __ are one view, called as the file is

The first line of a .csv holds the names. An empty cell is a missing value.
"""

from __future__ import annotations

import csv
import io
from array import array
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.columngroups import GROUP_MARK, column_groups
from quorumhash.errors import MissingExtraError, ViewsError
from quorumhash.progress import begin_stage, counted

Matrices = dict[str, npt.NDArray[np.float64]]
TOLD_ROWS = 1_000  # read between two steps of a bar
EMPTY = {"", "na", "nan", "null", "none"}


def read_csv(path: Path) -> Matrices:
    """The views of a .csv file by name, float64."""
    try:
        with path.open("rb") as raw, io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as file:
            lines = csv.reader(file)
            names = next(lines, [])
            _refuse_numbers(path, names)
            values, n_rows, n_read = array("d"), 0, 0
            done = begin_stage(f"reading {path.name}", path.stat().st_size, "bytes")
            for n_rows, cells in enumerate((cells for cells in lines if cells), 1):
                if n_rows % TOLD_ROWS == 0:
                    n_new = raw.tell() - n_read
                    n_read += n_new
                    done(n_new)
                if len(cells) != len(names):
                    raise ViewsError(
                        f"line {lines.line_num} of {path} has {len(cells)} cells, the first line names {len(names)} "
                        "columns: give every line as many."
                    )
                try:
                    values.extend(map(float, cells))
                except ValueError:  # what was taken before the bad cell is cut off again
                    del values[(n_rows - 1) * len(names) :]
                    values.extend(_number(cell, names[i], lines.line_num, path) for i, cell in enumerate(cells))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ViewsError(f"{path} is no readable .csv; write it as text in UTF-8 with a line of names.") from error
    table = np.frombuffer(values, dtype=np.float64).reshape(n_rows, len(names))
    return _grouped(names, table, path)


def read_parquet(path: Path) -> Matrices:
    """The views of a .parquet file by name, float64."""
    file = open_parquet(path)
    import pyarrow

    n_groups = file.metadata.num_row_groups
    groups = counted(f"reading {path.name}", range(n_groups), n_groups, "groups of rows")
    parts = [file.read_row_group(i) for i in groups] or [file.read()]
    return views_of_table(pyarrow.concat_tables(parts), path)


def open_parquet(path: Path) -> Any:
    """The file with its footer read, a pyarrow ParquetFile."""
    parquet, _, error_kind = _pyarrow()
    try:
        return parquet.ParquetFile(path)
    except (error_kind, OSError, ValueError) as error:
        raise ViewsError(f"{path} is no readable .parquet file; write it again.") from error


def views_of_table(table: Any, path: Path) -> Matrices:
    """The views of a pyarrow table by name, float64; `path` is for the sentences."""
    _, compute, _ = _pyarrow()
    lists = list_columns(table.schema)
    others = [name for name in table.column_names if name not in lists]
    if lists and (plain := [name for name in others if GROUP_MARK not in name]):
        raise ViewsError(
            f"column {plain[0]!r} of {path} holds no lists, and {lists[0]!r} does: beside columns of lists "
            f"columns of numbers must be called name{GROUP_MARK}feature; leave it out."
        )
    views = {name: _from_lists(compute, table.column(name), name, path) for name in lists}
    if others or not lists:
        columns = [_from_numbers(table.column(name), name, path) for name in others]
        views |= _grouped(others, np.stack(columns, axis=1) if columns else np.empty((0, 0)), path)
    return views


def list_columns(schema: Any) -> list[str]:
    """The columns of a pyarrow schema that hold lists."""
    return [field.name for field in schema if hasattr(field.type, "value_type")]


def columns_of_view(path: Path, schema: Any, view: str) -> list[str]:
    """The columns of a pyarrow schema that make one view; `path` is for the sentences."""
    lists = list_columns(schema)
    if view in lists:
        return [view]
    others = [name for name in schema.names if name not in lists]
    groups = column_groups(others)
    if view in groups:
        return [others[position] for position in groups[view]]
    if lists or groups or view != path.stem:
        raise ViewsError(f"{path} has no view {view!r}; it has {', '.join(map(repr, [*lists, *groups] or others))}.")
    return others


def _grouped(names: list[str], table: npt.NDArray[np.float64], path: Path) -> Matrices:
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ViewsError(f"column {twice!r} stands twice in {path}: every column needs a name of its own.")
    if not table.size:
        raise ViewsError(f"{path} holds no numbers: give a column per feature and a row per item.")
    groups = column_groups(names)
    return {name: table[:, positions] for name, positions in groups.items()} or {path.stem: table}


def _refuse_numbers(path: Path, names: list[str]) -> None:
    """A first line of numbers is an item, unless it counts the columns."""
    if names and names != [str(i) for i in range(len(names))] and all(_is_number(name) for name in names):
        raise ViewsError(
            f"the first line of {path} must hold the names of the columns, got {names[0]} ...: put a line of names "
            "before it."
        )


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _number(cell: str, name: str, line: int, path: Path) -> float:
    if cell.strip().lower() in EMPTY:
        return float("nan")
    if not _is_number(cell):
        raise ViewsError(
            f"line {line} of {path}, column {name!r}, must be a number or empty, got {cell[:40]!r}; leave the column "
            "out or mend the cell."
        )
    return float(cell)


def _from_numbers(column: Any, name: str, path: Path) -> npt.NDArray[np.float64]:
    try:
        values: npt.NDArray[np.float64] = np.asarray(column, dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise ViewsError(
            f"column {name!r} of {path} must hold numbers, got {column.type}; leave it out or write numbers."
        ) from error
    return values


def _from_lists(compute: Any, column: Any, name: str, path: Path) -> npt.NDArray[np.float64]:
    """One row per list; an absent list is a missing view of that item."""
    lengths = np.asarray(compute.list_value_length(column).fill_null(-1), dtype=np.int64)
    is_there = lengths >= 0
    widths = np.unique(lengths[is_there])
    if len(widths) > 1:
        raise ViewsError(
            f"the lists of column {name!r} of {path} must have one length, got {widths[0]} and {widths[-1]}; mend them."
        )
    width = getattr(column.type, "list_size", int(widths.sum()))  # lists of a fixed size have it where none is there
    flat = [_from_numbers(part.flatten(), name, path) for part in column.chunks]
    if is_there.all() and flat:
        return np.concatenate(flat).reshape(len(lengths), width)
    table = np.full((len(lengths), width), np.nan)
    if is_there.any():
        table[is_there] = np.concatenate(flat).reshape(int(is_there.sum()), -1)
    return table


def _pyarrow() -> tuple[Any, Any, type[Exception]]:
    try:
        import pyarrow
        from pyarrow import compute, parquet
    except ImportError as error:
        raise MissingExtraError(
            ".parquet files need the package pyarrow, which is not installed: pip install pyarrow, or give .csv, .npz "
            "or .npy files."
        ) from error
    return parquet, compute, pyarrow.ArrowException
