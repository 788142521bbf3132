"""What scripts share that measure one thing on several datasets: their arguments, and a report written after each."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from quorumhash.atomic import replacing
from quorumhash.bench.provenance import provenance
from quorumhash.engines.threads import threads_wanted


def report_by_dataset(
    script: str, doc: str, what: str, datasets: Iterable[str], measure: Callable[[str, int], dict[str, Any]]
) -> None:
    """Measure every dataset that the command line names; `what` speaks of {bits}."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--bits", type=int, default=64)
    parser.add_argument("--datasets", nargs="*", default=list(datasets))
    parser.add_argument("--out", type=Path, default=Path(f"benchmarks/results/{script}.json"))
    given = parser.parse_args()
    report: dict[str, Any] = {
        "datasets": {},
        "what": what.format(bits=given.bits),
        "command": f"python benchmarks/quality/{script}.py --bits {given.bits} --datasets {' '.join(given.datasets)}",
        "provenance": provenance(threads_wanted()),
    }
    for name in given.datasets:
        report["datasets"][name] = measure(name, given.bits)
        with replacing(given.out) as file:
            file.write((json.dumps(report, indent=1) + "\n").encode())
