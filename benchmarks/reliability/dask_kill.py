"""A dask worker is killed at random moments of fit and of transform: are the results the same, bit by bit?

    python benchmarks/reliability/dask_kill.py [--moments 10] [--rows 4000] [--seed 0]
        [--out benchmarks/results/dask_kill.json]

Two worker processes. How long the work takes is measured once, undisturbed; then it is done again and again, and each
time one of the workers, chosen at random, gets SIGKILL at a random moment of that span. Learned values are compared by
the model's fingerprint, which is a checksum of every bit of them, and scores byte by byte. A kill that came when
the work was over already counts as late and is tried again. The killed worker is started anew by its nanny; where that
takes longer than PATIENCE seconds, the next moment has two workers of a new cluster.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from quorumhash import ConsensusHasher, QuorumHasher
from quorumhash.bench.provenance import provenance
from quorumhash.engines.daskengine import DaskEngine
from quorumhash.engines.threads import ThreadsEngine

BLOCK_ROWS, PATIENCE = 250, 5
HASHERS: dict[str, Callable[[], Any]] = {
    "rmvh": lambda: ConsensusHasher(n_bits=16, max_iter=8),
    "quorum": lambda: QuorumHasher(n_bits=16, n_steps=10),
}


class Cluster:
    """Two workers, as often as they are asked for."""

    def __init__(self) -> None:
        self.engine: DaskEngine | None = None
        self.n_renewed = -1
        self.dead = 0  # process id of the worker that was killed last

    def whole(self) -> DaskEngine:
        """The engine with both its workers alive."""
        if self.engine is not None and len(self.process_ids()) < 2:
            self.close()
        if self.engine is None:
            self.engine = DaskEngine(n_workers=2, block_rows=BLOCK_ROWS).__enter__()
            self.n_renewed += 1
        return self.engine

    def process_ids(self) -> list[int]:
        """Of the workers, once both answer and none is the dead one; none where that takes too long."""
        assert self.engine is not None
        for _ in range(PATIENCE):
            try:
                found = sorted(self.engine._client.run(os.getpid).values())
                if len(found) == 2 and self.dead not in found:
                    return found
            except OSError:  # the scheduler has not noticed yet that a worker is gone
                pass
            time.sleep(1)
        return []

    def close(self) -> None:
        if self.engine is not None:
            self.engine.__exit__(None, None, None)
            self.engine = None


def killed_during(cluster: Cluster, delay: float, choice: int, work: Callable[[DaskEngine], Any]) -> tuple[Any, bool]:
    """What the work gave, and whether a worker was killed before it was done."""
    engine = cluster.whole()
    victim = cluster.process_ids()[choice]
    is_done, is_killed = threading.Event(), threading.Event()

    def kill() -> None:
        if not is_done.wait(delay):
            os.kill(victim, signal.SIGKILL)
            cluster.dead = victim
            is_killed.set()

    thread = threading.Thread(target=kill)
    thread.start()
    result = work(engine)
    is_done.set()
    thread.join()
    return result, is_killed.is_set()


def report_of(
    cluster: Cluster, rng: np.random.Generator, n_moments: int, work: Callable[[DaskEngine], Any]
) -> dict[str, Any]:
    """One step of one method: undisturbed, twice, then with kills; `work` gives bytes to compare."""
    expected = work(cluster.whole())
    started = time.perf_counter()
    is_repeatable = work(cluster.whole()) == expected
    span = time.perf_counter() - started
    n_same = n_killed = n_late = 0
    while n_killed < n_moments and n_late < 5 * n_moments:
        found, is_killed = killed_during(cluster, rng.uniform(0, span), int(rng.integers(2)), work)
        n_killed, n_late = n_killed + is_killed, n_late + (not is_killed)
        n_same += is_killed and found == expected
    return {
        "kills": n_killed, "same": n_same, "late": n_late, "seconds": round(span, 3), "undisturbed_same": is_repeatable,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moments", type=int, default=10, help="of each step of each method")
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/dask_kill.json"))
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)
    views = {name: rng.standard_normal((args.rows, width)) for name, width in (("a", 40), ("b", 30))}
    results, cluster = [], Cluster()
    for name, make in HASHERS.items():
        model = make().fit(views, engine=ThreadsEngine(1, BLOCK_ROWS))
        steps: dict[str, Callable[[DaskEngine], Any]] = {
            "fit": lambda engine, make=make: make().fit(views, engine=engine).fingerprint(),
            "transform": lambda engine, model=model: model.decision_function(views, engine=engine).tobytes(),
        }
        for step, work in steps.items():
            row = {"method": name, "step": step, **report_of(cluster, rng, args.moments, work)}
            results.append(row)
            print(row, flush=True)
    cluster.close()
    report = {
        "results": results,
        "clusters_renewed": cluster.n_renewed,
        "command": f"python benchmarks/reliability/dask_kill.py --moments {args.moments} --rows {args.rows} "
        f"--seed {args.seed}",
        "provenance": provenance(1),
    }
    args.out.write_text(json.dumps(report, indent=1) + "\n")
    if any(row["same"] != row["kills"] for row in results):
        raise SystemExit("a result differs")


if __name__ == "__main__":
    main()
