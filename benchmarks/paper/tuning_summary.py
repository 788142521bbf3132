"""Every setting of the tuning with its score, and which one is chosen, for each dataset alone.

    quorumhash bench report benchmarks/paper/tuning.toml --results results.json
    python benchmarks/paper/tuning_summary.py results.json --out benchmarks/results/paper_tuning.json

A setting's score is the mean of MAP and of the precision of lookups within radius 2. The best one is chosen where it is
more than 2 % better than the first, the shipped one.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from quorumhash.atomic import replacing

CLEARLY = 1.02
COMMAND = "quorumhash bench run benchmarks/paper/tuning.toml"


def tried(results: dict[str, Any]) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Dataset -> hasher -> its settings with their scores, in the order of the file."""
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for row in results["rows"]:
        setting, metrics = row["setting"], row["metrics"]
        if setting["role"] != "hasher" or "lookup" not in metrics:
            continue
        told = {
            "parameters": setting["parameters"],
            "is_row_normalised": setting["is_row_normalised"],
            **{name: round(metrics[name], 4) for name in ("map", "lookup", "empty_lookups", "fit_seconds")},
            "score": round((metrics["map"] + metrics["lookup"]) / 2, 4),
        }
        found.setdefault(row["dataset"], {}).setdefault(setting["hasher"], []).append(told)
    return found


def chosen(settings: list[dict[str, Any]]) -> dict[str, Any]:
    """The first setting, or the best one where it is clearly better."""
    best = max(settings, key=lambda setting: setting["score"])
    return best if best["score"] > CLEARLY * settings[0]["score"] else settings[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    results = json.loads(given.results.read_text())
    log = {
        dataset: {name: {"chosen": chosen(settings), "tried": settings} for name, settings in methods.items()}
        for dataset, methods in tried(results).items()
    }
    kept = {key: results[key] for key in ("title", "runs", "planned", "provenance")}
    report = kept | {
        "criterion": "mean of MAP and lookup precision, 48 bits, on validation queries",
        "clearly": CLEARLY,
        "command": COMMAND,
        "datasets": log,
    }
    with replacing(given.out) as file:
        file.write((json.dumps(report, indent=1) + "\n").encode())
    for dataset, methods in log.items():
        for name, found in methods.items():
            pick = found["chosen"]
            told = f"{pick['score']:.3f} over {found['tried'][0]['score']:.3f}  {pick['parameters']}"
            print(f"{dataset:<30}{name:<10}{told} {'row-normalised' if pick['is_row_normalised'] else ''}")


if __name__ == "__main__":
    main()
