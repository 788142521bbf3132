"""What scripts share that measure one thing on several datasets: their arguments, and a report written after each.

What the file of --out holds of datasets that the command line does not name stays in it, with its own provenance.
"""

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
    known = json.loads(given.out.read_text()) if given.out.is_file() else {"datasets": {}}
    kept = {name: found for name, found in known["datasets"].items() if name not in given.datasets}
    earlier = known.get("measured") or dict.fromkeys(known["datasets"], known.get("provenance"))
    report: dict[str, Any] = {
        "datasets": dict(kept),
        "what": what.format(bits=given.bits),
        "provenance": provenance(threads_wanted()),
        "measured": {name: earlier[name] for name in kept},
    }
    for name in given.datasets:
        report["datasets"][name] = measure(name, given.bits)
        report["measured"][name] = report["provenance"]
        report["command"] = f"python benchmarks/quality/{script}.py --bits {given.bits} --datasets "
        report["command"] += " ".join(report["datasets"])
        with replacing(given.out) as file:
            file.write((json.dumps(report, indent=1) + "\n").encode())
