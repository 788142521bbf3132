"""What a few labels or pairs can say: which classes an item has, and how much whole views are worth.

A view is worth as much as its distances tell like from unlike: the weights are those whose summed squared distances
rank known-alike pairs before others best (area under the ROC curve), found by trying a few values, a view at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

FloatArray = npt.NDArray[np.float64]
Pairs = npt.NDArray[np.int64]

TRIED_WEIGHTS = (0.0, 0.25, 0.5, 1.0)
MOST_PAIRS = 20_000
N_SWEEPS = 3
WORTHWHILE = 0.25  # standard errors of the area a change must bring


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


def supervised_weights(squares: FloatArray, n_alike: int, start: FloatArray) -> FloatArray:
    """Weights (M,), the largest 1, from squared distances (M, n_pairs) whose first n_alike are of pairs known alike.

    `start` is what the weights are without this knowledge.
    """
    squares = squares / np.maximum(squares.mean(axis=1, keepdims=True), 1e-300)
    margin = WORTHWHILE * 0.5 / np.sqrt(max(n_alike, 1))
    weights = max((start, np.ones(len(squares))), key=lambda w: _area(w, squares, n_alike)).astype(np.float64)
    best = _area(weights, squares, n_alike)
    for _ in range(N_SWEEPS):
        before = best
        for m in range(len(weights)):
            for value in TRIED_WEIGHTS:
                tried = weights.copy()
                tried[m] = value
                if tried.any() and _area(tried, squares, n_alike) > best + margin:
                    weights, best = tried, _area(tried, squares, n_alike)
        if best == before:
            break
    return np.asarray(weights / weights.max())


def _area(weights: FloatArray, squares: FloatArray, n_alike: int) -> float:
    """How often a known-alike pair is nearer than another, ties counting half."""
    ranks = rankdata(weights**2 @ squares)
    n_other = squares.shape[1] - n_alike
    if not n_alike or not n_other:
        return 0.5
    earlier = float(ranks[:n_alike].sum()) - n_alike * (n_alike + 1) / 2
    return float(1.0 - earlier / (n_alike * n_other))
