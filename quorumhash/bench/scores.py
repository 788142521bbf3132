"""Stored runs of a benchmark -> metrics, means and spreads over seeds, and own methods against the best rival.

A method that was run on equally and on automatically weighted views counts with the better of the two, metric by
metric.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from quorumhash.bench.panel import Panel
from quorumhash.bench.panelplan import Cell
from quorumhash.bench.processes import walk
from quorumhash.bench.runs import Run, read_run, run_path
from quorumhash.bench.settings import CODELESS, DatasetKey, Setting, dataset_key, run_key
from quorumhash.bench.workbench import Datasets
from quorumhash.errors import RunFileError
from quorumhash.evaluation import neighbour_recall
from quorumhash.experiment import Outcome, measure_outcome, relevance_of, undamaged_neighbours

ALARM = 0.01  # a pair whose reliability is below is called damaged
COMPARED = ("map", "recall_10", "recall_100")
BETTER_SMALLER = ("empty_lookups", "false_alarms", "tie_list_size", "fit_seconds")
Metrics = dict[str, float]


@dataclass(frozen=True)
class Measured:
    """A stored run: its metrics, and what is told about it."""

    metrics: Metrics
    refusal: str
    error: str
    fit_seconds: float
    encode_seconds: float
    provenance: dict[str, str]
    history: list[dict[str, float]] = field(default_factory=list)
    encode_seconds_per_item: float = 0.0


class Place(NamedTuple):
    """Where a method's figure stands: everything but the seed and the weights of the views."""

    grid: str
    dataset: str
    damage: str
    rate: float
    where: str
    n_bits: int
    method: str


Values = dict[tuple[Place, str], dict[str, dict[int, float]]]  # place and metric -> weighting -> seed -> value


class Figure(NamedTuple):
    """Mean and standard deviation over seeds, on which views, and the values seed by seed."""

    mean: float
    spread: float
    n_seeds: int
    weights: str
    values: tuple[float, ...] = ()


@dataclass(frozen=True)
class Standing:
    """An own method in one place: its figure over that of the best rival there."""

    place: Place
    metric: str
    ratio: float
    rival: str


@dataclass(frozen=True)
class Scores:
    """Everything that a report shows; `measured` is by run key, `figures` by place and metric."""

    panel: Panel
    measured: dict[str, Measured]
    figures: dict[tuple[Place, str], Figure]
    standings: tuple[Standing, ...]


class Judge:
    """Call it with a setting to measure its stored run; None where there is none that is whole."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._datasets = Datasets()
        self._truths: dict[tuple[DatasetKey, bool], tuple[npt.NDArray[np.bool_], npt.NDArray[Any] | None]] = {}

    def __call__(self, setting: Setting) -> Measured | None:
        """Read and measure."""
        try:
            run = read_run(run_path(self._folder, setting), setting)
        except RunFileError:
            return None
        outcome = run.outcome
        seconds = outcome.fit_seconds, outcome.encode_seconds
        each = outcome.encode_seconds / max(1, len(outcome.database_codes) + len(outcome.query_codes))
        said = outcome.refusal, outcome.error
        return Measured(self._metrics(run), *said, *seconds, run.provenance, outcome.history, each)

    def _metrics(self, run: Run) -> Metrics:
        outcome = run.outcome
        if outcome.refusal or outcome.error or outcome.setting.role in CODELESS:
            return outcome.measures
        is_by_labels = outcome.setting.is_by_labels
        key = dataset_key(outcome.setting), is_by_labels
        if key not in self._truths:
            dataset = self._datasets.get(outcome.setting)
            self._truths[key] = relevance_of(dataset), None if is_by_labels else undamaged_neighbours(dataset)
        relevance, neighbours = self._truths[key]
        metrics = measure_outcome(outcome, relevance, neighbours)
        if outcome.rescored is not None and neighbours is not None:
            metrics["rescored_10"] = neighbour_recall(outcome.rescored, neighbours)
        return metrics | measure_trust(outcome)


def measure_trust(outcome: Outcome) -> Metrics:
    """How well the reliability of the queries' views tells damaged pairs from others, pooled over views.

    trust_auc: area under the ROC curve of 1 - reliability, where there are pairs of both sorts; false_alarms: share of
    undamaged pairs with a reliability below 0.01. Absent pairs (NaN) are left out.
    """
    if outcome.reliability is None or outcome.damaged_queries is None:
        return {}
    from sklearn.metrics import roc_auc_score

    is_there = ~np.isnan(outcome.reliability)
    trust, damaged = outcome.reliability[is_there].astype(np.float64), outcome.damaged_queries[is_there]
    measures = {}
    if damaged.any() and not damaged.all():
        measures["trust_auc"] = float(roc_auc_score(damaged, 1 - trust))
    if not damaged.all():
        measures["false_alarms"] = float((trust[~damaged] < ALARM).mean())
    return measures


def measure_panel(panel: Panel, folder: Path, n_jobs: int = 1, done: Callable[[str], None] = lambda _: None) -> Scores:
    """Metrics of every stored run of the panel, and what follows from them."""
    measured: dict[str, Measured] = {}
    with closing(walk(partial(Judge, folder), panel.settings(), n_jobs)) as results:
        for setting, result in results:
            if result is not None:
                measured[run_key(setting)] = result
            done(setting.label)
    values = _values(panel, measured)
    return Scores(panel, measured, _figures(values), tuple(_standings(panel, values)))


def place_of(cell: Cell) -> Place:
    """Where the cell's figure stands."""
    return Place(cell.grid, cell.dataset, cell.damage, cell.rate, cell.where, cell.n_bits, cell.method)


def _values(panel: Panel, measured: dict[str, Measured]) -> Values:
    """Every metric of every cell by place, weighting and seed."""
    values: Values = defaultdict(lambda: defaultdict(dict))
    for cell in panel.cells:
        run = measured.get(run_key(cell.setting))
        for metric, value in run.metrics.items() if run else ():
            values[place_of(cell), metric][cell.weights][cell.seed] = value
    return values


def _figures(values: Values) -> dict[tuple[Place, str], Figure]:
    """Means over seeds, of the better of the weightings."""
    figures = {}
    for (place, metric), lists in values.items():
        found = [
            Figure(float(np.mean(v)), float(np.std(v)), len(v), weights, v)
            for weights, of_seed in lists.items()
            for v in [tuple(of_seed[seed] for seed in sorted(of_seed))]
        ]
        sign = -1 if metric in BETTER_SMALLER else 1
        figures[place, metric] = max(found, key=lambda figure: sign * figure.mean)
    return figures


def _standings(panel: Panel, values: Values) -> list[Standing]:
    """Own figures over the best rival's, seed by seed: a rival with fewer seeds is compared on those it has."""
    own = [method.name for method in panel.methods if method.is_own]
    rivals = [method.name for method in panel.methods if method.is_rival]
    standings = []
    for (place, metric), lists in values.items():
        if place.method not in own or metric not in COMPARED:
            continue
        ratios: dict[str, float] = {}
        for name in rivals:
            for theirs in values.get((place._replace(method=name), metric), {}).values():
                ratio = max(_ratio(ours, theirs) for ours in lists.values())
                ratios[name] = min(ratio, ratios.get(name, math.inf))
        best = min(ratios, key=ratios.__getitem__, default="")
        if best and ratios[best] < math.inf:
            standings.append(Standing(place, metric, ratios[best], best))
    return standings


def _ratio(ours: dict[int, float], theirs: dict[int, float]) -> float:
    """Of the means over the seeds that both have; infinite where there are none."""
    shared = sorted(set(ours) & set(theirs))
    total = sum(theirs[seed] for seed in shared)
    return sum(ours[seed] for seed in shared) / total if total > 0 else math.inf


def geometric_mean(standings: list[Standing]) -> float:
    """Of the ratios; NaN where there are none, 0 where one is 0."""
    ratios = [standing.ratio for standing in standings]
    if not ratios or min(ratios) <= 0:
        return 0.0 if ratios else math.nan
    return float(np.exp(np.mean(np.log(ratios))))


def as_plain(scores: Scores) -> dict[str, Any]:
    """Everything as plain values for a JSON file: rows, one per cell and seed; figures; ratios and their means."""
    origins: list[dict[str, str]] = []
    runs = {}
    for key, run in scores.measured.items():
        if run.provenance not in origins:
            origins.append(run.provenance)
        runs[key] = asdict(run) | {"provenance": origins.index(run.provenance)}
        for name in ("history", "encode_seconds_per_item"):  # the paper's results have them
            del runs[key][name]
    rows = []
    for cell in scores.panel.cells:
        key = run_key(cell.setting)
        if key in runs:
            told = {name: value for name, value in asdict(cell).items() if name != "setting"}
            rows.append(told | {"run": key[:12], "setting": asdict(cell.setting)} | runs[key])
    return {
        "title": scores.panel.title,
        "quick": scores.panel.is_quick,
        "runs": len(scores.measured),
        "planned": len(scores.panel.settings()),
        "left_out": list(scores.panel.skipped),
        "provenance": origins,
        "figures": [p._asdict() | {"metric": metric} | f._asdict() for (p, metric), f in scores.figures.items()],
        "ratios": [asdict(standing) | {"place": standing.place._asdict()} for standing in scores.standings],
        "geometric_means": _plain_means(scores.standings),
        "rows": rows,
    }


def _plain_means(standings: tuple[Standing, ...]) -> list[dict[str, Any]]:
    """Geometric means of the ratios by grid, method and metric, for every dataset and for all of them."""
    groups: dict[tuple[str, ...], list[Standing]] = defaultdict(list)
    for standing in standings:
        place = standing.place
        for dataset in (place.dataset, "all"):
            groups[place.grid, place.method, standing.metric, dataset].append(standing)
    names = ("grid", "method", "metric", "dataset")
    return [
        dict(zip(names, key, strict=True)) | {"ratio": geometric_mean(found), "n_cells": len(found)}
        for key, found in groups.items()
    ]
