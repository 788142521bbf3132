"""Tables of the panel: every method on whole and damaged views."""

from __future__ import annotations

from statistics import geometric_mean
from typing import Any

from figures_table import OWN, PLAIN_ROLES, RECALL, SHOWN, called, results, table

BITS = (16, 32, 64, 128, 256)


def panel_table(dataset: str, metric: str) -> str:
    """Methods by kinds of damage; the best of each column is bold."""
    cells = results("panel")["grids"]["main"][dataset]
    columns = [cell for cell in cells if cell.endswith(" both 64")]
    names = dict.fromkeys(name for cell in columns for name in cells[cell])
    plain = [name for name in names if not name.startswith(PLAIN_ROLES)]
    best = [max(cells[c][n][metric][0] for n in plain if metric in cells[c].get(n, {})) for c in columns]
    rows = []
    for name in names:
        numbers = [cells[cell].get(name, {}).get(metric) for cell in columns]
        shown = ["" if number is None else f"{number[0]:.3f}" for number in numbers]
        marked = zip(shown, numbers, best, strict=True)
        rows.append([called(name), *(f"**{t}**" if name in plain and n and n[0] == b else t for t, n, b in marked)])
    return table([f"{dataset}, {SHOWN[metric]}", *(cell.split()[0] for cell in columns)], rows)


def panel_tables() -> str:
    report = results("panel")
    text = ""
    for dataset in report["grids"]["main"]:
        for metric in ("map", RECALL[dataset]):
            text += panel_table(dataset, metric) + "\n"
    return text + (
        "64 bits; training rows, database and queries damaged; "
        f"{report['runs']:,} of {report['planned']:,} planned runs. "
        "`quorumhash bench run benchmarks/quality/panel.toml --jobs 2`\n"
    )


def _brief_rows(cells: Any, metric: str, own: str, places: int = 3) -> dict[str, list[str]]:
    """Row -> figures by cell: our method, the best other one of each cell, itq, float search in the damaged views."""
    rows: dict[str, list[str]] = {own: [], "best rival": [], "itq": [], "float, damaged": []}
    for found in cells.values():
        figures = {name: row[metric][0] for name, row in found.items() if metric in row}
        rivals = {n: f for n, f in figures.items() if n not in OWN and not n.startswith((*PLAIN_ROLES, "quorum"))}
        first = max(rivals, key=rivals.__getitem__)
        ours = f"{figures[own]:.{places}f}"
        rows[own].append(f"**{ours}**" if figures[own] >= rivals[first] else ours)
        rows["best rival"].append(f"{rivals[first]:.{places}f} ({called(first)})")
        for name in ("itq", "float, damaged"):
            rows[name].append(f"{figures[name]:.{places}f}" if name in figures else "")
    return rows


def brief(name: str) -> str:
    """Of every dataset and measure: our method beside the best rival of each cell, itq, and float search."""
    report = results(name)
    text = ""
    for dataset, found in report["grids"]["main"].items():
        cells = {cell: methods for cell, methods in found.items() if cell.endswith(" both 64")}
        body = []
        for metric, own in (("map", OWN[0]), (RECALL.get(dataset, "recall_10"), OWN[1])):
            for row, figures in _brief_rows(cells, metric, own).items():
                body.append([SHOWN[metric], row, *figures])
        text += table([dataset, "", *(cell.split()[0] for cell in cells)], body) + "\n"
    return text + (
        f"64 bits; training rows, database and queries damaged; {report['runs']:,} runs. A rival with one seed "
        "stands with that seed's figure; ratios compare it on that seed alone. "
        f"`quorumhash bench run benchmarks/quality/{name}.toml --jobs 2`, `benchmarks/results/{name}.json`\n"
    )


def panel_ratios() -> str:
    report = results("panel")["standings"]
    rows = []
    for method, metric in ((OWN[0], "map"), (OWN[1], "recall_10"), (OWN[1], "recall_100")):
        found = report[f"{method} {metric}"]
        by_data = {name: [r for cell, (r, _) in found["cells"].items() if cell.startswith(name)] for name in RECALL}
        ratio, cell, rival = found["worst"]
        means = [f"{geometric_mean(ratios):.2f}" if ratios else "" for ratios in by_data.values()]
        rows.append(
            [f"{method}, {SHOWN[metric]}", *means, f"{found['geometric_mean']:.2f}", f"{ratio:.2f} ({cell}, {rival})"]
        )
    return table(["ratio to the best rival of each damaged cell", *RECALL, "all", "worst cell, rival"], rows)


def panel_trust() -> str:
    report = results("panel")["grids"]["main"]
    rows = []
    for dataset, cells in report.items():
        for cell, methods in cells.items():
            found = methods.get(OWN[1], {})
            if cell.endswith(" both 64") and "false_alarms" in found:
                auc = found.get("trust_auc")
                rows.append(
                    [
                        dataset,
                        cell.split()[0],
                        f"{auc[0]:.3f}" if auc else "",
                        f"{100 * found['false_alarms'][0]:.1f} %",
                    ]
                )
    return table(["data", "damage", "AUC of reliability on queries", "false alarms at 1 %"], rows)


def panel_sources() -> str:
    """Views of one photo swapped together, with and without being told that they have one source."""
    methods = next(iter(results("panel")["grids"]["sources"]["coco5"].values()))
    rows = []
    for name, found in methods.items():
        auc = f"{found['trust_auc'][0]:.3f}" if "trust_auc" in found else ""
        rows.append([called(name), f"{found['map'][0]:.3f}", f"{found['recall_100'][0]:.3f}", auc])
    return table(["coco5, swap_source", "MAP", "R10@100", "AUC of reliability"], rows)


def panel_sweep() -> str:
    """MAP and recall on mfeat as ever more pairs are swapped or zero."""
    cells = results("panel")["grids"]["sweep"]["mfeat"]
    text = ""
    for kind, metric, own in ((k, m, o) for k in ("swap", "zero") for m, o in (("map", OWN[0]), ("recall_10", OWN[1]))):
        columns = [cell for cell in cells if cell.startswith(f"{kind} ")]
        names = [own, *(name for name in cells[columns[-1]] if not name.startswith("quorum"))]
        found = [[cells[cell].get(name, {}).get(metric) for cell in columns] for name in names]
        rows = [
            [name, *("" if number is None else f"{number[0]:.3f}" for number in numbers)]
            for name, numbers in zip(names, found, strict=True)
        ]
        text += table([f"mfeat, {kind}, {SHOWN[metric]}", *(cell.split()[1] for cell in columns)], rows) + "\n"
    return text


def panel_codes() -> str:
    report = results("panel")["grids"]["main"]
    rows = []
    for dataset, cells in report.items():
        for name in (*OWN, "itq"):
            found = next(methods for cell, methods in cells.items() if cell.startswith("clean"))[name]
            rows.append([dataset, name, f"{found['distinct_codes'][0]:,.0f}", f"{found['tie_list_size'][0]:.1f}"])
    return table(["data, clean", "method", "distinct codes in the database", "mean tie-list size"], rows)


HEADLINE = ("clean", "gauss", "swap", "noise", "zero", "drop_view")


def panel_headline() -> str:
    """Few cells, one line a dataset and measure: quorum, the best rival of that cell, itq."""
    rows = []
    for dataset, found in results("panel")["grids"]["main"].items():
        cells = {cell: found[cell] for kind in HEADLINE for cell in found if cell.startswith(f"{kind} ")}
        for metric, own in (("map", OWN[0]), (RECALL[dataset], OWN[1])):
            ours, rivals, itq, _ = _brief_rows(cells, metric, own, places=2).values()
            best = [rival.split()[0] for rival in rivals]
            cells_shown = [" / ".join(row) for row in zip(ours, best, itq, strict=True)]
            rows.append([f"{dataset}, {SHOWN[metric]}", *cells_shown])
    return table(["quorum / best rival of the cell / itq", *HEADLINE], rows) + (
        "\ngauss: noise on single values; swap, noise, zero, drop_view: whole views of an item are another item's, "
        "noise, zeros, missing. 64 bits; training rows, database and queries damaged alike. "
        "`benchmarks/results/panel.json`, made by `quorumhash bench run benchmarks/quality/panel.toml`\n"
    )


def panel_bits() -> str:
    """The default method by length of the code, and the best rival of every length."""
    grids, rows = results("panel")["grids"], []
    for dataset, found in grids["bits"].items():
        for kind, rate in (("clean", "0"), ("swap", "0.2"), ("zero", "0.3")):
            for metric, own in (("map", OWN[0]), (RECALL[dataset], OWN[1])):
                every = {**grids["main"][dataset], **found}
                cells = {bits: every[f"{kind} {rate} both {bits}"] for bits in BITS}
                ours, rivals, *_ = _brief_rows(cells, metric, own).values()
                rows.append([f"{dataset}, {kind}", f"{own}, {SHOWN[metric]}", *ours])
                rows.append(["", "best rival", *rivals])
    header = ["data", "", *(f"{bits} bits, {bits // 8} bytes" for bits in BITS)]
    return table(header, rows) + (
        "\n64 bits: means over three seeds, every rival; the others one seed and eight rivals. "
        "`benchmarks/results/panel.json`\n"
    )


def panel_one_sided() -> str:
    """Queries alone damaged, or the database and what is learned from: our method and the best rival."""
    rows = []
    for dataset, cells in results("panel")["grids"]["one_sided"].items():
        for metric, own in (("map", OWN[0]), (RECALL[dataset], OWN[1])):
            ours, rivals, *_ = _brief_rows(cells, metric, own).values()
            rows += [[f"{dataset}, {SHOWN[metric]}", own, *ours], ["", "best rival", *rivals]]
    header = ["", "", *(f"{cell.split()[0]}, {cell.split()[2]} alone" for cell in cells)]
    return table(header, rows) + "\n64 bits, one seed, eight rivals. `benchmarks/results/panel.json`\n"


FIGURES = {
    "panel_headline": panel_headline,
    "panel_bits": panel_bits,
    "panel": panel_tables,
    "panel_brief": lambda: brief("panel"),
    "untouched": lambda: brief("untouched"),
    "missing": lambda: brief("missing"),
    "panel_ratios": panel_ratios,
    "panel_trust": panel_trust,
    "panel_codes": panel_codes,
    "panel_sources": panel_sources,
    "panel_sweep": panel_sweep,
    "panel_one_sided": panel_one_sided,
}
