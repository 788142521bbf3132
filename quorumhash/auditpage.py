"""An audit as a page: findings, views, histograms of p-values, and pictures beside those they belong to."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from quorumhash.errors import ParameterError
from quorumhash.report import Chart, Curve, Picture, Report, Strip, Table

N_BARS = 20  # of a histogram
MOST_PICTURES = 12  # rows of a strip
MOST_FINDINGS = 200
SUFFIXES = {".png", ".jpg", ".jpeg", ".gif", ".webp"}


def audit_page(report: Any, images: Any = None) -> Report:
    """The page of an AuditReport; `images` is a folder, or one picture per row (file bytes, paths or 2-D arrays)."""
    pictures = None if images is None else Pictures(images, len(report))
    damaged = int((report.kinds != "").any(axis=1).sum())
    lead = (
        f"{len(report):,} rows in {len(report.names)} views; {damaged:,} rows have a view that is damaged or missing. "
        f"A p-value is the share of undamaged views that would look at least as suspicious; "
        f"a verdict needs one below {report.false_alarms:g} and odds that leave little doubt."
    )
    tables = (_findings_table(report), _views_table(report), _overlap_table(report))
    strips = () if pictures is None else tuple(_strips(report, pictures))
    return Report("Audit", lead, tables, tuple(_histograms(report)), strips, (("rows", f"{len(report):,}"),))


def _findings_table(report: Any) -> Table:
    rows = tuple(
        (finding.kind, finding.view, len(finding.rows), 100 * finding.share, finding.sentence)
        for finding in report.findings[:MOST_FINDINGS]
    )
    note = "Whole-table findings first." if rows else "Nothing is wrong at this rate of false alarms."
    return Table("Findings", ("kind", "view", "rows", "percent", "what was found"), rows, note)


def _views_table(report: Any) -> Table:
    summary = report.summary()
    kinds = [kind for kind in summary[0]["kinds"] if any(view["kinds"][kind] for view in summary)]
    rows = tuple(
        (view["name"], *(100 * view["kinds"][kind] for kind in kinds), 100 * view["suspicious"]) for view in summary
    )
    return Table("Views", ("view", *kinds, f"p below {report.false_alarms:g}"), rows, "Percent of the rows.")


def _overlap_table(report: Any) -> Table:
    rows = tuple(
        (name, *(None if m == n else float(report.overlap[m, n]) for n in range(len(report.names))))
        for m, name in enumerate(report.names)
    )
    note = "How much more often than by chance two views name the same neighbours; 1 is chance."
    return Table("Overlap of views", ("view", *report.names), rows, note)


def _histograms(report: Any) -> list[Chart]:
    """Share of the rows per twentieth of p: even where nothing is wrong, a peak at 0 where something is."""
    edges = np.linspace(0.0, 1.0, N_BARS + 1)
    charts = []
    for m, name in enumerate(report.names):
        values = report.p_values[:, m]
        values = values[~np.isnan(values)]
        counts = np.histogram(values, edges)[0] / max(len(values), 1)
        outline = np.repeat(edges, 2)[1:-1], np.repeat(counts, 2)
        charts.append(Chart(f"p-values of {name}", "p-value", "share of rows", (Curve(name, *outline),), y_min=0.0))
    return charts


def _strips(report: Any, pictures: Pictures) -> list[Strip]:
    """Of every view with misplaced rows: each row's own picture, then those of the rows its data belong to."""
    strips = []
    for m, name in enumerate(report.names):
        misplaced = np.flatnonzero((report.partners[:, m, 0] >= 0) & (report.kinds[:, m] != ""))
        order = np.argsort(report.p_values[misplaced, m], kind="stable")
        rows = []
        for row in misplaced[order][:MOST_PICTURES].tolist():
            partners = [int(j) for j in report.partners[row, m] if j >= 0]
            rows.append(tuple(Picture(pictures[j], f"row {j}", None) for j in (row, *partners)))
        if rows:
            caption = "First the picture of the row, then those of the rows that its data in this view may belong to."
            strips.append(Strip(f"Misplaced in {name}", tuple(rows), caption))
    return strips


class Pictures:
    """Pictures by row: of a folder, those whose names are row numbers, or one file per row in the order of names."""

    def __init__(self, images: Any, n_rows: int) -> None:
        self._given: Sequence[Any] | dict[int, Path]
        if isinstance(images, str | os.PathLike):
            self._given = _files(Path(images), n_rows)
        elif len(images) == n_rows:
            self._given = images
        else:
            raise ParameterError(f"images must be a folder or one picture per row ({n_rows}), got {len(images)}.")

    def __getitem__(self, row: int) -> Any:
        if isinstance(self._given, dict) and row not in self._given:
            return np.zeros((1, 1), dtype=np.uint8)
        found = self._given[row]
        if isinstance(found, str | os.PathLike):
            return Path(found).read_bytes()
        return found if isinstance(found, bytes) else _grey(np.asarray(found))


def _grey(pixels: Any) -> Any:
    return pixels if pixels.ndim == 2 else pixels.mean(axis=2).astype(pixels.dtype)


def _files(folder: Path, n_rows: int) -> dict[int, Path]:
    if not folder.is_dir():
        raise ParameterError(f"there is no folder {folder}: give one that holds the pictures of the rows.")
    files = sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES)
    if files and all(path.stem.isdecimal() for path in files):
        return {int(path.stem): path for path in files}
    if len(files) == n_rows:
        return dict(enumerate(files))
    raise ParameterError(
        f"{folder} holds {len(files)} pictures for {n_rows} rows: give one per row, or name them by row number."
    )
