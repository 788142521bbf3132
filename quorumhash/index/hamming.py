"""Stand-in."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from quorumhash.codes import hamming_distances
from quorumhash.index.adapters.base import Store
from quorumhash.index.idset import IdSet
from quorumhash.index.store import SegmentFile


class HammingIndex(Store):
    """Stand-in until the real one is here.

    >>> len(HammingIndex(8))
    0
    """

    name = "the index"

    def __init__(self, n_bits: int = 64) -> None:
        self.n_bits, self.model = n_bits, ""
        self._file: SegmentFile | None = None
        self._codes, self._ids = np.empty((0, -(-n_bits // 8)), np.uint8), np.empty(0, np.int64)

    @classmethod
    def open(cls, path: Any, n_bits: int | None = None, readonly: bool = False) -> Self:
        """Open."""
        file = SegmentFile(path, n_bits, readonly=readonly)
        made = cls(file.n_bits)
        made.model, made._file = file.model, file
        made._codes, made._ids = file.load()
        return made

    def add(self, codes: Any, ids: Any = None, *, model: Any = None) -> None:
        """Add."""
        fingerprint = model.fingerprint() if model is not None else ""
        start = max(-1, self._ids.max()) + 1 if len(self._ids) else 0
        names = np.arange(start, start + len(codes)) if ids is None else ids
        if self._file is not None:
            self._file.append(codes, names, fingerprint)
        super().add(codes, names)

    def remove(self, ids: Any) -> None:
        """Remove."""
        if self._file is not None:
            self._file.remove(ids)
        super().remove(ids)

    def __len__(self) -> int:
        return len(self._ids)

    def close(self) -> None:
        """Close."""
        if self._file is not None:
            self._file.close()

    def _has(self, ids: Any) -> Any:
        return IdSet(self._ids).has(ids)

    def _add(self, codes: Any, ids: Any) -> None:
        self._codes, self._ids = np.concatenate([self._codes, codes]), np.concatenate([self._ids, ids])

    def _remove(self, ids: Any) -> None:
        keep = ~np.isin(self._ids, ids)
        self._codes, self._ids = self._codes[keep], self._ids[keep]

    def _nearest(self, queries: Any, k: int) -> Any:
        del k
        return [(self._ids, row) for row in hamming_distances(queries, self._codes)]

    def _ball(self, queries: Any, radius: int) -> Any:
        if not len(self._ids):
            return [(self._ids, self._ids) for _ in queries]
        return [(self._ids[row <= radius], row[row <= radius]) for row in hamming_distances(queries, self._codes)]

    def _failures(self) -> Any:
        return ()
