"""Does a row of one view go with the item's row of another? A swapped picture does not, nor does a shifted join.

Agreement is a likelihood ratio. In the canonical variates u, v of two views (correlations r) a matching pair is
Gaussian with correlation r and a mismatched one has none, so a pair of rows speaks with the log odds

    l = sum over variates of  (2 r u v - r^2 (u^2 + v^2)) / (2 (1 - r^2)) - log(1 - r^2) / 2

Learned from a sample of signatures (coordinates.py) weighted by the trust found so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace

from quorumhash.checks import check_shape, is_number, require
from quorumhash.tensors import beside, on_host
from quorumhash.whitening import weighted_moments, whitening_of, widest_columns

FloatArray = npt.NDArray[np.float64]

RIDGE = 1e-2  # of the mean variance, in whitening
LARGEST_CORRELATION = 0.98
SMALLEST_SQUARE = 1e-12  # of a correlation: less is rounding
FEWER_COLUMNS = (64, 32, 16, 8)  # tried beside all columns
LARGEST_EVIDENCE = 20.0  # no pair of views may say more than e^20 to 1


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


def learn_pair(views: tuple[int, int], first: FloatArray, second: FloatArray, weights: FloatArray) -> list[PairTest]:
    """Canonical correlations of two views by weighted rows (n,), less what chance alone would give with so few rows.

    A test by all columns of the signatures (n, s), and one by each smaller number of those that vary most: chance grows
    with the columns, and where few right rows are left all of them together tell nothing. `separations` says which is
    best.
    """
    (mean_a, cov_a, scaled_a), (mean_b, cov_b, scaled_b) = (
        weighted_moments(first, weights),
        weighted_moments(second, weights),
    )
    total = max(float(weights.sum()), 1e-300)
    cross = on_host(scaled_a.T @ scaled_b) / total - np.outer(mean_a, mean_b)
    widest = max(len(cov_a), len(cov_b))
    tests = []
    for n_columns in (widest, *(n for n in FEWER_COLUMNS if n < widest)):
        rows, columns = widest_columns(cov_a, n_columns), widest_columns(cov_b, n_columns)
        covariances = cov_a[np.ix_(rows, rows)], cov_b[np.ix_(columns, columns)]
        *parts, r = _canonical(covariances[0], cross[np.ix_(rows, columns)], covariances[1], total)
        left, right = np.zeros((len(cov_a), len(r))), np.zeros((len(cov_b), len(r)))
        left[rows], right[columns] = parts
        product, told = r / (1.0 - r**2), -0.5 * float(np.log1p(-(r**2)).sum())
        offsets = mean_a @ left, mean_b @ right
        tests.append(PairTest(*views, left, right, *offsets, product, product * r / 2.0, told, np.ones(2)))
    return tests


def separations(tests: Sequence[PairTest], first: Any, second: Any) -> FloatArray:
    """How well each test tells pairs of rows as they are from mismatches, by rows (n, s) it has not seen: an AUC.

    Some of the rows are wrong, but the same ones for every test, and none is believed more than another.
    """
    found, shift = np.empty(len(tests)), 1 + len(first) // 3
    for i, test in enumerate(tests):
        there = beside(test, first)
        u, v = pair_variates(there, first, second)
        moved = array_namespace(v).roll(v, shift, axis=0)
        real, fake = (on_host(odds_of_variates(there, u, other)) for other in (v, moved))
        fake = np.sort(fake)
        found[i] = (np.searchsorted(fake, real, "left") + np.searchsorted(fake, real, "right")).mean() / (2 * len(fake))
    return found


def _canonical(
    cov_a: FloatArray, cross: FloatArray, cov_b: FloatArray, total: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Directions of the canonical variates in either view, and their correlations beyond chance."""
    white_a, white_b = whitening_of(cov_a, RIDGE), whitening_of(cov_b, RIDGE)
    between = white_a.T @ cross @ white_b
    squares, left = np.linalg.eigh(between @ between.T)  # an SVD may not converge where many correlations are near 1
    squares, left = squares[::-1], left[:, ::-1]
    chance = (white_a.shape[1] + white_b.shape[1]) / total
    kept = squares > max(chance, SMALLEST_SQUARE)
    right = between.T @ left[:, kept] / np.sqrt(squares[kept])
    correlations = np.sqrt(np.clip(squares[kept] - chance, 0.0, LARGEST_CORRELATION**2))
    return white_a @ left[:, kept], white_b @ right, correlations


def with_shares(pairs: Sequence[PairTest], sources: Sequence[int]) -> tuple[PairTest, ...]:
    """Views of one source share one vote on another view, by what each of them tells about it."""
    told: dict[tuple[int, int], float] = {}
    for pair in pairs:
        for judged, voter in ((pair.first, pair.second), (pair.second, pair.first)):
            told[judged, sources[voter]] = told.get((judged, sources[voter]), 1e-300) + pair.base
    shared = []
    for pair in pairs:
        on_first, on_second = told[pair.first, sources[pair.second]], told[pair.second, sources[pair.first]]
        shared.append(replace(pair, shares=pair.base / np.array([on_first, on_second])))
    return tuple(shared)


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


def check_pair(pair: Any, widths: Sequence[int]) -> None:
    """Refuse what is no test of two of these views."""
    require(isinstance(pair, PairTest) and 0 <= pair.second < pair.first < len(widths) and is_number(pair.base))
    check_shape(pair.left, (widths[pair.first], None))
    n_variates = pair.left.shape[1]
    check_shape(pair.right, (widths[pair.second], n_variates))
    for part in (pair.left_offset, pair.right_offset, pair.product, pair.square):
        check_shape(part, (n_variates,))
    check_shape(pair.shares, (2,))
