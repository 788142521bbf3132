"""Which part of the paper's method is worth what: every ablation of it on damaged views, beside itq and lsh.

    python benchmarks/quality/rmvh_ablation.py [--seeds 5] [--bits 32] [--out benchmarks/results/rmvh_ablation.json]

Data: digits (bundled); UCI Multiple Features too where QUORUMHASH_DATA holds mfeat.npz (a quarter are queries). Damage:
swap and noise at rate 0.2 on training rows, database and queries alike, and none. MAP over the whole ranking, ties
averaged; recall of the ten nearest items on the undamaged views. Mean and standard deviation over the seeds, which draw
damage, landmarks and rotations.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import numpy as np

from quorumhash.atomic import replacing
from quorumhash.bench.settings import Setting
from quorumhash.datasets import Dataset, load_dataset
from quorumhash.experiment import (
    chance_outcome,
    damaged_views,
    float_distances,
    measure_distances,
    measure_outcome,
    relevance_of,
    run_setting,
    undamaged_neighbours,
)
from quorumhash.views import Views

METHODS: dict[str, tuple[str, dict[str, object]]] = {
    "lsh": ("lsh", {}),
    "itq": ("itq", {}),
    "rmvh as published": ("rmvh", {"setting": "published"}),
    "rmvh tuned": ("rmvh", {}),
    "without consensus": ("rmvh", {"max_iter": 0}),
    "without coupling": ("rmvh", {"coupling": False}),
    "without rotation": ("rmvh", {"rotation": False}),
    "graph next to nothing (gamma 1e-4)": ("rmvh", {"gamma": 1e-4}),
    "l1 errors": ("rmvh", {"error_norm": "l1"}),
    "query kernel project": ("rmvh", {"query_kernel": "project"}),
    "query kernel robust": ("rmvh", {"query_kernel": "robust"}),
    "prototypes": ("rmvh", {"out_of_sample": "prototypes"}),
}
MEAN = {"query_kernel": "mean"}  # of all rows but those that name another
DAMAGES = ("clean", "swap", "noise")


def mfeat() -> Dataset | None:
    path = Path(os.environ.get("QUORUMHASH_DATA", "")) / "mfeat.npz"
    if not path.is_file():
        return None
    with np.load(path) as archive:
        labels = archive["labels"].astype(np.int64)
        views = Views({name: archive[name] for name in ("fac", "fou", "kar", "mor", "pix", "zer")})
    rows = np.random.default_rng(0).permutation(len(labels))
    queries, rest = np.sort(rows[: len(rows) // 4]), np.sort(rows[len(rows) // 4 :])
    return Dataset("mfeat", views, labels, rest, rest, queries, "UCI Multiple Features, 2,000 digits, six views.")


def measure(dataset: Dataset, n_bits: int, seeds: range) -> dict[str, dict[str, dict[str, list[float]]]]:
    relevance, neighbours = relevance_of(dataset), undamaged_neighbours(dataset)
    table: dict[str, dict[str, dict[str, list[float]]]] = {}
    for damage in DAMAGES:
        for seed in seeds:
            reference = Setting("lsh", n_bits, damage, 0.2, {}, seed)
            distances = float_distances(dataset, damaged_views(dataset, reference))
            rows = {
                "float search": measure_distances(distances, relevance, neighbours),
                "chance": measure_outcome(chance_outcome(reference, dataset), relevance, neighbours),
            }
            for name, (hasher, given) in METHODS.items():
                options = MEAN | given if hasher == "rmvh" else given
                outcome = run_setting(Setting(hasher, n_bits, damage, 0.2, options, seed), dataset)
                rows[name] = measure_outcome(outcome, relevance, neighbours)
            for name, scores in rows.items():
                for metric in ("map", "recall_10"):
                    table.setdefault(name, {}).setdefault(damage, {}).setdefault(metric, []).append(scores[metric])
            print(dataset.name, damage, "seed", seed, {n: round(s["map"], 3) for n, s in rows.items()}, flush=True)
    return table


def summarise(table: dict[str, dict[str, dict[str, list[float]]]]) -> list[dict[str, object]]:
    return [
        {
            "method": name,
            **{
                f"{metric} {damage}": [round(float(np.mean(values)), 3), round(float(np.std(values)), 3)]
                for damage, metrics in damages.items()
                for metric, values in metrics.items()
            },
        }
        for name, damages in table.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--bits", type=int, default=32)
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    datasets = [dataset for dataset in (load_dataset("digits"), mfeat()) if dataset is not None]
    report = {
        "what": f"MAP and R10@10 at {options.bits} bits over {options.seeds} seeds",
        "command": f"python benchmarks/quality/rmvh_ablation.py --seeds {options.seeds} --bits {options.bits} "
        "--out benchmarks/results/rmvh_ablation.json (QUORUMHASH_DATA set for mfeat)",
        "datasets": {d.name: summarise(measure(d, options.bits, range(options.seeds))) for d in datasets},
    }
    if options.out:
        with replacing(options.out) as file:
            file.write((json.dumps(report, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
