"""The demo: digits in four views, damaged; codes learned, searched and scored; a table and a page of it."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from quorumhash._version import __version__
from quorumhash.bench.settings import CLEAN, Setting
from quorumhash.codes import hamming_distances
from quorumhash.datasets import Dataset, load_dataset
from quorumhash.evaluation import nearest_rows, precision_recall
from quorumhash.experiment import (
    Outcome,
    chance_outcome,
    damaged_views,
    float_distances,
    measure_distances,
    measure_outcome,
    relevance_of,
    run_setting,
    undamaged_neighbours,
)
from quorumhash.hashers import HASHERS
from quorumhash.report import Chart, Curve, Picture, Report, Strip, Table

BITS = (32, 64)
DAMAGES = {"swap": "20 % of the (item, view) pairs swapped with another item's", "noise": "20 % replaced by noise"}
RATE, SEED, CURVE_BITS = 0.2, 0, 32
METHODS: dict[str, tuple[str, dict[str, object]]] = {
    "lsh": ("lsh", {}),
    "itq": ("itq", {}),
    "vote": ("vote", {}),
    "repair_itq": ("repair_itq", {}),
    "rmvh, as published": ("rmvh", {"setting": "published"}),
    "rmvh, no consensus": ("rmvh", {"max_iter": 0}),
    "rmvh": ("rmvh", {}),
    "quorum, groups": ("quorum", {"objective": "groups"}),
    "quorum, neighbours": ("quorum", {}),
}
FLOAT_SEARCH, CHANCE = "float search", "chance"
N_PICTURED, N_NEIGHBOURS = 5, 10


@dataclass(frozen=True)
class Results:
    """Raw outcomes by (damage, method, bits), and what is needed to score them."""

    dataset: Dataset
    outcomes: dict[tuple[str, str, int], Outcome]
    relevance: npt.NDArray[np.bool_]
    neighbours: npt.NDArray[np.int64]
    seconds: float
    measured: dict[tuple[str, str, int], dict[str, float]] = field(default_factory=dict)


def planned_runs() -> list[tuple[str, str, int]]:
    """Every (damage, method, bits) of the demo; the undamaged one is for the strip of pictures."""
    runs = [(damage, method, bits) for damage in DAMAGES for method in METHODS for bits in BITS]
    others = [(damage, rival, CURVE_BITS) for damage in DAMAGES for rival in other_rivals()]
    return [*runs, *others, (CLEAN, "rmvh", CURVE_BITS), (CLEAN, "itq", CURVE_BITS)]


def other_rivals() -> list[str]:
    """Every method of the library that METHODS does not hold; they are run with one number of bits."""
    return [name for name in HASHERS if name not in {hasher for hasher, _ in METHODS.values()}]


def run_demo(done: Callable[[str], None] = lambda _: None) -> Results:
    """Fit and encode everything; `done` is called with a word after each run."""
    started = time.perf_counter()
    dataset = load_dataset("digits")
    outcomes = {}
    for damage, method, bits in planned_runs():
        outcomes[damage, method, bits] = run_setting(_setting(damage, method, bits), dataset)
        done(f"{method}, {bits} bits, {damage}")
    relevance, neighbours = relevance_of(dataset), undamaged_neighbours(dataset)
    return Results(dataset, outcomes, relevance, neighbours, time.perf_counter() - started)


def _setting(damage: str, method: str, bits: int) -> Setting:
    hasher, parameters = METHODS.get(method, (method, {}))
    return Setting(hasher, bits, damage, RATE, parameters, SEED)


def demo_report(results: Results) -> Report:
    """The page: tables, curves, pictures, facts."""
    dataset = results.dataset
    tuned = next(outcome for outcome in results.outcomes.values() if outcome.history)
    return Report(
        title="quorumhash demo: damaged digits",
        lead=(
            "Handwritten digits seen through four views. In every item each view is damaged with probability 0.2: "
            "training rows, stored items and queries alike. Each method turns the damaged views into short codes; "
            "queries are searched by Hamming distance.\n\n"
            "MAP: are digits of the same kind first? R10@10: how many of the ten "
            "nearest items on the undamaged views are among the first ten? Lookup: precision within Hamming radius 2, "
            "empty lookups counting 0."
        ),
        tables=tuple(demo_tables(results).values()),
        charts=(*_map_charts(results), *_curve_charts(results), *_convergence_charts(results)),
        strips=_strips(results),
        facts=(
            ("Data", dataset.description),
            ("Rows", f"{len(dataset.train_rows)} to train on and to search in, {len(dataset.query_rows)} queries"),
            ("Damage", f"rate {RATE}, seed {SEED}"),
            ("Seconds", f"{results.seconds:.1f} for {len(results.outcomes)} fits and encodings"),
            ("Sweeps", f"{len(tuned.history)} at most per rmvh fit"),
            ("Versions", f"quorumhash {__version__}, numpy {np.__version__}, Python {platform.python_version()}"),
        ),
    )


def demo_tables(results: Results) -> dict[str, Table]:
    """One table for each kind of damage, and one of every method; each fits a terminal of 80 columns."""
    return {**{damage: damage_table(results, damage) for damage in DAMAGES}, "every method": all_methods_table(results)}


def damage_table(results: Results, damage: str) -> Table:
    """One row per method, float search and chance beside them."""
    rows: list[tuple[str | float | None, ...]] = [_float_row(results, damage), _chance_row(results, damage)]
    rows += [_method_row(results, damage, method) for method in METHODS]
    empty, seconds = f"empty {CURVE_BITS}", "fit s"  # the less the better
    columns = ("method", *(f"MAP {bits}" for bits in BITS), f"lookup {CURVE_BITS}", empty,
               f"R10@10 {BITS[-1]}", f"R10@100 {BITS[-1]}", seconds)  # fmt: skip
    return Table(
        title=f"Digits, {DAMAGES[damage]}",
        columns=columns,
        rows=tuple(rows),
        note="Numbers after a column's name are bits. Float search: exact, without codes.",
        best_columns=tuple(column for column in columns[1:] if column not in (empty, seconds)),
        reference_rows=(FLOAT_SEARCH, CHANCE),
    )


def all_methods_table(results: Results) -> Table:
    """Every method of the library with one number of bits, the best first."""
    names = [*METHODS, *other_rivals()]
    measured = {name: [_short_scores(results, damage, name) for damage in DAMAGES] for name in names}
    names.sort(key=lambda name: -sum(maps for maps, _ in measured[name]))
    columns = ("method", *(f"{metric}, {damage}" for damage in DAMAGES for metric in ("MAP", "R10@10")))
    return Table(
        title=f"Every method, {CURVE_BITS} bits, best MAP first",
        columns=columns,
        rows=tuple((name, *(score for pair in measured[name] for score in pair)) for name in names),
        note="What each of them is: docs/methods.md.",
        best_columns=columns[1:],
    )


def _short_scores(results: Results, damage: str, method: str) -> tuple[float, float]:
    scores = _scores(results, damage, method, CURVE_BITS)
    return scores["map"], scores["recall_10"]


def _scores(results: Results, damage: str, method: str, bits: int) -> dict[str, float]:
    """Measured once; tables and charts ask for the same numbers."""
    run = (damage, method, bits)
    if run not in results.measured:
        outcome = results.outcomes[run]
        results.measured[run] = measure_outcome(outcome, results.relevance, results.neighbours)
    return results.measured[run]


def _method_row(results: Results, damage: str, method: str) -> tuple[str | float | None, ...]:
    scores = {bits: _scores(results, damage, method, bits) for bits in BITS}
    last = scores[BITS[-1]]
    lookup, empty = scores[CURVE_BITS]["lookup"], scores[CURVE_BITS]["empty_lookups"]
    return (method, *(scores[bits]["map"] for bits in BITS), lookup, empty,
            last["recall_10"], last["recall_100"], last["fit_seconds"])  # fmt: skip


def _float_row(results: Results, damage: str) -> tuple[str | float | None, ...]:
    distances = float_distances(results.dataset, damaged_views(results.dataset, _setting(damage, "itq", BITS[0])))
    scores = measure_distances(distances, results.relevance, results.neighbours)
    maps = [scores["map"]] * len(BITS)
    return (FLOAT_SEARCH, *maps, None, None, scores["recall_10"], scores["recall_100"], None)


def _chance_row(results: Results, damage: str) -> tuple[str | float | None, ...]:
    outcomes = {bits: chance_outcome(_setting(damage, "lsh", bits), results.dataset) for bits in BITS}
    scores = {bits: measure_outcome(outcomes[bits], results.relevance, results.neighbours) for bits in BITS}
    middle, last = scores[CURVE_BITS], scores[BITS[-1]]
    return (CHANCE, *(scores[bits]["map"] for bits in BITS), middle["lookup"], middle["empty_lookups"],
            last["recall_10"], last["recall_100"], None)  # fmt: skip


def _map_charts(results: Results) -> list[Chart]:
    charts = []
    for damage in DAMAGES:
        curves = [
            Curve(method, BITS, [_scores(results, damage, method, bits)["map"] for bits in BITS]) for method in METHODS
        ]
        charts.append(Chart(f"MAP against bits, {damage}", "bits", "MAP", tuple(curves), y_min=0.0))
    return charts


def _curve_charts(results: Results) -> list[Chart]:
    charts = []
    for damage in DAMAGES:
        curves = []
        for method in METHODS:
            outcome = results.outcomes[damage, method, CURVE_BITS]
            curve = precision_recall(results.relevance, _distances(outcome))
            curves.append(Curve(method, curve.recall.tolist(), curve.precision.tolist()))
        title = f"Precision and recall at {CURVE_BITS} bits, {damage}"
        charts.append(Chart(title, "recall", "precision", tuple(curves), y_min=0.0, y_max=1.0))
    return charts


def _convergence_charts(results: Results) -> list[Chart]:
    charts = []
    for quantity, y_label, log_y in (
        ("objective", "objective, first sweep = 1", False),
        ("residual", "largest constraint residual", True),
        ("rank", "rank of the consensus", False),
    ):
        curves = []
        for method in ("rmvh", "rmvh, as published"):
            for damage in DAMAGES:
                values = [facts[quantity] for facts in results.outcomes[damage, method, CURVE_BITS].history]
                scale = values[0] if quantity == "objective" else 1.0
                sweeps = range(1, len(values) + 1)
                curves.append(Curve(f"{method}, {damage}", list(sweeps), [value / scale for value in values]))
        title = f"Convergence: {quantity}, {CURVE_BITS} bits"
        charts.append(Chart(title, "sweep", y_label, tuple(curves), log_y=log_y))
    return charts


def _distances(outcome: Outcome) -> npt.NDArray[np.uint16]:
    return hamming_distances(outcome.query_codes, outcome.database_codes)


def _strips(results: Results) -> tuple[Strip, ...]:
    """The same queries and their nearest items: before damage, and after it by two methods."""
    cases = [
        (CLEAN, "rmvh", "before damage"),
        ("noise", "rmvh", "after damage (noise)"),
        ("noise", "itq", "after damage"),
    ]
    chosen = np.linspace(0, len(results.dataset.query_rows) - 1, N_PICTURED).astype(np.int64)
    return tuple(
        Strip(
            title=f"Query and its {N_NEIGHBOURS} nearest, {method} {CURVE_BITS} bits, {when}",
            rows=_picture_rows(results, results.outcomes[damage, method, CURVE_BITS], chosen),
            caption="Pictures are the undamaged digits; only the views that were searched are damaged.",
        )
        for damage, method, when in cases
    )


def _picture_rows(
    results: Results, outcome: Outcome, queries: npt.NDArray[np.int64]
) -> tuple[tuple[Picture, ...], ...]:
    dataset, rows = results.dataset, []
    images = dataset.images
    assert images is not None, "digits come with pictures"
    nearest = nearest_rows(_distances(outcome)[queries], N_NEIGHBOURS)
    for query, found in zip(queries, nearest, strict=True):
        item = dataset.query_rows[query]
        pictures = [Picture(images[item], str(dataset.labels[item]), None)]
        for neighbour in dataset.database_rows[found]:
            is_right = bool(dataset.labels[neighbour] == dataset.labels[item])
            pictures.append(Picture(images[neighbour], str(dataset.labels[neighbour]), is_right))
        rows.append(tuple(pictures))
    return tuple(rows)
