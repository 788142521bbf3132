"""quorumhash under ann-benchmarks: exact search of bits, and codes with rescored candidates for vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

import quorumhash as qh

from ..base.module import BaseANN


class QuorumHashBits(BaseANN):  # type: ignore[misc]
    """Items that are bits already: `HammingIndex`, exact, one thread a query."""

    def __init__(self, metric: str, method: str = "auto") -> None:
        if metric != "hamming":
            raise ValueError(f"metric must be hamming for bits, got {metric!r}")
        self.name = f"quorumhash(method={method})"
        self._method = method

    def fit(self, X: Any) -> None:
        self._index = qh.HammingIndex(n_bits=X.shape[1], method=self._method)
        self._index.add(_packed(X))

    def query(self, q: Any, n: int) -> Any:
        return self._index.search(_packed(q[None]), k=n).ids[0]

    def batch_query(self, X: Any, n: int) -> None:
        self.res = self._index.search(_packed(X), k=n).ids


class QuorumHashVectors(BaseANN):  # type: ignore[misc]
    """Vectors: learned codes find candidates by the query's scores, the vectors themselves put them in order."""

    def __init__(self, metric: str, n_bits: int) -> None:
        if metric not in ("angular", "euclidean"):
            raise ValueError(f"metric must be angular or euclidean for vectors, got {metric!r}")
        self._metric, self._n_bits, self._n_candidates = metric, n_bits, 100
        self.name = f"quorumhash(bits={n_bits})"

    def fit(self, X: Any) -> None:
        self._vectors = self._scaled(X)
        self._hasher = qh.QuorumHasher(n_bits=self._n_bits).fit(self._vectors)
        self._index = qh.HammingIndex(n_bits=self._n_bits)
        self._index.add(self._hasher.transform(self._vectors), model=self._hasher)

    def set_query_arguments(self, n_candidates: int) -> None:
        self._n_candidates = n_candidates
        self.name = f"quorumhash(bits={self._n_bits}, candidates={n_candidates})"

    def query(self, q: Any, n: int) -> Any:
        self.batch_query(q[None], n)
        return self.res[0]

    def batch_query(self, X: Any, n: int) -> None:
        queries = self._scaled(X)
        found = self._index.search(self._hasher.decision_function(queries), k=max(n, self._n_candidates)).ids
        self.res = [ids[_nearest(self._vectors[ids], row, n)] for ids, row in zip(found, queries, strict=True)]

    def _scaled(self, X: Any) -> Any:
        """float32 rows, of length 1 where angles count: Euclidean order is then that of angles."""
        rows = np.asarray(X, dtype=np.float32)
        if self._metric == "euclidean":
            return rows
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return rows / np.where(lengths == 0, 1, lengths)


def _packed(X: Any) -> Any:
    return np.packbits(np.asarray(X).astype(bool), axis=1)


def _nearest(rows: Any, query: Any, n: int) -> Any:
    return np.argsort(((rows - query) ** 2).sum(axis=1), kind="stable")[:n]
