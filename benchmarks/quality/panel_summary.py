"""The panel's results in a file small enough to keep: means over seeds, by grid, dataset, cell and method.

quorumhash bench report benchmarks/quality/panel.toml --results results.json
python benchmarks/quality/panel_summary.py results.json --out benchmarks/results/panel.json
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    with replacing(given.out) as file:
        file.write((json.dumps(summary(json.loads(given.results.read_text()))) + "\n").encode())


if __name__ == "__main__":
    main()
