"""Every retrieval metric, defined once.

    relevance   bool (n_queries, n_items): whether a database item is relevant to a query
    distances   numbers (n_queries, n_items): Hamming distances or any other, smaller is nearer

Ties: items at the same distance from a query stand in no order, so a metric of the ranking is its expected value over
all orders of them, each as likely as the other. No metric depends on the order of the database. Cut-offs are arguments.
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

BLOCK_VALUES = 2_000_000  # distances looked at in one go
CURVE_POINTS = 101


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

    Examples
    --------
    >>> mean_average_precision([[True, False, True]], [[0, 1, 2]])
    0.8333333333333333
    >>> mean_average_precision([[True, False]], [[5, 5]])  # first or second, each as likely: (1 + 1/2) / 2
    0.75
    """
    relevance, distances = _checked(relevance, distances)
    n_first = distances.shape[1] if depth is None else min(_positive("depth", depth), distances.shape[1])
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
    total = np.sum(r / np.maximum(t, 1) * places, axis=1)
    return np.asarray(total / np.clip(r.sum(axis=1), 1, n_first))


def precision_at(relevance: Any, distances: Any, n: int) -> float:
    """Mean over all queries of the share of relevant items among the first n, ties averaged.

    Examples
    --------
    >>> precision_at([[True, False, True]], [[1, 1, 1]], n=2)
    0.6666666666666666
    """
    relevance, distances = _checked(relevance, distances)
    if _positive("n", n) > distances.shape[1]:
        raise ParameterError(f"n must be at most the number of items, {distances.shape[1]}, got {n}; choose a smaller n.")
    return float(_relevant_among_first(relevance, distances, np.array([n])).mean()) / n


def precision_recall(relevance: Any, distances: Any) -> PrecisionRecall:
    """Mean precision and mean recall among the first 1 .. n_items of the ranking, ties averaged.

    The cut-offs are at most 101 whole numbers from 1 to n_items in about equal ratios, so that the top of the ranking
    is seen as closely as the rest. Queries without any relevant item are left out.

    Examples
    --------
    >>> curve = precision_recall([[True, False, True, False]], [[0, 1, 2, 3]])
    >>> curve.n_first, curve.recall
    (array([1, 2, 3, 4]), array([0.5, 0.5, 1. , 1. ]))
    """
    relevance, distances = _checked(relevance, distances)
    n_first = np.unique(np.rint(np.geomspace(1, distances.shape[1], CURVE_POINTS)).astype(np.int64))
    has_relevant = _has_relevant(relevance)
    found = _relevant_among_first(relevance, distances, n_first)[has_relevant]
    n_relevant = relevance.sum(axis=1)[has_relevant, None]
    return PrecisionRecall(n_first, (found / n_first).mean(axis=0), (found / n_relevant).mean(axis=0))


def lookup_precision(relevance: Any, distances: Any, radius: float = 2) -> Lookup:
    """Mean share of relevant items among those at a distance <= radius, and the share of queries that found none.

    A query that finds nothing counts as precision 0.

    Examples
    --------
    >>> lookup_precision([[True, False], [True, True]], [[1, 2], [5, 7]], radius=2)
    Lookup(precision=0.25, empty_share=0.5)
    """
    relevance, distances = _checked(relevance, distances)
    within = distances <= radius
    n_found = within.sum(axis=1)
    precision = (within & relevance).sum(axis=1) / np.maximum(n_found, 1)
    return Lookup(float(precision.mean()), float((n_found == 0).mean()))


def tie_list_size(distances: Any) -> float:
    """Mean over queries of the number of items at the distance of the nearest one, distances (n_queries, n_items).

    Examples
    --------
    >>> tie_list_size([[3, 3, 4], [1, 2, 3]])
    1.5
    """
    distances = _checked_distances(distances)
    return float((distances == distances.min(axis=1, keepdims=True)).sum(axis=1).mean())


def chance_precision(relevance: Any) -> float:
    """Precision of a random ranking at any cut-off: the share of relevant pairs in relevance (n_queries, n_items).

    Examples
    --------
    >>> chance_precision([[True, False], [False, False]])
    0.25
    """
    return float(_checked_relevance(relevance).mean())


def shared_labels(query_labels: Any, database_labels: Any) -> Flags:
    """Relevance (n_queries, n_items) by labels: equal, or at least one in common.

    Labels are whole numbers, shape (n,), negative for unlabelled, or 0 and 1, shape (n, n_labels), all 0 for
    unlabelled. What is unlabelled is relevant to nothing.

    Examples
    --------
    >>> shared_labels([0, -1], [0, 1, -1])
    array([[ True, False, False],
           [False, False, False]])
    """
    queries, database = np.asarray(query_labels), np.asarray(database_labels)
    if queries.ndim != database.ndim or queries.ndim not in (1, 2) or queries.shape[1:] != database.shape[1:]:
        raise ParameterError(
            "query_labels and database_labels must both be (n,) or both (n, n_labels) with the same n_labels, got shapes "
            f"{queries.shape} and {database.shape}; give both in the same form."
        )
    if queries.ndim == 1:
        _refuse_unless(queries.dtype.kind in "iub" and database.dtype.kind in "iub", "labels of shape (n,)", "integers")
        return (queries[:, None] == database) & (queries >= 0)[:, None]
    _refuse_unless(_is_binary(queries) and _is_binary(database), "labels of shape (n, n_labels)", "0 or 1")
    return np.asarray(queries.astype(np.float32) @ database.astype(np.float32).T > 0)


def neighbour_recall(found_ids: Any, true_ids: Any) -> float:
    """Mean over queries of the share of true ids, (n_queries, n_true), that are among found ids, (n_queries, n_found).

    Order and repetition do not matter. R10@100 is neighbour_recall(found_ids[:, :100], true_ids[:, :10]).

    Examples
    --------
    >>> neighbour_recall([[4, 7, 9]], [[9, 2]])
    0.5
    """
    found, true = _ids("found_ids", found_ids), _ids("true_ids", true_ids)
    if len(found) != len(true) or true.size == 0:
        raise ParameterError(
            f"found_ids and true_ids must have one row per query and at least one true id, got shapes {found.shape} and "
            f"{true.shape}; give (n_queries, n_found) and (n_queries, n_true)."
        )
    values, places = np.unique(np.concatenate([found, true], axis=1), return_inverse=True)
    keys = places.reshape(len(true), -1) + len(values) * np.arange(len(true))[:, None]  # no key is shared by two rows
    true_keys = np.unique(keys[:, found.shape[1] :])
    is_found = np.isin(true_keys, keys[:, : found.shape[1]])
    rows = true_keys // len(values)
    return float((np.bincount(rows, weights=is_found) / np.bincount(rows)).mean())


def nearest_rows(distances: Any, k: int) -> Counts:
    """The k nearest items of every query, (n_queries, k), by distance and then by lowest row; distances as above.

    Examples
    --------
    >>> nearest_rows([[2, 0, 1, 0]], k=3)
    array([[1, 3, 2]])
    """
    distances = _checked_distances(distances)
    _refuse_unless(_positive("k", k) <= distances.shape[1], "k", f"at most the number of items, {distances.shape[1]}", k)
    nearest = np.empty((len(distances), k), dtype=np.int64)
    for rows in _blocks(distances.shape):
        limits = np.partition(distances[rows], k - 1, axis=1)[:, k - 1]
        for place, limit in enumerate(limits, rows.start):
            nearer = np.flatnonzero(distances[place] < limit)
            level = np.flatnonzero(distances[place] == limit)[: k - len(nearer)]
            nearest[place] = [*nearer[np.argsort(distances[place, nearer], kind="stable")], *level]
    return nearest
