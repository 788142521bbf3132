"""Tables of the audit, of views that come after fit, and of queries with one view."""

from __future__ import annotations

from figures_table import results, table


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}".replace("0.", ".", 1) if value < 1 else "1"


def audit() -> str:
    """Recall and precision of the verdicts by kind and rate, and partners."""
    report, rows = results("audit"), []
    for name, cells in report["datasets"].items():
        for label, cell in cells.items():
            if label == "clean":
                rows.append([name, label, "", "", "", "", "", "", f"{100 * cell['false_alarms']:.2f} %"])
                continue
            kind, rate = label.split()
            partners = [_shown(cell.get(key)) for key in ("partner_top1", "partner_top5")]
            verdict = [_shown(cell[key]) for key in ("recall", "precision", "precision_of_new")]
            alarms = f"{100 * cell['false_alarms']:.2f} %"
            rows.append([name, kind, f"{100 * float(rate):.0f} %", *verdict, *partners, alarms])
    header = ["data", "planted", "rate", "recall", "precision", "of what is new", "partner, top 1", "top 5"]
    header.append("undamaged with p < .01")
    return table(header, rows) + f"\n`{report['command']}`\n"


def audit_search() -> str:
    """MAP and recall before the damage, after it, and after what was found was corrected; what came back."""
    report, rows = results("audit_recovery"), []
    for name, cells in report["datasets"].items():
        for label, cell in cells.items():
            for hasher, found in cell["search"].items():
                clean, damaged = cells["clean"]["search"][hasher]["given"], found.get("damaged")
                for how in (key for key in found if key not in ("damaged", "given")):
                    stages = [clean, damaged or clean, found[how]]
                    figures = [_shown(stage[key]) for key in ("map", "recall") for stage in stages]
                    back = [_back(*(stage[key] for stage in stages)) for key in ("map", "recall")]
                    kind, rate = label.split() if damaged else (label, 0)
                    shown_rate = f"{100 * float(rate):.0f} %" if damaged else ""
                    rows.append([name, kind, shown_rate, hasher, how, *figures[:3], back[0], *figures[3:], back[1]])
    header = ["data", "planted", "rate", "fit", "apply", "MAP clean", "damaged", "corrected", "back"]
    shown = table([*header, "recall clean", "damaged", "corrected", "back"], rows)
    return shown + f"\n{report['what']}. `{report['command']}`\n"


def _back(clean: float, damaged: float, corrected: float) -> str:
    """The share of the loss that came back; nothing where there was hardly a loss to speak of."""
    return f"{100 * (corrected - damaged) / (clean - damaged):.0f} %" if clean - damaged >= 0.02 * clean else ""


def audit_million() -> str:
    """An audit of a million generated rows: recall and precision, then time and memory."""
    report, rows = results("audit_million"), []
    for kind, cell in report["found"].items():
        if isinstance(cell, dict):
            shown = [_shown(cell.get(key)) for key in ("recall", "precision", "partner_top1")]
            rows.append([kind, f"{cell['planted']:,}", *shown])
    alarms = 100 * report["found"]["false_alarms"]
    words = (
        f"{report['what']}, {report['views_gb']:.2f} GB: {report['seconds']:.0f} s, at most {report['peak_gb']:.1f} GB "
        f"of anonymous memory with the views; {alarms:.2f} % of undamaged views have p < .01."
    )
    shown_rows = table(["planted", "rows", "recall", "precision", "partner, top 1"], rows)
    return shown_rows + f"\n{words} `{report['command']}`\n"


def evolve() -> str:
    """Recall with the old and the new model against the old index."""
    report, rows = results("evolve"), []
    for name, found in report["datasets"].items():
        for label, cell in found.items():
            if not label.startswith("noise"):
                continue
            recalls = [found["old view alone"], cell["new view alone"]]
            recalls += [found["all old views"], cell["new and other old views"]]
            seconds = [found["seconds_fit"], cell["seconds_add_view"], cell["seconds_encode_all_rows"]]
            kept = f"{100 * cell['kept, new view alone']:.1f} %"
            shown = [f"{stage['recall']:.3f}" for stage in recalls]
            rows.append([f"{name}, {found['view']}", label, *shown, kept, *(f"{second:.1f}" for second in seconds)])
    header = ["data", "new model", "old view alone", "new view alone", "all old views", "new beside the others"]
    header += ["kept, alone", "fit, s", "add_view, s", "encode all, s"]
    return table(header, rows) + f"\n{report['what']}. `{report['command']}`\n"


def cross_view() -> str:
    """MAP of queries with one view against codes of all."""
    report, rows = results("cross_view"), []
    for name, found in report["datasets"].items():
        for view in found["groups"]:
            figures = [found["float"].get(view), found["groups"][view], found["neighbours"][view]]
            rows.append([name, view, *("" if figure is None else f"{figure:.3f}" for figure in figures)])
    header = ["data", "queries with", "float search in that view", "codes, groups", "codes, neighbours"]
    return table(header, rows) + f"\n{report['what']}. `{report['command']}`\n"


def few_rows() -> str:
    """AUC and false alarms of reliability by the number of rows learned from."""
    report, rows = results("few_rows"), []
    together = {"clean 0": "clean", "swap 0.2": "swap 20 %", "swap 0.4": "swap 40 %", "noise 0.3": "noise 30 %"}
    alone = {"drop_view 0.3": "missing 30 %", "zero 0.3": "zero 30 %", "swap 0.2": "swap 20 %"}
    for name, found in report["datasets"].items():
        for n_rows, cells in found.items():
            shown = [_told(cells[f"{kind}, together"]) for kind in together]
            shown += [_told(cells[f"{kind}, queries alone"]) for kind in alone]
            rows.append([name, f"{int(n_rows):,}", *shown])
    header = ["data", "rows learned from", *together.values(), *(f"queries alone, {word}" for word in alone.values())]
    return table(header, rows) + f"\n{report['what']}. `{report['command']}`\n"


def _told(cell: dict[str, float]) -> str:
    alarms = f"{100 * cell['false_alarms']:.1f} %"
    return f"{cell['auc']:.2f}, {alarms}" if "auc" in cell else alarms


def false_alarms() -> str:
    """Alarms at 1 % over random splits: mean and its standard error, the splits with the least and the most."""
    report, rows = results("false_alarms"), []
    for name, cells in report["datasets"].items():
        for kind, cell in cells.items():
            mean, error, least, most = (f"{100 * cell[part]:.2f}" for part in ("mean", "error", "least", "most"))
            auc = f"{cell['auc']:.3f}" if "auc" in cell else ""
            rows.append([name, kind, str(cell["splits"]), f"{mean} ± {error} %", f"{least} to {most} %", auc])
    header = ["data", "damage", "splits", "false alarms at 1 %", "of single splits", "AUC"]
    return table(header, rows) + f"\n{report['what']}. `{report['command']}`\n"


FIGURES = {
    "audit": audit,
    "audit_search": audit_search,
    "audit_million": audit_million,
    "evolve": evolve,
    "cross_view": cross_view,
    "few_rows": few_rows,
    "false_alarms": false_alarms,
}
