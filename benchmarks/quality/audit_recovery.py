"""What correcting planted damage gives back: audit, apply, fit, search.

    python benchmarks/quality/audit_recovery.py [--datasets ...] [--hashers ...] [--kinds ...]

Damage as in audit.py; what is applied, and for which hasher, by the section [apply] of audit.toml. "told" is no
correction but its limit: exactly the views that were hit made missing (quorum) or predicted (itq). Of clean views the
correction is measured too: it should change nothing. Stored cell by cell; a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
from audit import HERE, open_report, plant

import quorumhash as qh
from quorumhash.codes import hamming_distances
from quorumhash.correction import Verdicts, corrected_views
from quorumhash.datasets.base import thinned
from quorumhash.evaluation import mean_average_precision, nearest_rows, neighbour_recall
from quorumhash.experiment import relevance_of, undamaged_neighbours

FOUND = {"digits": 10, "mfeat": 10, "coco5": 100}
LARGEST_RATE = 0.2
ELSE = {"itq": ["repair"], "quorum": ["drop"]}
LIMIT = {"itq": "repair", "quorum": "drop"}


def search_figures(
    dataset: Any, views: qh.Views, hasher: str, plan: dict[str, Any], truth: tuple[Any, Any]
) -> dict[str, float]:
    """MAP and recall, averaged over fits with different seeds."""
    found = []
    for seed in range(plan["apply"]["seeds"][hasher]):
        fitted = qh.HASHERS[hasher](n_bits=plan["bits"], random_state=seed).fit(views[dataset.train_rows])
        codes = [fitted.transform(views[rows]) for rows in (dataset.query_rows, dataset.database_rows)]
        distances = hamming_distances(*codes)
        recall = neighbour_recall(nearest_rows(distances, FOUND[dataset.name]), truth[1])
        found.append((mean_average_precision(truth[0], distances), recall))
    means = np.mean(found, axis=0)
    return {"map": round(float(means[0]), 4), "recall": round(float(means[1]), 4)}


def told(report: qh.AuditReport, mask: Any, how: str) -> qh.Views:
    """The views corrected by one who knows what was hit."""
    kinds = np.where(mask, "missing", "")
    verdicts = Verdicts(kinds, report.p_values, np.where(mask, 0.0, 1.0), np.full(mask.shape, -1))
    return corrected_views(report.views, report.judge, verdicts, how)


def cells_of(plan: dict[str, Any], hasher: str) -> list[tuple[str, float, list[str]]]:
    """Kind, rate and datasets: clean views first, then the largest rate, of it kinds measured at every rate first."""
    rates, every = plan["apply"]["rates"], list(plan["datasets"])
    wanted = [(kind, rate) for kind in plan["kinds"] for rate in rates.get(kind, [LARGEST_RATE])]
    wanted = sorted(wanted, key=lambda cell: (-cell[1], cell[0] not in rates))
    if hasher == "itq":
        return [("clean", 0.0, every), *((kind, rate, every) for kind, rate in wanted)]
    chosen = plan["apply"]["quorum"]
    cells = [(kind, rate, [n for n in every if kind in chosen[n]]) for kind, rate in wanted if rate == LARGEST_RATE]
    return [("clean", 0.0, [name for name in every if chosen[name]]), *cells]


class Prepared:
    """A dataset and what is relevant in it, read once."""

    def __init__(self, name: str, n_rows: int) -> None:
        dataset = qh.load_dataset(name)
        self.dataset = thinned(dataset, n_rows) if n_rows else dataset
        self.truth = relevance_of(self.dataset), undamaged_neighbours(self.dataset)


def measure(prepared: Prepared, plan: dict[str, Any], kind: str, rate: float, hasher: str) -> dict[str, Any]:
    """Figures of the views as they are given, as they are corrected, and as one who knows would correct them."""
    dataset = prepared.dataset
    views, mask = dataset.views, None
    if kind != "clean":
        views, mask, _ = plant(dataset.views, kind, rate, plan["seed"])
    found = qh.audit(views, false_alarms=plan["false_alarms"])
    stages = {"given" if mask is None else "damaged": views}
    for how in plan["apply"]["how"][hasher].get(kind, ELSE[hasher]):
        stages[how] = found.apply(how)
    if mask is not None:
        stages["told"] = told(found, mask, LIMIT[hasher])
    return {stage: search_figures(dataset, given, hasher, plan, prepared.truth) for stage, given in stages.items()}


def main() -> None:
    plan = tomllib.loads((HERE / "audit.toml").read_text())
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", nargs="*", default=list(plan["datasets"]))
    parser.add_argument("--hashers", nargs="*", default=list(plan["apply"]["seeds"]))
    parser.add_argument("--kinds", nargs="*", default=plan["kinds"], help="clean is always among them")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/audit_recovery.json"))
    given = parser.parse_args()
    what = "64 bits; recall of the 10 nearest undamaged neighbours among the first 10 (COCO-5 100); itq 10 fits"
    report, save = open_report(given.out, plan, what, "python benchmarks/quality/audit_recovery.py")
    prepared = {name: Prepared(name, plan["datasets"][name]) for name in given.datasets}
    for hasher in given.hashers:
        for kind, rate, names in cells_of(plan, hasher):
            for name in (name for name in names if name in prepared and kind in ("clean", *given.kinds)):
                label = "clean" if kind == "clean" else f"{kind} {rate}"
                cell = report["datasets"].setdefault(name, {}).setdefault(label, {"search": {}, "commits": {}})
                if hasher not in cell["search"]:
                    cell["search"][hasher] = measure(prepared[name], plan, kind, rate, hasher)
                    cell["commits"][hasher] = report["provenance"]["commit"]
                    print(name, label, hasher, json.dumps(cell["search"][hasher]), flush=True)
                    save()


if __name__ == "__main__":
    main()
