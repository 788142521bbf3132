"""What speaks for and against a row of a view: is it shared by too many items, is it far out, does it fit the others?

    mass point   the row is one that too many items share: zeros, a placeholder, a default picture (masspoints.py)
    density      the row lies far outside what rows of this view look like: noise
    agreement    the row does not go with the item's other views: a swapped picture, a shifted join

Agreement is a likelihood ratio. In the canonical variates u, v of two views (correlations r) a matching pair is
Gaussian with correlation r and a mismatched one has none, so a pair of rows speaks with the log odds

    l = sum over variates of  (2 r u v - r^2 (u^2 + v^2)) / (2 (1 - r^2)) - log(1 - r^2) / 2

Learned on the host, from a sample of signatures (coordinates.py) weighted by the trust found so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace

from quorumhash.checks import check_shape, is_number, require
from quorumhash.similarity import squared_lengths

FloatArray = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

RIDGE = 1e-2  # of the mean variance, in whitening for agreement
DENSITY_RIDGE = 1e-3
LARGEST_CORRELATION = 0.98
SMALLEST_SPREAD = 0.02  # of log lengths
SEPARATION, FEWEST_APART = 4.0, 5
NOWHERE = 1e9
APART = 40.0  # deviations a row in the noise cluster is moved up by
LARGEST_EVIDENCE = 20.0  # no pair of views may say more than e^20 to 1


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


@dataclass(frozen=True)
class PairTest:
    """Canonical variates of two views: u = a left - left_offset, v = b right - right_offset.

    l = base + (u v) . product - (u^2 + v^2) . square
    """

    first: int
    second: int
    left: FloatArray  # (s_a, c)
    right: FloatArray  # (s_b, c)
    left_offset: FloatArray
    right_offset: FloatArray
    product: FloatArray  # (c,) r / (1 - r^2)
    square: FloatArray  # (c,) r^2 / (2 (1 - r^2))
    base: float  # -sum of log(1 - r^2) / 2, what the two views tell about each other
    shares: FloatArray  # (2,) of this pair among those in which the other's source votes on first, on second


def learn_view(
    rows: FloatArray, n_signature: int, weights: FloatArray, usable: Flags, masses: tuple[FloatArray, FloatArray]
) -> tuple[ViewTests, FloatArray]:
    """The density test, and the deviations (n,) of the rows it was learned from; `masses` are probes and points.

    Whitening from weighted rows, then where the bulk of the log lengths of usable rows lies. Noise sits on one side
    only, above the bulk: the mode of the lower half and what lies below it are safe from it.
    """
    view = _whitened_view(rows, n_signature, weights, *masses)
    if not usable.any():
        return view, density_deviations(view, rows)
    lengths = log_lengths(view, rows)
    apart = (lengths > _cluster_limits(lengths[usable])).any(axis=1)
    if apart.any():  # a cluster of its own far above the rest would widen every spread it is measured by
        view = _whitened_view(rows, n_signature, np.where(apart, 0.0, weights), *masses)
        lengths = log_lengths(view, rows)
    counted = lengths[usable]
    limits = _cluster_limits(counted)
    modes = np.array([_half_sample_mode(np.sort(counted[:, i])[: (len(counted) + 1) // 2]) for i in range(2)])
    below = [mode - column[column < mode] for mode, column in zip(modes, counted.T, strict=True)]
    spreads = np.array([1.4826 * float(np.median(part)) if part.size else 1.0 for part in below])
    view = replace(view, modes=modes, spreads=np.maximum(spreads, SMALLEST_SPREAD), limits=limits)
    return view, _deviations(view, lengths)


def _whitened_view(
    rows: FloatArray, n_signature: int, weights: FloatArray, probes: FloatArray, points: FloatArray
) -> ViewTests:
    mean, covariance, _ = _moments(rows[:, :n_signature], weights)
    floor = DENSITY_RIDGE * max(float(np.trace(covariance)) / n_signature, 1e-300)
    grain, total = rows[:, n_signature:], max(float(weights.sum()), 1e-300)
    grain_mean = weights @ grain / total
    squares = np.einsum("i,ij,ij->j", weights, grain, grain) / total
    grain_spread = np.sqrt(np.maximum(squares - grain_mean**2, 0.0) + floor)
    whitening = _whitening(covariance, DENSITY_RIDGE)
    unknown = np.zeros(2), np.ones(2), np.full(2, NOWHERE)
    return ViewTests(probes, points, mean, whitening, grain_mean, grain_spread, *unknown)


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


def learn_pair(
    a: int, b: int, signatures: Sequence[FloatArray], n_signature: Sequence[int], weights: FloatArray
) -> PairTest:
    """Canonical correlations of two views by weighted rows (n,), less what chance alone would give with so few rows."""
    first, second = signatures[a][:, : n_signature[a]], signatures[b][:, : n_signature[b]]
    (mean_a, cov_a, scaled_a), (mean_b, cov_b, scaled_b) = _moments(first, weights), _moments(second, weights)
    white_a, white_b = _whitening(cov_a, RIDGE), _whitening(cov_b, RIDGE)
    total = max(float(weights.sum()), 1e-300)
    cross = scaled_a.T @ scaled_b / total - np.outer(mean_a, mean_b)
    left, found, right = np.linalg.svd(white_a.T @ cross @ white_b, full_matrices=False)
    chance = (white_a.shape[1] + white_b.shape[1]) / total
    correlations = np.sqrt(np.clip(found**2 - chance, 0.0, LARGEST_CORRELATION**2))
    kept = correlations > 0
    left, right = white_a @ left[:, kept], white_b @ right.T[:, kept]
    r = correlations[kept]
    product, base = r / (1.0 - r**2), -0.5 * float(np.log1p(-(r**2)).sum())
    return PairTest(a, b, left, right, mean_a @ left, mean_b @ right, product, product * r / 2.0, base, np.ones(2))


def pair_evidence(pair: PairTest, first: Any, second: Any) -> Any:
    """Log odds (n,) that the rows of two views belong together."""
    return odds_of_variates(pair, *pair_variates(pair, first, second))


def pair_variates(pair: PairTest, first: Any, second: Any) -> tuple[Any, Any]:
    """Canonical variates u, v (n, c) of rows of the two views."""
    u, v = first[:, : pair.left.shape[0]] @ pair.left, second[:, : pair.right.shape[0]] @ pair.right
    u -= pair.left_offset
    v -= pair.right_offset
    return u, v


def odds_of_variates(pair: PairTest, u: Any, v: Any) -> Any:
    """Log odds (n,) that they belong together."""
    squares = u * u
    squares += v * v
    odds = pair.base + (u * v) @ pair.product - squares @ pair.square
    return odds.clip(-LARGEST_EVIDENCE, LARGEST_EVIDENCE)


def _moments(rows: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Weighted mean (s,) and covariance (s, s), and the rows times the roots of their weights.

    The mean is taken off the sums, not off the rows: signatures are centred but for damage, and copies of rows are what
    learning spends its time on.
    """
    total = max(float(weights.sum()), 1e-300)
    mean = weights @ rows / total
    scaled = rows * np.sqrt(weights)[:, None]
    return mean, scaled.T @ scaled / total - np.outer(mean, mean), scaled  # by itself: half of the work of a product


def _whitening(covariance: FloatArray, ridge: float) -> FloatArray:
    values, vectors = np.linalg.eigh(covariance)
    values = np.maximum(values, 0.0)
    whitening: FloatArray = vectors / np.sqrt(values + ridge * max(float(values.mean()), 1e-300))
    return whitening


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


def check_pair(pair: Any, widths: Sequence[int]) -> None:
    """Refuse what is no test of two of these views."""
    require(isinstance(pair, PairTest) and 0 <= pair.second < pair.first < len(widths) and is_number(pair.base))
    check_shape(pair.left, (widths[pair.first], None))
    n_variates = pair.left.shape[1]
    check_shape(pair.right, (widths[pair.second], n_variates))
    for part in (pair.left_offset, pair.right_offset, pair.product, pair.square):
        check_shape(part, (n_variates,))
    check_shape(pair.shares, (2,))
