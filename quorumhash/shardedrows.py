"""A view whose rows lie in many files: a matrix for the gate, read block by block where the engine walks it."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace, device

from quorumhash.engines import Engine, open_engine
from quorumhash.errors import ViewsError
from quorumhash.matrices import block_presence
from quorumhash.shardfiles import ShardFiles
from quorumhash.tensors import host_array, is_tensor


class ShardedRows:
    """Rows of one view in files; `shards` makes it."""

    ndim = 2

    def __init__(self, files: ShardFiles, engine: str | Engine) -> None:
        self.files = files
        self.shape = files.shape
        self.dtype = files.dtype
        self._engine = engine
        self._presence: tuple[npt.NDArray[np.bool_], bool, tuple[int, int, float] | None] | None = None

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"ShardedRows({self.shape[0]} rows of {self.shape[1]} features in {len(self.files.paths)} files)"

    def __getitem__(self, key: slice | npt.NDArray[np.intp]) -> npt.NDArray[Any]:
        """Rows by slice or positions, as one array in memory."""
        return self.files[key]

    def scanned_presence(self) -> tuple[npt.NDArray[np.bool_], bool, tuple[int, int, float] | None]:
        """Which rows hold any value, whether any is missing, and place and value of one too large: read once."""
        if self._presence is None:
            with open_engine(self._engine) as engine:
                present, facts = (engine.get(part) for part in engine.map_rows(_scan, engine.put(self)))
            starts = np.concatenate([[0], np.cumsum(facts[:, 0])]).astype(int)
            wrong = np.flatnonzero(facts[:, 2])
            first = None
            if len(wrong):
                row, column, value = facts[wrong[0], 3:]
                first = int(starts[wrong[0]] + row), int(column), float(value)
            self._presence = present[:, 0], bool(facts[:, 1].any()), first
        return self._presence


def shards(
    paths: str | Path | Sequence[str | Path], view: str | None = None, *, engine: str | Engine = "threads"
) -> ShardedRows:
    """One view from files whose rows stand one below the other.

    Parameters
    ----------
    paths : str, Path or a sequence of them
        Files in the order of their rows, or a pattern such as "colour-*.npy", taken in the order of the names: .npy of
        2-D arrays (memory-mapped; the best choice), .npz, .parquet, or .lance datasets. With a dask engine every worker
        must find them under these names.
    view : str, optional
        Which view of a .npz, .parquet or .lance.
    engine : str or Engine
        Where the rows are read once to learn what is missing; with dask no row passes through the driver.

    Examples
    --------
    >>> views = Views({"colour": shards("colour-*.npy"), "shape": shards("shape-*.npy")})  # doctest: +SKIP
    >>> hasher.fit(views)  # doctest: +SKIP
    """
    given = [paths] if isinstance(paths, str | Path) else list(paths)
    found: list[str] = []
    for path in map(str, given):
        matches = [path] if Path(path).exists() else sorted(glob.glob(path))
        if not matches:
            raise ViewsError(f"there is no file {path}.")
        found += matches
    return ShardedRows(ShardFiles(found, view), engine)


def _scan(block: Any) -> Any:
    """Presence of a block's rows (n, 1); rows, whether any value is missing, whether one is too large, and where."""
    xp, rows = array_namespace(block), host_array(block) if is_tensor(block) else block
    present, any_missing, place = block_presence(rows)
    at = (*place, float(rows[place])) if place is not None else (0, 0, 0.0)
    facts = np.array([[len(rows), any_missing, place is not None, *at]], dtype=np.float64)
    return xp.asarray(present[:, None], device=device(block)), xp.asarray(facts, device=device(block))
