"""What the loss of power can leave of the last writes: the log of SQLite cut, garbled or changed at a random byte.

    python benchmarks/reliability/torn_wal.py [--cuts 1000] [--seed 0]

A child writes batches and ends without closing the file, so that all of them stand in the -wal file. That is cut at a
random length, garbled from there on, or has one byte changed there, as a disk may leave it before fsync has returned.
The file must reopen with the batches up to some point, all whole, and with more of them the later the cut.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path

import numpy as np
from disk_full import codes_of

from quorumhash.index.store import SegmentFile

BATCH, BATCHES = 300, 30


def write_and_leave(path: Path) -> None:
    child = os.fork()
    if child == 0:
        file = SegmentFile(path, 64)
        file._sql("PRAGMA wal_autocheckpoint = 0")
        for start in range(0, BATCH * BATCHES, BATCH):
            file.append(codes_of(ids := np.arange(start, start + BATCH)), ids)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def n_batches(path: Path) -> int:
    """How many whole batches the file holds; an AssertionError where one is by half."""
    with SegmentFile(path, readonly=True) as file:
        codes, ids = file.load()
        assert file.check() == []
    assert len(ids) % BATCH == 0, "a batch by half"
    np.testing.assert_array_equal(ids, np.arange(len(ids)))
    np.testing.assert_array_equal(codes, codes_of(ids))
    return len(ids) // BATCH


def run(n_cuts: int, seed: int) -> dict[str, int]:
    rng, found = np.random.default_rng(seed), []
    with tempfile.TemporaryDirectory() as folder:
        write_and_leave(path := Path(folder) / "items.qhx")
        whole, log = path.read_bytes(), Path(f"{path}-wal").read_bytes()
        for number, cut in enumerate(sorted(int(n) for n in [*rng.integers(0, len(log), n_cuts - 1), len(log)])):
            copy = Path(folder) / f"{number}.qhx"
            copy.write_bytes(whole)
            changed = bytes([log[cut] ^ 0x55]) if cut < len(log) else b""
            tail = (b"", rng.bytes(len(log) - cut), changed + log[cut + 1 :])[number % 3]
            Path(f"{copy}-wal").write_bytes(log[:cut] + tail)
            found.append(n_batches(copy))
            for end in ("", "-wal", "-shm"):
                Path(f"{copy}{end}").unlink(missing_ok=True)
    assert found == sorted(found), "a later cut gave fewer batches"
    assert found[-1] == BATCHES, "the whole log did not give all batches"
    return {"cuts": n_cuts, "by_half": 0, "different_states": len(set(found)), "seed": seed}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cuts", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print(json.dumps(run(given.cuts, given.seed), indent=1))
