"""Write docs/methods.md from HASHERS and the panel's results.

python docs/make_methods_page.py    writes the page; tests/test_docs.py fails when it is stale.

A method's idea is the first line of its file, its reference that of its docstring, its facts those of its `about`;
where it wins is read from benchmarks/results/panel.json.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from quorumhash.hashers import HASHERS, BaseHasher

PAGE = Path(__file__).with_name("methods.md")
PANEL = Path(__file__).parents[1] / "benchmarks" / "results" / "panel.json"
DEFAULT = "quorum"
RECALL = {"coco5": "recall_100"}  # of other datasets: recall_10
N_NAMED = 3
REFERENCE = re.compile(r"References\n\s+-+\n(.*?)\n\n", re.DOTALL)

LEAD = """# Methods

<!-- written by docs/make_methods_page.py from HASHERS and benchmarks/results/panel.json; do not edit -->

Every method is a class and a name in `quorumhash.HASHERS`. All take the same views, honour the same masks, encode new
items without a new fit, and learn without labels unless the table says otherwise. Two are reconstructions: of chms
and ssh only the abstracts could be read, so their objectives are ours, and every table that shows them says so. How
each was tuned, and what stands beside them in the tables, is told in [Rivals](rivals.md).
"""

COST = """
## Cost

Leading terms. N training rows, d features of all views together, M views, P bits, L and R landmarks, k nearest
landmarks, q coordinates kept, S stored rows. No method makes anything of size N x N, but for mfh and chms with
`graph="nearest"`, the form of their time, and then N is a sample of 5,000 rows at most. The last column is whether the
objective leaves the bits' rotation free: `rotate` then switches it, and `benchmarks/results/rotation.json` holds the
figures both ways.
"""

WINS = """
## Where it wins

Cells of the panel (64 bits, whole and damaged views of digits, mfeat and coco5), from
`benchmarks/results/panel.json`. A rival is first where no other rival is better; the default method, in its better
setting, where no rival is. A method that is nowhere first shows where it comes nearest to the first rival. Recall is
R10@10, for coco5 R10@100.
"""


def idea(method: type[BaseHasher]) -> str:
    """The first line of the method's file, without the name."""
    line = (sys.modules[method.__module__].__doc__ or "").splitlines()[0]
    text = line.partition(": ")[2].rstrip(".")
    return text[:1].upper() + text[1:]


def reference(method: type[BaseHasher]) -> str:
    """The reference of the method's docstring on one line."""
    found = REFERENCE.search(method.__doc__ or "")
    return " ".join(found.group(1).split()) if found else ""


def shown(name: str) -> str:
    """How a table calls the method."""
    return f"{name} (reconstruction)" if HASHERS[name].about.is_reconstruction else name


def rotation(method: type[BaseHasher]) -> str:
    """Whether the bits are rotated, and who decides."""
    parameters = method().get_params()
    return f"`rotate`, default {parameters['rotate']}" if "rotate" in parameters else method.about.rotation


def standings(results: dict[str, Any], metric: str) -> dict[str, dict[str, float]]:
    """Method -> cell -> its figure over that of the first rival there; of several settings the best counts."""
    ratios: dict[str, dict[str, float]] = {name: {} for name in HASHERS}
    for dataset, cells in results["grids"]["main"].items():
        key = RECALL.get(dataset, "recall_10") if metric == "recall" else metric
        for cell, rows in cells.items():
            figures: dict[str, float] = {}
            for row, measures in rows.items():
                name = row.partition(",")[0]
                if name in HASHERS and key in measures:
                    figures[name] = max(figures.get(name, 0.0), measures[key][0])
            first = max(figure for name, figure in figures.items() if name != DEFAULT)
            for name, figure in figures.items():
                ratios[name][f"{dataset} {cell.split()[0]}"] = figure / first
    return ratios


def told(ratios: dict[str, float]) -> str:
    """Where a method is first, or how near it comes."""
    if not ratios:
        return ""
    first = [cell for cell, ratio in ratios.items() if ratio >= 1]
    if first:
        more = f" and {len(first) - N_NAMED} more" if len(first) > N_NAMED else ""
        return f"first in {len(first)} of {len(ratios)}: {', '.join(first[:N_NAMED])}{more}"
    nearest = max(ratios, key=ratios.__getitem__)
    return f"{100 * min(ratios[nearest], 0.999):.1f} % of the first ({nearest})"  # never rounded up to all of it


def table(header: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n" + "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


def page() -> str:
    """The whole page."""
    results = json.loads(PANEL.read_text(encoding="utf-8"))
    by_map, by_recall = standings(results, "map"), standings(results, "recall")
    facts, costs, wins = [], [], []
    for name, method in HASHERS.items():
        about = method.about
        year = str(about.year) if about.year else "this library" if name == DEFAULT else "folklore"
        facts.append([shown(name), f"`{method.__name__}`", year, idea(method), about.labels, reference(method)])
        costs.append([shown(name), about.fit_cost, about.encode_cost, rotation(method)])
        wins.append([shown(name), told(by_map[name]), told(by_recall[name])])
    parts = [
        LEAD + table(["name", "class", "year", "idea", "labels", "reference"], facts),
        COST + table(["name", "fit", "encode an item", "rotation"], costs),
        WINS + table(["name", "MAP", "recall"], wins),
    ]
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
