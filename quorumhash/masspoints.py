"""Rows that too many items share: zeros, a placeholder, a default picture.

Near-duplicates fall into one cell of a fine grid. Items that are alike in all views are copies of one item, and a view
of few values is one by nature: neither is a mass point. A row of zeros is one even before it was ever seen: whatever
makes views makes it when it fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace, device

from quorumhash.tensors import beside, on_host

FloatArray = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

MASS_SHARE, MASS_ROWS = 0.003, 3  # a row shared by more than this share of the sample, and more rows than this
MANY_CELLS, COPIES = 5, 0.2
NEARLY_ALL = 0.99  # of the rows in a few cells: the view has no other values
GRID = 1e4  # near-duplicates agree to this many steps of a view's spread


def learn_mass_points(
    signatures: Sequence[Any], n_signature: Sequence[int], present: Flags,
    empties: Sequence[FloatArray] | None = None,
) -> list[tuple[FloatArray, FloatArray]]:  # fmt: skip
    """For every view: probes (s, 3) and the grid cells (p, 3) that too many present rows fall into.

    Items that are alike in all views are copies of one item, not a placeholder; and a view in which many cells hold
    most of the rows, or a few hold all of them, is one of few values by nature. `empties` are what a row of zeros looks
    like in every view (s,): where no row is one, they are mass points too.
    """
    probes = [_probes(part, n_signature[m], present[:, m]) for m, part in enumerate(signatures)]
    cells = [on_host(grid_cells(part, beside(probe, part))) for part, probe in zip(signatures, probes, strict=True)]
    found = [np.unique(part, axis=0, return_inverse=True, return_counts=True) for part in cells]
    places = [inverse.ravel() for _, inverse, _ in found]
    learned = []
    for m, (points, _, _) in enumerate(found):
        rows = np.flatnonzero(present[:, m])
        counts = np.bincount(places[m][rows], minlength=len(points))
        crowded = np.flatnonzero(counts > max(MASS_ROWS, MASS_SHARE * len(rows)))
        has_few_values = len(crowded) > 1 and counts[crowded].sum() > NEARLY_ALL * len(rows)
        if has_few_values or (len(crowded) > MANY_CELLS and counts[crowded].sum() > len(rows) / 2):
            crowded = crowded[:0]
        mass = [c for c in crowded if counts[c] < len(rows) and _varies(places, present, m, rows[places[m][rows] == c])]
        at = points[np.array(mass, dtype=int)]
        if empties is not None and len(rows):
            empty = grid_cells(empties[m][None], probes[m])
            is_known = np.abs(points[counts > 0] - empty).max(axis=1).min() <= 1.0
            at = at if is_known else np.concatenate([at, empty])
        learned.append((probes[m], at))
    return learned


def _probes(rows: Any, n_signature: int, present: Flags) -> FloatArray:
    """(s, 3); grain has no say, for it is shown along other directions by half of the rows learned from."""
    rng = np.random.default_rng(rows.shape[1])
    squares = on_host((rows * rows).sum(1))
    spread = max(float(np.sqrt(squares[present].mean())) if present.any() else 0.0, 1e-300)
    probes = rng.standard_normal((rows.shape[1], 3)) * GRID / spread
    probes[n_signature:] = 0.0
    return np.asarray(probes)


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
