"""An audit of a million rows: seconds, memory, and what it finds of planted damage.

    python benchmarks/speed/audit_million.py [--rows 1000000] [--out benchmarks/results/audit_million.json]

Three views of 64, 64 and 32 float32 features of 24 hidden numbers, each squashed by tanh and with noise of its own.
Planted, in rows of their own: in the first view zeros, noise and exchanged rows (views permuted among the rows hit); in
the second a placeholder and a block of rows that hold the row before; in the third rows of another model, turned and
moved. Anonymous memory (RssAnon) is sampled every 20 ms, from after the views are made.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from out_of_core import MemoryWatch, anonymous_bytes

import quorumhash as qh
from quorumhash.atomic import replacing
from quorumhash.bench.provenance import provenance
from quorumhash.engines.threads import threads_wanted

WIDTHS = {"image": 64, "text": 64, "sound": 32}
N_HIDDEN, NOISE = 24, 0.3
SHARES = {"zero": 0.005, "noise": 0.005, "swap": 0.01, "placeholder": 0.005, "shift": 0.01, "model_version": 0.02}
VIEW_OF = {"zero": 0, "noise": 0, "swap": 0, "placeholder": 1, "shift": 1, "model_version": 2}


def made_views(n_rows: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    hidden = rng.standard_normal((n_rows, N_HIDDEN), dtype=np.float32)
    views = {}
    for name, width in WIDTHS.items():
        mixing = rng.standard_normal((N_HIDDEN, width), dtype=np.float32) / np.sqrt(N_HIDDEN / 2)
        views[name] = np.tanh(hidden @ mixing) + NOISE * rng.standard_normal((n_rows, width), dtype=np.float32)
    return views


def planted(views: dict[str, Any], seed: int) -> tuple[dict[str, Any], Any]:
    """The rows (n,) of every kind, and the row (n,) that an exchanged row's data belong to; views change in place."""
    rng = np.random.default_rng([seed, 1])
    image, text, sound = views.values()
    n_rows = len(image)
    counts = {kind: round(share * n_rows) for kind, share in SHARES.items()}
    first = n_rows // 3
    rows = {"shift": np.arange(first, first + counts["shift"])}
    others = rng.permutation(np.setdiff1d(np.arange(1, n_rows), rows["shift"]))
    for kind in counts:
        if kind != "shift":
            rows[kind], others = np.sort(others[: counts[kind]]), others[counts[kind] :]
    image[rows["zero"]] = 0.0
    image[rows["noise"]] = 2 * image.std(axis=0) * rng.standard_normal((counts["noise"], image.shape[1]))
    order = rng.permutation(rows["swap"])
    homes = np.full(n_rows, -1)
    homes[order] = np.roll(order, 1)
    image[order] = image[homes[order]]
    text[rows["placeholder"]] = text[0]
    text[rows["shift"]] = text[rows["shift"] - 1]
    turn = np.linalg.qr(rng.standard_normal((sound.shape[1],) * 2))[0].astype(np.float32)
    sound[rows["model_version"]] = sound[rows["model_version"]] @ turn + 1.0
    return rows, homes


def figures_of(report: qh.AuditReport, rows: dict[str, Any], homes: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    hit = np.zeros(report.kinds.shape, dtype=bool)
    for kind, some in rows.items():
        m = VIEW_OF[kind]
        hit[some, m] = True
        named = report.kinds[:, m] == kind
        right = int(named[some].sum())
        found[kind] = {
            "planted": len(some),
            "recall": round(right / len(some), 4),
            "precision": round(right / max(int(named.sum()), 1), 4),
        }
    swaps = rows["swap"][report.kinds[rows["swap"], 0] == "swap"]
    found["swap"]["partner_top1"] = round(float(np.mean(report.partners[swaps, 0, 0] == homes[swaps])), 4)
    shifts = [finding for finding in report.findings if finding.kind == "shift"]
    found["shift"]["planted_range"] = [int(rows["shift"][0]), int(rows["shift"][-1])]
    found["shift"]["found_ranges"] = [[finding.first, finding.last, finding.offset] for finding in shifts]
    found["false_alarms"] = round(float(np.mean(report.p_values[~hit] < report.false_alarms)), 4)
    found["false_verdicts"] = round(float(np.mean(report.kinds[~hit] != "")), 5)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/audit_million.json"))
    given = parser.parse_args()
    made_by = provenance(threads_wanted())  # of the code that is loaded: the clone may move on while this runs
    views = made_views(given.rows, given.seed)
    rows, homes = planted(views, given.seed)
    before = anonymous_bytes()
    with MemoryWatch() as watch:
        started = time.perf_counter()
        report = qh.audit(views)
        seconds = time.perf_counter() - started
    found = figures_of(report, rows, homes)
    started = time.perf_counter()
    report.apply("swap")
    result = {
        "what": f"qh.audit of {given.rows:,} rows of views of {list(WIDTHS.values())} float32 features",
        "command": f"python benchmarks/speed/audit_million.py --rows {given.rows}",
        "rows": given.rows,
        "seed": given.seed,
        "views_gb": round(sum(part.nbytes for part in views.values()) / 1e9, 3),
        "before_gb": round(before / 1e9, 3),
        "peak_gb": round(watch.peak / 1e9, 3),
        "seconds": round(seconds, 1),
        "seconds_apply": round(time.perf_counter() - started, 1),
        "found": found,
        "provenance": made_by,
    }
    print(json.dumps(result, indent=1))
    with replacing(given.out) as file:
        file.write((json.dumps(result, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
