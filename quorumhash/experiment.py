"""One setting in, raw results out: codes and seconds; metrics are computed from them afterwards, in one place.

Exact search on floats (role "float") and peers have a full ranking that is too large to keep: its measures are taken at
once and are the result.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.bench.peers import FLOAT_BYTES, PEERS, PeerData, refusal
from quorumhash.bench.settings import AUTO_JOINED, BOTH, CHANCE, CLEAN, FLOAT, ORACLE, PEER, QUERIES, Setting
from quorumhash.bench.weighting import row_normalised_views, weighted_views
from quorumhash.codes import hamming_distances, n_bytes, pack_bits
from quorumhash.corruption import Damaged, damage_with_mask
from quorumhash.datasets import Dataset
from quorumhash.engines import open_engine
from quorumhash.errors import RankWarning
from quorumhash.evaluation import (
    distinct_codes,
    lookup_precision,
    mean_average_precision,
    nearest_rows,
    neighbour_recall,
    precision_recall,
    shared_labels,
    tie_list_size,
    true_neighbours,
)
from quorumhash.hashers import HASHERS, BaseHasher
from quorumhash.scaling import joined_rows, learn_scalings, put_views
from quorumhash.similarity import squared_distances
from quorumhash.views import Views

LOOKUP_RADIUS = 2
N_TRUE_NEIGHBOURS = 10
CUT_OFFS = tuple(step * 10**power for power in range(6) for step in (1, 2, 5))  # of curves judged by labels
N_CANDIDATES, RESCORED_AT_ONCE = 100, 64


@dataclass(frozen=True)
class Outcome:
    """What a run gave, before any metric; `refusal` says why a method would not run, "" when it did.

    Where a hasher can: `rescored` (q, 10), the best of its first 100 by its own `embed`; `reliability` (q, n_views) of
    the queries, beside `damaged_queries` (q, n_views), which of their pairs are damaged. `measures` are those of a
    search without codes.
    """

    setting: Setting
    database_codes: npt.NDArray[np.uint8]
    query_codes: npt.NDArray[np.uint8]
    fit_seconds: float = 0.0
    encode_seconds: float = 0.0
    history: list[dict[str, float]] = field(default_factory=list)
    refusal: str = ""
    error: str = ""
    rescored: npt.NDArray[np.int32] | None = None
    reliability: npt.NDArray[np.float16] | None = None
    damaged_queries: npt.NDArray[np.bool_] | None = None
    measures: dict[str, float] = field(default_factory=dict)


def damaged_views(dataset: Dataset, setting: Setting) -> Views:
    """The dataset's views, damaged as the setting says."""
    return damaged_data(dataset, setting).views


def damaged_data(dataset: Dataset, setting: Setting) -> Damaged:
    """The dataset's views, damaged as the setting says, and which pairs (n_items, n_views) are."""
    views = dataset.views
    if setting.damage == CLEAN:
        return Damaged(views, np.zeros((len(views), len(views.names)), dtype=bool))
    options = dict(setting.damage_options)
    if setting.damage == "swap_source":
        options.setdefault("sources", dataset.sources or {name: [name] for name in views})
    damaged = damage_with_mask(views, setting.damage, rate=setting.rate, random_state=setting.random_state, **options)
    if setting.where == BOTH:
        return damaged
    is_query = np.isin(np.arange(len(views)), dataset.query_rows)
    is_hit = (is_query if setting.where == QUERIES else ~is_query)[:, None]
    mixed = {name: np.where(is_hit, damaged.views[name], views[name]) for name in views}
    return Damaged(Views(mixed), damaged.mask & is_hit)


def without_damage(damaged: Damaged) -> Views:
    """The views with every damaged pair missing; an item with no other pair is left as it is."""
    spared = damaged.mask.all(axis=1)
    return Views(
        {
            name: np.where((hit & ~spared)[:, None], np.nan, damaged.views[name])
            for name, hit in zip(damaged.views, damaged.mask.T, strict=True)
        }
    )


def run_setting(
    setting: Setting, dataset: Dataset, damaged: Damaged | None = None, weights: Mapping[str, float] | None = None
) -> Outcome:
    """Fit, encode database and queries by the same rule, keep the codes; a refusal is a result too.

    `damaged` is what `damaged_data` gave and `weights` what `automatic_weights` gave, where they are at hand; a setting
    with weighted views needs them.
    """
    if setting.role == CHANCE:
        return chance_outcome(setting, dataset)
    damaged = damaged_data(dataset, setting) if damaged is None else damaged
    if setting.role == FLOAT:
        return _float_outcome(setting, dataset, damaged.views)
    views = without_damage(damaged) if setting.role == ORACLE else damaged.views
    if setting.is_row_normalised:
        views = row_normalised_views(views, dataset.train_rows)
    if weights is not None:
        views = weighted_views(views, dataset.train_rows, weights, is_joined=setting.weights == AUTO_JOINED)
    if setting.role == PEER:
        return _peer_outcome(setting, dataset, views)
    hasher = _new_hasher(setting, dataset)
    training = views[dataset.train_rows]
    fits, reason = hasher.handles(training)
    if not fits:
        return replace(empty_outcome(setting), refusal=reason)
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankWarning)  # the history keeps the rank
        hasher.fit(training)
    fitted = time.perf_counter()
    database, queries = views[dataset.database_rows], views[dataset.query_rows]
    codes = hasher.transform(database), hasher.transform(queries)
    seconds = fitted - started, time.perf_counter() - fitted
    outcome = Outcome(setting, *codes, *seconds, history=list(getattr(hasher, "history_", [])))
    if setting.is_by_labels:
        return outcome
    if hasattr(hasher, "embed"):
        outcome = replace(outcome, rescored=_rescored(codes, hasher.embed(database), hasher.embed(queries)))
    if hasattr(hasher, "reliability") and views.names == dataset.views.names:
        trust = np.asarray(hasher.reliability(queries), dtype=np.float16)
        outcome = replace(outcome, reliability=trust, damaged_queries=damaged.mask[dataset.query_rows])
    return outcome


def _new_hasher(setting: Setting, dataset: Dataset) -> BaseHasher:
    sources = {"sources": dataset.sources} if setting.is_told_sources and dataset.sources else {}
    parameters = {"n_bits": setting.n_bits, "random_state": setting.random_state, **sources, **setting.parameters}
    return HASHERS[setting.hasher](**parameters)


def empty_outcome(setting: Setting) -> Outcome:
    """An outcome without codes: of a refusal, an error, a search without codes."""
    empty = np.empty((0, n_bytes(max(setting.n_bits, 1))), dtype=np.uint8)
    return Outcome(setting, empty, empty)


def chance_outcome(setting: Setting, dataset: Dataset) -> Outcome:
    """Random codes: the row that says what no method at all would give."""
    rng = np.random.default_rng(setting.random_state)
    codes = pack_bits(rng.random((len(dataset.views), setting.n_bits)) < 0.5)
    return Outcome(setting, codes[dataset.database_rows], codes[dataset.query_rows])


def _float_outcome(setting: Setting, dataset: Dataset, views: Views) -> Outcome:
    started = time.perf_counter()
    distances = float_distances(dataset, views)
    seconds = time.perf_counter() - started
    measures = _measure_search(setting, dataset, distances)
    measures["bytes_per_item"] = float(FLOAT_BYTES * sum(views.widths.values()))
    return replace(empty_outcome(setting), encode_seconds=seconds, measures=measures)


def _peer_outcome(setting: Setting, dataset: Dataset, views: Views) -> Outcome:
    joined = joined_features(views, dataset.train_rows)
    rows = dataset.train_rows, dataset.database_rows, dataset.query_rows
    data = PeerData(views, joined, *rows, setting.n_bits, setting.random_state)
    if reason := refusal(setting.hasher, data):
        return replace(empty_outcome(setting), refusal=reason)
    started = time.perf_counter()
    ranking = PEERS[setting.hasher](data)
    seconds = time.perf_counter() - started
    measures = _measure_search(setting, dataset, ranking.distances)
    measures |= {"bytes_per_item": float(ranking.bytes_per_item), "fit_seconds": seconds}
    return replace(empty_outcome(setting), fit_seconds=seconds, measures=measures)


def _measure_search(setting: Setting, dataset: Dataset, distances: npt.NDArray[Any]) -> dict[str, float]:
    """The metrics of a search without codes, by labels alone or by neighbours too."""
    relevance = relevance_of(dataset)
    if setting.is_by_labels:
        return measure_by_labels(distances, relevance)
    return measure_distances(distances, relevance, undamaged_neighbours(dataset))


def _rescored(
    codes: tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]], database: Any, queries: Any
) -> npt.NDArray[np.int32]:
    """Of every query's first candidates by Hamming distance the nearest by embedding, (q, 10), nearest first."""
    distances = hamming_distances(codes[1], codes[0])
    candidates = nearest_rows(distances, min(N_CANDIDATES, distances.shape[1]))
    found = []
    for start in range(0, len(candidates), RESCORED_AT_ONCE):
        near = candidates[start : start + RESCORED_AT_ONCE]
        squares = ((database[near] - queries[start : start + RESCORED_AT_ONCE, None]) ** 2).sum(axis=2)
        best = np.argsort(squares, axis=1, kind="stable")[:, :N_TRUE_NEIGHBOURS]
        found.append(np.take_along_axis(near, best, axis=1))
    return np.concatenate(found).astype(np.int32)


def float_distances(dataset: Dataset, views: Views) -> npt.NDArray[np.float64]:
    """Distances (q, n) between the joined, scaled views: exact search without codes."""
    joined = joined_features(views, dataset.train_rows)
    squares = squared_distances(joined[dataset.query_rows], joined[dataset.database_rows])
    distances: npt.NDArray[np.float64] = np.sqrt(squares)
    return distances


def joined_features(views: Views, train_rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """All views side by side, centred and scaled by the training rows, (n, sum of d)."""
    with open_engine("threads") as engine:
        scalings = tuple(learn_scalings(views[train_rows], engine).values())
        joined: npt.NDArray[np.float64] = engine.get(engine.map_rows(joined_rows, scalings, *put_views(views, engine)))
    return joined


def relevance_of(dataset: Dataset) -> npt.NDArray[np.bool_]:
    """Which database items (columns) share a label with each query (rows)."""
    return shared_labels(dataset.labels[dataset.query_rows], dataset.labels[dataset.database_rows])


def undamaged_neighbours(dataset: Dataset) -> npt.NDArray[Any]:
    """The nearest database positions (q, 10) of every query on the undamaged, joined views that define the truth."""
    truth = {name: dataset.views.matrix(name) for name in dataset.truth_views or dataset.views.names}
    joined = joined_features(Views(truth), dataset.train_rows)
    return true_neighbours(joined[dataset.query_rows], joined[dataset.database_rows], N_TRUE_NEIGHBOURS)


def measure_distances(
    distances: npt.NDArray[Any], relevance: npt.NDArray[np.bool_], neighbours: npt.NDArray[Any]
) -> dict[str, float]:
    """The metrics of a ranking: groups (MAP) and neighbours (recall of the ten nearest on undamaged data)."""
    return {
        "map": mean_average_precision(relevance, distances),
        "recall_10": neighbour_recall(nearest_rows(distances, 10), neighbours),
        "recall_100": neighbour_recall(nearest_rows(distances, 100), neighbours),
    }


def measure_by_labels(distances: npt.NDArray[Any], relevance: npt.NDArray[np.bool_]) -> dict[str, float]:
    """MAP over the whole ranking and over the first 100, and precision and recall among the first n, n by cut-offs."""
    curve = precision_recall(relevance, distances, [n for n in CUT_OFFS if n <= distances.shape[1]])
    measures = {
        "map": mean_average_precision(relevance, distances),
        "map_100": mean_average_precision(relevance, distances, depth=N_CANDIDATES),
    }
    for n, precision, recall in zip(curve.n_first, curve.precision, curve.recall, strict=True):
        measures |= {f"precision_at_{n}": float(precision), f"recall_at_{n}": float(recall)}
    return measures


def measure_outcome(
    outcome: Outcome, relevance: npt.NDArray[np.bool_], neighbours: npt.NDArray[Any] | None
) -> dict[str, float]:
    """The metrics of codes: those of their Hamming ranking, lookup, and how far codes repeat.

    Without neighbours (q, 10) the ranking is judged by labels alone.
    """
    distances = hamming_distances(outcome.query_codes, outcome.database_codes)
    lookup, empty = lookup_precision(relevance, distances, radius=LOOKUP_RADIUS)
    if neighbours is None:
        ranking = measure_by_labels(distances, relevance)
    else:
        ranking = measure_distances(distances, relevance, neighbours)
    return ranking | {
        "lookup": lookup,
        "empty_lookups": empty,
        "distinct_codes": float(distinct_codes(outcome.database_codes)),
        "tie_list_size": tie_list_size(distances),
        "bytes_per_item": float(outcome.database_codes.shape[1]),
        "fit_seconds": outcome.fit_seconds,
    }
