"""What a scan, a look-up and a candidate cost: the numbers by which the index plans (quorumhash/index/planning.py).

    python benchmarks/speed/hamming_planner.py [--items 1000000] [--out benchmarks/results/hamming_planner.json]

One thread, processor seconds, the best of several rounds. Look-ups of several radii, in tables of several sizes, are
fitted by a cost a value and a cost a row met.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from hamming_codes import clustered

from quorumhash._native import kernels
from quorumhash._native.kernels import Costs, Search
from quorumhash.atomic import replacing
from quorumhash.bench.provenance import provenance
from quorumhash.index import planning
from quorumhash.index.bands import band_widths, make_bands
from quorumhash.index.codetable import CodeTable, Segment


def best_seconds(call: Callable[[], Any], rounds: int = 5) -> float:
    seconds = []
    for _ in range(rounds):
        started = time.thread_time()
        call()
        seconds.append(time.thread_time() - started)
    return min(seconds)


def segment_of(codes: Any) -> Segment:
    table = CodeTable(codes.shape[1])
    table.add(codes, np.arange(len(codes)))
    return table.segments[0]


def scans(codes: Any, queries: Any) -> dict[str, float]:
    """Nanoseconds a row and query, of k = 10 in a batch."""
    segment, found = segment_of(codes), {}
    for name in kernels.available()[:-1]:
        search = Search(name, 64, [segment.part(None, False)])
        seconds = best_seconds(lambda search=search: kernels.nearest(search, queries[:256], 10))
        found[name] = round(seconds * 1e9 / (256 * segment.n_rows), 4)
    return found


def look_ups(codes: Any, queries: Any) -> tuple[list[dict[str, Any]], float]:
    """Times of look-ups, with how many values were looked up and rows met; and of making bands, a row and band."""
    segment = segment_of(codes)
    made = best_seconds(lambda: make_bands(segment.tiles, segment.n_rows, 64), 2)
    segment.bands = make_bands(segment.tiles, segment.n_rows, 64)
    search = Search(kernels.available()[0], 64, [segment.part(None, True)], 0, Costs(-1.0))
    widths, rows = band_widths(64, segment.n_rows), []
    for radius in (2, 5, 8):
        steps = [divmod(step, len(widths)) for step in range(radius + 1)]
        n_values = sum(math.comb(widths[band], n_flips) for n_flips, band in steps)
        n_met = n_values * segment.n_rows / 2 ** widths[0]
        seconds = best_seconds(lambda radius=radius: kernels.within(search, queries[:256], radius), 3)
        rows.append({"items": len(codes), "radius": radius, "values": n_values, "rows_met": round(n_met, 1),
                     "nanoseconds": round(seconds * 1e9 / 256, 1)})  # fmt: skip
    return rows, made * 1e9 / segment.n_rows / len(widths)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    rows, makes = [], []
    for n_items in (given.items // 4, given.items, 4 * given.items):
        codes = rng.integers(0, 256, (n_items, 8), dtype=np.uint8)  # spread evenly: how many rows are met is known
        found, made = look_ups(codes, codes[:256])
        rows += found
        makes.append(round(made, 1))
        print(found, made, flush=True)
    unknowns = np.array([[row["values"], row["rows_met"]] for row in rows], dtype=float)
    times = np.array([row["nanoseconds"] for row in rows])
    weights = 1 / times  # a share of each time is as good as another's
    fitted = np.linalg.lstsq(unknowns * weights[:, None], times * weights, rcond=None)[0]
    report = {
        "what": "nanoseconds on one thread, processor time, the best of several rounds; seed 0",
        "command": f"python benchmarks/speed/hamming_planner.py --items {given.items} --out {given.out}",
        "provenance": provenance(1) | {"kernels": ", ".join(kernels.available())},
        "scan_a_row": scans(*clustered(given.items, 64, 256)),
        "look_up": round(float(fitted[0]), 2),
        "candidate": round(float(fitted[1]), 2),
        "make_a_row_and_band": makes,
        "in_use": {
            "scan_a_row": planning.SCAN,
            "look_up": planning.LOOK_UP,
            "candidate": planning.CANDIDATE,
            "make_a_row_and_band": planning.MAKE,
        },
        "look_ups": rows,
    }
    print({name: report[name] for name in ("scan_a_row", "look_up", "candidate", "make_a_row_and_band")})
    if given.out:
        with replacing(given.out) as file:
            file.write((json.dumps(report, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
