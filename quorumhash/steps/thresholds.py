"""Balanced bits: thresholds that leave half of the training rows on either side, from a seeded sample on the host."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


def middle_of(scores: FloatArray) -> FloatArray:
    """The middle of the gap between the two central scores of every column, (p,).

    For an odd number of rows the median is a row's own score, and rounding would decide its bit; the gap above it is
    taken instead.

    >>> middle_of(np.array([[1.0], [9.0], [3.0]]))
    array([6.])
    """
    lower = (len(scores) - 1) // 2
    upper = min(lower + 1, len(scores) - 1)
    ordered = np.partition(scores, (lower, upper), axis=0)
    middle: FloatArray = (ordered[lower] + ordered[upper]) / 2
    return middle
