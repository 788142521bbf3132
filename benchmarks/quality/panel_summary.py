"""The panel's results in a file small enough to keep: means over seeds, by grid, dataset, cell and method.

quorumhash bench report benchmarks/quality/panel.toml --results results.json
python benchmarks/quality/panel_summary.py results.json --out benchmarks/results/panel.json

With --into, results of some grids join the summary that is there: of cells that both have, the new figures count.
"""

from __future__ import annotations

import argparse
import itertools
import json
from pathlib import Path
from statistics import fmean, geometric_mean
from typing import Any

from quorumhash.atomic import replacing

METRICS = (
    "map", "recall_10", "recall_100", "rescored_10", "lookup", "distinct_codes", "tie_list_size", "trust_auc",
    "false_alarms", "fit_seconds", "bytes_per_item",
)  # fmt: skip

OWN = ("quorum, neighbours", "quorum, groups")
NO_RIVALS = ("quorum", "float", "oracle", "chance")  # how names begin
COMPARED = ("map", "recall_10", "recall_100")


def summary(results: dict[str, Any]) -> dict[str, Any]:
    """Figures as [mean, spread, seeds, weights] in nested tables, own ones with the values of every seed."""
    grids: dict[str, Any] = {}
    for figure in results["figures"]:
        if figure["metric"] not in METRICS:
            continue
        cell = f"{figure['damage']} {figure['rate']:g} {figure['where']} {figure['n_bits']}"
        place = grids.setdefault(figure["grid"], {}).setdefault(figure["dataset"], {}).setdefault(cell, {})
        numbers = [round(figure["mean"], 4), round(figure["spread"], 4), figure["n_seeds"], figure["weights"]]
        if figure["method"].startswith(OWN) and figure["metric"] in COMPARED:
            numbers.append([round(value, 4) for value in figure["values"]])
        place.setdefault(figure["method"], {})[figure["metric"]] = numbers
    kept = ("title", "runs", "planned", "provenance")
    return {key: results[key] for key in kept} | {"standings": standings(grids), "grids": grids}


def standings(grids: dict[str, Any]) -> dict[str, Any]:
    """Own methods over the best rival of every damaged cell: by cell, the worst, their geometric mean.

    Where all views of a source are wrong together, the row that was told the sources counts.
    """
    cells: dict[str, dict[str, tuple[float, str]]] = {}
    for grid, told in (("main", ""), ("sources", ", told the sources")):
        for dataset, found in grids.get(grid, {}).items():
            for cell, methods in found.items():
                damage = cell.split()[0]
                for own, metric in itertools.product(OWN, COMPARED) if damage != "clean" else ():
                    if ratios := ratios_to_rivals(methods, own + told, metric):
                        cells.setdefault(f"{own} {metric}", {})[f"{dataset} {damage}"] = min(ratios)
    return {
        key: {
            "geometric_mean": round(geometric_mean([ratio for ratio, _ in found.values()]), 4),
            "worst": min((ratio, cell, rival) for cell, (ratio, rival) in found.items()),
            "cells": found,
        }
        for key, found in cells.items()
    }


def ratios_to_rivals(methods: dict[str, Any], own: str, metric: str) -> list[tuple[float, str]]:
    """Own figure over that of every rival in one cell, and whose it is.

    A rival with fewer seeds, the first ones, is compared on those it has: seeds differ in how much harm they do.
    """
    if metric not in methods.get(own, {}):
        return []
    mean, _, n_seeds, _, *values = methods[own][metric]
    values = values[0] if values else [mean] * n_seeds  # a summary of before has none
    rivals = {name: found[metric] for name, found in methods.items() if metric in found}
    return [
        (round(fmean(values[:n_seeds]) / theirs, 4), name)
        for name, (theirs, _, n_seeds, *_) in rivals.items()
        if not name.startswith(NO_RIVALS)
    ]


def joined(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The old summary with the new figures, and the standings that follow from both."""
    for grid, datasets in new["grids"].items():
        for dataset, cells in datasets.items():
            for cell, methods in cells.items():
                place = old["grids"].setdefault(grid, {}).setdefault(dataset, {}).setdefault(cell, {})
                place |= methods
    known = [*old["provenance"], *(fact for fact in new["provenance"] if fact not in old["provenance"])]
    return old | {"provenance": known, "standings": standings(old["grids"])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--into", action="store_true", help="join what --out holds already")
    given = parser.parse_args()
    found = summary(json.loads(given.results.read_text()))
    if given.into:
        old = json.loads(given.out.read_text())
        n_runs = old["runs"] + n_new(old, found)
        found = joined(old, found) | {"runs": n_runs}
    with replacing(given.out) as file:
        file.write((json.dumps(found) + "\n").encode())


def n_new(old: dict[str, Any], new: dict[str, Any]) -> int:
    """Runs of the new summary in places that the old one lacks: seeds of a method in a cell."""
    return sum(
        next(iter(found.values()))[2]
        for grid, datasets in new["grids"].items()
        for dataset, cells in datasets.items()
        for cell, methods in cells.items()
        for method, found in methods.items()
        if method not in old["grids"].get(grid, {}).get(dataset, {}).get(cell, {})
    )


if __name__ == "__main__":
    main()
