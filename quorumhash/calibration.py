"""From a vote to honest odds and p-values, by comparison with mismatches made on purpose.

F   the votes of real rows, a mixture: right rows F0, and a share e of wrong ones F1
F1  the votes of rows whose view was taken from another item

e         the smallest F(t) / F1(t): where mismatches lie there cannot be fewer real rows than wrong ones
F0(t)     (F(t) - e F1(t)) / (1 - e), the p-value of a vote of t
a t + b   the log of f0 / f1, by logistic regression of the real rows against the mismatches
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace

from quorumhash.checks import check_shape, is_number, require

FloatArray = npt.NDArray[np.float64]

SMALLEST_SHARE, LARGEST_SHARE, FIRST_SHARE = 0.003, 0.6, 0.1
FEWEST_ROWS = 30  # below this nothing can be calibrated
N_POINTS = 64  # of a curve
NEWTON_STEPS, SETTLED = 20, 1e-12
LARGEST_SLOPE = 1.0
APART = 0.5  # the largest gap between right rows and mismatches from which on e is known


@dataclass(frozen=True)
class Curve:
    """The log p-value as a line through points: statistic (p,) rising, log p (p,) rising."""

    statistic: FloatArray = field(default_factory=lambda: np.array([-1.0, 0.0]))
    log_p: FloatArray = field(default_factory=lambda: np.array([0.0, 0.0]))


@dataclass(frozen=True)
class Calibration:
    """Log odds that a row is right = slope * vote + log_odds; `curve` gives p-values; e = wrong_share."""

    slope: float = 0.5
    log_odds: float = float(np.log((1 - FIRST_SHARE) / FIRST_SHARE))
    wrong_share: float = FIRST_SHARE
    curve: Curve = field(default_factory=Curve)


def calibrate(
    real: FloatArray, fake: FloatArray, evened: tuple[FloatArray, FloatArray] | None = None,
    largest_share: float = LARGEST_SHARE,
) -> Calibration:  # fmt: skip
    """Calibrate one view from votes of real rows and of mismatched ones; NaN where a row was ruled out.

    Odds are those of the votes; p-values those of the same votes, real and mismatched, `evened` (trust.py) if given.
    """
    parts = real, fake, *(evened or (real, fake))
    real, fake, even_real, even_fake = (np.sort(part[~np.isnan(part)]) for part in parts)
    if min(len(real), len(fake)) < FEWEST_ROWS or fake[0] == fake[-1]:
        return Calibration()
    raw = min(_wrong_share(real, fake), largest_share)
    share = float(np.clip(raw, SMALLEST_SHARE, LARGEST_SHARE))
    slope, offset, share = _logistic(real, fake, share)
    log_odds = offset + float(np.log((1 - share) / share))
    return Calibration(
        slope, log_odds, share, _curve(even_real, even_fake, min(raw, share) if share <= SMALLEST_SHARE else share)
    )


def _below(ordered: FloatArray, levels: FloatArray) -> FloatArray:
    shares: FloatArray = np.searchsorted(ordered, levels, side="right") / len(ordered)
    return shares


def _wrong_share(real: FloatArray, fake: FloatArray) -> float:
    """e, each ratio raised by its own standard error: the smallest of many noisy ones would be too small."""
    lowest = min(0.5, max(0.05, 20 / len(fake)))
    levels = np.quantile(fake, np.linspace(lowest, 0.8, 16))
    mismatched = _below(fake, levels)
    ratios = _below(real, levels) / mismatched
    most = float((ratios + np.sqrt(ratios / (mismatched * len(real)))).min())
    # that is the most e can be; where right rows and mismatches vote much alike it is near 1 and says nothing, so it is
    # believed only as far as the two are apart: F1 - F = (1 - e) (F1 - F0)
    votes = np.concatenate([real, fake])
    gap = max(0.0, float((_below(fake, votes) - _below(real, votes)).max()))
    share = 0.0
    for _ in range(8):
        share = most * min(1.0, gap / (APART * max(1.0 - share, 1e-9)))
    return share


def _logistic(real: FloatArray, fake: FloatArray, share: float) -> tuple[float, float, float]:
    """Slope and offset of log f0 / f1, and e again: real rows count as right as far as the odds found so far say so."""
    votes = np.concatenate([real, fake])
    target = np.concatenate([np.ones(len(real)), np.zeros(len(fake))])
    slope, offset = 0.5, 0.0
    least, most = share, min(2 * share, LARGEST_SHARE)
    for _ in range(NEWTON_STEPS):
        odds = np.log((1 - share) / share) + slope * real + offset
        right = 1.0 / (1.0 + np.exp(-np.clip(odds, -30, 30)))
        weights = np.concatenate([right / max(right.sum(), 1e-12), np.full(len(fake), 1.0 / len(fake))])
        guess = 1.0 / (1.0 + np.exp(-np.clip(slope * votes + offset, -30, 30)))
        design = np.stack([votes, np.ones_like(votes)])
        curvature = (design * (weights * guess * (1 - guess))) @ design.T + 1e-9 * np.eye(2)
        step = np.linalg.solve(curvature, design @ (weights * (target - guess)))
        before = slope, offset, share
        slope, offset = slope + float(np.clip(step[0], -0.5, 0.5)), offset + float(np.clip(step[1], -2, 2))
        slope = float(np.clip(slope, 1e-3, LARGEST_SLOPE))
        share = float(np.clip(1.0 - right.mean(), least, most))
        if np.abs(np.subtract(before, (slope, offset, share))).max() < SETTLED:
            break
    return slope, offset, share


def _curve(real: FloatArray, fake: FloatArray, share: float) -> Curve:
    levels = np.quantile(
        real, np.concatenate([np.geomspace(1.0 / len(real), 0.5, N_POINTS // 2), np.linspace(0.51, 1, N_POINTS // 2)])
    )
    right = (_below(real, levels) - share * _below(fake, levels)) / (1 - share)
    return _with_tail(_rising(levels, np.clip(right, 0.25 / len(real), 1.0)))


def curve_of_upper_tail(values: FloatArray, bulk: tuple[float, float]) -> Curve:
    """P-values of large values as a curve of minus the value: counted within the bulk, exponential beyond its start.

    The rate of the tail is that of an exponential seen through the window `bulk`: what lies above it may be noise.
    """
    start, stop = bulk
    inside = np.sort(values[values <= stop])
    excess = inside[inside > start] - start
    if len(excess) < FEWEST_ROWS // 3:
        return Curve(np.array([-stop - 40.0, -start, 0.0]), np.array([-80.0 - 2 * (stop - start), -2.0, 0.0]))
    scale = _truncated_scale(float(excess.mean()), stop - start)
    ahead = len(excess) / len(inside)
    below = np.quantile(inside, np.linspace(0.0, 1.0 - ahead, N_POINTS // 2))[::-1]
    log_p = np.log(np.linspace(ahead, 1.0, N_POINTS // 2))
    far = start + scale * 80.0
    return _rising(np.concatenate([[-far], -below]), np.exp(np.concatenate([[log_p[0] - 80.0], log_p])))


def _truncated_scale(mean: float, width: float) -> float:
    """The scale of an exponential whose part below `width` has this mean; at most the width (a flat one has none)."""
    scale = mean
    for _ in range(50):
        ratio = width / scale
        scale = min(mean + width / np.expm1(min(ratio, 50.0)), width)
    return float(scale)


def _rising(levels: FloatArray, p: FloatArray) -> Curve:
    """A strictly rising curve."""
    levels, first = np.unique(levels, return_index=True)
    log_p = np.log(np.maximum.accumulate(p[first]))
    return Curve(levels, log_p + 1e-9 * np.arange(len(log_p)))


def _with_tail(curve: Curve) -> Curve:
    """A straight tail below the first point, so that worse rows stay apart."""
    spread = max(float(curve.statistic[len(curve.statistic) // 2] - curve.statistic[0]), 1e-9)
    return Curve(
        np.concatenate([[curve.statistic[0] - 20.0 * spread], curve.statistic]),
        np.concatenate([[curve.log_p[0] - 40.0], curve.log_p]),
    )


def log_p_rows(curve: Curve, statistic: Any) -> Any:
    """The log p-value (n,) of each statistic: linear in log p between points, constant beyond the last."""
    xp = array_namespace(statistic)
    x, y = xp.asarray(curve.statistic), xp.asarray(curve.log_p)
    statistic = statistic + 0.0  # on its own, no longer a column of a table: torch warns of those
    at = (xp.searchsorted(x, statistic, side="right") - 1).clip(0, x.shape[0] - 2)
    share = ((statistic - x[at]) / (x[at + 1] - x[at])).clip(0.0, 1.0)
    return (y[at] + share * (y[at + 1] - y[at])).clip(None, 0.0)


def check_curve(curve: Any) -> None:
    """Refuse a curve that does not rise."""
    require(isinstance(curve, Curve))
    check_shape(curve.statistic, (None,))
    check_shape(curve.log_p, (len(curve.statistic),))
    require(len(curve.statistic) > 1 and bool((np.diff(curve.statistic) > 0).all()))


def check_calibration(calibration: Any) -> None:
    """Refuse a calibration without slope."""
    require(isinstance(calibration, Calibration) and is_number(calibration.slope) and calibration.slope > 0)
    require(is_number(calibration.log_odds) and is_number(calibration.wrong_share))
    check_curve(calibration.curve)
