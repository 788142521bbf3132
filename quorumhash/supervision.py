"""What a few labels or pairs can say: which classes an item has, and how much whole views are worth.

A view is worth as much as its distances tell like from unlike: the weights are those whose summed squared distances
rank known-alike pairs before others best (area under the ROC curve), found by trying a few values, a view at a time.

Fifty labels make a thousand pairs, but they are fifty items: a pair that shares an item with another says little
that is new. So weights change only where the area grows by WORTHWHILE standard errors of the difference, counted in
items:

    g_i = sum over pairs of item i of (how often the pair is ranked right - area) / number of pairs of its kind
    standard error = square root of the sum over items of (g_i with the new weights - g_i with the old)^2
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

FloatArray = npt.NDArray[np.float64]
Pairs = npt.NDArray[np.int64]

TRIED_WEIGHTS = (0.0, 0.25, 0.5, 1.0)
MOST_PAIRS = 20_000
N_SWEEPS = 3
WORTHWHILE = 2.0  # standard errors by which a change must raise the area


def memberships(labels: npt.NDArray[Any]) -> FloatArray:
    """Classes of every row (n, c), rows summing to 1; a row of zeros where a row has no label (-1, or no class).

    >>> memberships(np.array([3, -1, 5]))
    array([[1., 0.],
           [0., 0.],
           [0., 1.]])
    """
    if labels.ndim == 2:
        rows = (labels > 0).astype(np.float64)
        return np.asarray(rows / np.maximum(rows.sum(axis=1, keepdims=True), 1.0))
    known = labels >= 0 if labels.dtype.kind in "if" else np.ones(len(labels), dtype=bool)
    names, positions = np.unique(labels[known], return_inverse=True)
    rows = np.zeros((len(labels), len(names)))
    rows[np.flatnonzero(known), positions] = 1.0
    return rows


def labelled_pairs(classes: FloatArray, seed: int) -> tuple[Pairs, Pairs]:
    """Pairs (n, 2) of labelled rows that share a class, and pairs that share none; at most MOST_PAIRS of each."""
    rng = np.random.default_rng(seed)
    known = np.flatnonzero(classes.any(axis=1))
    if len(known) > 2000:
        known = rng.choice(known, size=2000, replace=False)
    first, second = np.triu_indices(len(known), k=1)
    alike = np.einsum("ij,ij->i", classes[known[first]], classes[known[second]]) > 0
    pairs = np.stack([known[first], known[second]], axis=1)
    return tuple(_some(part, rng) for part in (pairs[alike], pairs[~alike]))  # type: ignore[return-value]


def unlike_pairs(alike: Pairs, seed: int) -> Pairs:
    """Random pairs of rows to set against known-alike ones, as many as MOST_PAIRS allows."""
    rng = np.random.default_rng(seed)
    rows = np.unique(alike)
    pairs = rows[rng.integers(len(rows), size=(min(MOST_PAIRS, 20 * len(alike)), 2))]
    return np.asarray(pairs[pairs[:, 0] != pairs[:, 1]])


def _some(pairs: Pairs, rng: np.random.Generator) -> Pairs:
    return pairs if len(pairs) <= MOST_PAIRS else pairs[rng.choice(len(pairs), size=MOST_PAIRS, replace=False)]


def supervised_weights(squares: FloatArray, pairs: Pairs, n_alike: int, start: FloatArray) -> FloatArray:
    """Weights (M,), the largest 1, from squared distances (M, n_pairs) of pairs whose first n_alike are known alike.

    `start` is what the weights are without this knowledge, and what they stay where it says too little.
    """
    n_other = squares.shape[1] - n_alike
    if not n_alike or not n_other:
        return np.asarray(start / start.max())
    squares = squares / np.maximum(squares.mean(axis=1, keepdims=True), 1e-300)
    items = np.unique(pairs, return_inverse=True)[1].reshape(-1, 2)
    best = _ranked(start.astype(np.float64), squares, items, n_alike)
    best = _better(best, _ranked(np.ones(len(squares)), squares, items, n_alike))
    for _ in range(N_SWEEPS):
        before = best
        for m, value in product(range(len(squares)), TRIED_WEIGHTS):
            tried = best.weights.copy()
            tried[m] = value
            if tried.any():
                best = _better(best, _ranked(tried, squares, items, n_alike))
        if best is before:
            break
    return np.asarray(best.weights / best.weights.max())


@dataclass(frozen=True)
class _Ranking:
    """Weights (M,), how often they rank a known-alike pair before another, and every item's part in that, g (n,)."""

    weights: FloatArray
    area: float
    parts: FloatArray


def _better(known: _Ranking, tried: _Ranking) -> _Ranking:
    error = float(np.sqrt(((tried.parts - known.parts) ** 2).sum()))
    return tried if tried.area - known.area > max(WORTHWHILE * error, 1e-12) else known


def _ranked(weights: FloatArray, squares: FloatArray, items: Pairs, n_alike: int) -> _Ranking:
    """Ties count half; `items` (n_pairs, 2) are numbered from 0."""
    distances = weights**2 @ squares
    n_other = len(distances) - n_alike
    alike, other = distances[:n_alike], distances[n_alike:]
    ranks = rankdata(distances)
    right = np.concatenate([
        1.0 - (ranks[:n_alike] - rankdata(alike)) / n_other,  # others farther than this alike pair
        (ranks[n_alike:] - rankdata(other)) / n_alike,  # alike pairs nearer than this other one
    ])  # fmt: skip
    area = float(right[:n_alike].mean())
    size = np.where(np.arange(len(distances)) < n_alike, n_alike, n_other)
    each = np.repeat((right - area) / size, 2)
    return _Ranking(weights, area, np.bincount(items.ravel(), weights=each).astype(np.float64))
