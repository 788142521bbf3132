"""What a search gives back: a table for k nearest, a ragged list for everything within a radius."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]
Distances = npt.NDArray[np.uint16]


@dataclass(frozen=True, eq=False)
class Matches:
    """The nearest items of each query, nearest first, ties by id.

    Attributes
    ----------
    ids : int64 (n_queries, n_found)
        Ids of the items; n_found = min(k, number of items searched).
    distances : uint16 (n_queries, n_found)
        Hamming distances, in bits. Where the query was real scores or the matches were rescored, `scores` ranks.
    scores : float64 (n_queries, n_found), optional
        What real scores or vectors ranked by, higher is nearer; None where bits alone ranked.

    Examples
    --------
    >>> matches = Matches(np.array([[7, 3]]), np.array([[0, 2]], dtype=np.uint16))
    >>> len(matches), matches[0].ids.tolist()
    (1, [[7, 3]])
    """

    ids: Ids
    distances: Distances
    scores: npt.NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, query: int) -> Matches:
        """The matches of one query, still a table, of one row."""
        row = _place(query, len(self))
        rows = slice(row, row + 1)
        return Matches(self.ids[rows], self.distances[rows], None if self.scores is None else self.scores[rows])

    def __iter__(self) -> Iterator[Matches]:
        return (self[query] for query in range(len(self)))


@dataclass(frozen=True, eq=False)
class Neighbourhoods:
    """All items within a radius of each query, nearest first, ties by id.

    Attributes
    ----------
    offsets : int64 (n_queries + 1,)
        The items of query i stand at offsets[i] to offsets[i + 1].
    ids : int64 (n_found,)
        Ids of the items, one query after the other.
    distances : uint16 (n_found,)
        Hamming distances, in bits.

    Examples
    --------
    >>> found = Neighbourhoods(np.array([0, 2, 2]), np.array([7, 3]), np.array([0, 2], dtype=np.uint16))
    >>> [ids.tolist() for ids, distances in found]
    [[7, 3], []]
    """

    offsets: Ids
    ids: Ids
    distances: Distances

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def counts(self) -> Ids:
        """How many items each query found."""
        return self.offsets[1:] - self.offsets[:-1]

    def __getitem__(self, query: int) -> tuple[Ids, Distances]:
        """Ids and distances of one query."""
        row = _place(query, len(self))
        found = slice(self.offsets[row], self.offsets[row + 1])
        return self.ids[found], self.distances[found]

    def __iter__(self) -> Iterator[tuple[Ids, Distances]]:
        return (self[query] for query in range(len(self)))


def _place(query: int, n_queries: int) -> int:
    """The row of a query, counted from the end where negative."""
    if not -n_queries <= query < n_queries:
        raise IndexError(f"query must be one of the {n_queries} asked, got {query}.")
    return query % n_queries
