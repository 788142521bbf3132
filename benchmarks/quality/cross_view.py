"""Queries with one view against codes of all views: the shared code as a bridge between views.

    python benchmarks/quality/cross_view.py [--bits 64] [--out benchmarks/results/cross_view.json]

Data: mfeat and COCO-5 (2,000 rows), undamaged, from QUORUMHASH_DATA. Per view: MAP of queries that have this view alone
against a database encoded with all views (groups and neighbours), beside exact search by Euclidean distance in that
view alone (features at unit spread). Pairs: queries with one view against a database that has one other view alone.
One seed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from by_dataset import report_by_dataset

import quorumhash as qh
from quorumhash.codes import hamming_distances
from quorumhash.datasets.base import thinned
from quorumhash.evaluation import mean_average_precision
from quorumhash.experiment import relevance_of
from quorumhash.similarity import squared_distances

ROWS = {"mfeat": 0, "coco5": 2000}
PAIRS = {"coco5": [("image", "caption"), ("caption", "image")], "mfeat": [("pix", "fou"), ("fou", "pix")]}


def float_map(dataset: Any, name: str, relevance: Any) -> float:
    values = np.asarray(dataset.views[name], dtype=np.float64)
    values = (values - values.mean(axis=0)) / np.maximum(values.std(axis=0), 1e-12)
    distances = squared_distances(values[dataset.query_rows], values[dataset.database_rows])
    return float(mean_average_precision(relevance, distances))


def measure(name: str, bits: int) -> dict[str, Any]:
    dataset = qh.load_dataset(name)
    dataset = thinned(dataset, ROWS[name]) if ROWS[name] else dataset
    relevance, views = relevance_of(dataset), dataset.views
    table: dict[str, Any] = {"float": {view: round(float_map(dataset, view, relevance), 4) for view in views}}
    for objective in ("groups", "neighbours"):
        hasher = qh.QuorumHasher(bits, objective=objective).fit(views[dataset.train_rows])
        database = hasher.transform(views[dataset.database_rows])

        def of(rows: Any, names: tuple[str, ...], hasher: Any = hasher) -> Any:
            return hasher.transform({view: np.asarray(views[view])[rows] for view in names})

        def score(codes: Any, others: Any) -> float:
            return round(float(mean_average_precision(relevance, hamming_distances(codes, others))), 4)

        found = {view: score(of(dataset.query_rows, (view,)), database) for view in views}
        found["all views"] = score(of(dataset.query_rows, tuple(views)), database)
        for asked, stored in PAIRS[name]:
            codes = of(dataset.query_rows, (asked,)), of(dataset.database_rows, (stored,))
            found[f"{asked} to {stored}"] = score(*codes)
        table[objective] = found
        print(name, objective, found, flush=True)
    return table


if __name__ == "__main__":
    what = "MAP, {bits} bits, undamaged, 1 seed; queries with one view, database with all or one other"
    report_by_dataset("cross_view", __doc__, what, ROWS, measure)
