"""Stored runs of a file of the paper's experiments -> one small result each: table 1, table 2, figures and so on.

A grid's name, up to a comma, is the experiment; several grids may make up one (a slow method with fewer splits), and
what is run for table 1 is also in the figures. The result of an experiment is `rows`, one per data, method, bits and
seed, with its main number as `value`:

    table1          value: precision of lookups within radius 2; empty_lookups, distinct_codes
    figures         value: MAP over the whole ranking; map_100; at 48 and 64 bits also curves: precision, recall
    table2          value: seconds of training; encode_seconds of one item
    parameter       value: MAP; parameters; lookup, rank of the consensus
    convergence     value: sweeps made; objective, residual and rank after each
    out_of_sample   value: MAP; precision among the first n
    ablation        value: MAP; lookup, empty_lookups
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from quorumhash.bench.panel import Panel
from quorumhash.bench.panelplan import Cell
from quorumhash.bench.scores import Measured, Scores
from quorumhash.bench.settings import run_key

CURVE_BITS = (48, 64)
N_DIGITS = 5
Row = dict[str, Any]
Place = tuple[str, str, int, int]  # data, method, bits, seed


def experiments_of(grid: str) -> tuple[str, ...]:
    """The experiments that a grid belongs to.

    >>> experiments_of("table1, black")
    ('table1', 'figures')
    """
    name = grid.partition(",")[0]
    return (name, "figures") if name == "table1" else (name,)


def paper_results(scores: Scores, whole: Panel, command: str) -> dict[str, dict[str, Any]]:
    """Experiment -> its result as plain values for a JSON file; `whole` is the panel with every grid."""
    found: dict[str, dict[Place, Row]] = {}
    for experiment, cell in _cells(scores.panel):
        run = scores.measured.get(run_key(cell.setting))
        if run is not None:
            found.setdefault(experiment, {})[_place(cell)] = _row(experiment, cell, run)
    planned = {(experiment, _place(cell)) for experiment, cell in _cells(whole)}
    return {
        experiment: {
            "title": whole.title,
            "experiment": experiment,
            "dataset": whole.path.stem,
            "profile": whole.profile,
            "command": command,
            "seeds": sorted({row["seed"] for row in rows.values()}),
            **_origin(scores),
            "planned": sum(name == experiment for name, _ in planned),
            "rows": list(rows.values()),
        }
        for experiment, rows in found.items()
    }


def merged(old: dict[str, Any], new: dict[str, Any], whole: Panel) -> dict[str, Any]:
    """The new result with those rows of the old one that it lacks and the file still plans, in the file's order."""
    if (old.get("experiment"), old.get("profile")) != (new["experiment"], new["profile"]):
        return new
    new_rows = {(row["data"], row["method"], row["bits"], row["seed"]): row for row in new["rows"]}
    rows = {(row["data"], row["method"], row["bits"], row["seed"]): row for row in old["rows"]} | new_rows
    places = dict.fromkeys(_place(cell) for experiment, cell in _cells(whole) if experiment == new["experiment"])
    kept = [rows[place] for place in places if place in rows]
    if all(place in new_rows for place in places if place in rows):
        return new | {"rows": kept}
    facts = {
        name: " and ".join(dict.fromkeys([*old[name].split(" and "), *new[name].split(" and ")]))
        for name in ("commit", "machine", "versions")
    }
    return new | facts | {"seeds": sorted({row["seed"] for row in kept}), "rows": kept}


def _cells(panel: Panel) -> list[tuple[str, Cell]]:
    """Every cell with every experiment that it belongs to."""
    return [(name, cell) for cell in panel.cells for name in experiments_of(cell.grid) if name in ROWS]


def _place(cell: Cell) -> Place:
    return cell.dataset, cell.method, cell.n_bits, cell.seed


def stored_results(folder: Path) -> list[dict[str, Any]]:
    """The results in a folder, whatever else is there, by experiment and dataset."""
    found = []
    for experiment in ROWS:
        for path in sorted(folder.glob(f"{experiment}_*.json")):
            result = json.loads(path.read_text(encoding="utf-8"))
            if result.get("experiment") == experiment:
                found.append(result)
    return found


def _origin(scores: Scores) -> dict[str, str]:
    """Commit, machine and versions; several of them where runs were made at several times."""
    facts = [run.provenance for run in scores.measured.values()]
    every = {name: " and ".join(sorted({fact.get(name, "?") for fact in facts})) for name in facts[0]}
    machine = f"{every.pop('cpu')}, {every.pop('cores')} cores, {every.pop('platform')}, engine {every.pop('engine')}"
    return {"commit": every.pop("commit"), "machine": machine, "versions": ", ".join(map(" ".join, every.items()))}


def _row(experiment: str, cell: Cell, run: Measured) -> Row:
    row: Row = {"data": cell.dataset, "method": cell.method, "bits": cell.n_bits, "seed": cell.seed}
    if run.refusal or run.error:
        return row | {"value": None, "said": run.error or run.refusal}
    return row | ROWS[experiment](cell, run)


def _table1(_: Cell, run: Measured) -> Row:
    return _numbers(run, value="lookup", empty_lookups="empty_lookups", distinct_codes="distinct_codes")


def _figures(cell: Cell, run: Measured) -> Row:
    row = _numbers(run, value="map", map_100="map_100")
    return row | _curves(run, "precision", "recall") if cell.n_bits in CURVE_BITS else row


def _table2(_: Cell, run: Measured) -> Row:
    return {"value": round(run.fit_seconds, 3), "encode_seconds": float(f"{run.encode_seconds_per_item:.3g}")}


def _parameter(cell: Cell, run: Measured) -> Row:
    rank = {"rank": int(run.history[-1]["rank"])} if run.history and "rank" in run.history[-1] else {}
    return _numbers(run, value="map", lookup="lookup") | {"parameters": dict(cell.setting.parameters)} | rank


def _convergence(_: Cell, run: Measured) -> Row:
    told = {name: [float(f"{sweep[name]:.4g}") for sweep in run.history] for name in ("objective", "residual", "rank")}
    return {"value": len(run.history), **told}


def _out_of_sample(_: Cell, run: Measured) -> Row:
    return _numbers(run, value="map", lookup="lookup", empty_lookups="empty_lookups") | _curves(run, "precision")


def _ablation(_: Cell, run: Measured) -> Row:
    return _numbers(run, value="map", map_100="map_100", lookup="lookup", empty_lookups="empty_lookups")


ROWS: dict[str, Callable[[Cell, Measured], Row]] = {
    "table1": _table1,
    "figures": _figures,
    "table2": _table2,
    "parameter": _parameter,
    "convergence": _convergence,
    "out_of_sample": _out_of_sample,
    "ablation": _ablation,
}


def _numbers(run: Measured, **metrics: str) -> Row:
    """Metrics by the names that rows call them; those that a run has not (float search has no lookup) are None."""
    return {
        name: round(run.metrics[metric], N_DIGITS) if metric in run.metrics else None
        for name, metric in metrics.items()
    }


def _curves(run: Measured, *names: str) -> Row:
    """Among the first n items of a ranking: n and, of the same length, each of the names."""
    cut_offs = sorted(int(metric.rpartition("_")[2]) for metric in run.metrics if metric.startswith("precision_at_"))
    curves = {name: [round(run.metrics[f"{name}_at_{n}"], N_DIGITS) for n in cut_offs] for name in names}
    return {"n_first": cut_offs, **curves}
