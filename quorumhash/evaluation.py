"""Every retrieval metric, defined once.

    relevance   bool (n_queries, n_items): whether a database item is relevant to a query
    distances   numbers (n_queries, n_items): Hamming distances or any other, smaller is nearer

Ties: items at the same distance from a query stand in no order, so a metric of the ranking is its expected value over
all orders of them; only neighbour_recall takes ids as found (nearest_rows cuts ties by row). Cut-offs are arguments.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from quorumhash.errors import ParameterError

Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
BLOCK_VALUES = 2_000_000  # looked at in one go


@dataclass(frozen=True)
class PrecisionRecall:
    """Mean precision and recall among the first `n_first` items of the rankings; all of shape (n_points,)."""

    n_first: Counts
    precision: Floats
    recall: Floats


class Lookup(NamedTuple):
    """Mean precision of lookups within a radius, and the share of queries that found nothing."""

    precision: float
    empty_share: float


def mean_average_precision(relevance: Any, distances: Any, depth: int | None = None) -> float:
    """Mean over queries of the average precision of the ranking by distance, ties averaged.

    Average precision of a query: the sum, over the relevant items among the first `depth` (None: all), of the precision
    at their rank, divided by min(depth, number of relevant items). Queries without any relevant item are left out.

    >>> mean_average_precision([[True, False]], [[5, 5]])  # first or second, each as likely: (1 + 1/2) / 2
    0.75
    """
    relevance, distances = _checked(relevance, distances)
    n_first = distances.shape[1] if depth is None else _count("depth", depth)
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, distances.shape[1] + 1))])
    scores = [_average_precision(*groups, n_first, harmonic) for groups in _tie_groups(relevance, distances)]
    return float(np.concatenate(scores)[_has_relevant(relevance)].mean())


def _average_precision(sizes: Counts, relevant: Counts, n_first: int, harmonic: Floats) -> Floats:
    """Expected average precision per query, (n_queries,), from its groups of equal distance.

    A group of t items, r of them relevant, stands behind T items, R of them relevant. Its place j holds a relevant item
    with probability r / t, and then the j - 1 places before it hold (j - 1) s relevant ones on average, where
    s = (r - 1) / (t - 1). With H the harmonic numbers and c the places of the group that are within the cut, the sum of
    r / t (R + 1 + (j - 1) s) / (T + j) over j = 1 .. c is r / t ((R + 1 - s (T + 1)) (H[T + c] - H[T]) + s c).
    """
    t, r = sizes, relevant
    T, R = np.cumsum(t, axis=1) - t, np.cumsum(r, axis=1) - r
    s = np.where(t > 1, (r - 1) / np.maximum(t - 1, 1), 1)
    c = np.clip(n_first - T, 0, t)
    places = (R + 1 - s * (T + 1)) * (harmonic[T + c] - harmonic[T]) + s * c
    return np.asarray((r / np.maximum(t, 1) * places).sum(axis=1) / np.clip(r.sum(axis=1), 1, n_first))


def precision_at(relevance: Any, distances: Any, n: int) -> float:
    """Mean over all queries of the share of relevant items among the first n, ties averaged.

    >>> precision_at([[True, False, True]], [[1, 2, 2]], n=2)
    0.75
    """
    relevance, distances = _checked(relevance, distances)
    found = _relevant_among_first(relevance, distances, np.array([_count("n", n, distances.shape[1])]))
    return float((found / n).mean())


def precision_recall(relevance: Any, distances: Any, n_first: Any = None) -> PrecisionRecall:
    """Mean precision and mean recall among the first `n_first` (n_points,) items of the ranking, ties averaged.

    Not given: at most 101 whole numbers from 1 to n_items, in about equal ratios, so that the top of the ranking is
    seen as closely as the rest. Queries without any relevant item are left out.

    >>> curve = precision_recall([[True, False, True, False]], [[0, 1, 2, 3]])
    >>> curve.n_first, curve.recall
    (array([1, 2, 3, 4]), array([0.5, 0.5, 1. , 1. ]))
    """
    relevance, distances = _checked(relevance, distances)
    cut_offs = np.geomspace(1, distances.shape[1], 101) if n_first is None else n_first
    n_first = np.unique(np.rint(cut_offs).astype(np.int64))
    kept = _has_relevant(relevance)
    found = _relevant_among_first(relevance, distances, n_first)[kept]
    n_relevant = relevance[kept].sum(axis=1, keepdims=True)
    return PrecisionRecall(n_first, (found / n_first).mean(axis=0), (found / n_relevant).mean(axis=0))


def lookup_precision(relevance: Any, distances: Any, radius: float = 2) -> Lookup:
    """Mean share of relevant items among those at a distance <= radius (0 where there are none), and how often none.

    >>> lookup_precision([[True, False], [True, True]], [[1, 2], [5, 7]], radius=2)
    Lookup(precision=0.25, empty_share=0.5)
    """
    relevance, distances = _checked(relevance, distances)
    _require(radius >= 0, "radius", "a number from 0 up", radius)
    n_within = (within := distances <= radius).sum(axis=1)
    precision = (within & relevance).sum(axis=1) / np.maximum(n_within, 1)
    return Lookup(float(precision.mean()), float((n_within == 0).mean()))


def tie_list_size(distances: Any) -> float:
    """Mean over queries of the number of items at the distance of the nearest one.

    >>> tie_list_size([[3, 3, 4], [1, 2, 3]])
    1.5
    """
    distances = _checked_distances(distances)
    return float((distances == distances.min(axis=1, keepdims=True)).sum(axis=1).mean())


def chance_precision(relevance: Any) -> float:
    """Expected precision of a random ranking, whatever the cut-off: the share of relevant pairs.

    >>> chance_precision([[True, False], [False, False]])
    0.25
    """
    return float(_checked_relevance(relevance).mean())


def shared_labels(query_labels: Any, database_labels: Any) -> Flags:
    """Relevance, (n_queries, n_items): whether two items have an equal label, or at least one label in common.

    Labels: integers (n,), or 0 and 1 (n, n_labels). Unlabelled (negative, a row of 0) is relevant to nothing.

    >>> shared_labels([0, -1], [0, 1, -1]).tolist()
    [[True, False, False], [False, False, False]]
    """
    queries, database = np.asarray(query_labels), np.asarray(database_labels)
    if queries.ndim == database.ndim == 1:
        for labels in (queries, database):
            _require(labels.dtype.kind in "iub", "labels of shape (n,)", "integers", labels.dtype)
        return np.asarray((queries[:, None] == database) & (queries >= 0)[:, None])
    is_fine = queries.ndim == database.ndim == 2 and queries.shape[1] == database.shape[1]
    _require(is_fine, "labels", "both (n,) or both (n, n_labels)", f"{queries.shape} and {database.shape}")
    _require(_is_binary(queries) and _is_binary(database), "labels of shape (n, n_labels)", "0 or 1", "other values")
    return np.asarray(queries.astype(np.float32) @ database.astype(np.float32).T > 0)


def neighbour_recall(found_ids: Any, true_ids: Any) -> float:
    """Mean share of true ids, (n_queries, n_true), among found ids, (n_queries, n_found); R10@100 takes 10 and 100.

    >>> neighbour_recall([[4, 7, 9]], [[9, 2]])
    0.5
    """
    found = _table("found_ids", "(n_queries, n_found)", found_ids, "iu")
    true = _table("true_ids", "(n_queries, n_true)", true_ids, "iu")
    _require(len(found) == len(true), "found_ids", f"as many rows as true_ids, {len(true)}", len(found))
    ids = np.concatenate([found.astype(np.int64), true.astype(np.int64)], axis=1)
    values, places = np.unique(ids, return_inverse=True)
    keys = places.reshape(ids.shape) + len(values) * np.arange(len(ids))[:, None]  # no two rows share a key
    true_keys = np.unique(keys[:, found.shape[1] :])
    is_found, rows = np.isin(true_keys, keys[:, : found.shape[1]]), true_keys // len(values)
    return float((np.bincount(rows, weights=is_found) / np.bincount(rows)).mean())


def nearest_rows(distances: Any, k: int) -> Counts:
    """The k nearest items of every query, (n_queries, k), by distance and among equals by lowest row.

    >>> nearest_rows([[2, 0, 1, 0]], k=3)
    array([[1, 3, 2]])
    """
    distances = _checked_distances(distances)
    nearest = np.empty((len(distances), _count("k", k, distances.shape[1])), dtype=np.int64)
    for rows in _blocks(distances.shape):
        limits = np.partition(distances[rows], k - 1, axis=1)[:, k - 1]
        for query, limit in enumerate(limits, rows.start):
            near = np.flatnonzero(distances[query] <= limit)
            nearest[query] = near[np.argsort(distances[query, near], kind="stable")[:k]]
    return nearest


def true_neighbours(queries: Any, database: Any, k: int) -> Counts:
    """The k rows of the database, (n_items, n_features), nearest to each query by exact Euclidean distance:
    (n_queries, k), nearest first and among equals by lowest row. Neither side may have missing values.

    >>> true_neighbours([[0.0, 0.0]], [[3.0, 4.0], [1.0, 1.0], [0.0, 5.0]], k=2)
    array([[1, 0]])
    """
    queries, database = _points(queries), _points(database)
    _require(queries.shape[1] == database.shape[1], "width of queries", f"{database.shape[1]}", queries.shape[1])
    nearest = np.empty((len(queries), _count("k", k, len(database))), dtype=np.int64)
    error = 8 * (database.shape[1] + 8) * np.finfo(np.float64).eps  # of a squared distance, relative to the norms
    moved = database - (centre := database.mean(axis=0))
    norms = (moved**2).sum(axis=1)
    for rows in _blocks((len(queries), len(database))):
        block = queries[rows] - centre
        low = norms * (1 - error) - 2 * block @ moved.T
        limits = np.partition(low + 2 * error * norms, k - 1, axis=1)[:, k - 1] + 2 * error * (block**2).sum(axis=1)
        for query, limit in enumerate(limits, rows.start):  # products round: all that may be among the k are measured
            near = np.flatnonzero(low[query - rows.start] <= limit)
            squared = ((database[near] - queries[query]) ** 2).sum(axis=1)
            nearest[query] = near[np.argsort(squared, kind="stable")[:k]]
    return nearest


def distinct_codes(codes: Any) -> int:
    """Number of different rows of codes, packed or not, (n_items, n_columns).

    >>> distinct_codes([[0, 1], [1, 1], [0, 1]])
    2
    """
    return len(np.unique(_table("codes", "(n_items, n_columns)", codes, "iub"), axis=0))


def _tie_groups(relevance: Flags, distances: npt.NDArray[Any]) -> Iterator[tuple[Counts, Counts]]:
    """Size and relevant items, (n_queries, n_groups), of groups of equal distance, nearest first; some are empty."""
    for rows in _blocks(distances.shape):
        block = distances[rows]
        n_queries, n_groups = block.shape
        low, high = block.min(), block.max()
        if block.dtype.kind in "iu" and int(high) - int(low) < max(n_groups, 1024):
            n_groups = int(high) - int(low) + 1
            groups = np.subtract(block, low, dtype=np.int64, casting="unsafe")
        else:
            groups = np.stack([np.unique(row, return_inverse=True)[1] for row in block])
        groups += n_groups * np.arange(n_queries)[:, None]
        sizes = np.bincount(groups.ravel(), minlength=n_queries * n_groups)
        relevant = np.bincount(groups[relevance[rows]], minlength=n_queries * n_groups)
        yield sizes.reshape(n_queries, n_groups), relevant.reshape(n_queries, n_groups)


def _relevant_among_first(relevance: Flags, distances: npt.NDArray[Any], n_first: Counts) -> Floats:
    """Expected number of relevant items among the first n, (n_queries, len(n_first)): linear within a group."""
    found = []
    for groups in _tie_groups(relevance, distances):
        places, relevants = (np.pad(np.cumsum(counts, axis=1), ((0, 0), (1, 0))) for counts in groups)
        found += [np.interp(n_first, *query) for query in zip(places, relevants, strict=True)]
    return np.asarray(found)


def _has_relevant(relevance: Flags) -> Flags:
    _require(relevance.any(), "relevance", "True for some item of some query", "False throughout")
    return np.asarray(relevance.any(axis=1))


def _checked(relevance: Any, distances: Any) -> tuple[Flags, npt.NDArray[Any]]:
    flags, numbers = _checked_relevance(relevance), _checked_distances(distances)
    _require(flags.shape == numbers.shape, "relevance", f"of the shape {numbers.shape} of distances", flags.shape)
    return flags, numbers


def _checked_relevance(relevance: Any) -> Flags:
    flags = _table("relevance", "(n_queries, n_items)", relevance)
    _require(_is_binary(flags), "relevance", "True or False", f"other values of type {flags.dtype}")
    return flags.astype(bool, copy=False)


def _checked_distances(distances: Any) -> npt.NDArray[Any]:
    numbers = _table("distances", "(n_queries, n_items)", distances)
    _require(not np.isnan(numbers).any(), "distances", "numbers (infinity for what is out of reach)", "NaN")
    return numbers


def _points(values: Any) -> Floats:
    points = _table("queries and database", "(n, n_features)", values).astype(np.float64, copy=False)
    _require(np.isfinite(points).all(), "queries and database", "finite (repair what is missing)", "NaN or infinity")
    return points


def _table(name: str, shape: str, values: Any, kinds: str = "iufb") -> npt.NDArray[Any]:
    table, numbers = np.asarray(values), "numbers" if "f" in kinds else "integers"
    is_fine = table.ndim == 2 and table.size and table.dtype.kind in kinds
    _require(is_fine, name, f"{numbers} of shape {shape}, not empty", f"{table.dtype} of shape {table.shape}")
    return table


def _is_binary(values: npt.NDArray[Any]) -> bool:
    return values.dtype.kind == "b" or (values.dtype.kind in "iuf" and bool(((values == 0) | (values == 1)).all()))


def _count(name: str, value: Any, most: float = np.inf) -> int:
    _require(isinstance(value, int | np.integer) and 1 <= value <= most, name, f"an integer from 1 to {most}", value)
    return int(value)


def _require(is_met: Any, what: str, must_be: str, got: object) -> None:
    if not is_met:
        raise ParameterError(f"{what} must be {must_be}, got {got}.")


def _blocks(shape: tuple[int, ...]) -> Iterator[slice]:
    step = max(1, BLOCK_VALUES // shape[1])
    return (slice(start, min(start + step, shape[0])) for start in range(0, shape[0], step))
