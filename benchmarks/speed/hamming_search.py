"""Exact search beside faiss, in one run: k nearest, everything within a radius, multi-index hashing, memory.

    QUORUMHASH_DATA=... python benchmarks/speed/hamming_search.py [--large 10000000] [--out ...]

One thread each. Seconds are processor seconds of the searching thread, so that a shared machine does not count; engines
take turns, and the best of several rounds stands. Every answer is compared with faiss's distances first. The part
two-threads gives two to each and goes by the clock: for a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["QUORUMHASH_THREADS"] = "1"

import faiss
import numpy as np
from hamming_codes import Codes, bare_pass, clustered, real

from quorumhash import HammingIndex
from quorumhash._native import kernels
from quorumhash.atomic import replacing
from quorumhash.bench.provenance import provenance

ROUNDS, SECONDS = 5, 0.2  # rounds of turns; processor seconds a turn takes, about
FEWEST = 100  # queries of a batch that a slow engine is timed on


def rates(calls: dict[str, tuple[Callable[[Codes], Any], Codes]], batch: int) -> dict[str, float]:
    """Queries a second of each call, in batches; an engine that takes long for a batch is timed on a part of it."""
    best, sizes, counts = dict.fromkeys(calls, 0.0), {}, {}
    for name, (call, queries) in calls.items():
        part = queries[: min(batch, FEWEST)]
        call(part)
        started = time.thread_time()
        call(part)
        each = max(time.thread_time() - started, 1e-7) / len(part)
        sizes[name] = int(np.clip(SECONDS / each, len(part), batch))
        counts[name] = int(np.clip(SECONDS / each / sizes[name], 1, len(queries) // sizes[name]))
    for _ in range(ROUNDS):
        for name, (call, queries) in calls.items():
            pieces = [queries[i * sizes[name] : (i + 1) * sizes[name]] for i in range(counts[name])]
            started = time.thread_time()
            for piece in pieces:
                call(piece)
            best[name] = max(best[name], sizes[name] * counts[name] / (time.thread_time() - started))
    return {name: round(rate, 1) for name, rate in best.items()}


def with_kernel(name: str, call: Callable[[Codes], Any]) -> Callable[[Codes], Any]:
    def called(queries: Codes) -> Any:
        os.environ["QUORUMHASH_KERNEL"] = name
        try:
            return call(queries)
        finally:
            del os.environ["QUORUMHASH_KERNEL"]

    return called


def flat_of(codes: Codes, use_heap: bool) -> Any:
    index = faiss.IndexBinaryFlat(8 * codes.shape[1])
    index.add(codes)
    index.use_heap = use_heap
    return index


def bare_passes(bare: Any, codes: Codes, queries: Codes) -> list[int]:
    """One pass over all codes of 64 bits for each query."""
    return [bare(codes.ctypes.data, codes.size // 8, int(query)) for query in queries.view(np.uint64).ravel()]


def nearest(title: str, codes: Codes, queries: Codes, bare: Any, batches: tuple[int, ...]) -> list[dict[str, Any]]:
    index = HammingIndex(8 * codes.shape[1], method="scan")
    index.add(codes)
    planned = HammingIndex(8 * codes.shape[1], method="multi-index")  # as "auto" is after many queries
    planned.add(codes)
    heap, counted = flat_of(codes, True), flat_of(codes, False)
    distinct = np.unique(codes.view(f"V{codes.shape[1]}")).view(np.uint8)
    rows = []
    for k in (1, 10, 100):
        found, wanted = index.search(queries[:50], k=k), heap.search(queries[:50], k)[0]
        assert (found.distances == wanted).all()
        for batch in batches:
            calls: dict[str, tuple[Callable[[Codes], Any], Codes]] = {
                f"ours {name}": (with_kernel(name, lambda q, k=k: index.search(q, k=k)), queries)
                for name in kernels.available()[:-1]
            }
            if batch > 1:
                calls["planner"] = (lambda q, k=k: planned.search(q, k=k), queries)
            calls["faiss heap"] = (lambda q, k=k: heap.search(q, k), queries)
            calls["faiss counting"] = (lambda q, k=k: counted.search(q, k), queries)
            if codes.shape[1] == 8:
                calls["bare pass"] = (lambda q: bare_passes(bare, distinct, q), queries)
            if codes.shape[1] == 8 and len(distinct) // 8 < len(codes) // 2:  # most codes are repeats
                calls["bare pass over all"] = (lambda q: bare_passes(bare, codes, q), queries)
            row = {"codes": title, "items": len(codes), "bits": 8 * codes.shape[1], "k": k, "batch": batch}
            row["distinct"] = index.stats()["distinct_codes"]
            row["queries_per_second"] = rates(calls, batch)
            theirs = max(row["queries_per_second"][f"faiss {way}"] for way in ("heap", "counting"))
            ours = {n: r for n, r in row["queries_per_second"].items() if n.startswith("ours")}
            row["times_faiss"] = {name: round(rate / theirs, 2) for name, rate in ours.items()}
            if batch > 1:
                row["planner_times_faiss"] = round(row["queries_per_second"]["planner"] / theirs, 2)
            if codes.shape[1] == 8:
                passes = row["queries_per_second"]["bare pass"]
                row["share_of_bare_pass"] = {name: round(rate / passes, 2) for name, rate in ours.items()}
            if "bare pass over all" in row["queries_per_second"]:
                passes = row["queries_per_second"]["bare pass over all"]
                row["share_of_bare_pass_over_all"] = {name: round(rate / passes, 2) for name, rate in ours.items()}
            print(row, flush=True)
            rows.append(row)
    stats = index.stats()
    rows.append(
        {
            "codes": title,
            "items": stats["items"],
            "bytes_per_distinct_code": round(stats["code_bytes"] / stats["distinct_codes"], 3),
            "id_bytes_per_item": round(stats["id_bytes"] / stats["items"], 3),
        }
    )
    return rows


def radius(title: str, codes: Codes, queries: Codes) -> list[dict[str, Any]]:
    index = HammingIndex(8 * codes.shape[1], method="multi-index")
    index.add(codes)
    multi = faiss.IndexBinaryMultiHash(64, 3, 21)
    multi.nflip = 0  # three bands, each equal: exact up to 2 bits
    multi.add(codes)
    flat = flat_of(codes, True)
    rows = []
    for bound in (0, 1, 2):
        found, (limits, _, _) = index.within(queries, bound), flat.range_search(queries[:100], bound + 1)
        np.testing.assert_array_equal(found.offsets[:101], limits.astype(np.int64))
        calls: dict[str, tuple[Callable[[Codes], Any], Codes]] = {
            "ours": (lambda q, r=bound: index.within(q, r), queries),
            "faiss BinaryMultiHash": (lambda q, r=bound: multi.range_search(q, r + 1), queries),
            "faiss BinaryFlat": (lambda q, r=bound: flat.range_search(q, r + 1), queries[:100]),
        }
        row: dict[str, Any] = {"codes": title, "items": len(codes), "radius": bound, "batch": 1000}
        row["found_per_query"] = round(len(found.ids) / len(queries), 2)
        row["queries_per_second"] = {
            **rates({name: calls[name] for name in list(calls)[:2]}, 1000),
            **rates({"faiss BinaryFlat": calls["faiss BinaryFlat"]}, 100),
        }
        row["times_faiss"] = round(
            row["queries_per_second"]["ours"] / row["queries_per_second"]["faiss BinaryMultiHash"], 2
        )
        print(row, flush=True)
        rows.append(row)
    rows.append({"codes": title, "band_bytes_per_code": round(_bands(index), 1)})
    return rows


def _bands(index: HammingIndex) -> float:
    stats = index.stats()
    return float(stats["band_bytes"] / stats["distinct_codes"])


def multi_index(title: str, codes: Codes, queries: Codes) -> list[dict[str, Any]]:
    scan, bands = (HammingIndex(64, method=method) for method in ("scan", "multi-index"))
    for index in (scan, bands):
        index.add(codes)
    heap, counted = flat_of(codes, True), flat_of(codes, False)
    rows = []
    for k in (1, 10, 100):
        np.testing.assert_array_equal(bands.search(queries[:30], k=k).ids, scan.search(queries[:30], k=k).ids)
        before = bands.stats()
        bands.search(queries, k=k)
        after = bands.stats()
        calls = {
            "scan": (lambda q, k=k: scan.search(q, k=k), queries),
            "multi-index": (lambda q, k=k: bands.search(q, k=k), queries),
            "faiss heap": (lambda q, k=k: heap.search(q, k), queries),
            "faiss counting": (lambda q, k=k: counted.search(q, k), queries),
        }
        for batch in (1, len(queries)):
            found = rates(calls, batch)
            theirs = max(found["faiss heap"], found["faiss counting"])
            row = {"codes": title, "items": len(codes), "distinct": scan.stats()["distinct_codes"], "k": k,
                   "batch": batch, "queries_per_second": found,
                   "times_scan": round(found["multi-index"] / found["scan"], 2),
                   "times_faiss": {n: round(found[n] / theirs, 1) for n in ("scan", "multi-index")}}  # fmt: skip
            if batch > 1:
                row["farthest"] = np.percentile(scan.search(queries, k=k).distances[:, -1], [10, 50, 90]).tolist()
                row["share_looked_up"] = round((after["look_ups"] - before["look_ups"]) / len(queries), 3)
            print(row, flush=True)
            rows.append(row)
    rows.append({"codes": title, "band_bytes_per_code": round(_bands(bands), 1)})
    return rows


def two_threads(title: str, codes: Codes, queries: Codes) -> list[dict[str, Any]]:
    """Batches of all queries, two threads each, by the clock; "ours auto" after enough queries to have its bands."""
    scan, auto = (HammingIndex(8 * codes.shape[1], method=method) for method in ("scan", "auto"))
    for index in (scan, auto):
        index.add(codes)
    heap, counted = flat_of(codes, True), flat_of(codes, False)
    rows = []
    os.environ["QUORUMHASH_THREADS"] = "2"
    faiss.omp_set_num_threads(2)
    for k in (1, 10, 100):
        calls: dict[str, Callable[[], Any]] = {
            "ours scan": lambda k=k: scan.search(queries, k=k),
            "ours auto": lambda k=k: auto.search(queries, k=k),
            "faiss heap": lambda k=k: heap.search(queries, k),
            "faiss counting": lambda k=k: counted.search(queries, k),
        }
        best = dict.fromkeys(calls, 0.0)
        for turn in range(ROUNDS + 2):  # two rounds to learn
            for name, call in calls.items():
                started = time.perf_counter()
                call()
                if turn >= 2:
                    best[name] = max(best[name], len(queries) / (time.perf_counter() - started))
        theirs = max(best["faiss heap"], best["faiss counting"])
        row: dict[str, Any] = {"codes": title, "items": len(codes), "k": k, "batch": len(queries)}
        row["load_average"] = round(os.getloadavg()[0], 1)
        row["queries_per_second"] = {name: round(rate, 1) for name, rate in best.items()}
        row["times_faiss"] = {n: round(rate / theirs, 2) for n, rate in best.items() if n.startswith("ours")}
        print(row, flush=True)
        rows.append(row)
    os.environ["QUORUMHASH_THREADS"] = "1"
    faiss.omp_set_num_threads(1)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--large", type=int, default=10_000_000)
    parser.add_argument("--parts", nargs="*", default=["nearest", "radius", "multi-index"])
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    faiss.omp_set_num_threads(1)
    bare, report = bare_pass(), {}
    sets = {
        "clustered": lambda n, bits, q: clustered(n, bits, q),
        "coco5, repeated": lambda n, bits, q: real(n, bits, q, 0.0),
        "coco5, repeated, 3 % of bits turned": lambda n, bits, q: real(n, bits, q, 0.03),
    }
    if "nearest" in given.parts:
        report["nearest"] = [
            row for name, make in sets.items() for row in nearest(name, *make(given.items, 64, 1000), bare, (1, 1000))
        ]
        report["nearest"] += nearest("clustered", *clustered(given.items, 128, 1000), bare, (1, 1000))
    if "radius" in given.parts:
        report["radius"] = [row for name in sets for row in radius(name, *sets[name](given.items, 64, 10_000))]
    if "multi-index" in given.parts:
        report["multi_index"] = [
            row
            for name in ("clustered", "coco5, repeated, 3 % of bits turned")
            for row in multi_index(name, *sets[name](given.large, 64, 1000))
        ]
    if "two-threads" in given.parts:
        report["two_threads"] = [row for name in sets for row in two_threads(name, *sets[name](given.items, 64, 1000))]
    if given.out:
        whole = {
            "what": "one thread each, processor seconds, engines in turns, the best of several rounds; seed 0",
            "command": "QUORUMHASH_DATA=... python benchmarks/speed/hamming_search.py "
            f"--items {given.items} --large {given.large} --parts {' '.join(given.parts)} --out {given.out}",
            "provenance": provenance(1) | {"faiss": faiss.__version__, "kernels": ", ".join(kernels.available())},
            **report,
        }
        with replacing(given.out) as file:
            file.write((json.dumps(whole, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
