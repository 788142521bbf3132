"""Recall against queries a second, on real codes with their repeats: ours, exact, beside approximate indexes of others.

    QUORUMHASH_DATA=... python benchmarks/speed/recall_speed.py [--items 1000000] [--only NAME ...] [--out ...]

Codes are those that QuorumHasher makes of coco5, repeated to the number of items: as they are, with 3 % of their bits
turned round, and each distinct one once. Recall@10 is by distance: a found item counts when it is no farther than the
true 10th, so that ties cost nothing. One thread: queries a second of processor time. Two threads: of the clock, where
nothing else runs. The best of several rounds stands. An index is built, measured and freed before the next; what was
measured before stays in the file.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import faiss
import hnswlib
import numpy as np
import usearch
import usearch.index
from hamming_codes import Codes, real

from quorumhash import HammingIndex
from quorumhash._native import kernels
from quorumhash.atomic import replacing
from quorumhash.bench.provenance import provenance
from quorumhash.codes import unpack_bits

BITS, K, QUERIES, ROUNDS = 64, 10, 1000, 3
IDLE = 2.5  # load average above which two threads are not timed
LINKS, EFFORT = 16, 100  # of every graph: links a node, candidates while it is built
CANDIDATES = (10, 20, 40, 80, 160, 320, 640)  # of a search in a graph
PROBES, CELLS = (1, 4, 16, 64, 256), 1024  # of an inverted file
SETS = {
    "coco5, repeated": lambda n: real(n, BITS, QUERIES, 0.0),
    "coco5, repeated, 3 % of bits turned": lambda n: real(n, BITS, QUERIES, 0.03),
    "coco5, each code once": lambda n: distinct(*real(n, BITS, QUERIES, 0.0)),
}

Search = Callable[[Codes, int], Any]  # queries, threads -> ids (q, K), negative where nothing was found
Setting = tuple[str, Search]


def distinct(codes: Codes, queries: Codes) -> tuple[Codes, Codes]:
    return np.unique(codes, axis=0), queries


class Ours:
    """HammingIndex by one of its methods."""

    def __init__(self, method: str) -> None:
        self.method = method

    def build(self, codes: Codes) -> None:
        self.index = HammingIndex(BITS, method=self.method)
        self.index.add(codes)

    def n_bytes(self) -> int:
        stats = self.index.stats()
        return int(stats["code_bytes"] + stats["id_bytes"] + stats["band_bytes"])

    def settings(self) -> Iterator[Setting]:
        def search(queries: Codes, n_threads: int) -> Any:
            os.environ["QUORUMHASH_THREADS"] = str(n_threads)
            return self.index.search(queries, k=K).ids

        yield "", search


class Faiss:
    """An index of faiss, and how its effort is set."""

    def __init__(self, make: Callable[[], Any], word: str = "", values: tuple[int, ...] = (0,)) -> None:
        self.make, self.word, self.values = make, word, values

    def build(self, codes: Codes) -> None:
        faiss.omp_set_num_threads(2)
        self.index = self.make()
        if not self.index.is_trained:
            self.index.train(codes)
        self.index.add(codes)

    def n_bytes(self) -> int:
        return int(faiss.serialize_index_binary(self.index).nbytes)

    def settings(self) -> Iterator[Setting]:
        def search(queries: Codes, n_threads: int) -> Any:
            faiss.omp_set_num_threads(n_threads)
            return self.index.search(queries, K)[1]

        for value in self.values:
            if self.word:
                setattr(self.index.hnsw if self.word == "efSearch" else self.index, self.word, value)
            yield f"{self.word} {value}" if self.word else "", search


class Usearch:
    """usearch on packed bits."""

    def build(self, codes: Codes) -> None:
        self.index = usearch.index.Index(
            ndim=BITS, metric="hamming", dtype="b1", connectivity=LINKS, expansion_add=EFFORT
        )
        self.index.add(np.arange(len(codes)), codes, threads=2)

    def n_bytes(self) -> int:
        return int(self.index.serialized_length)

    def settings(self) -> Iterator[Setting]:
        def search(queries: Codes, n_threads: int) -> Any:
            found = self.index.search(queries, K, threads=n_threads)
            ids = found.keys.astype(np.int64)
            ids[np.arange(K) >= np.asarray(found.counts)[:, None]] = -1
            return ids

        for value in CANDIDATES:
            self.index.expansion_search = value
            yield f"expansion_search {value}", search


class Hnswlib:
    """hnswlib knows no Hamming distance: squared L2 of bits as floats is the same number."""

    def build(self, codes: Codes) -> None:
        self.index = hnswlib.Index("l2", BITS)
        self.index.init_index(len(codes), ef_construction=EFFORT, M=LINKS, random_seed=0)
        for start in range(0, len(codes), 100_000):
            block = unpack_bits(codes[start : start + 100_000], BITS).astype(np.float32)
            self.index.add_items(block, np.arange(start, start + len(block)), num_threads=2)

    def n_bytes(self) -> int:
        return int(self.index.index_file_size())

    def settings(self) -> Iterator[Setting]:
        def search(queries: Codes, n_threads: int) -> Any:
            rows = unpack_bits(queries, BITS).astype(np.float32)
            try:
                return self.index.knn_query(rows, K, num_threads=n_threads)[0].astype(np.int64)
            except RuntimeError:  # it gives K items for every query, or none for any
                return np.concatenate([self._one(row) for row in rows])

        for value in CANDIDATES:
            self.index.set_ef(value)
            yield f"ef {value}", search

    def _one(self, row: Any) -> Any:
        try:
            return self.index.knn_query(row[None], K, num_threads=1)[0].astype(np.int64)
        except RuntimeError:
            return np.full((1, K), -1)


def inverted() -> Any:
    return faiss.IndexBinaryIVF(faiss.IndexBinaryFlat(BITS), BITS, CELLS)


def graph() -> Any:
    index = faiss.IndexBinaryHNSW(BITS, LINKS)
    index.hnsw.efConstruction = EFFORT
    return index


ENGINES: dict[str, Callable[[], Any]] = {
    "ours, scan": lambda: Ours("scan"),
    "ours, multi-index": lambda: Ours("multi-index"),
    "ours, planner": lambda: Ours("auto"),
    "faiss BinaryFlat": lambda: Faiss(lambda: faiss.IndexBinaryFlat(BITS)),
    "faiss BinaryIVF": lambda: Faiss(inverted, "nprobe", PROBES),
    "faiss BinaryHNSW": lambda: Faiss(graph, "efSearch", CANDIDATES),
    "usearch": Usearch,
    "hnswlib": Hnswlib,
}


def recall(ids: Any, codes: Codes, queries: Codes, farthest: Any) -> float:
    """Share of the K places whose item, counted once, is no farther than the true K-th."""
    good = 0
    for found, query, bound in zip(ids, queries, farthest, strict=True):
        rows = np.unique(found[(found >= 0) & (found < len(codes))])
        good += int((np.bitwise_count(codes[rows] ^ query).sum(axis=1) <= bound).sum())
    return good / (len(queries) * K)


def measured(engine: Any, codes: Codes, queries: Codes, farthest: Any) -> dict[str, Any]:
    clock, processor = time.perf_counter(), time.process_time()
    engine.build(codes)
    spent = time.perf_counter() - clock, time.process_time() - processor
    row: dict[str, Any] = {"build_seconds": round(spent[0], 1), "build_processor_seconds": round(spent[1], 1)}
    row["settings"] = []
    for name, search in engine.settings():
        for _ in range(3):  # the planner learns
            ids = search(queries, 1)
        found = {"setting": name, "recall": round(recall(ids, codes, queries, farthest), 4)}
        for n_threads, watch in ((1, time.process_time), (2, time.perf_counter)):
            if n_threads > 1 and os.getloadavg()[0] > IDLE:
                continue
            best = 0.0
            for _ in range(ROUNDS):
                started = watch()
                search(queries, n_threads)
                best = max(best, len(queries) / (watch() - started))
            found[f"queries_per_second_{n_threads}"] = round(best, 1)
        row["settings"].append(found)
    row["n_bytes"] = engine.n_bytes()
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument(
        "--only", nargs="*", default=list(ENGINES), help="engines to measure, again or for the first time"
    )
    parser.add_argument("--codes", nargs="*", default=list(SETS), help="sets of codes")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/recall_speed.json"))
    given = parser.parse_args()
    rows = json.loads(given.out.read_text())["rows"] if given.out.exists() else []
    for title in given.codes:
        codes, queries = SETS[title](given.items)
        exact = HammingIndex(BITS)
        exact.add(codes)
        farthest = exact.search(queries, k=K).distances[:, -1]
        for name in given.only:
            row = {"codes": title, "items": len(codes), "distinct": exact.stats()["distinct_codes"], "engine": name,
                   "load_average": round(os.getloadavg()[0], 1)}  # fmt: skip
            row |= measured(ENGINES[name](), codes, queries, farthest)
            print(json.dumps(row), flush=True)
            rows = [r for r in rows if _key(r) != _key(row)] + [row]
            _write(given.out, rows)


def _key(row: dict[str, Any]) -> tuple[int, ...]:
    return list(SETS).index(row["codes"]), row["items"], list(ENGINES).index(row["engine"])


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    most = max(row["items"] for row in rows)
    whole = {
        "what": f"The {K} nearest of {QUERIES:,} queries in one batch; graphs with {LINKS} links a node and {EFFORT} "
        f"candidates while built, {CELLS:,} cells of the inverted file; seed 0",
        "command": f"QUORUMHASH_DATA=... python benchmarks/speed/recall_speed.py --items {most} --out {path}",
        "provenance": provenance(2) | {"faiss": faiss.__version__, "usearch": usearch.__version__,
                                       "hnswlib": version("hnswlib"), "kernel": kernels.chosen()},
        "rows": sorted(rows, key=_key),
    }  # fmt: skip
    with replacing(path) as file:
        file.write((json.dumps(whole, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
