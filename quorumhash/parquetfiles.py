"""Rows of one view from a Parquet file, without the others; tablefiles.py says how columns name their view."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.errors import ViewsError
from quorumhash.tablefiles import columns_of_view, open_parquet, views_of_table


def read_parquet_rows(path: Path, view: str, start: int, stop: int) -> npt.NDArray[np.float64]:
    """Rows start to stop of one view; only the groups of rows that hold them are read."""
    file = _opened(path)
    columns = columns_of_view(path, file.schema_arrow, view)
    sizes = [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]
    edges = np.concatenate([[0], np.cumsum(sizes)])
    wanted = [i for i in range(len(sizes)) if edges[i] < stop and edges[i + 1] > start]
    first = int(edges[wanted[0]]) if wanted else 0
    found = views_of_table(file.read_row_groups(wanted, columns=columns), path)
    return next(iter(found.values()))[start - first : stop - first]


def n_parquet_rows(path: Path) -> int:
    """How many rows a file has, from its footer."""
    return int(_opened(path).metadata.num_rows)


def _opened(path: Path) -> Any:
    if not path.is_file():
        raise ViewsError(f"there is no file {path}.")
    return open_parquet(path)
