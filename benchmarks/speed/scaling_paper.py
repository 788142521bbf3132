"""Fit, encode and search of 10^6, 10^8 and 10^10 items on 1, 16 and 256 workers, on paper, from measured constants.

    python benchmarks/speed/scaling_paper.py [--out benchmarks/results/scaling_paper.json]

Nothing of this size is run here. Read from benchmarks/results: seconds of fit and encode a row, and what a fit takes
whatever the rows (quorum_cost.json: 512 + 300 features, 64 bits, 2 threads, so two workers of one core); milliseconds
of dask an iteration (dask_overhead.json); bytes and milliseconds of a scan a code (billion.json, its largest run).
Counted here, by a small fit with the landmarks that many rows get: passes over the rows, bytes of the sums of a pass.
Assumed, not measured: a network of 1.25 GB a second into the driver; work shared out evenly.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from quorumhash import QuorumHasher
from quorumhash.bench.provenance import provenance
from quorumhash.engines.daskengine import AT_ONCE, MOST_SUMS
from quorumhash.engines.partitions import partition_bounds
from quorumhash.engines.threads import ThreadsEngine
from quorumhash.hashers.quorum import MOST_LANDMARKS
from quorumhash.landmarks import default_n_landmarks

RESULTS = Path(__file__).parents[1] / "results"
ITEMS, WORKERS = (10**6, 10**8, 10**10), (1, 16, 256)
SAMPLE = 10**6  # rows of a fit on a sample
NETWORK = 1.25e9  # bytes a second, assumed
WIDTHS, BLOCK_ROWS, N_SMALL = (512, 300), 2048, 2000


class CountingEngine(ThreadsEngine):
    """Counts sums over all rows, and their bytes."""

    sums: list[int]

    def sum_rows(self, function: Any, *arguments: Any) -> Any:
        result = super().sum_rows(function, *arguments)
        parts = result if isinstance(result, tuple) else (result,)
        rows = next(argument.n_rows for argument in arguments if hasattr(argument, "n_rows"))
        if rows == N_SMALL and function.__name__ == "moment_rows":
            self.sums.append(sum(part.nbytes for part in parts))
        return result


def counted() -> dict[str, int]:
    rng = np.random.default_rng(0)
    views = {f"features{width}": rng.standard_normal((N_SMALL, width), dtype=np.float32) for width in WIDTHS}
    n_landmarks = min(default_n_landmarks(ITEMS[0]), MOST_LANDMARKS // (len(WIDTHS) + 1))
    engine = CountingEngine()
    engine.sums = []
    QuorumHasher(n_bits=64, objective="groups", n_landmarks=n_landmarks).fit(views, engine=engine)
    return {"passes": len(engine.sums), "sum_bytes": max(engine.sums), "n_landmarks": n_landmarks}


def read(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text())


def fit_of(constants: dict[str, Any], n_rows: int, n_workers: int) -> tuple[float, float]:
    """Seconds of a fit, and bytes that come into the driver."""
    seconds = constants["fit_fixed_seconds"] + constants["fit_core_seconds_a_row"] * n_rows / n_workers
    if n_workers == 1:
        return seconds, 0.0
    n_partials = len(partition_bounds(n_rows, BLOCK_ROWS))
    while n_partials > MOST_SUMS:
        n_partials = -(-n_partials // AT_ONCE)
    sums = constants["passes"] * n_partials * constants["sum_bytes"]
    return seconds + sums / NETWORK + constants["dask_seconds_an_iteration"], sums


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULTS / "scaling_paper.json")
    args = parser.parse_args()
    before, last = read("quorum_cost")["results"][-2:]
    n_cores = 2
    fit_row = n_cores * (last["groups_fit"] - before["groups_fit"]) / (last["rows"] - before["rows"])
    largest = max(read("billion")["results"], key=lambda row: row["items"])
    constants = {
        "feature_bytes_a_row": 4 * sum(WIDTHS),
        "fit_core_seconds_a_row": fit_row,
        "fit_fixed_seconds": last["groups_fit"] - last["rows"] * fit_row / n_cores,
        "encode_core_seconds_a_row": n_cores * last["groups_encode"] / last["rows"],
        "dask_seconds_an_iteration": read("dask_overhead")["overhead"]["median_ms"] / 1e3,
        "bytes_a_code": largest["bytes_per_code"],
        "scan_core_seconds_a_code": n_cores * largest["p50_ms"] / 1e3 / largest["items"],
        "network_bytes_a_second": NETWORK,
        **counted(),
    }
    rows = []
    for n_items in ITEMS:
        for n_workers in WORKERS:
            fit, sums = fit_of(constants, n_items, n_workers)
            sampled, _ = fit_of(constants, min(n_items, SAMPLE), n_workers)
            rows.append(
                {"items": n_items, "workers": n_workers, "feature_gb": constants["feature_bytes_a_row"] * n_items / 1e9,
                 "fit_seconds": fit, "fit_sample_seconds": sampled,
                 "driver_mb_a_fit": sums / 1e6,
                 "encode_seconds": constants["encode_core_seconds_a_row"] * n_items / n_workers,
                 "code_gb_a_worker": constants["bytes_a_code"] * n_items / n_workers / 1e9,
                 "query_ms": 1e3 * constants["scan_core_seconds_a_code"] * n_items / n_workers}
            )  # fmt: skip
    report = {
        "constants": constants, "results": rows,
        "sources": "quorum_cost.json (fit, encode), dask_overhead.json (iteration), billion.json (bytes, scan), here "
        "(passes, sums)",
        "command": "python benchmarks/speed/scaling_paper.py", "provenance": provenance(n_cores),
    }  # fmt: skip
    args.out.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
