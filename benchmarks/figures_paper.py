"""The tables and drawings of docs/reproduction.md, from the results of the paper's experiments.

python benchmarks/figures_paper.py      writes docs/figures/*.svg; benchmarks/figures.py writes the tables
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from figures_table import ROOT, called, results
from figures_table import table as plain_table

from quorumhash._drawing import HEIGHT, WIDTH, Chart, draw_chart, draw_legend
from quorumhash.bench.papernumbers import printed_seconds
from quorumhash.bench.paperpage import (
    distinct,
    first_chart,
    lookup_cell,
    map_chart,
    recall_chart,
    spread_text,
    surface,
    values,
)
from quorumhash.report import Curve

DRAWINGS = ROOT / "docs" / "figures"
OWN = ("quorum", "rmvh, tuned")
FIVE = ("mfh", "chms", "ckh", "ssh", "mvlh")
COLOURS = ("#1b7fe0", "#8a2400", "#14907a", "#6b0f86", "#a98a00", "#16161c", "#3a36e0")
STYLE = """svg{font:13px system-ui,sans-serif;background:#fff}text{fill:#1b1f24}.tick{fill:#5d6670}
.grid{stroke:#d5d9de;stroke-width:.75}.axis{stroke:#5d6670}.hover{fill:transparent}
.line{fill:none;stroke:var(--colour);stroke-width:2;stroke-linejoin:round;stroke-linecap:round}
.marker{fill:var(--colour);stroke:var(--colour);stroke-width:1.6}"""
LEGEND_LINE = 18


def table(header: list[str], rows: list[list[str]]) -> str:
    return plain_table(header, [[called(row[0]), *row[1:]] for row in rows])


def made(name: str) -> str:
    report = results(name)
    seeds = ", ".join(map(str, report["seeds"]))
    return (
        f"\n{len(report['rows'])} of {report['planned']} planned runs; splits {seeds}. `{report['command']}`, "
        f"`benchmarks/results/{name}.json`\n"
    )


def lookup(name: str) -> str:
    """Of every reading: percent of lookups, the paper's in brackets, and below it the share of empty ones."""
    report, text = results(name), ""
    for data in distinct(report["rows"], "data"):
        rows = [row for row in report["rows"] if row["data"] == data]
        bits = sorted(distinct(rows, "bits"))
        body = []
        for method in distinct(rows, "method"):
            cells = []
            for n in bits:
                empty = values(rows, "empty_lookups", method=method, bits=n)
                told = f"; {np.mean(empty):.0%} empty" if empty else ""
                cells.append(lookup_cell(report, data, method, n) + told)
            body.append([method, *cells])
        text += table([f"{report['dataset']}, {data}", *(f"{n} bits" for n in bits)], body) + "\n"
    return text + "Percent, mean ± standard deviation (the paper's); share of lookups that found nothing." + made(name)


def rankings(name: str) -> str:
    report, text = results(name), ""
    for data in distinct(report["rows"], "data"):
        rows = [row for row in report["rows"] if row["data"] == data]
        bits = sorted(distinct(rows, "bits"))
        body = [
            [method, *(spread_text(values(rows, method=method, bits=n), digits=3) for n in bits)]
            for method in distinct(rows, "method")
        ]
        text += table([f"MAP, {data}", *(f"{n} bits" for n in bits)], body) + "\n"
    return text + "MAP over the whole ranking, mean ± standard deviation." + made(name)


def seconds(name: str) -> str:
    report = results(name)
    body = []
    for method in distinct(report["rows"], "method"):
        printed = printed_seconds(report["dataset"], method)
        ours = [values(report["rows"], key, method=method) for key in ("value", "encode_seconds")]
        theirs = [f"{printed[0]:.1f}", f"{1e6 * printed[1]:.1f}"] if printed else ["", ""]
        body.append([method, spread_text(ours[0]), theirs[0], spread_text(ours[1], scale=1e6), theirs[1]])
    header = [report["dataset"], "training, s", "the paper's", "encoding an item, µs", "the paper's"]
    return table(header, body) + f"\n64 bits. {report['machine']}, one method at a time." + made(name)


def ablation(name: str) -> str:
    report = results(name)
    keys = {"value": "MAP", "map_100": "MAP of the first 100", "lookup": "lookup", "empty_lookups": "empty lookups"}
    body = [
        [method, *(spread_text(values(report["rows"], key, method=method), digits=3) for key in keys)]
        for method in distinct(report["rows"], "method")
    ]
    first = report["rows"][0]
    return table([f"{first['data']}, {first['bits']} bits", *keys.values()], body) + made(name)


def parameters(name: str) -> str:
    """MAP and, in brackets, the rank of the consensus over the plane of the paper's first surface."""
    report, text = results(name), ""
    for plane in dict.fromkeys(row["method"].partition(",")[0] for row in report["rows"]):
        header, found = surface(report["rows"], plane)
        _, ranks = surface(report["rows"], plane, "rank")
        body = [
            [str(row[0]), *(_cell(value, rank) for value, rank in zip(row[1:], other[1:], strict=True))]
            for row, other in zip(found, ranks, strict=True)
        ]
        text += table([f"{plane}: {header[0].replace(chr(92), 'by')}", *header[1:]], body) + "\n"
    return text + "MAP (rank of the consensus)." + made(name)


def _cell(value: Any, rank: Any) -> str:
    return "" if value is None else f"{value:.3f} ({rank})"


def margins() -> str:
    """Lookup precision of quorum and of the tuned rmvh over that of the best of the paper's five."""
    body = []
    for name in ("table1_cifar10", "table1_nuswide"):
        report = results(name)
        for data in distinct(report["rows"], "data"):
            for n in (n for n in (32, 48, 64, 128) if values(report["rows"], data=data, bits=n)):
                rows = [row for row in report["rows"] if row["data"] == data and row["bits"] == n]
                means = shared_means([row for row in rows if row["method"] in (*OWN, *FIVE)])
                five = {method: mean for method, mean in means.items() if method in FIVE}
                best = max(five, key=five.__getitem__)
                own = [_ratio(means.get(method), five[best]) for method in OWN]
                place = f"{report['dataset']}, {data}"
                body.append([place, str(n), f"{best} {100 * five[best]:.1f}", *own])
    header = ["data", "bits", "best of the five, %", *(f"{method}, times that" for method in OWN)]
    return (
        table(header, body) + "\n`benchmarks/results/table1_cifar10.json`, `benchmarks/results/table1_nuswide.json`\n"
    )


def shared_means(rows: list[dict[str, Any]]) -> dict[str, float]:
    """The mean of every method over the splits that all of them have."""
    methods = distinct(rows, "method")
    shared = set.intersection(*({row["seed"] for row in rows if row["method"] == method} for method in methods))
    return {
        method: float(np.mean([row["value"] for row in rows if row["method"] == method and row["seed"] in shared]))
        for method in methods
    }


def _ratio(own: float | None, other: float) -> str:
    return "" if own is None else "nothing found by the five" if other == 0 else f"{own / other:.2f}"


def pictures() -> str:
    """MAP and neighbours of quorum beside the best rival, by damage, on pictures."""
    report, text = results("pictures"), ""
    for grid, datasets in report["grids"].items():
        for dataset, cells in datasets.items():
            body = []
            for metric, own in (("map", "quorum, groups"), ("recall_10", "quorum, neighbours")):
                for name in dict.fromkeys(name for cell in cells.values() for name in cell):
                    found = [cell.get(name, {}).get(metric) for cell in cells.values()]
                    if any(found) and (name == own or not name.startswith("quorum")):
                        shown = [spread_text_of(number) for number in found]
                        body.append(["MAP" if metric == "map" else "R10@10", name, *shown])
            text += table([f"{dataset} ({grid})", "", *(cell.split()[0] for cell in cells)], body) + "\n"
    return text + (
        f"64 bits; training rows, database and queries damaged. {report['runs']:,} of {report['planned']:,} planned "
        "runs. `quorumhash bench run benchmarks/quality/pictures.toml`, `benchmarks/results/pictures.json`\n"
    )


def spread_text_of(number: list[Any] | None) -> str:
    if not number:
        return ""
    return f"{number[0]:.3f} ± {number[1]:.3f}" if number[2] > 1 else f"{number[0]:.3f}"


def tuned() -> str:
    report = results("paper_tuning")
    body = []
    for dataset, methods in report["datasets"].items():
        for name, found in methods.items():
            pick, first = found["chosen"], found["tried"][0]
            said = [f"{key}={value}" for key, value in pick["parameters"].items() if key != "objective"]
            said += ["rows normalised"] if pick["is_row_normalised"] else []
            scores = [f"{first['score']:.3f}", f"{pick['score']:.3f}"]
            body.append([dataset, name, str(len(found["tried"])), *scores, ", ".join(said) or "as shipped"])
    header = ["data", "method", "settings", "score as shipped", "score chosen", "which"]
    return table(header, body) + (
        f"\n{report['criterion']}. {report['runs']} of {report['planned']} planned runs. `{report['command']}`, "
        "`benchmarks/results/paper_tuning.json`\n"
    )


FIGURES: dict[str, Callable[[], str]] = {
    "paper_lookup_cifar10": lambda: lookup("table1_cifar10"),
    "paper_lookup_nuswide": lambda: lookup("table1_nuswide"),
    "paper_map_cifar10": lambda: rankings("figures_cifar10"),
    "paper_map_nuswide": lambda: rankings("figures_nuswide"),
    "paper_seconds_cifar10": lambda: seconds("table2_cifar10"),
    "paper_seconds_nuswide": lambda: seconds("table2_nuswide"),
    "paper_parameter": lambda: parameters("parameter_cifar10"),
    "paper_out_of_sample": lambda: rankings("out_of_sample_mnist"),
    "paper_ablation": lambda: ablation("ablation_cifar10"),
    "paper_margins": margins,
    "paper_tuning": tuned,
    "pictures": pictures,
}


def charts() -> Iterator[tuple[str, Chart]]:
    """Name of the file, and what is drawn in it."""
    for name, bits in (("cifar10", 48), ("nuswide", 64)):
        rows = results(f"figures_{name}")["rows"]
        for data in distinct(rows, "data"):
            own = [row for row in rows if row["data"] == data]
            place = data.partition(",")[0]
            if len(distinct([row for row in own if row["method"] == "quorum"], "bits")) > 1:
                yield f"map_{name}_{place}", map_chart(own, data)
            yield f"recall_{name}_{place}", recall_chart(own, data, bits)
    rows = results("out_of_sample_mnist")["rows"]
    if len(distinct(rows, "bits")) > 1:
        yield "map_out_of_sample", map_chart(rows, "learned on CIFAR-10, searched in MNIST")
    yield "first_out_of_sample", first_chart(rows, "searched in MNIST", 64)
    rows = results("convergence_nuswide")["rows"]
    curves = [Curve(row["method"], range(1, len(row["residual"]) + 1), row["residual"]) for row in rows]
    yield "convergence", Chart("Largest residual by sweep, stand-in", "sweep", "residual", tuple(curves), log_y=True)
    rows = results("parameter_cifar10")["rows"]
    header, found = surface(rows, "beta fixed")
    exponents = [math.log10(float(value)) for value in header[1:]]
    lines = tuple(Curve(f"alpha {row[0]}", exponents, row[1:]) for row in found)
    yield "parameters", Chart("MAP by lambda, one curve for each alpha, beta 1", "log10 of lambda", "MAP", lines)


def standalone(chart: Chart) -> str:
    """The chart and its legend as one SVG file that needs no style sheet."""
    drawn = draw_chart(chart)
    inner = drawn[drawn.index("<title>") : drawn.rindex("</svg>")]
    per_line = 3 if max(len(curve.label) for curve in chart.curves) < 14 else 2
    n_lines = -(-len(chart.curves) // per_line)
    rules = "".join(f".k{i}{{--colour:{colour}}}" for i, colour in enumerate(COLOURS))
    entries = []
    for number, curve in enumerate(chart.curves):
        x, y = 12 + (number % per_line) * (438 // per_line), HEIGHT + 14 + (number // per_line) * LEGEND_LINE
        sample = legend_sample(chart, number)
        entries.append(
            f'<g transform="translate({x + 14},{y - 4})">{sample}</g><text x="{x + 36}" y="{y}">{curve.label}</text>'
        )
    height = HEIGHT + 10 + n_lines * LEGEND_LINE
    heading = f'<text x="4" y="14" font-weight="600">{chart.title}</text>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 -18 {WIDTH} {height + 18}" width="{WIDTH}" '
        f'height="{height + 18}"><style>{STYLE}{rules}</style><rect y="-18" width="{WIDTH}" height="{height + 18}" '
        f'fill="#fff"/><g transform="translate(0,-18)">{heading}</g>{inner}{"".join(entries)}</svg>\n'
    )


def legend_sample(chart: Chart, number: int) -> str:
    """A piece of the line with its marker, as the page's legend has it."""
    pieces = draw_legend(chart).split("<li>")[1:]
    piece = pieces[number]
    inside = piece[piece.index(">") + 1 : piece.index("</svg>")]
    kind = piece.split('class="')[1].split('"')[0]
    return f'<g class="{kind}">{inside}</g>'


def main() -> None:
    DRAWINGS.mkdir(exist_ok=True)
    for name, chart in charts():
        (DRAWINGS / f"{name}.svg").write_text(standalone(chart))
        print(f"docs/figures/{name}.svg")


if __name__ == "__main__":
    main()
