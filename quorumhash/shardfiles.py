"""Rows of one view in several files, one below the other, read when they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.errors import ViewsError
from quorumhash.lancefiles import SUFFIX, n_lance_rows, read_lance_rows
from quorumhash.parquetfiles import n_parquet_rows, read_parquet_rows
from quorumhash.viewfiles import read_archive, read_array

TABLES = {".parquet": (n_parquet_rows, read_parquet_rows), SUFFIX: (n_lance_rows, read_lance_rows)}
PIECE = 1 << 14  # rows


class ShardFiles:
    """Paths and numbers of rows: small, so that it can be sent to where the rows are read.

    Parameters
    ----------
    paths : sequence of str or Path
        .npy files of 2-D arrays (memory-mapped), .npz or .parquet files, or .lance datasets.
    view : str, optional
        Which view of a .npz, .parquet or .lance; not needed for .npy.
    """

    def __init__(self, paths: Sequence[Any], view: str | None = None) -> None:
        self.paths = [str(path) for path in paths]
        self.view = view
        if not self.paths:
            raise ViewsError("there are no shards: give at least one file.")
        first = self._first_rows()
        self.width, self.dtype = int(first.shape[1]), first.dtype
        counts = [self._n_rows(path) for path in self.paths]
        self.starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.shape = int(self.starts[-1]), self.width

    def _first_rows(self) -> npt.NDArray[Any]:
        """Rows that have a width: lists of a table have none before the first that is there."""
        first = self._rows(self.paths[0], 0, 1)
        if first.shape[1]:
            return first
        for path in (path for path in self.paths if Path(path).suffix in TABLES):
            for start in range(0, self._n_rows(path), PIECE):
                rows = self._rows(path, start, start + PIECE)
                if rows.shape[1]:
                    return rows
        return first

    def _n_rows(self, path: str) -> int:
        if Path(path).suffix in TABLES:
            return TABLES[Path(path).suffix][0](Path(path))  # its width is checked when it is read
        rows = self._rows(path, 0, None)
        self._check(path, rows)
        return len(rows)

    def _rows(self, path: str, start: int, stop: int | None) -> npt.NDArray[Any]:
        file = Path(path)
        if file.suffix == ".npy":
            array = read_array(file)
        elif self.view is None:
            raise ViewsError(f"{path} holds several views: name the one that is meant, as view='...'.")
        elif file.suffix in TABLES:
            n_rows, read_rows = TABLES[file.suffix]
            return read_rows(file, self.view, start, n_rows(file) if stop is None else stop)
        else:
            views = read_archive(file)
            if self.view not in views:
                raise ViewsError(f"{path} has no view {self.view!r}; it has {', '.join(map(repr, views))}.")
            array = views[self.view]
        if array.ndim != 2 or array.dtype.kind not in "fiub":
            raise ViewsError(
                f"{path} must hold 2-D numbers (rows are items), got {array.dtype} of shape {array.shape}."
            )
        return array[start:stop]

    def _check(self, path: str, rows: npt.NDArray[Any]) -> None:
        if rows.shape[1] != self.width or (rows.dtype != self.dtype and rows.dtype.kind != "f"):
            raise ViewsError(
                f"{path} has {rows.shape[1]} features of {rows.dtype}, but {self.paths[0]} has {self.width} of "
                f"{self.dtype}: every shard of a view must be alike."
            )

    def _part(self, i: int, start: int, stop: int) -> npt.NDArray[Any]:
        """Rows start to stop of one file, of the width of all."""
        rows = self._rows(self.paths[i], start, stop)
        if not rows.shape[1] and Path(self.paths[i]).suffix in TABLES:  # lists of which none is there
            return np.full((len(rows), self.width), np.nan)
        self._check(self.paths[i], rows)
        return rows

    def __getitem__(self, key: slice | npt.NDArray[np.intp]) -> npt.NDArray[Any]:
        """Rows by slice or positions, as one array in memory."""
        if isinstance(key, slice):
            start, stop, step = key.indices(self.shape[0])
            if step == 1:
                return self._span(start, max(start, stop))
            key = np.arange(start, stop, step)
        positions = np.asarray(key)
        if positions.dtype == bool:
            positions = np.flatnonzero(positions)
        positions = np.where(positions < 0, positions + self.shape[0], positions).astype(np.intp)
        rows = np.empty((len(positions), self.width), dtype=self.dtype)
        owners = np.searchsorted(self.starts, positions, side="right") - 1
        for i in np.unique(owners):
            mine = np.flatnonzero(owners == i)
            local = positions[mine] - self.starts[i]
            for chosen in self._pieces(self.paths[i], local):
                low, high = int(local[chosen].min()), int(local[chosen].max()) + 1
                rows[mine[chosen]] = self._part(i, low, high)[local[chosen] - low]
        return rows

    @staticmethod
    def _pieces(path: str, local: npt.NDArray[np.intp]) -> list[npt.NDArray[np.intp]]:
        """Which positions are read at once: all, except where what lies between them is read too and need not be."""
        if Path(path).suffix != SUFFIX:
            return [np.arange(len(local))]
        order = np.argsort(local, kind="stable")
        pieces = local[order] // PIECE
        return np.split(order, np.flatnonzero(np.diff(pieces)) + 1)

    def _span(self, start: int, stop: int) -> npt.NDArray[Any]:
        rows = np.empty((stop - start, self.width), dtype=self.dtype)
        for i in range(len(self.paths)):
            low, high = max(start, int(self.starts[i])), min(stop, int(self.starts[i + 1]))
            if low < high:
                first = int(self.starts[i])
                rows[low - start : high - start] = self._part(i, low - first, high - first)
        return rows
