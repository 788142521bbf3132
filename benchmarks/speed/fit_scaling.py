"""How the fit of ConsensusHasher grows with the number of rows, and how close it is to its unavoidable products.

    python benchmarks/speed/fit_scaling.py [--rows 10000 20000 40000 80000] [--out benchmarks/results/fit_scaling.json]

Data: 512 + 300 synthetic features in 50 clusters (speed only; no quality is claimed here). R = L = 300 landmarks,
64 bits, 40 sweeps. Each N is fitted in a process of its own, which reports seconds and peak memory. The products alone
(two distance products per view and, per sweep, two R x R x N for the singular-value step, one for the Gram matrix of
the target step, two R x P x N for the coupled step) run on the same engine, in the same dtypes and blocks, in the same
process, right after the fits. Of fits and of products the better of two runs counts. Peak memory is what the process
grew by during fit, over the documented state.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

WIDTHS, N_LANDMARKS, N_BITS, N_SWEEPS = (512, 300), 300, 64, 40


def make_views(n_rows: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 50, n_rows)
    views = {}
    for width in WIDTHS:
        features = rng.standard_normal((n_rows, width), dtype=np.float32)
        features += 1.5 * rng.standard_normal((50, width), dtype=np.float32)[groups]
        views[f"features{width}"] = features
    return views


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def products_alone(views: dict[str, np.ndarray]) -> float:
    """Seconds of the matrix products that no implementation of these steps can leave out."""
    from quorumhash.engines.threads import ThreadsEngine

    n_rows = len(next(iter(views.values())))
    rng = np.random.default_rng(1)
    square, wide = rng.standard_normal((N_LANDMARKS, N_LANDMARKS)), rng.standard_normal((N_LANDMARKS, N_BITS))
    kernel = rng.random((n_rows, N_LANDMARKS))
    with ThreadsEngine() as engine:
        rows, codes = engine.put(kernel), engine.put(kernel[:, :N_BITS].copy())
        started = time.perf_counter()
        for features in views.values():
            points = rng.standard_normal((N_LANDMARKS, features.shape[1])).astype(np.float32)
            for _ in ("kernel landmarks", "graph landmarks"):
                engine.sum_rows(_product_only, engine.put(features), points.T)
        for _ in range(N_SWEEPS):
            engine.sum_rows(_gram, rows)  # Gram of the singular-value step
            engine.sum_rows(_product_only, rows, square)  # its operator applied
            engine.sum_rows(_gram, rows)  # Gram of the target step
            engine.sum_rows(_product_only, rows, wide)  # misfit of the coupled step
            engine.sum_rows(_product_only, codes, wide.T)  # and its gradient
        return time.perf_counter() - started


def _product_only(block: np.ndarray, matrix: np.ndarray) -> float:
    return float((block @ matrix)[0, 0])


def _gram(block: np.ndarray) -> np.ndarray:
    return block.T @ block


def _seconds_of_fit(hasher: object, views: dict[str, np.ndarray]) -> float:
    started = time.perf_counter()
    hasher.fit(views)
    return time.perf_counter() - started


def measure(n_rows: int) -> dict[str, float]:
    import scipy.linalg  # noqa: F401  loaded before memory is read
    import sklearn.cluster  # noqa: F401

    from quorumhash import ConsensusHasher
    from quorumhash.consensus import state_bytes_per_row

    ConsensusHasher(n_bits=8, max_iter=1).fit({name: part[:500] for name, part in make_views(500).items()})
    views = make_views(n_rows)
    hasher = ConsensusHasher(
        n_bits=N_BITS, n_landmarks=N_LANDMARKS, n_kernel_landmarks=N_LANDMARKS, max_iter=N_SWEEPS, tol=0.0
    )
    before = resident_bytes()
    fit_seconds = min(_seconds_of_fit(hasher, views) for _ in range(2))
    grown = peak_bytes() - before
    state = n_rows * state_bytes_per_row(N_LANDMARKS, len(WIDTHS), N_BITS)
    product_seconds = min(products_alone(views) for _ in range(2))
    return {
        "rows": n_rows,
        "fit_seconds": round(fit_seconds, 2),
        "product_seconds": round(product_seconds, 2),
        "ratio": round(fit_seconds / product_seconds, 2),
        "state_mb": round(state / 1e6, 1),
        "grown_mb": round(grown / 1e6, 1),
        "memory_ratio": round(grown / state, 2),
        "sweeps": len(hasher.history_),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 20_000, 40_000, 80_000])
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one)))
        return
    results = []
    for n_rows in options.rows:
        done = subprocess.run(
            [sys.executable, __file__, "--one", str(n_rows)], check=True, capture_output=True, text=True
        )
        results.append(json.loads(done.stdout))
        print(results[-1], flush=True)
    logs = np.log([[r["rows"], r["fit_seconds"]] for r in results])
    slope = float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0]) if len(results) > 1 else None
    report = {
        "what": "fit of ConsensusHasher, 512 + 300 features, R = L = 300, 64 bits, 40 sweeps",
        "command": "python benchmarks/speed/fit_scaling.py --out benchmarks/results/fit_scaling.json",
        "machine": f"{os.cpu_count()} cores, {platform.processor() or platform.machine()}, numpy {np.__version__}",
        "log_log_slope": None if slope is None else round(slope, 3),
        "results": results,
    }
    print("log-log slope", report["log_log_slope"])
    if options.out:
        options.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
