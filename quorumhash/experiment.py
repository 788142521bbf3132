"""One setting in, raw results out: codes and seconds; metrics are computed from them afterwards, in one place."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.codes import hamming_distances, n_bytes, pack_bits
from quorumhash.corruption import damage
from quorumhash.datasets import Dataset
from quorumhash.engines import open_engine
from quorumhash.errors import RankWarning
from quorumhash.evaluation import (
    distinct_codes,
    lookup_precision,
    mean_average_precision,
    nearest_rows,
    neighbour_recall,
    shared_labels,
    tie_list_size,
    true_neighbours,
)
from quorumhash.hashers import HASHERS
from quorumhash.scaling import joined_rows, learn_scalings, put_views
from quorumhash.similarity import squared_distances
from quorumhash.views import Views

CLEAN = "clean"
LOOKUP_RADIUS = 2
N_TRUE_NEIGHBOURS = 10


@dataclass(frozen=True)
class Setting:
    """One cell of a table: a method with its parameters, on a dataset damaged in one way."""

    hasher: str
    n_bits: int
    damage: str = CLEAN
    rate: float = 0.2
    parameters: Mapping[str, Any] = field(default_factory=dict)
    random_state: int = 0


@dataclass(frozen=True)
class Outcome:
    """What a run gave, before any metric; `refusal` says why a method would not run, "" when it did."""

    setting: Setting
    database_codes: npt.NDArray[np.uint8]
    query_codes: npt.NDArray[np.uint8]
    fit_seconds: float = 0.0
    encode_seconds: float = 0.0
    history: list[dict[str, float]] = field(default_factory=list)
    refusal: str = ""


def damaged_views(dataset: Dataset, setting: Setting) -> Views:
    """The dataset's views, damaged as the setting says: training rows, database and queries alike."""
    if setting.damage == CLEAN:
        return dataset.views
    return damage(dataset.views, setting.damage, rate=setting.rate, random_state=setting.random_state)


def run_setting(setting: Setting, dataset: Dataset) -> Outcome:
    """Fit, encode database and queries by the same rule, keep the codes; a refusal is a result too."""
    views = damaged_views(dataset, setting)
    kind = HASHERS[setting.hasher]
    hasher = kind(n_bits=setting.n_bits, random_state=setting.random_state, **setting.parameters)
    training = views[dataset.train_rows]
    fits, reason = hasher.handles(training)
    if not fits:
        empty = np.empty((0, n_bytes(setting.n_bits)), dtype=np.uint8)
        return Outcome(setting, empty, empty, refusal=reason)
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankWarning)  # the history keeps the rank
        hasher.fit(training)
    fitted = time.perf_counter()
    database_codes = hasher.transform(views[dataset.database_rows])
    query_codes = hasher.transform(views[dataset.query_rows])
    return Outcome(
        setting, database_codes, query_codes, fitted - started, time.perf_counter() - fitted,
        list(getattr(hasher, "history_", [])),
    )  # fmt: skip


def chance_outcome(setting: Setting, dataset: Dataset) -> Outcome:
    """Random codes: the row that says what no method at all would give."""
    rng = np.random.default_rng(setting.random_state)
    codes = pack_bits(rng.random((len(dataset.views), setting.n_bits)) < 0.5)
    return Outcome(setting, codes[dataset.database_rows], codes[dataset.query_rows])


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
    """The nearest database positions (q, 10) of every query on the undamaged, joined views."""
    joined = joined_features(dataset.views, dataset.train_rows)
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


def measure_outcome(
    outcome: Outcome, relevance: npt.NDArray[np.bool_], neighbours: npt.NDArray[Any]
) -> dict[str, float]:
    """The metrics of codes: those of their Hamming ranking, lookup, and how far codes repeat."""
    distances = hamming_distances(outcome.query_codes, outcome.database_codes)
    lookup, empty = lookup_precision(relevance, distances, radius=LOOKUP_RADIUS)
    return measure_distances(distances, relevance, neighbours) | {
        "lookup": lookup,
        "empty_lookups": empty,
        "distinct_codes": float(distinct_codes(outcome.database_codes)),
        "tie_list_size": tie_list_size(distances),
        "fit_seconds": outcome.fit_seconds,
    }
