"""Results of the paper's experiments as tables and charts, its printed numbers beside ours."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from quorumhash.bench.naming import called
from quorumhash.bench.papernumbers import printed_lookup, printed_seconds
from quorumhash.report import Chart, Curve, Report, Table

Result = dict[str, Any]
Row = dict[str, Any]
LEAD = (
    "Every experiment of the paper's section 6, run anew, its printed numbers in brackets beside ours. Lookup: "
    "precision within Hamming radius 2, a lookup that finds nothing counting 0. MAP: over the whole ranking, ties "
    "averaged. Means and standard deviations over random splits.\n\nThe paper printed no number for a cell without "
    "brackets; its figures have none at all. \N{EN DASH}: not run."
)
REFERENCES = ("chance", "float search")


def paper_report(results: Sequence[Result]) -> Report:
    """One page of all results, in the order of the paper."""
    tables: list[Table] = []
    charts: list[Chart] = []
    for experiment, draw in DRAWN.items():
        for result in (result for result in results if result["experiment"] == experiment):
            new_tables, new_charts = draw(result)
            tables += new_tables
            charts += new_charts
    facts = tuple((f"{r['experiment']}, {r['dataset']}", _made(r)) for r in results)
    return Report("The paper's experiments, run anew", LEAD, tuple(tables), tuple(charts), facts=facts)


def _made(result: Result) -> str:
    seeds = ", ".join(map(str, result["seeds"]))
    counts = f"{len(result['rows'])} of {result['planned']} rows, splits {seeds}"
    return f"{counts}; commit {result['commit']}; {result['machine']}; {result['versions']}; {result['command']}"


def distinct(rows: Iterable[Row], key: str) -> list[Any]:
    """The values of a key, each once, in the order of the rows."""
    return list(dict.fromkeys(row[key] for row in rows))


def values(rows: Iterable[Row], key: str = "value", **chosen: Any) -> list[float]:
    """The values of a key in the rows that have what is chosen, missing ones left out."""
    found = [row.get(key) for row in rows if all(row[name] == value for name, value in chosen.items())]
    return [float(value) for value in found if value is not None]


def spread_text(numbers: Sequence[float], scale: float = 1.0, digits: int = 1) -> str:
    """Mean and, of several numbers, standard deviation.

    >>> spread_text([0.1, 0.3], scale=100)
    '20.0 ± 10.0'
    """
    if not numbers:
        return "\N{EN DASH}"
    mean = f"{scale * np.mean(numbers):.{digits}f}"
    return f"{mean} ± {scale * np.std(numbers):.{digits}f}" if len(numbers) > 1 else mean


def lookup_cell(result: Result, data: str, method: str, bits: int) -> str:
    """Percent of our lookups, the paper's in brackets."""
    ours = spread_text(values(result["rows"], data=data, method=method, bits=bits), scale=100)
    printed = printed_lookup(result["dataset"], method, bits)
    return f"{ours} ({printed[0]:.1f} ± {printed[1]:.1f})" if printed else ours


def _table1(result: Result) -> tuple[list[Table], list[Chart]]:
    tables = []
    for data in distinct(result["rows"], "data"):
        rows = [row for row in result["rows"] if row["data"] == data]
        bits, methods = sorted(distinct(rows, "bits")), distinct(rows, "method")
        names = ("method", *(f"{n} bits" for n in bits))
        found = [(called(method), *(lookup_cell(result, data, method, n) for n in bits)) for method in methods]
        title = f"Table 1, {result['dataset']}, {data}: lookup precision in percent (the paper's)"
        tables.append(Table(title, names, tuple(found), _splits(rows), reference_rows=REFERENCES))
        empty = [
            (called(method), *(_mean(values(rows, "empty_lookups", method=method, bits=n)) for n in bits))
            for method in methods
        ]
        title = f"Table 1, {result['dataset']}, {data}: share of lookups that found nothing"
        tables.append(Table(title, names, tuple(empty), reference_rows=REFERENCES))
    return tables, []


def _splits(rows: Sequence[Row]) -> str:
    """How many splits the methods have, those with fewer by name."""
    counts = {
        method: len({row["seed"] for row in rows if row["method"] == method}) for method in distinct(rows, "method")
    }
    most = max(counts.values())
    fewer = ", ".join(f"{method} {count}" for method, count in counts.items() if count < most)
    return f"Splits: {most}{f'; {fewer}' if fewer else ''}. A number without a deviation is of one split."


def _mean(numbers: Sequence[float]) -> float | None:
    return float(np.mean(numbers)) if numbers else None


def _figures(result: Result) -> tuple[list[Table], list[Chart]]:
    tables, charts = [], []
    for data in distinct(result["rows"], "data"):
        rows = [row for row in result["rows"] if row["data"] == data]
        bits, methods = sorted(distinct(rows, "bits")), distinct(rows, "method")
        place = f"{result['dataset']}, {data}"
        found = []
        for method in methods:
            means = [spread_text(values(rows, method=method, bits=n), digits=3) for n in bits]
            found.append((called(method), *means))
        names = ("method", *(f"{n} bits" for n in bits))
        tables.append(Table(f"MAP, {place}", names, tuple(found), _splits(rows), reference_rows=REFERENCES))
        charts.append(map_chart(rows, place))
        n_bits = 64 if result["dataset"] == "nuswide" else 48
        charts.append(recall_chart(rows, place, n_bits))
    return tables, charts


def map_chart(rows: Sequence[Row], place: str) -> Chart:
    """MAP against bits."""
    bits = sorted(distinct(rows, "bits"))
    curves = []
    for method in distinct(rows, "method"):
        means = [_mean(values(rows, method=method, bits=n)) for n in bits]
        if sum(mean is not None for mean in means) > 1:
            curves.append(Curve(method, bits, np.array(means, dtype=float)))
    return Chart(f"MAP against bits, {place}", "bits", "MAP", tuple(curves))


def recall_chart(rows: Sequence[Row], place: str, n_bits: int) -> Chart:
    """Precision against recall among the first n of the ranking."""
    curves = []
    for method in distinct(rows, "method"):
        recall, precision = (_mean_curve(rows, name, method, n_bits) for name in ("recall", "precision"))
        if len(recall):
            curves.append(Curve(method, recall, precision))
    return Chart(f"Precision and recall at {n_bits} bits, {place}", "recall", "precision", tuple(curves))


def first_chart(rows: Sequence[Row], place: str, n_bits: int, deepest: int = 1000) -> Chart:
    """Precision against the number of returned items."""
    curves = []
    for method in distinct(rows, "method"):
        precision = _mean_curve(rows, "precision", method, n_bits)
        if len(precision):
            n_first = next(row["n_first"] for row in rows if row["method"] == method and row["bits"] == n_bits)
            kept = [place for place, n in enumerate(n_first) if n <= deepest]
            curves.append(Curve(method, [n_first[i] for i in kept], precision[kept]))
    return Chart(f"Precision of returned items at {n_bits} bits, {place}", "returned items", "precision", tuple(curves))


def _mean_curve(rows: Sequence[Row], key: str, method: str, n_bits: int) -> Any:
    found = [row[key] for row in rows if row["method"] == method and row["bits"] == n_bits and row.get(key)]
    return np.mean(found, axis=0) if found else np.empty(0)


def _table2(result: Result) -> tuple[list[Table], list[Chart]]:
    rows = result["rows"]
    found = []
    for method in distinct(rows, "method"):
        printed = printed_seconds(result["dataset"], method)
        cells = [
            spread_text(values(rows, key, method=method), digits=d) for key, d in (("value", 1), ("encode_seconds", 7))
        ]
        theirs = (f"{printed[0]:.1f}", f"{printed[1]:.7f}") if printed else ("\N{EN DASH}", "\N{EN DASH}")
        found.append((called(method), cells[0], theirs[0], cells[1], theirs[1]))
    names = ("method", "training, s", "the paper's", "encoding an item, s", "the paper's")
    note = f"{_splits(rows)} {result['machine']}. The paper's machine is not known; a search is in neither."
    return [Table(f"Table 2, {result['dataset']}: seconds at 64 bits", names, tuple(found), note)], []


def surface(
    rows: Sequence[Row], name: str, key: str = "value"
) -> tuple[list[str], list[tuple[str | float | None, ...]]]:
    """One surface of the parameter study: names of the columns, and rows by the first parameter."""
    own = [row for row in rows if row["method"].startswith(name)]
    first, second = (part.partition("=")[0].strip() for part in own[0]["method"].split(",")[1:3])
    low, high = (sorted({row["parameters"][which] for row in own}) for which in (first, second))
    cells = {(row["parameters"][first], row["parameters"][second]): row.get(key) for row in own}
    names = [f"{first.strip('_')} \\ {second.strip('_')}", *(f"{value:g}" for value in high)]
    return names, [(f"{one:g}", *(cells.get((one, other)) for other in high)) for one in low]


def _parameter(result: Result) -> tuple[list[Table], list[Chart]]:
    tables, charts = [], []
    for name in dict.fromkeys(row["method"].partition(",")[0] for row in result["rows"]):
        for key, what in (("value", "MAP"), ("rank", "rank of the consensus")):
            names, found = surface(result["rows"], name, key)
            tables.append(Table(f"Parameters, {result['dataset']}, {name}: {what}", tuple(names), tuple(found)))
        names, found = surface(result["rows"], name)
        lines = [
            Curve(
                f"{names[0].split()[0]} {row[0]}",
                [math.log10(float(n)) for n in names[1:]],
                np.array(row[1:], dtype=float),
            )
            for row in found
        ]
        axis = f"log10 of {names[0].split()[2]}"
        charts.append(Chart(f"Parameters, {result['dataset']}, {name}", axis, "MAP", tuple(lines)))
    return tables, charts


def _convergence(result: Result) -> tuple[list[Table], list[Chart]]:
    charts = []
    for key in ("objective", "residual"):
        curves = []
        for row in (row for row in result["rows"] if row.get(key)):
            first = abs(row[key][0]) if key == "objective" else 1.0
            curves.append(
                Curve(f"{row['method']}, {row['data']}", range(1, len(row[key]) + 1), np.array(row[key]) / first)
            )
        label = "objective over that of the first sweep" if key == "objective" else "largest residual"
        charts.append(
            Chart(f"Convergence, {result['dataset']}: {key}", "sweep", label, tuple(curves), log_y=key == "residual")
        )
    return [], charts


def _out_of_sample(result: Result) -> tuple[list[Table], list[Chart]]:
    tables, charts = _figures(result)
    rows, place = result["rows"], "learned on CIFAR-10, searched in MNIST"
    return tables, [*(chart for chart in charts if "against bits" in chart.title), first_chart(rows, place, 64)]


def _ablation(result: Result) -> tuple[list[Table], list[Chart]]:
    rows, metrics = (
        result["rows"],
        {"value": "MAP", "map_100": "MAP of the first 100", "lookup": "lookup", "empty_lookups": "empty"},
    )
    found = [
        (called(method), *(spread_text(values(rows, key, method=method), digits=3) for key in metrics))
        for method in distinct(rows, "method")
    ]
    title = f"Ablations, {result['dataset']}, {rows[0]['data']}, {rows[0]['bits']} bits"
    return [Table(title, ("method", *metrics.values()), tuple(found), _splits(rows), reference_rows=REFERENCES)], []


DRAWN = {
    "table1": _table1,
    "figures": _figures,
    "table2": _table2,
    "parameter": _parameter,
    "convergence": _convergence,
    "out_of_sample": _out_of_sample,
    "ablation": _ablation,
}
