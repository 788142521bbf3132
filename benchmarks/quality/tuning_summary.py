"""Every setting of the tuning with its score, and which one is chosen, in a file small enough to keep.

    quorumhash bench report benchmarks/quality/tuning.toml --results tuning_results.json
    python benchmarks/quality/tuning_summary.py tuning_results.json --out benchmarks/results/tuning.json

A setting's score is the mean of MAP and R10@10 over all datasets and damages. The best one is chosen where it is more
than 2 % better than the shipped parameters on the views as they come; so is row normalisation, for the panel's rows.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from quorumhash.atomic import replacing

CRITERION = "mean of MAP and R10@10 over digits and mfeat, clean and swap, on validation queries"
METRICS = ("map", "recall_10")
CLEARLY = 1.02


def scores_of(results: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Row -> its figures by metric and cell, and their mean; rows that lack a cell are refused."""
    cells: dict[str, dict[str, float]] = defaultdict(dict)
    for figure in results["figures"]:
        if figure["metric"] in METRICS:
            cell = f"{figure['metric']} {figure['dataset']} {figure['damage']}"
            cells[figure["method"]][cell] = round(figure["mean"], 4)
    n_cells = max(map(len, cells.values()))
    return {
        name: {"score": round(sum(found.values()) / n_cells, 4), "figures": found}
        for name, found in cells.items()
        if len(found) == n_cells
    }


def settings_of(results: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Row -> hasher, parameters, and whether its views were normalised."""
    rows = {}
    for row in results["rows"]:
        setting = row["setting"]
        if setting["role"] == "hasher":
            kept = ("hasher", "parameters", "is_row_normalised")
            rows[row["method"]] = {key: setting[key] for key in kept}
    return rows


def chosen(tried: list[dict[str, Any]]) -> dict[str, Any]:
    """The shipped setting, which comes first, or the best one where it is clearly better."""
    best = max(tried, key=lambda row: row["score"])
    return best if best["score"] > CLEARLY * tried[0]["score"] else tried[0]


def summary(results: dict[str, Any]) -> dict[str, Any]:
    scores, methods = scores_of(results), defaultdict(list)
    for name, setting in settings_of(results).items():
        if name in scores:
            hasher = setting.pop("hasher")
            methods[hasher].append(setting | scores[name])
    log = {}
    for hasher, tried in methods.items():
        pick = chosen(tried)
        gain = round(pick["score"] / tried[0]["score"] - 1, 4)
        kept = {key: pick[key] for key in ("parameters", "is_row_normalised", "score")}
        log[hasher] = {"chosen": kept | {"gain": gain}, "tried": tried}
    kept = {key: results[key] for key in ("title", "runs", "planned", "provenance")}
    command = "quorumhash bench run benchmarks/quality/tuning.toml"
    return kept | {"criterion": CRITERION, "clearly": CLEARLY, "command": command, "methods": log}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    report = summary(json.loads(given.results.read_text()))
    with replacing(given.out) as file:
        file.write((json.dumps(report, indent=1) + "\n").encode())
    for hasher, found in report["methods"].items():
        pick = found["chosen"]
        print(f"{hasher:<16}{pick['score']:.3f}  {100 * pick['gain']:+.1f} %  {pick['parameters']} "
              f"{'row-normalised' if pick['is_row_normalised'] else ''}")  # fmt: skip


if __name__ == "__main__":
    main()
