"""The panel's results in a file small enough to keep: means over seeds, by grid, dataset, cell and method.

quorumhash bench report benchmarks/quality/panel.toml --json results.json
python benchmarks/quality/panel_summary.py results.json --out benchmarks/results/panel.json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
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
    kept = ("title", "runs", "planned", "provenance", "geometric_means")
    worst = {}
    for row in results["ratios"]:
        place = row["place"]
        if place["grid"] == "main" and place["damage"] != "clean":
            key = f"{place['method']} {row['metric']}"
            if row["ratio"] < worst.get(key, (9.0,))[0]:
                worst[key] = (round(row["ratio"], 4), f"{place['dataset']} {place['damage']}", row["rival"])
    return {key: results[key] for key in kept} | {"worst_damaged_cell": worst, "grids": grids}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    with replacing(given.out) as file:
        file.write((json.dumps(summary(json.loads(given.results.read_text()))) + "\n").encode())


if __name__ == "__main__":
    main()
