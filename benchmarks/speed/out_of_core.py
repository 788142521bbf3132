"""Fit and transform of memory-mapped views larger than the memory that the work may take.

    python benchmarks/speed/out_of_core.py [--gigabytes 20] [--budget-gb 4] [--folder FOLDER]
        [--out benchmarks/results/out_of_core.json]

Two views of 512 and 300 float32 features in 50 clusters are written to .npy files in the folder (a temporary one where
none is given), then mapped. QuorumHasher (64 bits) is fitted and encodes all rows with the threads engine. Anonymous
memory (RssAnon: what the process itself holds; pages of mapped files do not count, the system drops them) is sampled
every 20 ms, from before the views are opened.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import time
from pathlib import Path
from types import TracebackType

import numpy as np

WIDTHS, N_GROUPS = (512, 300), 50
BATCH = 100_000


def anonymous_bytes() -> int:
    line = next(ln for ln in Path("/proc/self/status").read_text().splitlines() if ln.startswith("RssAnon:"))
    return int(line.split()[1]) * 1024


class MemoryWatch:
    """The peak of anonymous memory while a block runs."""

    def __init__(self) -> None:
        self.peak = anonymous_bytes()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while not self._is_over.wait(0.02):
            self.peak = max(self.peak, anonymous_bytes())

    def __enter__(self) -> MemoryWatch:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join()


def write_views(folder: Path, n_rows: int, seed: int) -> dict[str, Path]:
    paths = {f"features{width}": folder / f"features{width}.npy" for width in WIDTHS}
    groups = np.random.default_rng([seed, 1]).integers(0, N_GROUPS, n_rows)
    for number, (width, path) in enumerate(zip(WIDTHS, paths.values(), strict=True)):
        centres = 1.5 * np.random.default_rng([seed, 2, number]).standard_normal((N_GROUPS, width), dtype=np.float32)
        rows = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n_rows, width))
        for start in range(0, n_rows, BATCH):
            stop = min(start + BATCH, n_rows)
            rng = np.random.default_rng([seed, 3, number, start])
            part = rng.standard_normal((stop - start, width), dtype=np.float32)
            rows[start:stop] = part + centres[groups[start:stop]]
        rows.flush()
        del rows
    return paths


def main() -> None:
    from quorumhash import QuorumHasher, Views
    from quorumhash.bench.provenance import provenance
    from quorumhash.engines.threads import ThreadsEngine

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=20.0)
    parser.add_argument("--budget-gb", type=float, default=4.0)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/out_of_core.json"))
    args = parser.parse_args()
    n_rows, budget = int(args.gigabytes * 1e9 / (4 * sum(WIDTHS))), int(args.budget_gb * 1e9)
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        paths = write_views(Path(folder), n_rows, args.seed)
        steps: dict[str, dict[str, float]] = {}
        engine = ThreadsEngine(memory_budget=budget)
        hasher = QuorumHasher(n_bits=64, random_state=args.seed)
        for name in ("open", "fit", "transform"):
            with MemoryWatch() as watch:
                started = time.perf_counter()
                if name == "open":
                    views = Views({view: np.load(path, mmap_mode="r") for view, path in paths.items()})
                elif name == "fit":
                    hasher.fit(views, engine=engine, memory_budget=budget)
                else:
                    codes = hasher.transform(views, engine=engine)
                seconds = time.perf_counter() - started
            steps[name] = {"seconds": round(seconds, 2), "peak_anonymous_bytes": watch.peak}
            print(name, steps[name], flush=True)
    row = {
        "gigabytes": args.gigabytes, "rows": n_rows, "budget_bytes": budget, "widths": WIDTHS, "codes": len(codes),
        "fits": max(step["peak_anonymous_bytes"] for step in steps.values()) <= budget, "steps": steps,
        "command": f"python benchmarks/speed/out_of_core.py --gigabytes {args.gigabytes} --budget-gb {args.budget_gb} "
        f"--seed {args.seed}",
        "provenance": provenance(engine.n_threads),
    }  # fmt: skip
    args.out.write_text(json.dumps(row, indent=1) + "\n")
    print(json.dumps(row, indent=1))


if __name__ == "__main__":
    main()
