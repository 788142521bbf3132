"""A new user's walk: an empty environment, the README and the five-minute start word for word, every step timed.

    python benchmarks/walk.py                writes benchmarks/results/walk.json
    python benchmarks/walk.py --out /dev/stdout

The last commit is cloned into an empty folder and installed with pip as the README says; its Python blocks, its shell
lines and those of docs/start.md run there in their order, as a reader would type them. A step that fails ends the walk.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import resource
import shlex
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from quorumhash.bench.provenance import provenance
from quorumhash.engines.threads import threads_wanted

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "benchmarks" / "results" / "walk.json"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Walk:
    """A folder with an environment of its own, and the steps taken there."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.steps = folder, []
        self.bin = folder / "fresh" / "bin"
        (folder / "home").mkdir()
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "QUORUMHASH", "VIRTUAL_ENV"))}
        self.environment = {
            **kept,
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "QUORUMHASH_CACHE": str(folder / "home"),
        }

    def take(self, what: str, words: list[str], place: str = ".", is_typed: bool = True) -> None:
        with self.timed(what, is_typed):
            done = subprocess.run(words, cwd=self.folder / place, env=self.environment, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{what}: exit status {done.returncode}\n{done.stdout}{done.stderr}")

    def timed(self, what: str, is_typed: bool = True) -> Timed:
        return Timed(what, self.steps, is_typed)


class Timed:
    """Seconds on the clock, and seconds of computing by the processes that ended meanwhile."""

    def __init__(self, what: str, steps: list[dict[str, object]], is_typed: bool) -> None:
        self.what, self.steps, self.is_typed = what, steps, is_typed

    def __enter__(self) -> None:
        self.started, self.computed = time.perf_counter(), _computed()

    def __exit__(self, *_: object) -> None:
        took, computed = time.perf_counter() - self.started, _computed() - self.computed
        step = {"step": self.what, "is_typed": self.is_typed}
        self.steps.append({**step, "seconds": round(took, 2), "cpu_seconds": round(computed, 2)})
        print(self.steps[-1], file=sys.stderr)


def _computed() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def blocks(page: str, language: str) -> list[str]:
    return [text for found, text in BLOCK.findall((ROOT / page).read_text(encoding="utf-8")) if found == language]


def shell_lines(page: str, language: str) -> list[list[str]]:
    lines = (line for text in blocks(page, language) for line in text.splitlines())
    return [shlex.split(line, comments=True) for line in lines if line.startswith(("quorumhash ", "python -c"))]


def serve_demo(walk: Walk, words: list[str]) -> None:
    """Until the page answers; then it is ended."""
    with walk.timed(shlex.join(words)):
        words = [str(walk.bin / words[0]), *words[1:], "--port", "0", "--json"]
        server = subprocess.Popen(words, cwd=walk.folder, env=walk.environment, stdout=subprocess.PIPE, text=True)
        with server:
            try:
                assert server.stdout is not None
                address = json.loads(server.stdout.readline())["url"]
                with urllib.request.urlopen(address, timeout=60) as answer:
                    assert answer.status == 200
            finally:
                server.terminate()


def walk_through(folder: Path) -> list[dict[str, object]]:
    walk = Walk(folder)
    clone = ["git", "clone", "--quiet", "--depth", "1", ROOT.as_uri(), "quorumhash"]
    walk.take("git clone", clone)
    walk.take("python -m venv fresh", [sys.executable, "-m", "venv", "fresh"])
    pip = [str(walk.bin / "python"), "-m", "pip", "install", "--quiet"]
    walk.take("python -m pip install .", [*pip, "."], "quorumhash")
    for _ in range(2):
        walk.take("quorumhash --help", [str(walk.bin / "quorumhash"), "--help"])
    for page, language, told in (("README.md", "", "README"), ("docs/start.md", "text", "five-minute start")):
        code = "\n".join(blocks(page, "python"))
        walk.take(f"{told}: its Python blocks", [str(walk.bin / "python"), "-c", code], is_typed=False)
        for words in shell_lines(page, language):
            if "serve" in words:
                walk.take("python -m pip install '.[serve]'", [*pip, ".[serve]"], "quorumhash")
                serve_demo(walk, words)
            else:
                shown = "python -c ..." if words[1] == "-c" else shlex.join(words)
                walk.take(shown, [str(walk.bin / words[0]), *words[1:]])
    walk.take("quorumhash demo", [str(walk.bin / "quorumhash"), "demo"])
    return walk.steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    busy, origin = os.getloadavg()[0], provenance(threads_wanted())  # before: the clone is of this commit
    with tempfile.TemporaryDirectory() as folder:
        steps = walk_through(Path(folder))
    result = {
        "command": "python benchmarks/walk.py",
        "date": datetime.date.today().isoformat(),
        "seed": 0,
        "provenance": origin,
        "load_average_before": round(busy, 2),
        "load_average_after": round(os.getloadavg()[0], 2),
        "steps": steps,
    }
    options.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
