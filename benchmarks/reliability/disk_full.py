"""A disk that fills up while an index file is written: one clear error, and the items of before.

    python benchmarks/reliability/disk_full.py [--limits 100] [--seed 0]

Twice: files that may not grow past a random limit (RLIMIT_FSIZE), and, where a file system can be mounted, a tmpfs of
a few megabytes. A child adds until it is refused, tries to compact, adds and removes on; afterwards, with room again,
the file must be sound, hold what the calls that returned have written, and take new items.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from quorumhash.errors import IndexFileError
from quorumhash.index.store import SegmentFile

N_BITS, BATCH = 64, 2_000


def codes_of(ids: np.ndarray) -> np.ndarray:
    """Codes that follow from the ids, (n, 8)."""
    return (ids.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)).view(np.uint8).reshape(len(ids), 8)


def fill(path: Path, told: int, limit: int | None) -> None:
    """The child: adds until it is refused, then a compaction and a removal that may be refused too."""
    with SegmentFile(path) as file:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        for start in range(BATCH, BATCH * 10_000, BATCH):
            try:
                file.append(codes_of(ids := np.arange(start, start + BATCH)), ids)
            except IndexFileError as error:
                _require_words(error)
                break
            os.write(told, b"+")
        for mark, call in ((b"c", file.compact), (b"-", lambda: file.remove(np.arange(100)))):
            try:
                call()
            except IndexFileError as error:
                _require_words(error)
            else:
                os.write(told, mark)
        assert file.check() == []


def _require_words(error: IndexFileError) -> None:
    if "make room" not in str(error):
        raise AssertionError(f"an error without advice: {error}")


def one(path: Path, limit: int | None, make_room: Callable[[], None]) -> str:
    """Fill the disk once; what the calls that returned were, one letter each."""
    reading, told = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)  # or the child outlives a parent that is stopped
        try:
            fill(path, told, limit)
            os._exit(0)
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
            os._exit(70)
    os.close(told)
    calls = b""
    while part := os.read(reading, 100):
        calls += part
    os.close(reading)
    assert os.waitpid(child, 0)[1] == 0, "the writer did not end as it should"
    make_room()
    _require_whole(path, calls.decode())
    return calls.decode()


def _require_whole(path: Path, calls: str) -> None:
    expected = np.arange(100 if "-" in calls else 0, BATCH * (1 + calls.count("+")))
    with SegmentFile(path, readonly=True) as file:  # first of all, before a writer could mend anything
        codes, ids = file.load()
        assert file.check() == []
    order = np.argsort(ids)
    np.testing.assert_array_equal(ids[order], expected)
    np.testing.assert_array_equal(codes[order], codes_of(expected))
    with SegmentFile(path) as file:
        file.append(codes_of(np.array([10**9])), [10**9])
        file.compact()
        assert len(file) == len(expected) + 1


def begun(path: Path) -> Path:
    with SegmentFile(path, N_BITS) as file:
        file.append(codes_of(ids := np.arange(BATCH)), ids)
    return path


def run_limits(n_limits: int, seed: int) -> dict[str, int]:
    rng, refused = np.random.default_rng(seed), 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(n_limits):
            path = begun(Path(folder) / f"{number}.qhx")
            calls = one(path, int(rng.integers(1, 600_000)), lambda: None)
            refused += "c" not in calls or "-" not in calls
            path.unlink()
    return {"limits": n_limits, "refused_compaction_or_removal_too": refused, "lost": 0}


def run_tmpfs(seed: int) -> dict[str, object]:
    """On file systems of 1 to 4 MB, or why not."""
    sizes = np.random.default_rng(seed).integers(1_000, 4_000, 5)
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            mount = ["mount", "-t", "tmpfs", "-o", f"size={size}k", "tmpfs", folder]
            try:
                subprocess.run(mount, check=True, capture_output=True)
            except (OSError, subprocess.CalledProcessError):
                return {"file_systems": 0, "why": "this user may not mount a tmpfs"}
            try:
                grow = ["mount", "-o", "remount,size=64m", folder]
                one(begun(Path(folder) / "items.qhx"), None, lambda: subprocess.run(grow, check=True) and None)  # noqa: B023
            finally:
                subprocess.run(["umount", folder], check=True)
    return {"file_systems": len(sizes), "lost": 0}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limits", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print(json.dumps({"rlimit": run_limits(given.limits, given.seed), "tmpfs": run_tmpfs(given.seed)}, indent=1))
