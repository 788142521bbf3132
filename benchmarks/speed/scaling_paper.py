"""Fit, encode and search of 10^6, 10^8 and 10^10 items on 1, 16 and 256 workers, on paper, from measured constants.

    python benchmarks/speed/scaling_paper.py [--out benchmarks/results/scaling_paper.json]

Nothing of this size is run here. Read from benchmarks/results: seconds of fit whatever the rows, of a fit and of
encoding a row (quorum_cost.json: 512 + 300 features, 64 bits, 2 threads, so two workers of one core); milliseconds of
dask an iteration (dask_overhead.json); bytes and milliseconds of a scan a code (billion.json, its largest run). A fit
learns from two samples of rows, which come to the driver once, and looks at the others only to see what is missing.
Assumed, not measured: a network of 1.25 GB a second into the driver; work shared out evenly.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from quorumhash.bench.provenance import provenance
from quorumhash.landmarks import SAMPLE_ROWS
from quorumhash.teachers import most_items

RESULTS = Path(__file__).parents[1] / "results"
ITEMS, WORKERS = (10**6, 10**8, 10**10), (1, 16, 256)
NETWORK = 1.25e9  # bytes a second, assumed
WIDTHS = (512, 300)


def read(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text())


def fit_of(constants: dict[str, Any], n_rows: int, n_workers: int) -> tuple[float, float]:
    """Seconds of a fit, and bytes that come into the driver."""
    seconds = constants["fit_fixed_seconds"] + constants["fit_core_seconds_a_row"] * n_rows / n_workers
    if n_workers == 1:
        return seconds, 0.0
    sample = (SAMPLE_ROWS + most_items(sum(WIDTHS))) * constants["feature_bytes_a_row"]  # n_rows is more than either
    return seconds + sample / NETWORK + constants["dask_seconds_an_iteration"], sample


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULTS / "scaling_paper.json")
    args = parser.parse_args()
    before, last = read("quorum_cost")["results"][-2:]
    n_cores = 2
    fit_row = n_cores * max(last["groups_fit"] - before["groups_fit"], 0.0) / (last["rows"] - before["rows"])
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
    }
    rows = []
    for n_items in ITEMS:
        for n_workers in WORKERS:
            fit, sums = fit_of(constants, n_items, n_workers)
            rows.append(
                {"items": n_items, "workers": n_workers, "feature_gb": constants["feature_bytes_a_row"] * n_items / 1e9,
                 "fit_seconds": fit, "driver_mb_a_fit": sums / 1e6,
                 "encode_seconds": constants["encode_core_seconds_a_row"] * n_items / n_workers,
                 "code_gb_a_worker": constants["bytes_a_code"] * n_items / n_workers / 1e9,
                 "query_ms": 1e3 * constants["scan_core_seconds_a_code"] * n_items / n_workers}
            )  # fmt: skip
    report = {
        "constants": constants, "results": rows,
        "sources": "quorum_cost.json (fit, encode), dask_overhead.json (iteration), billion.json (bytes, scan)",
        "command": "python benchmarks/speed/scaling_paper.py", "provenance": provenance(n_cores),
    }  # fmt: skip
    args.out.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
