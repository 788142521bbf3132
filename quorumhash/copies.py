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

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

MOST_COPIES = 8  # of one view that are looked at: what more rows hold is nobody's own
FIRST_TWINS, MOST_TWINS = 0.5, 0.999
N_STEPS = 50
LEAST_CREDIBLE = 1e-6
SURELY_COPIED = 0.05  # posterior to be right up to which a row is taken for a copy
PRIOR_SETS = 2.0  # sets, half of them twins, that count as seen before any: few sets cannot say much


def same_rows(marks: npt.NDArray[np.int64], here: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """A number (n, M) for every set of several rows with one mark (n, M) in a view; -1 for a row alone, or not here.

    >>> same_rows(np.array([[7], [8], [7]]), np.ones((3, 1), dtype=bool)).ravel()
    array([ 0, -1,  0])
    """
    groups = np.full(marks.shape, -1, dtype=np.int64)
    for m in range(marks.shape[1]):
        _, places, counts = np.unique(marks[here[:, m], m], return_inverse=True, return_counts=True)
        groups[here[:, m], m] = np.where(counts[places] > 1, places, -1)
    return groups


def few_copies(groups: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The same without sets of more than MOST_COPIES rows."""
    counts = np.bincount(groups[groups >= 0], minlength=1)
    return np.where((groups >= 0) & (counts[groups.clip(0)] <= MOST_COPIES), groups, -1)


def without_copies(
    judged: Callable[[Flags], FloatArray], usable: Flags, groups: npt.NDArray[np.int64], wrong_shares: FloatArray
) -> FloatArray:
    """Trust (n, M) with what is surely a copy taken out; `judged` gives trust by the views it may use."""
    trust = judged(usable)
    left = usable & ~(owned_rows(groups, trust, wrong_shares) <= SURELY_COPIED)
    return trust if (left == usable).all() else judged(left)


def owned_rows(groups: npt.NDArray[np.int64], trust: FloatArray, wrong_shares: FloatArray) -> FloatArray:
    """The posterior (n, M) of `right_among_copies` for every view, by the trust (n, M) in rows taken one by one."""
    ratios = vote_ratios(trust, wrong_shares)
    columns = [right_among_copies(few_copies(groups[:, m]), ratios[:, m], e) for m, e in enumerate(wrong_shares)]
    return np.stack(columns, axis=1)


def vote_ratios(trust: FloatArray, wrong_shares: FloatArray) -> FloatArray:
    """What the votes on rows say by themselves: the log odds of trust (n, M) without the prior, a share of wrong rows.

    >>> vote_ratios(np.array([[0.9, 0.9]]), np.array([0.1, 0.5])).round(1)
    array([[0. , 2.2]])
    """
    trust = np.clip(trust, LEAST_CREDIBLE, 1.0 - LEAST_CREDIBLE)
    return np.asarray(np.log(trust / (1.0 - trust)) - np.log((1.0 - wrong_shares) / wrong_shares))


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
    places, sizes, together, apart = _hypotheses(groups[rows], log_ratios[rows], wrong_share)
    twins = _twins(together, apart, wrong_share * len(groups))
    all_right = _share(np.log(twins) + together, np.log1p(-twins) + apart)
    only_this = np.exp(log_ratios[rows] + np.log((1.0 - wrong_share) / sizes)[places] - apart[places])
    right[rows] = all_right[places] + (1.0 - all_right[places]) * only_this
    return right


def twins_among_copies(groups: npt.NDArray[np.int64], log_ratios: FloatArray, wrong_share: float) -> float:
    """r, the share of sets of which all rows are right.

    >>> round(twins_among_copies(np.repeat(np.arange(98), 2), np.full(196, 9.0), 0.1), 2)
    0.99
    """
    rows = np.flatnonzero(groups >= 0)
    if not len(rows):
        return FIRST_TWINS
    return _twins(*_hypotheses(groups[rows], log_ratios[rows], wrong_share)[2:], wrong_share * len(groups))


def _hypotheses(
    groups: npt.NDArray[np.int64], ratios: FloatArray, wrong_share: float
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], FloatArray, FloatArray]:
    """The set (n,) of every row; of every set its size, the log of prod e^a_i, and that of the other two together."""
    _, places, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    together = np.bincount(places, weights=ratios)
    highest = np.full(len(sizes), -np.inf)
    np.maximum.at(highest, places, ratios)
    alone = highest + np.log(np.bincount(places, weights=np.exp(ratios - highest[places])))  # log of sum e^a_j
    apart: FloatArray = np.logaddexp(alone + np.log((1.0 - wrong_share) / sizes), np.log(wrong_share))
    return places, sizes, together.astype(np.float64), apart


def _twins(together: FloatArray, apart: FloatArray, n_wrong: float) -> float:
    """r by expectation and maximisation; sets beyond the number of wrong rows are twins, whatever votes say of them.

    Without that last rule equal prices would be taken for theft where no other view has anything to say of a price.
    """
    twins, fewest = FIRST_TWINS, min(1.0 - n_wrong / len(together), MOST_TWINS)
    for _ in range(N_STEPS):
        all_right = _share(np.log(twins) + together, np.log1p(-twins) + apart)
        twins = max((float(all_right.sum()) + FIRST_TWINS * PRIOR_SETS) / (len(together) + PRIOR_SETS), fewest)
    return twins


def _share(one: FloatArray, other: FloatArray) -> FloatArray:
    """e^one / (e^one + e^other)."""
    return np.asarray(np.exp(one - np.logaddexp(one, other)))
