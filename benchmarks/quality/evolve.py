"""A new embedding model against an old index: recall that is kept, and what it costs beside re-indexing.

    python benchmarks/quality/evolve.py [--out benchmarks/results/evolve.json]

The new model is made from the old view: turned at random, squashed by tanh, with noise of the stated share of its
spread. It is learned from `overlap` rows with `add_view`. Queries with the old view alone, and with the new one alone,
then those of all views and of all views with the old one replaced, against the index of the old codes: recall of the 10
nearest undamaged neighbours (among the first 10; COCO-5, 2,000 rows, the first 100) and MAP. Cost: seconds of add_view
beside those of a fit on, and an encoding of, all rows with the new view in the old one's place. One seed.
"""

from __future__ import annotations

import copy
import time
from typing import Any

import numpy as np
from by_dataset import report_by_dataset

import quorumhash as qh
from quorumhash.codes import hamming_distances
from quorumhash.datasets.base import thinned
from quorumhash.evaluation import mean_average_precision, nearest_rows, neighbour_recall
from quorumhash.experiment import relevance_of, undamaged_neighbours

CASES = {"digits": ("pixels", 0, 10), "mfeat": ("fac", 0, 10), "coco5": ("image", 2000, 100)}  # view, rows, depth
NOISES = (0.0, 0.1, 0.3)


def new_model(values: Any, noise: float, seed: int = 0) -> Any:
    """Another embedding of what a view shows (n, d)."""
    rng = np.random.default_rng([seed, 11])
    centred = values - values.mean(axis=0)
    scaled = centred / np.sqrt((centred**2).mean())
    turned = scaled @ np.linalg.qr(rng.standard_normal((values.shape[1],) * 2))[0]
    return np.tanh(0.5 * turned) + noise * np.tanh(0.5 * turned).std() * rng.standard_normal(turned.shape) + 0.3


def measure(name: str, bits: int) -> dict[str, Any]:
    view, n_rows, depth = CASES[name]
    dataset = qh.load_dataset(name)
    dataset = thinned(dataset, n_rows) if n_rows else dataset
    views, queries = dataset.views, dataset.query_rows
    relevance, neighbours = relevance_of(dataset), undamaged_neighbours(dataset)
    train, old = dataset.train_rows, np.asarray(views[view], dtype=np.float64)
    others = {other: np.asarray(views[other])[queries] for other in views if other != view}
    started = time.perf_counter()
    hasher = qh.QuorumHasher(bits).fit(views[train])
    seconds_fit = time.perf_counter() - started
    index = hasher.transform(views[dataset.database_rows])

    def figures(hasher: Any, asked: Any) -> dict[str, float]:
        distances = hamming_distances(hasher.transform(asked), index)
        recall = neighbour_recall(nearest_rows(distances, depth), neighbours)
        found = {"recall": float(recall), "map": float(mean_average_precision(relevance, distances))}
        return {label: round(value, 4) for label, value in found.items()}

    table: dict[str, Any] = {
        "view": view,
        "seconds_fit": round(seconds_fit, 2),
        "old view alone": figures(hasher, {view: old[queries]}),
        "all old views": figures(hasher, views[queries]),
    }
    for noise in NOISES:
        new = new_model(old, noise)
        evolved = copy.copy(hasher)
        started = time.perf_counter()
        evolved.add_view("new", new[train], views[train])
        seconds = time.perf_counter() - started
        started = time.perf_counter()
        evolved.transform({"new": new})
        cell = {
            "overlap": len(train),
            "seconds_add_view": round(seconds, 2),
            "seconds_encode_all_rows": round(time.perf_counter() - started, 2),
            "new view alone": figures(evolved, {"new": new[queries]}),
            "new and other old views": figures(evolved, {**others, "new": new[queries]}),
            "same codes": bool(np.array_equal(evolved.transform(views[dataset.database_rows]), index)),
            "same fingerprint": evolved.fingerprint() == hasher.fingerprint(),
        }
        for label, before in (("new view alone", "old view alone"), ("new and other old views", "all old views")):
            cell[f"kept, {label}"] = round(cell[label]["recall"] / table[before]["recall"], 4)
        table[f"noise {noise}"] = cell
        print(name, noise, cell, flush=True)
    return table


if __name__ == "__main__":
    what = "{bits} bits, undamaged, 1 seed; recall of the 10 nearest among the first 10 (COCO-5 100)"
    report_by_dataset("evolve", __doc__, what, CASES, measure)
