"""What quorum costs beside itq: seconds of fit and transform on 512 + 300 features, same engine, same run.

    python benchmarks/speed/quorum_cost.py [--rows 7500 15000 30000 120000 240000]
        [--out benchmarks/results/quorum_cost.json]

Synthetic rows (40 shared factors and noise), nothing damaged: no quality is claimed. The better of two runs.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from quorumhash import ITQHasher, QuorumHasher, Views
from quorumhash.atomic import replacing
from quorumhash.bench.provenance import provenance
from quorumhash.engines.threads import threads_wanted

METHODS: dict[str, tuple[Any, dict[str, Any]]] = {
    "itq": (ITQHasher, {}),
    "neighbours": (QuorumHasher, {"objective": "neighbours"}),
    "groups": (QuorumHasher, {"objective": "groups"}),
}


def make_views(n_rows: int) -> Views:
    rng = np.random.default_rng(0)
    shared = rng.standard_normal((n_rows, 40)) * np.geomspace(1, 0.1, 40)
    widths = {"gist": 512, "words": 300}
    return Views(
        {
            name: (shared @ rng.standard_normal((40, d)) + 0.5 * rng.standard_normal((n_rows, d))).astype(np.float32)
            for name, d in widths.items()
        }
    )


def measure(n_rows: int) -> dict[str, Any]:
    views, row = make_views(n_rows), {"rows": n_rows}
    best: dict[str, list[float]] = {name: [np.inf, np.inf] for name in METHODS}
    for _ in range(2):
        for name, (kind, options) in METHODS.items():
            started = time.perf_counter()
            hasher = kind(n_bits=64, **options).fit(views)
            fitted = time.perf_counter()
            hasher.transform(views)
            seconds = fitted - started, time.perf_counter() - fitted
            best[name] = [min(a, b) for a, b in zip(best[name], seconds, strict=True)]
    for name, (fit, encode) in best.items():
        row |= {f"{name}_fit": round(fit, 2), f"{name}_encode": round(encode, 2)}
        if name != "itq":
            row[f"{name}_fit_ratio"] = round(fit / best["itq"][0], 2)
            row[f"{name}_encode_ratio"] = round(encode / best["itq"][1], 2)
    print(row, flush=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="*", default=[7500, 15000, 30000, 120000, 240000])
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    rows = [measure(n_rows) for n_rows in given.rows]
    sizes = np.log([row["rows"] for row in rows])
    slopes = {
        name: round(float(np.polyfit(sizes, np.log([row[f"{name}_fit"] for row in rows]), 1)[0]), 2) for name in METHODS
    }
    report = {
        "what": "512 + 300 features, 64 bits, seconds, the better of two runs",
        "command": f"python benchmarks/speed/quorum_cost.py --out {given.out}",
        "provenance": provenance(threads_wanted()),
        "slopes": slopes,
        "results": rows,
    }
    if given.out:
        with replacing(given.out) as file:
            file.write((json.dumps(report, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
