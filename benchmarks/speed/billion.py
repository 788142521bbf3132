"""Exact search in very many 64-bit codes with running numbers as ids: bytes, seconds to build, p50 and p99.

    python benchmarks/speed/billion.py [--items 10000000] [--codes synthetic | tiled] [--queries 100] [--k 10]
        [--out benchmarks/results/billion.json]

Codes come in batches and are never all there twice. synthetic: even random bits, the worst case of a scan (nothing is
near). tiled: codes that QuorumHasher makes of the digits, repeated with 3 % of their bits turned round. Each query is
an item with 3 % of its bits turned round, asked one at a time. The index keeps repeats (`deduplicate=False`), so that
ids take no memory and nothing is sorted. The first answers are compared with a plain scan of all batches in NumPy.
Anonymous memory (RssAnon) is read after building and at its peak.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).parent))
from out_of_core import MemoryWatch, anonymous_bytes

from quorumhash import HammingIndex, QuorumHasher, load_dataset
from quorumhash.bench.provenance import provenance
from quorumhash.engines.threads import threads_wanted

Codes = npt.NDArray[np.uint8]

BATCH = 1 << 22
N_CHECKED = 3  # queries compared with a plain scan
FLIPPED = 0.03


def batches(kind: str, n_items: int, seed: int) -> Iterator[Codes]:
    """The same codes each time: batch i follows from the seed and i alone."""
    base = digit_codes(seed) if kind == "tiled" else np.empty((0, 8), dtype=np.uint8)
    for number, start in enumerate(range(0, n_items, BATCH)):
        rng, n = np.random.default_rng([seed, number]), min(BATCH, n_items - start)
        if kind == "synthetic":
            yield rng.integers(0, 1 << 64, n, dtype=np.uint64).view(np.uint8).reshape(n, 8)
        else:
            yield turned(base[np.arange(start, start + n) % len(base)], rng)


def digit_codes(seed: int) -> Codes:
    views = load_dataset("digits").views
    return QuorumHasher(n_bits=64, random_state=seed).fit(views).transform(views)


def turned(codes: Codes, rng: np.random.Generator) -> Codes:
    """Codes with about 3 % of their bits turned round: bits of five random words, all set with probability 1/32."""
    words = codes.reshape(-1).view(np.uint64)
    mask = np.full(len(words), (1 << 64) - 1, dtype=np.uint64)
    for _ in range(5):
        mask &= rng.integers(0, 1 << 64, len(words), dtype=np.uint64)
    return (words ^ mask).view(np.uint8).reshape(-1, 8)


def plain_nearest(kind: str, n_items: int, seed: int, queries: Codes, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Ids and distances by a plain scan, ties by id."""
    ids = [np.empty(0, dtype=np.int64) for _ in queries]
    distances = [np.empty(0, dtype=np.int64) for _ in queries]
    start = 0
    for codes in batches(kind, n_items, seed):
        words = codes.reshape(-1).view(np.uint64)
        for q, query in enumerate(queries.reshape(-1).view(np.uint64)):
            found = np.bitwise_count(words ^ query).astype(np.int64)
            near = np.flatnonzero(found <= np.partition(found, k - 1)[k - 1])
            all_ids, all_d = np.append(ids[q], near + start), np.append(distances[q], found[near])
            order = np.lexsort((all_ids, all_d))[:k]
            ids[q], distances[q] = all_ids[order], all_d[order]
        start += len(codes)
    return np.stack(ids), np.stack(distances)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=10_000_000)
    parser.add_argument("--codes", choices=["synthetic", "tiled"], default="synthetic")
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/billion.json"))
    args = parser.parse_args()

    index = HammingIndex(64, method="scan", deduplicate=False)
    first = next(batches(args.codes, args.items, args.seed))
    rng = np.random.default_rng([args.seed, 1 << 40])
    queries = turned(first[rng.choice(len(first), args.queries, replace=False)], rng)
    del first
    before, build_seconds = anonymous_bytes(), 0.0
    with MemoryWatch() as watch:
        for codes in batches(args.codes, args.items, args.seed):
            started = time.perf_counter()
            index.add(codes)
            build_seconds += time.perf_counter() - started
            del codes
    held = anonymous_bytes() - before
    index.search(queries[:2], k=args.k)
    seconds = []
    for query in queries:
        started = time.perf_counter()
        index.search(query, k=args.k)
        seconds.append(time.perf_counter() - started)
    started = time.perf_counter()
    found = index.search(queries, k=args.k)
    batch_seconds = time.perf_counter() - started
    ids, distances = plain_nearest(args.codes, args.items, args.seed, queries[:N_CHECKED], args.k)
    is_exact = bool((found.ids[:N_CHECKED] == ids).all() and (found.distances[:N_CHECKED] == distances).all())
    stats = index.stats()
    row = {
        "codes": args.codes, "items": args.items, "k": args.k, "queries": args.queries,
        "code_bytes": stats["code_bytes"], "id_bytes": stats["id_bytes"], "segments": stats["segments"],
        "bytes_per_code": round((stats["code_bytes"] + stats["id_bytes"]) / args.items, 3),
        "anonymous_bytes_per_code": round(held / args.items, 3), "peak_anonymous_bytes": watch.peak - before,
        "build_seconds": round(build_seconds, 3),
        "p50_ms": round(1e3 * float(np.quantile(seconds, 0.5)), 3),
        "p99_ms": round(1e3 * float(np.quantile(seconds, 0.99)), 3),
        "batch_ms": round(1e3 * batch_seconds / args.queries, 3),
        "checked_queries": N_CHECKED, "exact": is_exact, "kernel": stats["kernel"],
    }  # fmt: skip
    print(json.dumps(row, indent=1))
    report = json.loads(args.out.read_text()) if args.out.exists() else {"what": "one row per run", "results": []}
    kept = [r for r in report["results"] if (r["codes"], r["items"]) != (args.codes, args.items)]
    row["command"] = (
        f"python benchmarks/speed/billion.py --items {args.items} --codes {args.codes} --queries {args.queries} "
        f"--k {args.k} --seed {args.seed}"
    )
    row["provenance"] = provenance(threads_wanted())
    report["results"] = sorted([*kept, row], key=lambda r: (r["codes"], r["items"]))
    args.out.write_text(json.dumps(report, indent=1) + "\n")
    if not is_exact:
        raise SystemExit("the answers are not those of a plain scan")


if __name__ == "__main__":
    main()
