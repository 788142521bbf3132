"""Alarms at 1 %: how many right views raise one, over random splits of the items.

    python benchmarks/quality/false_alarms.py [--out benchmarks/results/false_alarms.json]

A panel has one set of queries, and 300 of them are few: one that lies apart raises several alarms at once. Here the
items are cut at random into training rows and queries, as many as the dataset has of each, ten times (COCO-5, 4,000
rows: five), damaged alike, and judged by a QuorumHasher: the share of right (row, view) pairs of the queries with a
reliability below 0.01 (mean, standard error of it, least and most of a split), and the area under the ROC curve.
Data: digits (bundled); mfeat and COCO-5 from QUORUMHASH_DATA.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from by_dataset import report_by_dataset
from few_rows import MOST, told

import quorumhash as qh
from quorumhash.corruption import damage_with_mask
from quorumhash.datasets.base import thinned

N_SPLITS = {"digits": 10, "mfeat": 10, "coco5": 5}
DAMAGES = {"clean": 0.0, "swap": 0.2, "noise": 0.3, "zero": 0.3, "placeholder": 0.3, "shift": 0.2, "drop_view": 0.3}


def measure(name: str, bits: int) -> dict[str, Any]:
    dataset = qh.load_dataset(name)
    dataset = thinned(dataset, MOST[name]) if name in MOST else dataset
    views, n_train, table = dataset.views, len(dataset.train_rows), {}
    for kind, rate in DAMAGES.items():
        found = []
        for seed in range(N_SPLITS[name]):
            given, mask = views, np.zeros((len(views), len(views.names)), dtype=bool)
            if rate:
                damaged = damage_with_mask(views, kind, rate=rate, random_state=seed)
                given, mask = damaged.views, damaged.mask
            rows = np.random.default_rng(seed).permutation(len(views))
            train, queries = np.sort(rows[:n_train]), rows[n_train:]
            found.append(told(qh.QuorumHasher(bits).fit(given[train]), given[queries], mask[queries]))
        table[kind] = summed_up(found)
        print(name, kind, table[kind], flush=True)
    return table


def summed_up(found: list[dict[str, float]]) -> dict[str, Any]:
    alarms = np.array([split["false_alarms"] for split in found])
    error = alarms.std(ddof=1) / np.sqrt(len(alarms))
    told = {"mean": alarms.mean(), "error": error, "least": alarms.min(), "most": alarms.max()}
    if "auc" in found[0]:
        told["auc"] = np.mean([split["auc"] for split in found])
    return {label: round(float(value), 4) for label, value in told.items()} | {"splits": len(found)}


if __name__ == "__main__":
    what = "quorum, {bits} bits, random splits; share of right views of queries with reliability < .01"
    report_by_dataset("false_alarms", __doc__, what, N_SPLITS, measure)
