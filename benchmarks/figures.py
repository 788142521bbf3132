"""Write the tables of README.md and docs/ from benchmarks/results/*.json, between their marks.

    python benchmarks/figures.py

A page holds `<!-- figures: NAME -->` and `<!-- end of figures -->`; what stands between is made here and nowhere else.
A table is a function in the FIGURES of one of the files figures_*.py. tests/test_repository.py fails when one is stale.
"""

from __future__ import annotations

import re

import figures_audit
import figures_engines
import figures_methods
import figures_panel
import figures_paper
import figures_rivals
import figures_search
import figures_walk
from figures_table import ROOT

PARTS = (
    figures_audit,
    figures_engines,
    figures_methods,
    figures_panel,
    figures_paper,
    figures_rivals,
    figures_search,
    figures_walk,
)
FIGURES = {name: write for part in PARTS for name, write in part.FIGURES.items()}
PAGES = (
    "README.md", "docs/audit.md", "docs/benchmarks.md", "docs/choosing.md", "docs/engines.md", "docs/features.md",
    "docs/index.md", "docs/page.md", "docs/quorum.md", "docs/reproduction.md", "docs/rivals.md", "docs/scaling.md",
    "docs/search.md", "docs/walk.md",
)  # fmt: skip
REGION = re.compile(r"(<!-- figures: (\w+) -->\n).*?(<!-- end of figures -->)", re.DOTALL)


def fresh(text: str) -> str:
    return REGION.sub(lambda found: found.group(1) + FIGURES[found.group(2)]() + found.group(3), text)


if __name__ == "__main__":
    for page in PAGES:
        path = ROOT / page
        path.write_text(fresh(path.read_text()))
