"""What correcting planted damage gives back: audit, apply, fit, search.

    python benchmarks/quality/audit_recovery.py [--datasets ...] [--out FILE.json]

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
from audit import HERE, plant

import quorumhash as qh
from quorumhash.atomic import replacing
from quorumhash.bench.provenance import provenance
from quorumhash.codes import hamming_distances
from quorumhash.correction import Verdicts, corrected_views
from quorumhash.datasets.base import thinned
from quorumhash.engines.threads import threads_wanted
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


def cells_of(plan: dict[str, Any]) -> list[tuple[str, float]]:
    rates = plan["apply"]["rates"]
    wanted = [(kind, rate) for kind in plan["kinds"] for rate in rates.get(kind, [LARGEST_RATE])]
    return sorted(wanted, key=lambda cell: cell[0] not in rates)


def measure(name: str, plan: dict[str, Any], report: dict[str, Any], save: Any) -> None:
    dataset = qh.load_dataset(name)
    dataset = thinned(dataset, plan["datasets"][name]) if plan["datasets"][name] else dataset
    truth = relevance_of(dataset), undamaged_neighbours(dataset)
    cells = report["datasets"].setdefault(name, {})
    for kind, rate in [("clean", 0.0), *cells_of(plan)]:
        label = "clean" if kind == "clean" else f"{kind} {rate}"
        if label in cells:
            continue
        views, mask = dataset.views, None
        if kind != "clean":
            views, mask, _ = plant(dataset.views, kind, rate, plan["seed"])
        found, search = qh.audit(views, false_alarms=plan["false_alarms"]), {}
        with_quorum = plan["apply"]["quorum"][name]
        uses_quorum = bool(with_quorum) if mask is None else rate == LARGEST_RATE and kind in with_quorum
        for hasher in ["itq", "quorum"] if uses_quorum else ["itq"]:
            stages = {"given" if mask is None else "damaged": views}
            for how in plan["apply"]["how"][hasher].get(kind, ELSE[hasher]):
                stages[how] = found.apply(how)
            if mask is not None:
                stages["told"] = told(found, mask, LIMIT[hasher])
            search[hasher] = {
                stage: search_figures(dataset, given, hasher, plan, truth) for stage, given in stages.items()
            }
        cells[label] = {"search": search, "commit": report["provenance"]["commit"]}
        print(name, label, json.dumps(search), flush=True)
        save()


def main() -> None:
    plan = tomllib.loads((HERE / "audit.toml").read_text())
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", nargs="*", default=list(plan["datasets"]))
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/audit_recovery.json"))
    given = parser.parse_args()
    report: dict[str, Any] = {"datasets": {}}
    if given.out.is_file():
        report = json.loads(given.out.read_text())
        report = {"datasets": report["datasets"]} if report["plan"] == plan else {"datasets": {}}
    report |= {
        "what": "64 bits; recall of the 10 nearest undamaged neighbours among the first 10 (COCO-5 100); itq 3 fits",
        "command": f"python benchmarks/quality/audit_recovery.py --datasets {' '.join(given.datasets)}",
        "plan": plan,
        "provenance": provenance(threads_wanted()),
    }

    def save() -> None:
        with replacing(given.out) as file:
            file.write((json.dumps(report, indent=1) + "\n").encode())

    for name in given.datasets:
        measure(name, plan, report, save)


if __name__ == "__main__":
    main()
