"""What labels say about the classes of every item: two guesses, and how far they are believed.

    P  (L, c)  near: labels spread along the landmark graph, for classes that lie in many small clumps
    B  (q, c)  far: a ridge regression of the labels on the smoothed coordinates, for few labels and wide classes
    r  in [0, 1], the correlation of the second with labels it has not seen (each left out in turn)

Both become dimensions beside the coordinates, with TOLD r^2 times their variance, and the coordinates keep r of
their own, at most half, from being smoothed: what the labels explain need not be brought together by smoothing, which
also melts together what no label speaks of. Labels that foretell nothing, r = 0, change nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

LABEL_SMOOTHING = 0.1  # how far classes spread along the graphs, relative to what the labelled items say
RIDGES = (0.03, 0.1, 0.3, 1.0)  # tried, of the variance of the coordinates
TOLD = 4.0  # variance of the class dimensions relative to the coordinates' where labels are foretold without fault
MOST_KEPT = 0.5  # of the coordinates as they were before smoothing
MOST_LABELLED = 1_000  # items that teach the regression: its cost is their number cubed


@dataclass(frozen=True)
class Told:
    """Some labelled items: their repaired coordinates (l, all q) and their classes (l, c)."""

    repaired: FloatArray
    classes: FloatArray


@dataclass(frozen=True)
class Guess:
    """Classes of an item are its centred coordinates @ slopes (q, c); r is how well that foretells labels."""

    slopes: FloatArray
    correlation: float


def some_labelled(classes: FloatArray, seed: int) -> npt.NDArray[np.intp]:
    """Positions of at most MOST_LABELLED rows that have a label."""
    known = np.flatnonzero(classes.any(axis=1))
    if len(known) <= MOST_LABELLED:
        return known
    return np.sort(np.random.default_rng(seed).choice(known, size=MOST_LABELLED, replace=False))


def learn_guess(rows: FloatArray, classes: FloatArray, variance: float) -> Guess:
    """Ridge regression of classes (l, c) on rows (l, q); of RIDGES, times `variance`, the one that foretells best.

    With an intercept, and H = 11^T / l + K (K + ridge)^-1 for K the centred Gram matrix, an item left out is missed by
    (I - H) Y / (1 - H_ii).
    """
    n_rows = len(rows)
    if n_rows < 3 or variance <= 0:
        return Guess(np.zeros((rows.shape[1], classes.shape[1])), 0.0)
    centred, target = rows - rows.mean(axis=0), classes - classes.mean(axis=0)
    values, vectors = np.linalg.eigh(centred @ centred.T)
    values, seen = values.clip(0), vectors.T @ target
    best, found = 0.0, np.zeros_like(target)
    for ridge in RIDGES:
        kept = values / (values + ridge * variance)
        leverage = 1.0 / n_rows + (vectors**2) @ kept
        missed = (target - vectors @ (kept[:, None] * seen)) / np.maximum(1.0 - leverage, 1e-9)[:, None]
        unseen = target * (n_rows / (n_rows - 1))  # seen from the mean of the others
        correlation = _correlation(unseen - missed, unseen)
        if correlation > best:
            best, found = correlation, vectors @ (seen / (values + ridge * variance)[:, None])
    return Guess(centred.T @ found, best)


def _correlation(guessed: FloatArray, true: FloatArray) -> float:
    """Cosine of two tables, at least 0."""
    size = float(np.sqrt((guessed**2).sum() * (true**2).sum()))
    return max(0.0, float((guessed * true).sum()) / size) if size > 0 else 0.0


def class_table(ties: FloatArray, at_landmarks: FloatArray) -> FloatArray:
    """What landmarks say about classes (L, c), 0 on average: labels spread along the graph F^T F of the landmarks.

    Minimises  sum over landmarks of (labelled weight) |p - mean label|^2  +  smoothing |p_i - p_j|^2 along the ties,
    and a hundredth of the smoothing on |p|^2, which holds landmarks without labels near 0.
    """
    labelled, weight = at_landmarks[:, :-1], at_landmarks[:, -1]
    centred = labelled - np.outer(weight, labelled.sum(0) / max(float(weight.sum()), 1e-300))
    degrees = ties.sum(axis=1)
    smoothing = LABEL_SMOOTHING * float(weight.sum()) / max(float(degrees.sum()), 1e-300)
    system = np.diag(weight + smoothing * 1.01 * degrees + 1e-12) - smoothing * ties
    return np.asarray(np.linalg.solve(system, centred))
