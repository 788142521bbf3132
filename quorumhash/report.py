"""Rows in; tables on the terminal and one self-contained HTML page out. Draws, never computes."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from html import escape
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from rich import box
from rich.console import Console
from rich.table import Table as TerminalTable
from rich.text import Text

from quorumhash._drawing import Chart, Curve, draw_chart, draw_legend
from quorumhash.atomic import replacing
from quorumhash.errors import ParameterError
from quorumhash.pictureaddress import picture_address

__all__ = ["Chart", "Curve", "Picture", "Report", "Strip", "Table", "print_table", "write_report"]

MISSING = "\N{EN DASH}"


@dataclass(frozen=True)
class Table:
    """Rows under column names; the first value of a row is its label.

    The best number of each of the `best_columns` is bold: the largest, or the smallest where `best` is
    "smallest". Rows whose label is in `reference_rows` are muted and never best.

    >>> table = Table("MAP", ("method", "64 bits"), (("quorum", 0.74), ("chance", None)), reference_rows=("chance",))
    >>> table.rows[0]
    ('quorum', 0.74)
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | float | None, ...], ...]
    note: str = ""
    best: str = ""
    best_columns: tuple[str, ...] = ()
    reference_rows: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns) or not row:
                raise ParameterError(f"table {self.title!r}: each row must have one value per column, got {row}")
        if self.best not in ("", "largest", "smallest"):
            raise ParameterError(f'table {self.title!r}: best must be "largest" or "smallest", got {self.best!r}')
        if unknown := sorted({*self.best_columns} - {*self.columns}):
            raise ParameterError(f"table {self.title!r}: best_columns must be among the columns, got {unknown}")


@dataclass(frozen=True, eq=False)
class Picture:
    """A picture with a label; `is_right` says whether a neighbour is of the query's kind, None says nothing.

    Grey pixels (uint8 as they are, others stretched from black to white), or the bytes of a picture file.

    >>> Picture(np.eye(8), "5", is_right=None).label
    '5'
    """

    pixels: ArrayLike | bytes
    label: str
    is_right: bool | None

    def __post_init__(self) -> None:
        shape = np.shape(self.pixels)
        if not isinstance(self.pixels, bytes) and (len(shape) != 2 or 0 in shape):
            raise ParameterError(f"picture {self.label!r}: pixels must be a 2-D array with values, got shape {shape}")


@dataclass(frozen=True, eq=False)
class Strip:
    """Queries and what was found: the first picture of each row is the query, the others its neighbours."""

    title: str
    rows: tuple[tuple[Picture, ...], ...]
    caption: str = ""


@dataclass(frozen=True, eq=False)
class Report:
    """Everything on one page; `facts` says how it was made: data, seed, versions, seconds.

    >>> Report("Demo", "What a quorum of the views finds.", facts=(("seed", "0"),)).facts
    (('seed', '0'),)
    """

    title: str
    lead: str
    tables: tuple[Table, ...] = ()
    charts: tuple[Chart, ...] = ()
    strips: tuple[Strip, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()


def print_table(table: Table, console: Console | None = None) -> None:
    """Print the table on the terminal; labels and column names wrap, numbers never do.

    >>> print_table(Table("Seconds", ("method", "fit"), (("quorum", 1.5),)))  # doctest: +SKIP
    """
    drawn = TerminalTable(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    drawn.title, drawn.caption = Text(table.title, "bold"), Text(table.note, "dim") if table.note else None
    drawn.title_justify = drawn.caption_justify = "left"
    rows = _lay_out(table)
    for place, name in enumerate(table.columns):
        column = [row[place] for row in rows]
        words = [word for text in (name, *(cell.text for cell in column)) for word in text.split()]
        n_least, side = max(map(len, words), default=1), _side(column)
        n_most = n_least if side == "right" else None
        drawn.add_column(Text(name), justify=side, min_width=n_least, max_width=n_most, overflow="fold")
    for row in rows:
        texts = [Text(cell.text, "bold" if cell.is_best else "", justify=cell.side) for cell in row]
        drawn.add_row(*texts, style="dim" if row[0].text in table.reference_rows else "")
    (console or Console()).print(drawn)


def write_report(path: str | os.PathLike[str], report: Report) -> None:
    """Write the report as one HTML file that refers to nothing outside itself, whole or not at all.

    >>> write_report("report.html", Report("Demo", "What a quorum of the views finds."))  # doctest: +SKIP
    """
    page = _draw_page(report).encode("utf-8", errors="replace")  # file names may hold what is no character
    try:
        with replacing(path) as file:
            file.write(page)
    except OSError as error:
        raise ParameterError(
            f"the report cannot be written to {os.fspath(path)!r} ({error.strerror or error}); "
            "give a file name in a folder that exists and that you may write to"
        ) from error


@dataclass(frozen=True)
class _Cell:
    text: str
    side: Literal["left", "right"]
    is_best: bool = False

    @property
    def html(self) -> str:
        return f"<strong>{escape(self.text)}</strong>" if self.is_best else escape(self.text)


def _lay_out(table: Table) -> list[list[_Cell]]:
    """Every value as it is shown; what looks equal to the best number is bold too."""
    rows = [[_Cell(_show(value), "left" if isinstance(value, str) else "right") for value in row] for row in table.rows]
    best = [_best_text(table, place) for place in range(len(table.columns))]
    return [
        [replace(cell, is_best=cell.text == text) for cell, text in zip(row, best, strict=True)]
        if row[0].text not in table.reference_rows
        else row
        for row in rows
    ]


def _best_text(table: Table, place: int) -> str | None:
    values = [row[place] for row in table.rows if _show(row[0]) not in table.reference_rows]
    numbers = [value for value in values if not isinstance(value, str) and value is not None and not math.isnan(value)]
    if table.columns[place] not in table.best_columns or not numbers:
        return None
    return _show(min(numbers) if table.best == "smallest" else max(numbers))


def _show(value: str | float | None) -> str:
    if isinstance(value, str):
        return value
    if value is None or math.isnan(value):
        return MISSING
    return f"{value:,}" if isinstance(value, (int, np.integer)) else f"{value:z,.3f}"


def _side(column: list[_Cell]) -> Literal["left", "right"]:
    return "right" if column and all(cell.side == "right" for cell in column) else "left"


def _draw_page(report: Report) -> str:
    title = escape(report.title)
    lead = "".join(f'<p class="lead">{escape(part)}</p>\n' for part in report.lead.split("\n\n") if part.strip())
    tables = "".join(map(_draw_table, report.tables))
    charts = "".join(map(_draw_figure, report.charts))
    strips = "".join(map(_draw_strip, report.strips))
    facts = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>\n" for name, value in report.facts)
    charts = f'<div class="charts">\n{charts}</div>\n' if charts else ""
    facts = f"<section>\n<h2>How it was made</h2>\n<dl>\n{facts}</dl>\n</section>\n" if facts else ""
    body = f"<main>\n<h1>{title}</h1>\n{lead}{tables}{charts}{strips}{facts}</main>"
    return f"{HEAD}<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"


def _draw_table(table: Table) -> str:
    rows = _lay_out(table)
    sides = [_side([row[place] for row in rows]) for place in range(len(table.columns))]
    head = "".join(map('<th scope="col" class="{}">{}</th>'.format, sides, map(escape, table.columns)))
    lines = []
    for row in rows:
        kind = "reference" if row[0].text in table.reference_rows else "rival"
        label = f'<th scope="row" class="{row[0].side}">{row[0].html}</th>'
        values = "".join(f'<td class="{cell.side}">{cell.html}</td>' for cell in row[1:])
        lines.append(f'<tr class="{kind}">{label}{values}</tr>\n')
    grid = f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{''.join(lines)}</tbody>\n</table>"
    return f"<section>\n<h2>{escape(table.title)}</h2>\n{_scroll(table.title, grid)}{_small(table.note)}</section>\n"


def _draw_figure(chart: Chart) -> str:
    drawn = draw_chart(chart)
    inside = f"{drawn}\n{draw_legend(chart)}\n" if drawn else _small("nothing to draw")
    caption = f"<figcaption>{escape(chart.caption)}</figcaption>\n" if chart.caption else ""
    return f"<figure>\n<h2>{escape(chart.title)}</h2>\n{inside}{caption}</figure>\n"


def _draw_strip(strip: Strip) -> str:
    n_neighbours = max(map(len, strip.rows), default=0) - 1
    found = f'<th scope="col" colspan="{n_neighbours}">found</th>' if n_neighbours > 0 else ""
    lines = (f"<tr>{''.join(map(_draw_picture, row, range(len(row))))}</tr>\n" for row in strip.rows)
    head = f'<thead><tr><th scope="col">query</th>{found}</tr></thead>'
    grid = f'<table class="strip">\n{head}\n<tbody>\n{"".join(lines)}</tbody>\n</table>'
    inside = _scroll(strip.title, grid) if n_neighbours >= 0 else _small("nothing to draw")
    return f"<section>\n<h2>{escape(strip.title)}</h2>\n{inside}{_small(strip.caption)}</section>\n"


def _draw_picture(picture: Picture, place: int) -> str:
    """One cell of a strip; place 0 is the query."""
    kind, mark, verdict = MARKS[None if picture.is_right is None else bool(picture.is_right)]
    address = picture_address(picture.pixels)
    words = escape(f"{f'found {place}' if place else 'query'}: {picture.label}{verdict}")
    label = f'<div class="label">{mark}{escape(picture.label)}</div>'
    return f'<td class="{kind}"><img src="{address}" alt="{words}" title="{words}"/>{label}</td>'


def _scroll(title: str, inside: str) -> str:
    return f'<div class="scroll" role="region" aria-label="{escape(title)}" tabindex="0">\n{inside}\n</div>\n'


def _small(text: str) -> str:
    return f'<p class="small">{escape(text)}</p>\n' if text else ""


_MARK = '<svg class="mark" viewBox="0 0 12 12" width="12" height="12" aria-hidden="true"><path d="{}"/></svg> '
MARKS = {
    None: ("unjudged", "", ""),
    True: ("right-answer", _MARK.format("M1.5,6.5L4.5,9.5L10.5,2.5"), ", right"),
    False: ("wrong-answer", _MARK.format("M2,2L10,10M2,10L10,2"), ", wrong"),
}

HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
"""

STYLE = """
:root { --paper: #fff; --ink: #1b1f24; --muted: #5d6670; --rule: #d5d9de; --good: #14734f; --bad: #b3261e }
.k0 { --colour: #1b7fe0 } .k1 { --colour: #8a2400 } .k2 { --colour: #14907a } .k3 { --colour: #6b0f86 }
.k4 { --colour: #a98a00 } .k5 { --colour: #16161c } .k6 { --colour: #3a36e0 }
@media screen and (prefers-color-scheme: dark) {
  :root { --paper: #14171c; --ink: #e8eaed; --muted: #a0a8b2; --rule: #353b44; --good: #5fd0a0; --bad: #ff8a80 }
  .k0 { --colour: #3cc3ff } .k1 { --colour: #d0851d } .k2 { --colour: #55a060 } .k3 { --colour: #c070b0 }
  .k4 { --colour: #fff04a } .k5 { --colour: #ffe0dc } .k6 { --colour: #7a7dff } }
* { box-sizing: border-box } .scroll { overflow-x: auto } figure { margin: 0; break-inside: avoid }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif }
main { max-width: 70rem; margin: 0 auto; padding: 2rem 1.25rem 4rem }
h1 { font-size: clamp(1.4rem, 4vw, 1.8rem); line-height: 1.2; margin: 0 0 .75rem }
h2 { font-size: 1.05rem; line-height: 1.3; margin: 0 0 .6rem }
section, .charts { margin-top: 2.5rem }
.lead { max-width: 46rem; margin: 0 0 .75rem; font-size: 1.05rem }
.small, figcaption { max-width: 46rem; margin: .6rem 0 0; color: var(--muted); font-size: .875rem }
table { border-collapse: collapse; font-size: .9375rem; font-variant-numeric: tabular-nums }
th, td { padding: .3rem .75rem; border-bottom: 1px solid var(--rule); font-weight: normal; text-align: left }
th:first-child, td:first-child { padding-left: 0; position: sticky; left: 0; background: var(--paper) }
thead th { color: var(--muted); font-size: .8125rem; vertical-align: bottom; border-color: var(--muted) }
.right { text-align: right } .reference > * { color: var(--muted); font-style: italic }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 25rem), 1fr)); gap: 2.5rem 2rem }
.chart { display: block; width: 100%; height: auto; overflow: visible; font-size: 13px }
.chart text { fill: var(--ink) } .chart .tick { fill: var(--muted); font-variant-numeric: tabular-nums }
.legend svg { flex: none } .grid { stroke: var(--rule); stroke-width: .75 } .axis { stroke: var(--muted) }
.line { fill: none; stroke: var(--colour); stroke-width: 2; stroke-linejoin: round; stroke-linecap: round }
.marker { fill: var(--colour); stroke: var(--colour); stroke-width: 1.6 }
.hover { fill: transparent } .point:hover .hover { fill: var(--colour); opacity: .3 }
.legend { display: flex; flex-wrap: wrap; gap: .15rem 1.1rem; margin: .4rem 0 0; padding: 0; list-style: none }
.legend li { display: flex; align-items: center; gap: .4rem; font-size: .875rem; overflow-wrap: anywhere }
.strip td, .strip th { border: 0; padding: .25rem .8rem .25rem 0; text-align: center; vertical-align: top }
.strip td:first-child { padding-right: 1.6rem } .strip thead th { text-align: left }
.strip img { display: block; width: 4rem; aspect-ratio: 1; object-fit: contain; image-rendering: pixelated }
.strip img { border: 2px solid var(--verdict, var(--muted)) } .strip .wrong-answer img { border-style: dashed }
.right-answer { --verdict: var(--good) } .wrong-answer { --verdict: var(--bad) }
.label { max-width: 4rem; margin-top: .2rem; font-size: .8125rem; line-height: 1.3; overflow-wrap: anywhere }
.mark { fill: none; stroke: var(--verdict); stroke-width: 2.2; vertical-align: -1px }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1.25rem; margin: 0; font-size: .9375rem }
dt { color: var(--muted) } dd { margin: 0; overflow-wrap: anywhere }
@media print { main { max-width: none; padding: 0 } section { break-inside: avoid } .scroll { overflow: visible } }
"""
