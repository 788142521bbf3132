"""What a few labels are worth: quorum for groups without labels, with 50, with 200, with all; whole and swapped views.

    python benchmarks/quality/labels.py [--bits 64] [--seeds 3] [--out benchmarks/results/labels.json]

Data: digits (bundled); mfeat and COCO-5 (4,000 rows) too where QUORUMHASH_DATA holds them. The first rows of the
training set, which stand in random order, are labelled. MAP over the whole ranking, means over the seeds of the damage
and of the method.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from quorumhash import QuorumHasher, damage
from quorumhash.atomic import replacing
from quorumhash.bench.provenance import provenance
from quorumhash.codes import hamming_distances
from quorumhash.datasets import Dataset, load_dataset
from quorumhash.datasets.base import thinned
from quorumhash.engines.threads import threads_wanted
from quorumhash.evaluation import mean_average_precision
from quorumhash.experiment import relevance_of

ROWS = {"digits": None, "mfeat": None, "coco5": 4000}
LABELLED = {"none": 0, "50": 50, "200": 200, "all": None}
DAMAGES = {"clean": None, "swap": 0.2}


def known(labels: Any, n_labelled: int | None) -> Any:
    """The labels with those after the first n taken away; None where n is 0."""
    if n_labelled == 0:
        return None
    told = np.asarray(labels).astype(np.int64).copy()
    if n_labelled is not None:
        told[n_labelled:] = -1 if told.ndim == 1 else 0
    return told


def measure(dataset: Dataset, n_bits: int, seeds: range) -> dict[str, dict[str, float]]:
    """Kind of damage -> how many labels -> MAP."""
    relevance = relevance_of(dataset)
    table: dict[str, dict[str, float]] = {}
    for kind, rate in DAMAGES.items():
        for name, n_labelled in LABELLED.items():
            found = []
            for seed in seeds:
                views = dataset.views if rate is None else damage(dataset.views, kind, rate=rate, random_state=seed)
                hasher = QuorumHasher(n_bits, objective="groups", random_state=seed)
                hasher.fit(views[dataset.train_rows], known(dataset.labels[dataset.train_rows], n_labelled))
                codes = [hasher.transform(views[rows]) for rows in (dataset.query_rows, dataset.database_rows)]
                found.append(mean_average_precision(relevance, hamming_distances(*codes)))
            table.setdefault(kind, {})[name] = float(np.mean(found))
            print(dataset.name, kind, name, round(table[kind][name], 4), flush=True)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bits", type=int, default=64)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    report: dict[str, Any] = {"datasets": {}}
    for name, n_rows in ROWS.items():
        if name != "digits" and not (Path(os.environ.get("QUORUMHASH_DATA", "")) / f"{name}.npz").is_file():
            print(f"{name} is left out: QUORUMHASH_DATA holds no {name}.npz")
            continue
        dataset = load_dataset(name)
        kept = thinned(dataset, n_rows) if n_rows else dataset
        report["datasets"][name] = measure(kept, given.bits, range(given.seeds))
    report |= {
        "what": f"quorum, groups, {given.bits} bits, MAP, means over {given.seeds} seed(s); COCO-5 of 4,000 rows",
        "command": f"python benchmarks/quality/labels.py --bits {given.bits} --seeds {given.seeds} --out {given.out}",
        "provenance": provenance(threads_wanted()),
    }
    if given.out:
        with replacing(given.out) as file:
            file.write((json.dumps(report, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
