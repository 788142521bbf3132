"""The items most like an item by most of its views, and each view replaced by what they have there.

    distance of two items = median over the views both have of their scaled distances in the view
    mended view = median, feature by feature, over the nearest stored rows that have it

A median over views is not moved by a minority of damaged ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace

from quorumhash.checks import check_shape, require
from quorumhash.similarity import nearest_landmarks, squared_distances
from quorumhash.steps.bounds import Bound, BoundedSample, bounded_rows, check_bounds

FAR = 1e30  # distance of items that have no view in common
ROWS_AT_ONCE = 256  # a (rows, views, stored rows) cube is held
ROWS_FOR_SCALE = 300


@dataclass(frozen=True)
class Neighbourhood:
    """Bounds of the views, stored rows (s, d_m) of each, which of them are there (s, M, 0 or 1), typical squared
    distance in each view (M,), neighbours k."""

    bounds: tuple[Bound, ...]
    rows: tuple[npt.NDArray[np.float32], ...]
    present: npt.NDArray[np.float64]
    scales: npt.NDArray[np.float64]
    n_neighbors: int


def learn_neighbourhood(bounds: tuple[Bound, ...], sample: BoundedSample, n_neighbors: int) -> Neighbourhood:
    """Store the sample; the scale of a view is the median squared distance between its rows."""
    scales = []
    for m, rows in enumerate(sample.rows.values()):
        held = rows[sample.present[:, m]]
        median = float(np.median(squared_distances(held[:ROWS_FOR_SCALE], held)))
        scales.append(median if median > 0 else 1.0)
    return Neighbourhood(
        bounds, tuple(sample.rows.values()), sample.present.astype(np.float64), np.array(scales), n_neighbors
    )


def mended_by_neighbours(hood: Neighbourhood, present: Any, *blocks: Any) -> Any:
    """The views of one block side by side, each the median over the neighbours, (n, sum of d); a single view stays."""
    rows = bounded_rows(hood.bounds, *blocks)
    if len(rows) == 1:
        return rows[0]
    starts = range(0, rows[0].shape[0], ROWS_AT_ONCE)
    parts = [
        _mended(hood, present[start : start + ROWS_AT_ONCE], [part[start : start + ROWS_AT_ONCE] for part in rows])
        for start in starts
    ]
    return array_namespace(present).concat(parts)


def _mended(hood: Neighbourhood, present: Any, rows: list[Any]) -> Any:
    xp = array_namespace(present)
    stored = hood.present > 0
    near = nearest_landmarks(_median_distances(hood, present, stored, rows), hood.n_neighbors, 1.0).positions
    parts = [
        masked_median(xp.astype(part[near], xp.float64), stored[near][:, :, m, None], 0.0)
        for m, part in enumerate(hood.rows)
    ]
    return xp.concat(parts, axis=1)


def _median_distances(hood: Neighbourhood, present: Any, stored: Any, rows: list[Any]) -> Any:
    xp = array_namespace(present)
    distances = [
        xp.sqrt(squared_distances(xp.astype(part, xp.float32), hood.rows[m]) / hood.scales[m])
        for m, part in enumerate(rows)
    ]
    known = present[:, :, None] & stored.T[None, :, :]
    return masked_median(xp.stack(distances, axis=1), known, FAR)


def masked_median(values: Any, known: Any, otherwise: float) -> Any:
    """Median (n, p) of values (n, k, p) over k, of those that are known (n, k, p or 1); `otherwise` where none is.

    >>> masked_median(np.array([[[3.0], [9.0], [5.0]]]), np.array([[[True], [False], [True]]]), 0.0)
    array([[4.]])
    """
    xp = array_namespace(values)
    ordered = xp.sort(xp.where(known, values, xp.inf), axis=1)
    count = xp.sum(xp.astype(known, xp.int64), axis=1)
    low, high = (count - 1).clip(0, None) // 2, count // 2
    total = xp.zeros_like(ordered[:, 0, :])
    for j in range(values.shape[1]):
        halves = xp.astype(low == j, total.dtype) + xp.astype(high == j, total.dtype)
        total = total + xp.where(halves > 0, ordered[:, j, :], 0.0) * (0.5 * halves)
    return xp.where(count > 0, total, otherwise)


def check_neighbourhood(hood: Any, widths: tuple[int, ...]) -> None:
    """Refuse parts that do not fit each other or these views."""
    require(isinstance(hood, Neighbourhood) and len(hood.rows) == len(widths))
    check_bounds(hood.bounds, widths)
    for rows, width in zip(hood.rows, widths, strict=True):
        check_shape(rows, (len(hood.present), width))
    check_shape(hood.present, (None, len(widths)))
    check_shape(hood.scales, (len(widths),))
    require(len(hood.present) > 0 and (hood.scales > 0).all())
    require(isinstance(hood.n_neighbors, int) and hood.n_neighbors > 0)
