"""Index files with changed bytes: refused in one sentence, or read with the right answer; never anything else.

    python benchmarks/reliability/mutations.py [--files 10000] [--seed 0]

Every mutated file is opened in a child of its own, half of them for reading, half for writing with one more batch,
under a limit of memory and an alarm. `right` are changes where nothing is kept (free space of a page).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

from quorumhash.errors import IndexFileError
from quorumhash.index.store import SegmentFile

PAGE, ALARM_SECONDS, MEMORY = 4096, 5, 64 << 20
OUTCOMES = ("refused", "right", "wrong", "other_error", "memory_error")
EXTRA = np.array([[1, 2, 3, 4, 5, 6, 7, 8]], dtype=np.uint8), np.array([-5])


def sound_file(path: Path, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A file with batches, removals and free pages; gives what it holds."""
    with SegmentFile(path, 64) as file:
        for start in range(0, 3_000, 500):
            file.append(rng.integers(0, 256, (500, 8), dtype=np.uint8), np.arange(start, start + 500), model="ab" * 32)
        file.remove(np.arange(0, 3_000, 7))
        file.compact()
        for start in range(3_000, 3_300, 10):
            file.append(rng.integers(0, 256, (10, 8), dtype=np.uint8), np.arange(start, start + 10))
        file.remove(np.arange(3_000, 3_100))
        return file.load()


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """The file with one kind of damage, at a place of its own; headers of the file and of pages are hit often."""
    out = bytearray(data)
    n_pages = len(data) // PAGE
    place = int(
        rng.choice([rng.integers(len(data)), rng.integers(100), rng.integers(n_pages) * PAGE + rng.integers(40)])
    )
    size = int(rng.choice([1, 2, 8, 64, 1_000]))
    match rng.integers(9):
        case 0:
            out[place] ^= 1 << int(rng.integers(8))
        case 1:
            out[place] = int(rng.choice([0, 1, 0x7F, 0x80, 0xFF]))
        case 2:
            out[place : place + size] = rng.bytes(min(size, len(data) - place))
        case 3:
            out[place : place + size] = bytes(min(size, len(data) - place))
        case 4:
            del out[place:]
        case 5:
            out += rng.bytes(size)
        case 6:
            one, other = (int(n) * PAGE for n in rng.integers(n_pages, size=2))
            out[one : one + PAGE], out[other : other + PAGE] = data[other : other + PAGE], data[one : one + PAGE]
        case 7:
            one, other = (int(n) * PAGE for n in rng.integers(n_pages, size=2))
            out[one : one + PAGE] = data[other : other + PAGE]
        case 8:
            out[place:place] = rng.bytes(size)
    return bytes(out)


def outcome(path: Path, codes: np.ndarray, ids: np.ndarray, readonly: bool) -> int:
    """What reading gives, as a place in OUTCOMES."""
    try:
        with SegmentFile(path, readonly=readonly) as file:
            if not readonly:
                file.append(*EXTRA)
                codes, ids = np.concatenate([codes, EXTRA[0]]), np.concatenate([ids, EXTRA[1]])
            found = file.load()
    except IndexFileError as error:
        return 0 if str(error).startswith(f"The index file {path} ") else 3
    except MemoryError:
        return 4
    except Exception:
        return 3
    return 1 if np.array_equal(found[0], codes) and np.array_equal(found[1], ids) else 2


def in_a_child(path: Path, codes: np.ndarray, ids: np.ndarray, readonly: bool) -> str:
    child = os.fork()
    if child == 0:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
        signal.alarm(ALARM_SECONDS)
        os._exit(outcome(path, codes, ids, readonly))
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return "timeout" if os.WTERMSIG(status) == signal.SIGALRM else "crash"
    return OUTCOMES[os.WEXITSTATUS(status)]


def run(n_files: int, seed: int) -> dict[str, object]:
    rng, counts = np.random.default_rng(seed), Counter(dict.fromkeys((*OUTCOMES, "timeout", "crash"), 0))
    bad: list[int] = []
    with tempfile.TemporaryDirectory() as folder:
        codes, ids = sound_file(path := Path(folder) / "sound.qhx", rng)
        data = path.read_bytes()
        for number in range(n_files):
            target = Path(folder) / "mutated.qhx"
            target.write_bytes(changed := mutated(data, np.random.default_rng([seed, number])))
            word = in_a_child(target, codes, ids, readonly=number % 2 == 0)
            counts["unchanged" if changed == data else word] += 1
            if word not in ("refused", "right"):
                bad.append(number)
            for end in ("", "-wal", "-shm", "-journal"):
                Path(f"{target}{end}").unlink(missing_ok=True)
    return {
        "files": n_files,
        "bytes_each": len(data),
        **counts,
        "bad_numbers": bad[:20],
        "memory_limit": MEMORY,
        "seed": seed,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print(json.dumps(run(given.files, given.seed), indent=1))
