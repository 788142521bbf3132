"""What an audit finds of planted damage: kinds, partners, false alarms; what correcting gives back: audit_recovery.py.

    python benchmarks/quality/audit.py [--datasets ...] [--kinds ...] [--rates ...] [--out FILE.json]

The cells are those of audit.toml beside this file. Of each: recall (planted pairs of row and view that got the
verdict of their kind) and precision (verdicts of that kind that were planted; and without those on pairs that the
undamaged views have a verdict on too: what an audit finds in real data is not planted, and not false either),
partners, false alarms; for a shifted join its range. "swap" copies a random other row's view, which that row keeps;
"exchange" permutes views among the rows that are hit, so that no copy betrays them; both are to be called swap.
"model_version" turns a view and moves its mean, with noise of a tenth of its spread. Results are stored cell by cell,
each with the commit it was run at, and a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import quorumhash as qh
from quorumhash.atomic import replacing
from quorumhash.bench.provenance import provenance
from quorumhash.corruption import damage_with_mask
from quorumhash.datasets.base import thinned
from quorumhash.engines.threads import threads_wanted

HERE = Path(__file__).parent
PLANTED_BY = {"missing": "drop_view"}
VERDICT = {"exchange": "swap"}


def plant(views: qh.Views, kind: str, rate: float, seed: int) -> tuple[qh.Views, Any, Any]:
    """Damaged views, the mask (n, M) of the pairs that were hit, and the row (n, M) each pair's data belong to."""
    rng = np.random.default_rng([seed, 7])
    homes = np.full((len(views), len(views.names)), -1)
    if kind in ("constant", "exchange", "model_version"):
        matrices = {name: np.array(views[name], dtype=np.float64) for name in views}
        mask = np.zeros(homes.shape, dtype=bool)
        only = int(rng.integers(len(views.names)))
        for m, values in enumerate(matrices.values()):
            if kind == "model_version":
                if m == only:
                    mask[rng.permutation(len(views))[: round(rate * len(views))], m] = True
                    values[mask[:, m]] = other_model(values, mask[:, m], rng)
                continue
            rows = rng.permutation(np.flatnonzero(rng.random(len(views)) < rate))
            mask[rows, m] = len(rows) > 1
            if kind == "constant":
                values[rows] = 1.0 + values[rows, :1]
            elif len(rows) > 1:
                values[rows], homes[rows, m] = values[np.roll(rows, 1)], np.roll(rows, 1)
        return qh.Views(matrices), mask, homes
    damaged = damage_with_mask(views, PLANTED_BY.get(kind, kind), rate=rate, random_state=seed)
    mask = damaged.mask
    if kind == "swap":
        for m, name in enumerate(views):
            for row in np.flatnonzero(mask[:, m]):
                same = np.flatnonzero((np.asarray(views[name]) == damaged.views[name][row]).all(axis=1))
                homes[row, m] = same[0] if len(same) else -1
    if kind == "placeholder":  # the row it was taken from holds it too
        for m, name in enumerate(views):
            if mask[:, m].any():
                placeholder = damaged.views[name][int(np.argmax(mask[:, m]))]
                mask[:, m] |= (np.asarray(damaged.views[name]) == placeholder).all(axis=1)
    if kind == "shift":
        homes[mask] = np.nonzero(mask)[0] - 1
    return damaged.views, mask, homes


def other_model(values: Any, hit: Any, rng: np.random.Generator) -> Any:
    """Rows turned at random about the mean of their view, that mean moved by as much as rows differ, and noise."""
    mean = values.mean(axis=0)
    turn = np.linalg.qr(rng.standard_normal((values.shape[1],) * 2))[0]
    spread = float(np.sqrt(((values - mean) ** 2).sum(axis=1).mean()))
    away = rng.standard_normal(values.shape[1])
    new = (values[hit] - mean) @ turn + mean + spread * away / np.linalg.norm(away)
    return new + 0.1 * values.std(axis=0).mean() * rng.standard_normal(new.shape)


def verdict_figures(
    report: qh.AuditReport, kind: str, mask: Any, homes: Any, false_alarms: float, known: Any
) -> dict[str, Any]:
    """`known` (n, M): the pairs that the undamaged views have a verdict on."""
    named = report.kinds == VERDICT.get(kind, kind)
    right = named & mask
    low = (report.p_values < false_alarms) & ~mask
    figures: dict[str, Any] = {
        "planted": int(mask.sum()),
        "recall": ratio(right.sum(), mask.sum()),
        "precision": ratio(right.sum(), named.sum()),
        "precision_of_new": ratio(right.sum(), (named & (mask | ~known)).sum()),
        "recall_any_kind": ratio(((report.kinds != "") & mask).sum(), mask.sum()),
        "false_alarms": ratio(low.sum(), (~mask & ~np.isnan(report.p_values)).sum()),
        "false_verdicts": ratio(((report.kinds != "") & ~mask).sum(), (~mask).sum()),
    }
    if kind in ("swap", "exchange"):
        found = right & (homes >= 0)
        figures["partner_top1"] = ratio((report.partners[found][:, 0] == homes[found]).sum(), found.sum())
        figures["partner_top5"] = ratio(
            (report.partners[found] == homes[found][:, None]).any(axis=1).sum(), found.sum()
        )
    if kind in ("shift", "model_version"):
        findings = [finding for finding in report.findings if finding.kind == kind]
        figures["n_findings"] = len(findings)
        if kind == "shift" and findings and mask.any():
            rows = np.flatnonzero(mask.any(axis=1))
            figures["planted_range"] = [int(rows[0]), int(rows[-1])]
            figures["found_ranges"] = [[finding.first, finding.last, finding.offset] for finding in findings]
    return figures


def ratio(part: Any, whole: Any) -> float | None:
    return round(float(part) / float(whole), 4) if whole else None


def measure(
    name: str, plan: dict[str, Any], report: dict[str, Any], save: Any, chosen: list[tuple[str, float]]
) -> None:
    dataset = qh.load_dataset(name)
    n_rows = plan["datasets"][name]
    dataset = thinned(dataset, n_rows) if n_rows else dataset
    cells = report["datasets"].setdefault(name, {})
    found = qh.audit(dataset.views, false_alarms=plan["false_alarms"])
    known = found.kinds != ""
    if "clean" not in cells:
        nothing = np.zeros(known.shape, dtype=bool)
        cells["clean"] = verdict_figures(found, "none", nothing, nothing - 1, plan["false_alarms"], known)
        save()
    for kind, rate in chosen:
        label = f"{kind} {rate}"
        if label in cells:
            continue
        views, mask, homes = plant(dataset.views, kind, rate, plan["seed"])
        started = time.perf_counter()
        found = qh.audit(views, false_alarms=plan["false_alarms"])
        seconds = time.perf_counter() - started
        cell = verdict_figures(found, kind, mask, homes, plan["false_alarms"], known) | {"seconds": round(seconds, 1)}
        cells[label] = cell | {"commit": report["provenance"]["commit"]}
        print(name, label, json.dumps(cell), flush=True)
        save()


def open_report(path: Path, plan: dict[str, Any], what: str, command: str) -> tuple[dict[str, Any], Callable[[], None]]:
    """The report as far as it was measured by the same plan, and what writes it down, whole."""
    report: dict[str, Any] = {"datasets": {}}
    if path.is_file():
        report = json.loads(path.read_text())
        report = {"datasets": report["datasets"]} if report["plan"] == plan else {"datasets": {}}
    report |= {"what": what, "command": command, "plan": plan, "provenance": provenance(threads_wanted())}

    def save() -> None:
        with replacing(path) as file:
            file.write((json.dumps(report, indent=1) + "\n").encode())

    return report, save


def main() -> None:
    plan = tomllib.loads((HERE / "audit.toml").read_text())
    del plan["apply"]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", nargs="*", default=list(plan["datasets"]))
    parser.add_argument("--kinds", nargs="*", default=plan["kinds"])
    parser.add_argument("--rates", nargs="*", type=float, default=plan["rates"])
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/audit.json"))
    given = parser.parse_args()
    command = f"python benchmarks/quality/audit.py --datasets {' '.join(given.datasets)} --out {given.out}"
    report, save = open_report(given.out, plan, "planted damage found by qh.audit", command)
    for name in given.datasets:
        measure(name, plan, report, save, [(kind, rate) for rate in given.rates for kind in given.kinds])


if __name__ == "__main__":
    main()
