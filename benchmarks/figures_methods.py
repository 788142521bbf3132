"""Tables about the methods of the library: what their parts are worth, what they cost, what labels add."""

from __future__ import annotations

from figures_table import RECALL, SHOWN, results, table


def fit_scaling() -> str:
    report = results("fit_scaling")
    header = ["rows", "fit, s", "its products alone, s", "ratio", "state, MB", "grown by, MB", "ratio"]
    keys = ("rows", "fit_seconds", "product_seconds", "ratio", "state_mb", "grown_mb", "memory_ratio")
    rows = [[f"{row[key]:,}" for key in keys] for row in report["results"]]
    return table(header, rows) + (
        f"\n{report['what']}; log-log slope {report['log_log_slope']}. {report['machine']}. `{report['command']}`\n"
    )


def rmvh_ablation() -> str:
    report = results("rmvh_ablation")
    columns = [(metric, damage) for metric in ("map", "recall_10") for damage in ("clean", "swap", "noise")]
    header = [f"{SHOWN[metric]} {damage}" for metric, damage in columns]
    text = ""
    for name, rows in report["datasets"].items():
        body = []
        for row in rows:
            cells = [row[f"{metric} {damage}"] for metric, damage in columns]
            body.append([row["method"], *(f"{mean:.3f} ± {spread:.3f}" for mean, spread in cells)])
        text += table([name, *header], body) + "\n"
    return text + f"Mean and standard deviation: {report['what']}. `{report['command']}`\n"


def quorum_ablation() -> str:
    report = results("quorum_ablation")
    text = ""
    for name, rows in report["datasets"].items():
        columns = [key for key in rows[0] if key != "method"]
        body = [[row["method"], *(f"{row[c]:.3f}" if c in row else "" for c in columns)] for row in rows]
        text += table([name, *columns], body) + "\n"
    return text + f"{report['what']}. `{report['command']}`\n"


def labels() -> str:
    """MAP by number of labels."""
    report = results("labels")
    rows = []
    for name, kinds in report["datasets"].items():
        rows += [[f"{name}, {kind}", *(f"{figure:.3f}" for figure in found.values())] for kind, found in kinds.items()]
    header = ["data", "no labels", "50", "200", "all rows labelled"]
    return table(header, rows) + f"\n{report['what']}. `{report['command']}`\n"


def view_worth() -> str:
    """Automatic worth of views as a multiple of equal worth in its worst cell, and of the best view or pair."""
    report, rows = results("view_worth"), []
    kinds: list[str] = []
    for name, found in report["datasets"].items():
        for objective, metric in (("groups", "MAP"), ("neighbours", SHOWN[RECALL[name]])):
            cells = {c.split()[1]: v for c, v in found["verdicts"].items() if c.startswith(f"{objective} ")}
            kinds = [kind for kind, verdict in cells.items() if "best_subset" in verdict]
            worst = min(cells, key=lambda kind: cells[kind]["to_equal"])
            subsets = [f"{cells[k]['to_best_subset']:.3f} ({cells[k]['best_subset']})" for k in kinds]
            rows.append([f"{name}, {objective}, {metric}", f"{cells[worst]['to_equal']:.3f} ({worst})", *subsets])
    header = ["auto as a multiple of", "equal worth, worst cell", *(f"best view or pair, {kind}" for kind in kinds)]
    return table(header, rows) + f"\n{report['what']}. `{report['command']}`\n"


def quorum_cost() -> str:
    report = results("quorum_cost")
    keys = ("rows", "itq_fit", "neighbours_fit", "groups_fit", "itq_encode", "neighbours_encode", "groups_encode")
    header = ["rows", "itq fit, s", "quorum fit, s", "groups", "itq transform, s", "quorum transform, s", "groups"]
    rows = [[f"{row[key]:,}" for key in keys] for row in report["results"]]
    last = next(row for row in report["results"] if row["rows"] == 30_000)
    return table(header, rows) + (
        f"\n{report['what']}. Ratios to itq at {last['rows']:,} rows: fit {last['neighbours_fit_ratio']} and "
        f"{last['groups_fit_ratio']}, transform {last['neighbours_encode_ratio']} and {last['groups_encode_ratio']}; "
        f"log-log slopes of fit {report['slopes']['neighbours']} and {report['slopes']['groups']}. "
        f"`{report['command']}`\n"
    )


def picture_features() -> str:
    report = results("picture_features")
    rows = []
    for row in report["rows"]:
        pictures = f"{row['dataset']}, {row['reading']} patch" if "reading" in row else row["dataset"]
        rows.append([pictures, ", ".join(row["views"]), row["method"], f"{row['map_32']:.3f}", f"{row['map_64']:.3f}"])
    text = table(["pictures", "views", "method", "MAP, 32 bits", "MAP, 64 bits"], rows) + "\n"
    body = []
    for name, found in report["seconds"].items():
        views = [view for view in found if f"{view}_processor" in found]
        cells = [f"{found[view]:.0f} ({found[f'{view}_processor']:.0f})" for view in views]
        body.append([f"{name}, {found['pictures']:,}", *cells])
    text += table(["pictures", *views], body)
    machine = report["provenance"]
    return text + (
        "\nSeconds by the clock and, in brackets, of processor time, with "
        f"{machine['cores']} cores ({machine['cpu']}) that had a load of {report['load']} from other work. "
        f"{report['what']}. `{report['command']}`\n"
    )


FIGURES = {
    "fit_scaling": fit_scaling,
    "rmvh_ablation": rmvh_ablation,
    "quorum_ablation": quorum_ablation,
    "labels": labels,
    "view_worth": view_worth,
    "quorum_cost": quorum_cost,
    "picture_features": picture_features,
}
