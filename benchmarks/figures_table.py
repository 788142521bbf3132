"""What every table of figures is made with: stored results, one table writer, names of methods and measures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from quorumhash.bench.naming import called

__all__ = ["OWN", "PLAIN_ROLES", "RECALL", "ROOT", "SHOWN", "called", "results", "table"]

ROOT = Path(__file__).parents[1]
OWN = ("quorum, groups", "quorum, neighbours")
PLAIN_ROLES = ("float", "oracle", "chance")  # rows that are no methods
RECALL = {"digits": "recall_10", "mfeat": "recall_10", "coco5": "recall_100"}  # recall_10 for all others
SHOWN = {"map": "MAP", "recall_10": "R10@10", "recall_100": "R10@100"}


def results(name: str) -> Any:
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text())


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"
