"""Rows that too many items share: zeros, a placeholder, a default picture.

Near-duplicates fall into one cell of a fine grid. Items that are alike in all views are copies of one item, and a view
of few values is one by nature: neither is a mass point.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace, device

FloatArray = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

MASS_SHARE, MASS_ROWS = 0.003, 3  # a row shared by more than this share of the sample, and more rows than this
MANY_CELLS, COPIES = 5, 0.2
GRID = 1e4  # near-duplicates agree to this many steps of a view's spread


def learn_mass_points(signatures: Sequence[FloatArray], present: Flags) -> list[tuple[FloatArray, FloatArray]]:
    """For every view: probes (s, 3) and the grid cells (p, 3) that too many present rows fall into.

    Items that are alike in all views are copies of one item, not a placeholder; and a view in which many cells hold
    most of the rows is one of few values by nature.
    """
    probes = [_probes(part, present[:, m]) for m, part in enumerate(signatures)]
    cells = [grid_cells(part, probe) for part, probe in zip(signatures, probes, strict=True)]
    found = [np.unique(part, axis=0, return_inverse=True, return_counts=True) for part in cells]
    places = [inverse.ravel() for _, inverse, _ in found]
    learned = []
    for m, (points, _, _) in enumerate(found):
        rows = np.flatnonzero(present[:, m])
        counts = np.bincount(places[m][rows], minlength=len(points))
        crowded = np.flatnonzero(counts > max(MASS_ROWS, MASS_SHARE * len(rows)))
        if len(crowded) > MANY_CELLS and counts[crowded].sum() > len(rows) / 2:
            crowded = crowded[:0]
        mass = [c for c in crowded if counts[c] < len(rows) and _varies(places, present, m, rows[places[m][rows] == c])]
        learned.append((probes[m], points[np.array(mass, dtype=int)]))
    return learned


def _probes(rows: FloatArray, present: Flags) -> FloatArray:
    rng = np.random.default_rng(rows.shape[1])
    spread = max(float(np.sqrt((rows[present] ** 2).sum(1).mean())) if present.any() else 0.0, 1e-300)
    return np.asarray(rng.standard_normal((rows.shape[1], 3)) * GRID / spread)


def _varies(places: Sequence[npt.NDArray[np.intp]], present: Flags, view: int, rows: npt.NDArray[np.intp]) -> bool:
    """Whether rows that are one in this view are many in another; true where there is no other."""
    others = [n for n in range(len(places)) if n != view and present[rows, n].any()]
    return not others or any(
        len(np.unique(places[n][rows[present[rows, n]]])) > COPIES * present[rows, n].sum() for n in others
    )


def grid_cells(rows: Any, probes: Any) -> Any:
    """Cells (n, 3) of a fine grid: rows that are equal, or nearly so, fall into one."""
    return array_namespace(rows).round(rows @ probes)


def is_mass_point(rows: Any, probes: Any, points: Any) -> Any:
    """Whether each row falls within one step of a mass point, (n,): rounding may fall to either side."""
    cells = grid_cells(rows, probes)
    xp = array_namespace(cells)
    inside = xp.zeros(cells.shape[0], dtype=xp.bool, device=device(cells))
    for i in range(points.shape[0]):
        inside = inside | xp.all(xp.abs(cells - points[i]) <= 1.0, axis=1)
    return inside
