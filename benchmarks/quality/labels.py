"""What a few labels are worth: quorum for groups without labels, with 50, with 200, with all; whole and swapped views.

    python benchmarks/quality/labels.py [--bits 64] [--datasets digits mfeat coco5]

Data: digits (bundled), mfeat and COCO-5 (4,000 rows). The first rows of the training set, which stand in random order,
are labelled. MAP over the whole ranking, means over the seeds of the damage and of the method.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from by_dataset import report_by_dataset
from one_judge import OneJudge

from quorumhash import damage
from quorumhash.codes import hamming_distances
from quorumhash.datasets import load_dataset
from quorumhash.datasets.base import thinned
from quorumhash.evaluation import mean_average_precision
from quorumhash.experiment import relevance_of

ROWS = {"digits": None, "mfeat": None, "coco5": 4000}
LABELLED = {"none": 0, "50": 50, "200": 200, "all": None}
DAMAGES = {"clean": None, "swap": 0.2}
SEEDS = 2


def known(labels: Any, n_labelled: int | None) -> Any:
    """The labels with those after the first n taken away; None where n is 0."""
    if n_labelled == 0:
        return None
    told = np.asarray(labels).astype(np.int64).copy()
    if n_labelled is not None:
        told[n_labelled:] = -1 if told.ndim == 1 else 0
    return told


def measure(name: str, n_bits: int) -> dict[str, dict[str, float]]:
    """Kind of damage -> how many labels -> MAP."""
    dataset = load_dataset(name)
    dataset = thinned(dataset, ROWS[name]) if ROWS[name] else dataset
    relevance = relevance_of(dataset)
    table: dict[str, dict[str, float]] = {}
    for kind, rate in DAMAGES.items():
        found: dict[str, list[float]] = {label: [] for label in LABELLED}
        for seed in range(SEEDS):
            views = dataset.views if rate is None else damage(dataset.views, kind, rate=rate, random_state=seed)
            for label, n_labelled in LABELLED.items():
                hasher = OneJudge(n_bits, objective="groups", random_state=seed)
                hasher.fit(views[dataset.train_rows], known(dataset.labels[dataset.train_rows], n_labelled))
                codes = [hasher.transform(views[rows]) for rows in (dataset.query_rows, dataset.database_rows)]
                found[label].append(float(mean_average_precision(relevance, hamming_distances(*codes))))
        table[kind] = {label: float(np.mean(figures)) for label, figures in found.items()}
        print(name, kind, {label: round(figure, 4) for label, figure in table[kind].items()}, flush=True)
    return table


if __name__ == "__main__":
    what = f"quorum, groups, {{bits}} bits, MAP, means over {SEEDS} seeds; COCO-5 of 4,000 rows"
    report_by_dataset("labels", __doc__, what, ROWS, measure)
