"""Whether features of pictures are worth what is published: MAP of plain methods on CIFAR-10 and MNIST, and seconds.

    python benchmarks/quality/picture_features.py [--split 0] [--out benchmarks/results/picture_features.json]

Needs cifar10 and mnist (`quorumhash datasets get`). Seconds are those of a view over all pictures, made anew, nothing
read from the cache. MAP over the whole ranking of the database, 1,000 queries, trained on 30,000 rows; rows of labels
that agree are relevant.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from quorumhash import (
    HASHERS,
    Views,
    extract_features,
    hamming_distances,
    load_dataset,
    mean_average_precision,
    shared_labels,
)
from quorumhash.atomic import replacing
from quorumhash.bench.provenance import provenance
from quorumhash.datasets.base import Dataset
from quorumhash.engines.threads import threads_wanted
from quorumhash.features import kept_vocabulary

BITS = (32, 64)
QUERIES_AT_ONCE = 100
# dataset, its options, the views to hash, method
RUNS: list[tuple[str, dict[str, Any], tuple[str, ...], str]] = [
    ("cifar10", {}, ("gist",), "itq"),
    ("cifar10", {}, ("words",), "itq"),
    ("cifar10", {}, ("colour",), "itq"),
    ("cifar10", {}, ("gist", "words"), "itq"),
    ("cifar10", {"damage": "patch", "reading": "black"}, ("gist",), "itq"),
    ("cifar10", {"damage": "patch", "reading": "mean"}, ("gist",), "itq"),
    ("cifar10", {"damage": "patch", "reading": "masked"}, ("gist",), "itq"),
    ("mnist", {}, ("gist", "words", "pixels"), "lsh"),
    ("mnist", {}, ("gist", "words", "pixels"), "agh"),
    ("mnist", {}, ("gist", "words", "pixels"), "itq"),
]


def score(dataset: Dataset, names: tuple[str, ...], method: str, n_bits: int) -> float:
    views = Views({name: dataset.views[name] for name in names})
    hasher = HASHERS[method](n_bits=n_bits, random_state=0).fit(views[dataset.train_rows])
    codes, queries = (hasher.transform(views[rows]) for rows in (dataset.database_rows, dataset.query_rows))
    labels = dataset.labels
    means = []
    for start in range(0, len(queries), QUERIES_AT_ONCE):
        rows = dataset.query_rows[start : start + QUERIES_AT_ONCE]
        relevance = shared_labels(labels[rows], labels[dataset.database_rows])
        distances = hamming_distances(queries[start : start + QUERIES_AT_ONCE], codes)
        means.append(mean_average_precision(relevance, distances) * len(rows))
    return float(np.sum(means) / len(queries))


def seconds_of(name: str, split: int) -> dict[str, Any]:
    """Seconds by the clock, and of processor time, which depends less on what else the machine does."""
    dataset = load_dataset(name, split=split)
    vocabulary = kept_vocabulary(dataset.images[np.sort(dataset.train_rows)], n_words=300)
    found: dict[str, Any] = {"pictures": len(dataset.labels)}
    for view in ("gist", "words", "colour", "texture"):
        started, processor = time.perf_counter(), time.process_time()
        extract_features(dataset.images, [view], vocabulary=vocabulary, is_cached=False)
        found[view] = round(time.perf_counter() - started, 1)
        found[f"{view}_processor"] = round(time.process_time() - processor, 1)
        print(name, view, found[view], found[f"{view}_processor"], flush=True)
    return found


def write(report: dict[str, Any], path: Path | None) -> None:
    if path:
        with replacing(path) as file:
            file.write((json.dumps(report, indent=1) + "\n").encode())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--split", type=int, default=0)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    report: dict[str, Any] = {
        "what": "MAP over the whole ranking, 1,000 queries, 30,000 training rows; seconds of a view over all pictures",
        "command": f"python benchmarks/quality/picture_features.py --split {given.split} --out {given.out}",
        "provenance": provenance(threads_wanted()),
        "seeds": [0],
        "split": given.split,
        "load": round(os.getloadavg()[0], 1),  # what else the machine had to do: seconds depend on it
        "rows": [],
        "seconds": {},
    }
    kept: dict[str, Dataset] = {}
    for name, options, views, method in RUNS:
        key = json.dumps([name, options])
        if key not in kept:
            kept = {key: load_dataset(name, split=given.split, **options)}
        scores = {f"map_{n_bits}": round(score(kept[key], views, method, n_bits), 4) for n_bits in BITS}
        report["rows"].append({"dataset": name, **options, "views": list(views), "method": method, **scores})
        print(report["rows"][-1], flush=True)
        write(report, given.out)
    for name in dict.fromkeys(run[0] for run in RUNS):
        report["seconds"][name] = seconds_of(name, given.split)
        write(report, given.out)


if __name__ == "__main__":
    main()
