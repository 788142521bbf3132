"""What an iteration costs with dask beyond its work, and what a second worker brings.

    python benchmarks/speed/dask_overhead.py [--iterations 50] [--rows 40000]
        [--out benchmarks/results/dask_overhead.json]

An iteration is what a solver does: a small matrix goes to every block, a map makes new rows of the old ones (`reuse`),
a sum over them comes back, and the next matrix follows from it. overhead: with rows so few that the work is nothing (16
blocks of 8 rows). work: ConsensusHasher (40 sweeps, as by default) of `--rows` rows of 512 + 300 features in 50
clusters, on one worker process and on two; k-means on the driver and sending the rows count in both. CPU milliseconds
of this process (driver and scheduler) stand beside: on a busy machine seconds tell of the others.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

from quorumhash import ConsensusHasher
from quorumhash.bench.provenance import provenance
from quorumhash.engines.daskengine import DaskEngine

N_BLOCKS, BLOCK_ROWS, WIDTH = 16, 8, 64
N_GROUPS = 50


def advanced(rows: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    rows *= 0.5
    rows += (rows @ matrix) * 1e-3
    return rows


def gram(rows: np.ndarray) -> np.ndarray:
    return rows.T @ rows


def overhead(engine: DaskEngine, n_iterations: int) -> dict[str, float]:
    seconds, used = [], []
    rows = engine.put(np.random.default_rng(0).standard_normal((N_BLOCKS * BLOCK_ROWS, WIDTH)))
    matrix = np.eye(WIDTH)
    for _ in range(n_iterations + 2):  # the first ones send the rows and load the library on the workers
        started, cpu = time.perf_counter(), time.process_time()
        rows = engine.map_rows(advanced, rows, matrix, reuse=[rows])
        matrix = np.linalg.qr(engine.sum_rows(gram, rows) + np.eye(WIDTH))[0]
        seconds.append(time.perf_counter() - started)
        used.append(time.process_time() - cpu)
    return {
        "median_ms": round(1e3 * float(np.median(seconds[2:])), 2),
        "best_ms": round(1e3 * min(seconds[2:]), 2),
        "cpu_ms": round(1e3 * float(np.median(used[2:])), 2),
    }


def fit_seconds(n_workers: int, views: dict[str, np.ndarray]) -> float:
    with DaskEngine(n_workers=n_workers) as engine:
        warm = {name: matrix[:2000] for name, matrix in views.items()}
        ConsensusHasher(n_bits=32, max_iter=2).fit(warm, engine=engine)
        started = time.perf_counter()
        ConsensusHasher(n_bits=32).fit(views, engine=engine)
        return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iterations", type=int, default=50)
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/dask_overhead.json"))
    args = parser.parse_args()
    with DaskEngine(n_workers=2, block_rows=BLOCK_ROWS) as engine:
        cost = overhead(engine, args.iterations)
    print(cost, flush=True)
    rng = np.random.default_rng(0)
    groups = rng.integers(0, N_GROUPS, args.rows)
    views = {
        f"features{width}": rng.standard_normal((N_GROUPS, width), dtype=np.float32)[groups]
        + rng.standard_normal((args.rows, width), dtype=np.float32)
        for width in (512, 300)
    }
    fits = {str(n): round(fit_seconds(n, views), 2) for n in (1, 2)} if args.rows else {}
    report = {
        "overhead": cost, "blocks": N_BLOCKS, "rows": args.rows, "fit_seconds_by_workers": fits,
        "two_workers_over_one": round(fits["1"] / fits["2"], 2) if fits else None,
        "command": f"python benchmarks/speed/dask_overhead.py --iterations {args.iterations} --rows {args.rows}",
        "provenance": provenance(1),
    }  # fmt: skip
    args.out.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
