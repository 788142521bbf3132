"""All proofs of the durable file in one run, beside what others' files were seen to do.

    python benchmarks/reliability/durability.py [--out benchmarks/results/durability.json]

1,000 kills, 1,000 torn logs, 100 limits and five full file systems, 10,000 mutated files, 60 seconds of one writer and
eight readers. About five minutes; anything lost or wrong ends it with an AssertionError.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import disk_full
import kill
import mutations
import readers
import torn_wal

from quorumhash.atomic import replacing
from quorumhash.bench.provenance import provenance

# measured once on another machine (AMD EPYC, two cores), not by this file; 600 mutated files each, 40 kills each
PEERS = {
    "source": "a study of others' files made before this library, on another machine (two cores of an AMD EPYC): "
    "600 byte-mutated files each under a limit of 6 GB and 5 s; 40 kills while 48 MB are saved",
    "mutated": {
        "faiss 1.15.1 BinaryFlat": {"refused": 150, "silent": 450, "memory_error": 0, "timeout": 0, "crash": 0},
        "faiss 1.15.1 BinaryIVF": {"refused": 212, "silent": 379, "memory_error": 9, "timeout": 0, "crash": 0},
        "faiss 1.15.1 BinaryHNSW": {"refused": 475, "silent": 118, "memory_error": 6, "timeout": 1, "crash": 0},
        "usearch 2.26.6 restore": {"refused": 135, "silent": 424, "memory_error": 0, "timeout": 0, "crash": 41},
        "hnswlib 0.8.0 load_index": {"refused": 155, "silent": 330, "memory_error": 0, "timeout": 0, "crash": 115},
    },
    "killed": {
        "faiss.write_index_binary in place": "38 of 40 unreadable",
        "numpy.save in place": "39 of 40 unreadable",
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=1_000)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    proofs = {
        "kill": lambda: kill.run(given.kills, given.seed),
        "torn_wal": lambda: torn_wal.run(given.kills, given.seed),
        "disk_full": lambda: {
            "rlimit": disk_full.run_limits(max(10, given.kills // 10), given.seed),
            "tmpfs": disk_full.run_tmpfs(given.seed),
        },
        "mutations": lambda: mutations.run(given.files, given.seed),
        "readers": lambda: readers.run(given.seconds, 8),
    }
    report: dict[str, object] = {
        "what": "the durable index file killed, torn, filled, mutated and read while it is written",
        "command": f"python benchmarks/reliability/durability.py --seed {given.seed} --out {given.out}",
        "provenance": {**provenance(n_threads=1), "sqlite": sqlite3.sqlite_version},
    }
    for name, proof in proofs.items():
        started = time.perf_counter()
        report[name] = proof()
        print(name, report[name], f"{time.perf_counter() - started:.0f} s", flush=True)
    bad = ("wrong", "other_error", "memory_error", "timeout", "crash")
    assert not any(report["mutations"][word] for word in bad), "a mutated file was not refused"
    report["peers"] = PEERS
    if given.out:
        with replacing(given.out) as file:
            file.write((json.dumps(report, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
