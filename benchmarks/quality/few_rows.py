"""Trust learned from few rows: how well damage is told in new rows, and how many false alarms there are.

    python benchmarks/quality/few_rows.py [--out benchmarks/results/few_rows.json]

QuorumHasher learns from the first 100, 300, 1,000 training rows, or from all of them. `together`: those rows and the
queries are damaged alike; the area under the ROC curve of reliability on queries, and the share of right (row, view)
pairs with a reliability below 0.01. `queries alone`: it learns from undamaged rows. One seed. Data: digits (bundled);
mfeat, COCO-5 (4,000 rows) and CIFAR-10 (GIST and visual words, 6,000 pictures: two sources) from QUORUMHASH_DATA.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from by_dataset import report_by_dataset
from sklearn.metrics import roc_auc_score

import quorumhash as qh
from quorumhash.corruption import damage_with_mask
from quorumhash.datasets.base import thinned

OPTIONS: dict[str, dict[str, Any]] = {"cifar10": {"views": ["gist", "words"]}}
MOST = {"coco5": 4000, "cifar10": 6000}
ROWS = (100, 300, 1000)
TOGETHER = (("clean", 0.0), ("swap", 0.2), ("swap", 0.4), ("noise", 0.3), ("zero", 0.3))
ALONE = (("swap", 0.2), ("noise", 0.3), ("zero", 0.3), ("drop_view", 0.3))


def measure(name: str, bits: int) -> dict[str, Any]:
    dataset = qh.load_dataset(name, **OPTIONS.get(name, {}))
    dataset = thinned(dataset, MOST[name]) if name in MOST else dataset
    train, queries, table = dataset.train_rows, dataset.query_rows, {}
    for n_rows in (*(n for n in ROWS if n < len(train)), len(train)):
        cells = {}
        whole = qh.QuorumHasher(bits).fit(dataset.views[train[:n_rows]])
        for how, damages in (("together", TOGETHER), ("queries alone", ALONE)):
            for kind, rate in damages:
                views, mask = dataset.views, np.zeros((len(dataset.views), len(dataset.views.names)), dtype=bool)
                if rate:
                    damaged = damage_with_mask(dataset.views, kind, rate=rate, random_state=0)
                    views, mask = damaged.views, damaged.mask
                hasher = qh.QuorumHasher(bits).fit(views[train[:n_rows]]) if how == "together" and rate else whole
                cells[f"{kind} {rate:g}, {how}"] = told(hasher, views[queries], mask[queries])
        table[str(n_rows)] = cells
        print(name, n_rows, cells, flush=True)
    return table


def told(hasher: Any, views: Any, mask: Any) -> dict[str, float]:
    reliability = hasher.reliability(views)
    here = ~np.isnan(reliability)
    found = {"false_alarms": float(np.mean(reliability[here & ~mask] < 0.01))}
    if (mask & here).any():
        found["auc"] = float(roc_auc_score(mask[here], -reliability[here]))
    return {label: round(value, 4) for label, value in found.items()}


if __name__ == "__main__":
    what = "quorum, {bits} bits, 1 seed; AUC of reliability on queries, false alarms at 1 %"
    report_by_dataset("few_rows", __doc__, what, ("digits", "mfeat", "coco5", "cifar10"), measure)
