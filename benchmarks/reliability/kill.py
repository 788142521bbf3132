"""kill -9 while an index file is written: does it reopen, with every acknowledged batch and none by half?

    python benchmarks/reliability/kill.py [--kills 1000] [--seed 0]

A child adds, replaces, removes and compacts in an order that follows from the seed alone and says so after each call
that returned; it is killed at a random moment. The file must then hold the items after the calls it told of, or after
one more, which was in flight. The next child goes on with the same file; every 50 kills a new one begins, so that the
making of a file is hit too.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import select
import signal
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

from quorumhash.index.hamming import HammingIndex
from quorumhash.index.store import SegmentFile

N_BITS, NEW_FILE = 64, 50
State = dict[int, bytes]
Step = tuple[str, np.ndarray, np.ndarray]


def step(seed: int, number: int, state: State) -> Step:
    """The call that comes after `number` calls have led to `state`: its name, codes and ids."""
    rng = np.random.default_rng([seed, number])
    there = np.fromiter(state, dtype=np.int64, count=len(state))
    kinds = ["add", "add", "replace", "remove", "compact"] if len(there) > 50 else ["add"]
    kind = "remove" if len(there) > 20_000 else str(rng.choice(kinds))
    if kind == "add":
        ids = number * 10_000 + np.arange(rng.integers(1, 3_000))
    elif kind == "compact":
        ids = there[:0]
    else:
        ids = rng.choice(there, size=rng.integers(1, len(there)), replace=False)
    return kind, rng.integers(0, 256, (len(ids), N_BITS // 8), dtype=np.uint8), ids


def after(state: State, call: Step) -> State:
    """The state after a call, by a plain dict."""
    kind, codes, ids = call
    changed = dict(state)
    for name, code in zip(ids.tolist(), codes, strict=True):
        if kind == "remove":
            del changed[name]
        else:
            changed[name] = code.tobytes()
    return changed


def write_until_killed(path: Path, seed: int, number: int, state: State, told: int) -> None:
    """The child: calls for ever, one byte to `told` after each that returned."""
    with HammingIndex.open(path, N_BITS) as index:
        os.write(told, b"o")
        while True:
            kind, codes, ids = call = step(seed, number, state)
            if kind == "add":
                index.add(codes, ids)
            elif kind == "replace":
                index.update(codes, ids)
            elif kind == "remove":
                index.remove(ids)
            else:
                index.compact()
            os.write(told, b".")
            state, number = after(state, call), number + 1


def killed(path: Path, seed: int, number: int, state: State, rng: np.random.Generator) -> int | None:
    """Start a child, kill it at a random moment; how many calls it told of, None where it had not opened the file."""
    reading, told = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)  # or the child outlives a parent that is stopped
        with contextlib.suppress(BaseException):
            write_until_killed(path, seed, number, state, told)
        os._exit(70)  # an error in the child ends it before it is killed
    os.close(told)
    seen, wanted = b"", int(rng.integers(0, 5))
    while len(seen) < wanted and select.select([reading], [], [], 60)[0]:
        seen += (part := os.read(reading, 1))
        if not part:
            break
    time.sleep(rng.uniform(0, 0.012))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status):
        raise AssertionError("a writer ended before it was killed")
    while part := os.read(reading, 100):
        seen += part
    os.close(reading)
    return len(seen) - 1 if seen else None


def found_state(path: Path) -> State:
    with SegmentFile(path, readonly=True) as file:
        if file.check():
            raise AssertionError(file.check()[0])
        codes, ids = file.load()
    return {name: code.tobytes() for name, code in zip(ids.tolist(), codes, strict=True)}


def run(n_kills: int, seed: int) -> dict[str, object]:
    """Kill `n_kills` writers; an AssertionError says what was lost or by half."""
    rng, counts, kinds = np.random.default_rng(seed), Counter(), Counter()
    with tempfile.TemporaryDirectory() as folder:
        for kill in range(n_kills):
            if kill % NEW_FILE == 0:
                path, number, state = Path(folder) / f"{kill}.qhx", 0, {}
            told = killed(path, seed, number, state, rng)
            for _ in range(told or 0):
                state, number = after(state, step(seed, number, state)), number + 1
            if not path.exists():
                assert told is None, f"kill {kill}: the file is gone"
                counts["before_the_file"] += 1
                continue
            in_flight = step(seed, number, state)
            kinds[in_flight[0] if told is not None else "open"] += 1
            found, state_next = found_state(path), after(state, in_flight)
            assert found in (state, state_next), f"kill {kill}: a batch is lost or by half, {in_flight[0]} in flight"
            counts["reopened"] += 1
            if found != state:
                counts["in_flight_whole"], state, number = counts["in_flight_whole"] + 1, found, number + 1
            counts["acknowledged_calls"] += told or 0
    return {"kills": n_kills, **counts, "lost": 0, "by_half": 0, "in_flight": dict(kinds), "seed": seed}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print(json.dumps(run(given.kills, given.seed), indent=1))
