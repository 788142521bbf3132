"""The automatic worth of views against equal worth, every single view and every pair of views.

    python benchmarks/quality/view_worth.py [--bits 64] [--out benchmarks/results/view_worth.json]

A view that is given no worth still bears witness about the others. Data: digits (bundled); mfeat and COCO-5 (4,000
rows) too where QUORUMHASH_DATA holds them; whole, and with a fifth of the pairs swapped, on both sides. groups: MAP;
neighbours: R10@10, COCO-5 R10@100. One seed.
"""

from __future__ import annotations

import argparse
import json
import os
from itertools import combinations
from pathlib import Path
from typing import Any

from quorumhash import QuorumHasher, damage
from quorumhash.atomic import replacing
from quorumhash.bench.provenance import provenance
from quorumhash.codes import hamming_distances
from quorumhash.datasets import Dataset, load_dataset
from quorumhash.datasets.base import thinned
from quorumhash.engines.threads import threads_wanted
from quorumhash.evaluation import mean_average_precision, nearest_rows, neighbour_recall
from quorumhash.experiment import relevance_of, undamaged_neighbours

ROWS = {"digits": None, "mfeat": None, "coco5": 4000}
FOUND = {"digits": 10, "mfeat": 10, "coco5": 100}
DAMAGES = {"clean": None, "swap": 0.2}


def choices(names: list[str]) -> dict[str, Any]:
    """Label -> view_weights: auto, equal, every view alone, every pair."""
    subsets = [*combinations(names, 1), *combinations(names, 2)]
    return {"auto": "auto", "equal": "equal"} | {
        " + ".join(subset): {name: float(name in subset) for name in names} for subset in subsets
    }


def measure(dataset: Dataset, n_bits: int) -> dict[str, dict[str, float]]:
    """Column (objective and damage) -> row (choice) -> figure."""
    relevance, neighbours = relevance_of(dataset), undamaged_neighbours(dataset)
    table: dict[str, dict[str, float]] = {}
    for kind, rate in DAMAGES.items():
        views = dataset.views if rate is None else damage(dataset.views, kind, rate=rate, random_state=0)
        for label, weights in choices(list(dataset.views)).items():
            for objective in ("groups", "neighbours"):
                hasher = QuorumHasher(n_bits, objective=objective, view_weights=weights).fit(views[dataset.train_rows])
                codes = [hasher.transform(views[rows]) for rows in (dataset.query_rows, dataset.database_rows)]
                distances = hamming_distances(*codes)
                figure = (
                    mean_average_precision(relevance, distances)
                    if objective == "groups"
                    else neighbour_recall(nearest_rows(distances, FOUND[dataset.name]), neighbours)
                )
                table.setdefault(f"{objective} {kind}", {})[label] = float(figure)
            print(dataset.name, kind, label, flush=True)
    return table


def verdicts(table: dict[str, dict[str, float]]) -> dict[str, dict[str, Any]]:
    """Of every column: auto as a multiple of equal worth, and of the best view or pair."""
    found = {}
    for column, figures in table.items():
        subsets = {label: value for label, value in figures.items() if label not in ("auto", "equal")}
        best = max(subsets, key=subsets.__getitem__)
        found[column] = {
            "auto": figures["auto"],
            "to_equal": figures["auto"] / figures["equal"],
            "best_subset": best,
            "to_best_subset": figures["auto"] / subsets[best],
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bits", type=int, default=64)
    parser.add_argument("--datasets", nargs="*", default=list(ROWS))
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    report: dict[str, Any] = {"datasets": {}}
    for name in given.datasets:
        if name != "digits" and not (Path(os.environ.get("QUORUMHASH_DATA", "")) / f"{name}.npz").is_file():
            print(f"{name} is left out: QUORUMHASH_DATA holds no {name}.npz")
            continue
        dataset = load_dataset(name)
        table = measure(thinned(dataset, ROWS[name]) if ROWS[name] else dataset, given.bits)
        report["datasets"][name] = {"figures": table, "verdicts": verdicts(table)}
    report |= {
        "what": f"{given.bits} bits, 1 seed; groups: MAP; neighbours: R10@10, for coco5 R10@100",
        "command": "python benchmarks/quality/view_worth.py "
        f"--bits {given.bits} --datasets {' '.join(report['datasets'])} --out {given.out}",
        "provenance": provenance(threads_wanted()),
    }
    if given.out:
        with replacing(given.out) as file:
            file.write((json.dumps(report, indent=1) + "\n").encode())
    else:
        print(json.dumps({name: found["verdicts"] for name, found in report["datasets"].items()}, indent=1))


if __name__ == "__main__":
    main()
