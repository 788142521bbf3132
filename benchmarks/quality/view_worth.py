"""The automatic worth of views against equal worth, every single view and every pair of views.

    python benchmarks/quality/view_worth.py [--bits 64] [--datasets digits mfeat coco5]

A view that is given no worth still bears witness about the others. Data: digits (bundled), mfeat and COCO-5 (4,000
rows); damage as in the panel, on both sides. groups: MAP; neighbours: R10@10, COCO-5 R10@100. One seed. Thinned: equal
worth in every cell of the panel, views alone and pairs only where the whole panel looks closest, clean, swap and zero.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

from by_dataset import report_by_dataset
from one_judge import OneJudge

from quorumhash import damage
from quorumhash.codes import hamming_distances
from quorumhash.datasets import load_dataset
from quorumhash.datasets.base import thinned
from quorumhash.evaluation import mean_average_precision, nearest_rows, neighbour_recall
from quorumhash.experiment import relevance_of, undamaged_neighbours

ROWS = {"digits": None, "mfeat": None, "coco5": 4000}
FOUND = {"digits": 10, "mfeat": 10, "coco5": 100}
DAMAGES = {
    "clean": None, "swap": 0.2, "zero": 0.3, "gauss": 0.2, "noise": 0.3, "placeholder": 0.3, "shift": 0.2,
    "drop_view": 0.3, "drop_values": 0.25,
}  # fmt: skip
WITH_SUBSETS = ("clean", "swap", "zero")


def choices(names: list[str], kind: str) -> dict[str, Any]:
    """Label -> view_weights: auto, equal; every view alone and every pair for some kinds of damage."""
    subsets = [*combinations(names, 1), *combinations(names, 2)] if kind in WITH_SUBSETS else []
    return {"auto": "auto", "equal": "equal"} | {
        " + ".join(subset): {name: float(name in subset) for name in names} for subset in subsets
    }


def measure(name: str, n_bits: int) -> dict[str, Any]:
    """Column (objective and damage) -> row (choice) -> figure, and what follows from them."""
    dataset = load_dataset(name)
    dataset = thinned(dataset, ROWS[name]) if ROWS[name] else dataset
    relevance, neighbours = relevance_of(dataset), undamaged_neighbours(dataset)
    table: dict[str, dict[str, float]] = {}
    for kind, rate in DAMAGES.items():
        views = dataset.views if rate is None else damage(dataset.views, kind, rate=rate, random_state=0)
        for label, weights in choices(list(dataset.views), kind).items():
            for objective in ("groups", "neighbours"):
                hasher = OneJudge(n_bits, objective=objective, view_weights=weights).fit(views[dataset.train_rows])
                codes = [hasher.transform(views[rows]) for rows in (dataset.query_rows, dataset.database_rows)]
                distances = hamming_distances(*codes)
                figure = (
                    mean_average_precision(relevance, distances)
                    if objective == "groups"
                    else neighbour_recall(nearest_rows(distances, FOUND[name]), neighbours)
                )
                table.setdefault(f"{objective} {kind}", {})[label] = float(figure)
        print(name, kind, flush=True)
    return {"figures": table, "verdicts": verdicts(table)}


def verdicts(table: dict[str, dict[str, float]]) -> dict[str, dict[str, Any]]:
    """Of every column: auto as a multiple of equal worth, and of the best view or pair where those were measured."""
    found: dict[str, dict[str, Any]] = {}
    for column, figures in table.items():
        found[column] = {"auto": figures["auto"], "to_equal": figures["auto"] / figures["equal"]}
        subsets = {label: value for label, value in figures.items() if label not in ("auto", "equal")}
        if subsets:
            best = max(subsets, key=subsets.__getitem__)
            found[column] |= {"best_subset": best, "to_best_subset": figures["auto"] / subsets[best]}
    return found


if __name__ == "__main__":
    report_by_dataset(
        "view_worth", __doc__, "{bits} bits, 1 seed; groups: MAP; neighbours: R10@10, for coco5 R10@100", ROWS, measure
    )
