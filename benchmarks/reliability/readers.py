"""One writer and eight readers of an index file at once: no torn read, nothing that was seen disappears again.

    python benchmarks/reliability/readers.py [--seconds 60] [--readers 8]

The writer adds batches of consecutive ids at the end, removes the oldest batches and compacts, in one process; the
readers load again and again, each in its own. A code follows from its id, so what a reader sees must be a run of whole
batches with the right codes, and both ends of the run may only move up.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

import numpy as np
from disk_full import codes_of

from quorumhash.index.store import SegmentFile

BATCH, KEPT = 200, 20_000


def write(path: Path, until: float) -> int:
    """Batches written until the hour comes."""
    low = high = calls = 0
    with SegmentFile(path) as file:
        while time.monotonic() < until:
            file.append(codes_of(ids := np.arange(high, high + BATCH)), ids)
            high, calls = high + BATCH, calls + 1
            if high - low > KEPT:
                file.remove(np.arange(low, low + KEPT // 2))
                low, calls = low + KEPT // 2, calls + 1
            if calls % 97 == 0:
                file.compact()
    return calls


def read(path: Path, until: float) -> int:
    """Loads until the hour comes; an AssertionError where one is torn or goes back."""
    low = high = loads = 0
    with SegmentFile(path, readonly=True) as file:
        while time.monotonic() < until:
            codes, ids = file.load()
            if len(ids):
                assert ids[0] % BATCH == 0, "a batch by half at the front"
                assert (ids[-1] + 1) % BATCH == 0, "a batch by half at the end"
                np.testing.assert_array_equal(ids, np.arange(ids[0], ids[-1] + 1))
                np.testing.assert_array_equal(codes, codes_of(ids))
                assert ids[0] >= low, "an older state than the one before"
                assert ids[-1] >= high, "an older state than the one before"
                low, high = int(ids[0]), int(ids[-1])
            loads += 1
            file.refresh()
    return loads


def run(seconds: float, n_readers: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "items.qhx"
        SegmentFile(path, 64).close()
        until = time.monotonic() + seconds
        counts = [_started(work, path, until) for work in (write, *[read] * n_readers)]
        done = [_ended(*started) for started in counts]
        with SegmentFile(path) as file:
            assert file.check() == []
    return {"seconds": seconds, "readers": n_readers, "calls_of_the_writer": done[0], "loads": sum(done[1:]), "torn": 0}


def _started(work: object, path: Path, until: float) -> tuple[int, int]:
    reading, told = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)  # or the child outlives a parent that is stopped
        try:
            os.write(told, str(work(path, until)).encode())
            os._exit(0)
        except BaseException as error:
            os.write(2, f"{work.__name__}: {type(error).__name__}: {error}\n".encode())
            os._exit(70)
    os.close(told)
    return child, reading


def _ended(child: int, reading: int) -> int:
    said = os.read(reading, 20)
    os.close(reading)
    assert os.waitpid(child, 0)[1] == 0, "a process ended with an error, see above"
    return int(said)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--readers", type=int, default=8)
    given = parser.parse_args()
    print(json.dumps(run(given.seconds, given.readers), indent=1))
