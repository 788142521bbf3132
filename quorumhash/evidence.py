"""What speaks against a row of a view by itself: is it shared by too many items, is it far out?

    mass point   the row is one that too many items share: zeros, a placeholder, a default picture (masspoints.py)
    density      the row lies far outside what rows of this view look like: noise

Whether it goes with the item's other views: pairtests.py. Learned from a sample of signatures
(coordinates.py) weighted by the trust found so far.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace, is_numpy_array

from quorumhash.checks import check_shape, require
from quorumhash.similarity import squared_lengths
from quorumhash.tensors import beside, on_host
from quorumhash.whitening import weighted_moments, whitening_of, widest_columns

FloatArray = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

DENSITY_RIDGE = 1e-3  # of the mean variance
ROWS_PER_COLUMN, FEWEST_COLUMNS = 1.5, 8  # of few rows only the columns that vary most can be whitened
SMALLEST_SPREAD = 0.02  # of log lengths
SEPARATION, FEWEST_APART = 4.0, 5
NOWHERE = 1e9
APART = 40.0  # deviations a row in the noise cluster is moved up by


@dataclass(frozen=True)
class ViewTests:
    """Mass points and density of one view."""

    probes: FloatArray  # (s, 3) directions in which near-duplicates coincide
    mass_points: FloatArray  # (p, 3) grid cells that too many rows share
    mean: FloatArray  # (s,)
    whitening: FloatArray  # (s, s)
    grain_mean: FloatArray  # (g,)
    grain_spread: FloatArray  # (g,)
    modes: FloatArray  # (2,) of the log lengths of whitened signature and grain
    spreads: FloatArray  # (2,)
    limits: FloatArray  # (2,) log lengths above which a cluster of noise begins, NOWHERE if it does


def learn_view(
    rows: Any, n_signature: int, weights: FloatArray, usable: Flags, masses: tuple[FloatArray, FloatArray]
) -> tuple[ViewTests, FloatArray]:
    """The density test, and the deviations (n,) of the rows it was learned from; `masses` are probes and points.

    Whitening from weighted rows, then where the bulk of the log lengths of usable rows lies. Noise sits on one side
    only, above the bulk: the mode of the lower half and what lies below it are safe from it.
    """
    view = _whitened_view(rows, n_signature, weights, *masses)
    if not usable.any():
        return view, on_host(density_deviations(beside(view, rows), rows))
    lengths = _as_unseen(_lengths(view, rows), weights)
    apart = (lengths > _cluster_limits(lengths[usable])).any(axis=1)
    if apart.any():  # a cluster of its own far above the rest would widen every spread it is measured by
        weights = np.where(apart, 0.0, weights)
        view = _whitened_view(rows, n_signature, weights, *masses)
        lengths = _as_unseen(_lengths(view, rows), weights)
    counted = lengths[usable]
    limits = _cluster_limits(counted)
    modes = np.array([_half_sample_mode(np.sort(counted[:, i])[: (len(counted) + 1) // 2]) for i in range(2)])
    below = [mode - column[column < mode] for mode, column in zip(modes, counted.T, strict=True)]
    spreads = np.array([1.4826 * float(np.median(part)) if part.size else 1.0 for part in below])
    view = replace(view, modes=modes, spreads=np.maximum(spreads, SMALLEST_SPREAD), limits=limits)
    return view, _deviations(view, lengths)


def _lengths(view: ViewTests, rows: Any) -> FloatArray:
    """`log_lengths`, on the host."""
    return on_host(log_lengths(beside(view, rows), rows))


def _whitened_view(
    rows: Any, n_signature: int, weights: FloatArray, probes: FloatArray, points: FloatArray
) -> ViewTests:
    mean, covariance, _ = weighted_moments(rows[:, :n_signature], weights)
    floor = DENSITY_RIDGE * max(float(np.trace(covariance)) / n_signature, 1e-300)
    grain, total = rows[:, n_signature:], max(float(weights.sum()), 1e-300)
    there = beside(weights, rows)
    grain_mean = on_host(there @ grain) / total
    squares = np.einsum("i,ij,ij->j", there, grain, grain) if is_numpy_array(grain) else there @ (grain * grain)
    squares = on_host(squares) / total
    grain_spread = np.sqrt(np.maximum(squares - grain_mean**2, 0.0) + floor)
    whitening = np.zeros_like(covariance)
    n_columns = int(np.clip(total / ROWS_PER_COLUMN, min(FEWEST_COLUMNS, n_signature), n_signature))
    widest = np.ix_(*[widest_columns(covariance, n_columns)] * 2)
    whitening[widest] = whitening_of(covariance[widest], DENSITY_RIDGE)
    unknown = np.zeros(2), np.ones(2), np.full(2, NOWHERE)
    return ViewTests(probes, points, mean, whitening, grain_mean, grain_spread, *unknown)


def _as_unseen(lengths: FloatArray, weights: FloatArray) -> FloatArray:
    """Log lengths (n, 2) as they would be had whitening not seen the row: of wide views seen rows are the shorter ones.

    Without row i of weight w the inverse of the covariance gives it x' C^-1 x / (1 - w x' C^-1 x / sum of weights).
    """
    shares = weights * np.exp(2 * lengths[:, 0]) / max(float(weights.sum()), 1e-300)
    return lengths - np.stack([0.5 * np.log1p(-np.minimum(shares, 0.99)), np.zeros(len(lengths))], axis=1)


def _cluster_limits(lengths: FloatArray) -> FloatArray:
    """Where a cluster of long rows clearly apart from the rest begins, by the length that shows it best, (2,).

    The split with the largest variance between its sides (Otsu) counts if their means are SEPARATION spreads apart
    (Ashman's D): halves of one Gaussian have 2.6, of a flat distribution 3.5.
    """
    limits, largest = np.full(lengths.shape[1], NOWHERE), SEPARATION
    for i, x in enumerate(np.sort(lengths, axis=0).T):
        if len(x) < 4 * FEWEST_APART or x[0] == x[-1]:
            continue
        counts = np.arange((len(x) + 1) // 2, len(x) - FEWEST_APART)
        sums, squares = np.cumsum(x), np.cumsum(x**2)
        low, high = sums[counts - 1] / counts, (sums[-1] - sums[counts - 1]) / (len(x) - counts)
        best = int(np.argmax(counts * (len(x) - counts) * (high - low) ** 2))
        n = counts[best]
        lower = np.sqrt(max(squares[n - 1] / n - low[best] ** 2, 1e-12))
        upper = np.sqrt(max((squares[-1] - squares[n - 1]) / (len(x) - n) - high[best] ** 2, 1e-12))
        separation = (high[best] - low[best]) * np.sqrt(2) / np.hypot(lower, upper)
        if separation > largest:
            limits[:], largest = NOWHERE, separation
            limits[i] = (low[best] * upper + high[best] * lower) / (lower + upper)  # equally far from both
    return limits


def _half_sample_mode(values: FloatArray) -> float:
    """The mode of sorted values: the densest half of the densest half, and so on."""
    while len(values) > 10:
        half = (len(values) + 1) // 2
        start = int(np.argmin(values[half - 1 :] - values[: len(values) - half + 1]))
        values = values[start : start + half]
    return float(np.median(values))


def log_lengths(view: ViewTests, rows: Any) -> Any:
    """Log lengths of whitened signature and grain, (n, 2)."""
    xp = array_namespace(rows)
    n_signature = view.mean.shape[0]
    signature = rows[:, :n_signature] @ view.whitening
    signature -= view.mean @ view.whitening
    grain = rows[:, n_signature:] - view.grain_mean
    grain /= view.grain_spread
    return 0.5 * xp.log(xp.stack([squared_lengths(signature), squared_lengths(grain)], axis=1) + 1e-24)


def density_deviations(view: ViewTests, rows: Any) -> Any:
    """How many robust deviations a row lies above the bulk of its view, in signature or grain, (n,)."""
    return _deviations(view, log_lengths(view, rows))


def _deviations(view: ViewTests, lengths: Any) -> Any:
    xp = array_namespace(lengths)
    deviations = (lengths - view.modes) / view.spreads
    return xp.max(deviations + xp.where(lengths > view.limits, APART, 0.0), axis=1)


def check_view(view: Any, n_signature: int, n_grain: int) -> None:
    """Refuse what are no tests of a view with such a signature."""
    require(isinstance(view, ViewTests))
    check_shape(view.probes, (n_signature + n_grain, 3))
    check_shape(view.mass_points, (None, 3))
    check_shape(view.mean, (n_signature,))
    check_shape(view.whitening, (n_signature, n_signature))
    for part in (view.grain_mean, view.grain_spread):
        check_shape(part, (n_grain,))
    for part in (view.modes, view.spreads, view.limits):
        check_shape(part, (2,))
