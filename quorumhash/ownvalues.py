"""Values that no other row has: noise writes them, a view of counts, flags or brightnesses hardly ever.

An odd item is measured as all items are: however far out its row lies, its counts are counts that other rows have too.
Noise on the same columns leaves values of its own. What noise does in this table is read off the rows that are taken
for it: only where most of them hold values of their own are the others no noise. Noise in whole numbers, as of a
broken camera, stays noise. That a row is no noise does not say that it is right: it may be another item's.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

RARE = 0.01  # of the values of a column: up to so many may be their row's own where they come in steps
FEWEST_COLUMNS = 3  # whose values come in steps, in which a row is seen: what one or two of them say may be chance
MOSTLY = 0.5  # of those, in which a row holds values of its own, if noise wrote it


def holds_known_values(noisy: FloatArray, others: FloatArray) -> Flags:
    """Which of the rows taken for noise (n, d) are odd items: they hold known values, as most of that noise does not.

    `others` (s, d) are rows of the view that are not taken for noise; NaN are missing values.

    >>> others = np.tile(np.arange(4.0)[:, None], (50, 3))
    >>> holds_known_values(np.array([[0.3, 1.7, 2.2], [1.1, 0.4, 3.9], [3.0, 0.0, 3.0]]), others)
    array([False, False,  True])
    """
    n_seen, n_own = np.zeros((2, len(noisy)))
    for column, known in zip(noisy.T, map(_steps, others.T), strict=True):
        if known is not None:
            n_seen += ~np.isnan(column)
            n_own += ~np.isin(column, known) & ~np.isnan(column)
    is_told = n_seen >= FEWEST_COLUMNS
    is_written = is_told & (n_own >= MOSTLY * n_seen)
    return np.asarray(is_told & ~is_written & (2 * np.count_nonzero(is_written) > np.count_nonzero(is_told)))


def _steps(column: FloatArray) -> FloatArray | None:
    """The values (v,) of a column, if hardly any is its row's own; not if all are the same, for noise is then too."""
    values, counts = np.unique(column[~np.isnan(column)], return_counts=True)
    if len(values) < 2 or np.count_nonzero(counts == 1) > RARE * counts.sum():
        return None
    return values
