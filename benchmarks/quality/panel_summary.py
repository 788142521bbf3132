"""The panel's results in a file small enough to keep: means over seeds, by grid, dataset, cell and method.

quorumhash bench report benchmarks/quality/panel.toml --results results.json
python benchmarks/quality/panel_summary.py results.json --out benchmarks/results/panel.json

With --into, results of some grids join the summary that is there: of cells that both have, the new figures count.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from quorumhash.atomic import replacing

METRICS = (
    "map", "recall_10", "recall_100", "rescored_10", "lookup", "distinct_codes", "tie_list_size", "trust_auc",
    "false_alarms", "fit_seconds", "bytes_per_item",
)  # fmt: skip


def summary(results: dict[str, Any]) -> dict[str, Any]:
    """Figures as [mean, spread, seeds, weights] in nested tables; what was run on what stays beside them."""
    grids: dict[str, Any] = {}
    for figure in results["figures"]:
        if figure["metric"] not in METRICS:
            continue
        cell = f"{figure['damage']} {figure['rate']:g} {figure['where']} {figure['n_bits']}"
        place = grids.setdefault(figure["grid"], {}).setdefault(figure["dataset"], {}).setdefault(cell, {})
        numbers = [round(figure["mean"], 4), round(figure["spread"], 4), figure["n_seeds"], figure["weights"]]
        place.setdefault(figure["method"], {})[figure["metric"]] = numbers
    kept = ("title", "runs", "planned", "provenance")
    return {key: results[key] for key in kept} | {"standings": standings(results["ratios"]), "grids": grids}


def standings(ratios: list[dict[str, Any]]) -> dict[str, Any]:
    """Own methods over the best rival of every damaged cell: by cell, the worst, the geometric mean.

    Where all views of a source are wrong together, the row that was told the sources counts.
    """
    cells: dict[str, dict[str, tuple[float, str]]] = {}
    for row in ratios:
        place, method = row["place"], row["place"]["method"]
        is_told = method.endswith(", told the sources")
        if place["damage"] == "clean" or (place["grid"], is_told) not in (("main", False), ("sources", True)):
            continue
        key = f"{method.removesuffix(', told the sources')} {row['metric']}"
        cells.setdefault(key, {})[f"{place['dataset']} {place['damage']}"] = round(row["ratio"], 4), row["rival"]
    return {
        key: {
            "geometric_mean": round(geometric_mean([ratio for ratio, _ in found.values()]), 4),
            "worst": min((ratio, cell, rival) for cell, (ratio, rival) in found.items()),
            "cells": found,
        }
        for key, found in cells.items()
    }


def joined(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The old summary with the new figures; standings are of grid main, and stay where the new one has none of it."""
    for grid, datasets in new["grids"].items():
        for dataset, cells in datasets.items():
            for cell, methods in cells.items():
                place = old["grids"].setdefault(grid, {}).setdefault(dataset, {}).setdefault(cell, {})
                place |= methods
    known = [*old["provenance"], *(fact for fact in new["provenance"] if fact not in old["provenance"])]
    return old | {"provenance": known, "standings": new["standings"] if "main" in new["grids"] else old["standings"]}


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
