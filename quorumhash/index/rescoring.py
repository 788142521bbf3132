"""Matches ranked anew by the vectors they stand for, read row by row from an array or a memory map."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.errors import ParameterError
from quorumhash.index.matches import Matches

METRICS = ("cosine", "dot")


def rescored(
    vectors: npt.NDArray[Any], matches: Matches, queries: npt.ArrayLike, k: int | None = None, metric: str = "cosine"
) -> Matches:
    """The matches of each query by similarity to its vector, highest first, ties by id; the first k of them.

    vectors (n, d) of float16, float32, int8 ...: row i is about id i. queries (q, d). Only rows of matches are read.

    >>> vectors = np.array([[1, 0], [0, 1], [1, 1]], dtype=np.int8)
    >>> found = Matches(np.array([[0, 1, 2]]), np.array([[0, 0, 0]], dtype=np.uint16))
    >>> rescored(vectors, found, [[0.0, 2.0]], k=2).ids
    array([[1, 2]])
    """
    given = np.asarray(queries, dtype=np.float64)
    given = given[None] if given.ndim == 1 else given
    if np.ndim(vectors) != 2 or vectors.dtype.kind not in "iuf" or given.shape != (len(matches), vectors.shape[1]):
        raise ParameterError(
            f"vectors must be numbers (n, d) and queries ({len(matches)}, d), got shapes {np.shape(vectors)} and "
            f"{given.shape}; give the vectors that the codes were made of, and those of the queries."
        )
    if metric not in METRICS:
        raise ParameterError(f"metric must be one of {', '.join(METRICS)}, got {metric!r}.")
    wrong = (matches.ids < 0) | (matches.ids >= len(vectors))
    if wrong.any():
        raise ParameterError(
            f"vectors must have a row for every id, got {len(vectors)} rows and the id {matches.ids[wrong][0]}; "
            "number the items as the rows."
        )
    kept = matches.ids.shape[1] if k is None else min(k, matches.ids.shape[1])
    scores = np.empty(matches.ids.shape)
    for i in range(len(matches)):
        scores[i] = _similarities(np.asarray(vectors[matches.ids[i]], dtype=np.float64), given[i], metric)
    order = np.lexsort((matches.ids, -scores))[:, :kept]
    return Matches(
        np.take_along_axis(matches.ids, order, 1),
        np.take_along_axis(matches.distances, order, 1),
        np.take_along_axis(scores, order, 1),
    )


def _similarities(rows: npt.NDArray[np.float64], query: npt.NDArray[np.float64], metric: str) -> Any:
    products = rows @ query
    if metric == "dot":
        return products
    lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(query)
    return products / np.where(lengths > 0, lengths, 1.0)
