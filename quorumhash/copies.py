"""Which of the rows that hold the same view is its owner, where a view is found more than once.

A picture of the wrong product is most often the picture of another product, and that one still holds it. Two rows with
one view between them tell more than each row alone: if one goes with it and the other does not, the other is wrong. Of
k rows that hold the same view, with a_i the log of how much likelier the votes on row i are if it is right,

    all are right    r           prod of e^a_i       twins: variants of one item, a view of few values
    only j is right  (1 - r) (1 - e) / k   e^a_j     the others are copies of it
    none is right    (1 - r) e                       the owner has lost it to another wrong view

r, the share of twins among all such groups, is learned from the groups themselves; e is the share of wrong rows.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

MOST_COPIES = 8  # of one view that are looked at: what more rows hold is nobody's own
FIRST_TWINS = 0.5
N_STEPS = 50
PRIOR_SETS = 2.0  # sets, half of them twins, that count as seen before any: few sets cannot say much


def same_rows(cells: FloatArray, here: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """A number (n,) for every set of several rows that fall into one cell (n, c); -1 for a row alone, or not here.

    >>> same_rows(np.array([[1.0], [2.0], [1.0]]), np.ones(3, dtype=bool))
    array([ 0, -1,  0])
    """
    groups = np.full(len(cells), -1, dtype=np.int64)
    _, places, counts = np.unique(cells[here], axis=0, return_inverse=True, return_counts=True)
    places = places.ravel()
    groups[here] = np.where(counts[places] > 1, places, -1)
    return groups


def few_copies(groups: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The same without sets of more than MOST_COPIES rows."""
    counts = np.bincount(groups[groups >= 0], minlength=1)
    return np.where((groups >= 0) & (counts[groups.clip(0)] <= MOST_COPIES), groups, -1)


def right_among_copies(groups: npt.NDArray[np.int64], log_ratios: FloatArray, wrong_share: float) -> FloatArray:
    """The posterior (n,) that a row is right, given the others that hold the same view; NaN where there are none.

    `groups` (n,) are numbers that such rows have in common, -1 for a row of its own; `log_ratios` (n,) are the a_i.

    >>> right_among_copies(np.array([0, 0, -1]), np.array([5.0, -5.0, 0.0]), 0.1).round(1)
    array([ 1.,  0., nan])
    """
    right = np.full(len(groups), np.nan)
    rows = np.flatnonzero(groups >= 0)
    if not len(rows):
        return right
    _, places, sizes = np.unique(groups[rows], return_inverse=True, return_counts=True)
    ratios = log_ratios[rows]
    together = np.bincount(places, weights=ratios)
    highest = np.full(len(sizes), -np.inf)
    np.maximum.at(highest, places, ratios)
    alone = highest + np.log(np.bincount(places, weights=np.exp(ratios - highest[places])))  # log of sum e^a_j
    apart = np.logaddexp(alone + np.log((1.0 - wrong_share) / sizes), np.log(wrong_share))
    twins = FIRST_TWINS
    for _ in range(N_STEPS):
        all_right = _share(np.log(twins) + together, np.log1p(-twins) + apart)
        twins = (float(all_right.sum()) + FIRST_TWINS * PRIOR_SETS) / (len(sizes) + PRIOR_SETS)
    all_right = _share(np.log(twins) + together, np.log1p(-twins) + apart)
    only_this = np.exp(ratios + np.log((1.0 - wrong_share) / sizes)[places] - apart[places])
    right[rows] = all_right[places] + (1.0 - all_right[places]) * only_this
    return right


def _share(one: FloatArray, other: FloatArray) -> FloatArray:
    """e^one / (e^one + e^other)."""
    return np.asarray(np.exp(one - np.logaddexp(one, other)))
