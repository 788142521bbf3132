"""Write the tables of README.md and docs/ from benchmarks/results/*.json, between their marks.

    python benchmarks/figures.py

A page holds `<!-- figures: NAME -->` and `<!-- end of figures -->`; what stands between is made here and nowhere else.
tests/test_repository.py fails when it is stale.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/benchmarks.md")
REGION = re.compile(r"(<!-- figures: (\w+) -->\n).*?(<!-- end of figures -->)", re.DOTALL)
README_METHODS = (
    "float search", "chance", "lsh", "itq", "rmvh as published", "rmvh tuned", "without consensus",
    "query kernel robust",
)  # fmt: skip


def results(name: str) -> Any:
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text())


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


def fit_scaling() -> str:
    report = results("fit_scaling")
    header = ["rows", "fit, s", "its products alone, s", "ratio", "state, MB", "grown by, MB", "ratio"]
    keys = ("rows", "fit_seconds", "product_seconds", "ratio", "state_mb", "grown_mb", "memory_ratio")
    rows = [[f"{row[key]:,}" for key in keys] for row in report["results"]]
    return table(header, rows) + (
        f"\n{report['what']}; log-log slope {report['log_log_slope']}. {report['machine']}. `{report['command']}`\n"
    )


def ablation_tables(methods: tuple[str, ...] | None, spread: bool) -> str:
    report = results("rmvh_ablation")
    columns = [(metric, damage) for metric in ("map", "recall_10") for damage in ("clean", "swap", "noise")]
    header = [f"{'MAP' if metric == 'map' else 'R10@10'} {damage}" for metric, damage in columns]
    text = ""
    for name, rows in report["datasets"].items():
        body = []
        for row in rows:
            if methods is None or row["method"] in methods:
                cells = [row[f"{metric} {damage}"] for metric, damage in columns]
                body.append([row["method"], *(f"{c[0]:.3f} ± {c[1]:.3f}" if spread else f"{c[0]:.3f}" for c in cells)])
        text += table([name, *header], body) + "\n"
    shown = "Mean and standard deviation" if spread else "Means"
    return text + f"{shown}: {report['what']}. `{report['command']}`\n"


def rmvh_ablation() -> str:
    return ablation_tables(None, spread=True)


def rmvh_summary() -> str:
    return ablation_tables(README_METHODS, spread=False)


FIGURES = {"fit_scaling": fit_scaling, "rmvh_ablation": rmvh_ablation, "rmvh_summary": rmvh_summary}


def fresh(text: str) -> str:
    return REGION.sub(lambda found: found.group(1) + FIGURES[found.group(2)]() + found.group(3), text)


if __name__ == "__main__":
    for page in PAGES:
        path = ROOT / page
        path.write_text(fresh(path.read_text()))
