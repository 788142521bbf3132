"""Joins that are off: runs of rows whose view goes better with the row a few places on.

    g_d(i) = slope (S(i, i + d) - max(S(i, i), 0))      what view m of row i says for row i + d, beyond what it says for
                                                        its own row or for none (log odds 0: noise goes with no row)

Where a join is right g is far below 0 for every d; in a run that is off by d it is above. The run of the largest sum is
found in one pass. Right rows have E[exp(g)] <= 1, so that a sum of t turns up among n rows and o offsets with
probability n o exp(-t) at most: that sets the threshold. Single rows may say little, a run of them much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quorumhash.partners import MatchRows

FloatArray = npt.NDArray[np.float64]

NEAR = 5  # offsets up to so many rows are always looked at
FEWEST_IN_RUN = 5
LARGEST_GAIN = 3.0  # of one row: a run is never one row
FEWEST_VOTES, LIFT = 5, 5.0  # partners at one offset, and times what chance gives, for a far offset to be looked at


@dataclass(frozen=True)
class Run:
    """Rows first to last hold the data of the rows `offset` further on."""

    first: int
    last: int
    offset: int
    weight: float


def voted_offsets(rows: npt.NDArray[np.int64], partners: npt.NDArray[np.int64], n_rows: int) -> list[int]:
    """Offsets to look at: all near ones, and far ones that many partners found so far name."""
    near = [d for d in range(-NEAR, NEAR + 1) if d != 0]
    named, counts = np.unique((partners - rows)[partners >= 0], return_counts=True)
    often = counts >= max(FEWEST_VOTES, LIFT * len(rows) / max(n_rows, 1))
    return near + [int(d) for d in named[often] if abs(d) > NEAR]


def shift_gains(
    matches: MatchRows, own: npt.NDArray[np.float32], usable: npt.NDArray[np.bool_], slope: float, offset: int
) -> FloatArray:
    """g (n,) of one offset, own odds S(i, i) given, at most LARGEST_GAIN in size; 0 where a row cannot say."""
    n_rows = len(matches.constant)
    gains = np.zeros(n_rows)
    rows = np.arange(max(0, -offset), min(n_rows, n_rows - offset))
    for part in np.array_split(rows, 1 + len(rows) // 65_536):
        gains[part] = slope * (matches.odds(part, part + offset) - np.maximum(own[part], 0.0))
    return np.where(usable, np.clip(gains, -LARGEST_GAIN, LARGEST_GAIN), 0.0)


def find_runs(gains: FloatArray, offset: int, threshold: float) -> list[Run]:
    """Runs whose gains (n,) add up to the threshold or more, each as short as its sum allows.

    >>> find_runs(np.array([-2.0, 1, 1, -1, 1, 1, 1, -2, -2, -2]), offset=1, threshold=3.5)
    [Run(first=1, last=6, offset=1, weight=4.0)]
    """
    rising = gains > 0
    edges = np.flatnonzero(np.diff(np.concatenate([[False], rising, [False]]).astype(np.int8)))
    starts, stops = edges[::2], edges[1::2]
    sums = np.concatenate([[0.0], np.cumsum(gains)])
    found: list[Run] = []
    first, best, last = -1, 0.0, -1
    for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
        if first >= 0 and not 0.0 < sums[start] - sums[first] > best - threshold:
            _keep(found, first, last, offset, best, threshold)
            first = -1
        if first < 0:
            first, best = start, 0.0
        if sums[stop] - sums[first] > best:
            best, last = float(sums[stop] - sums[first]), stop - 1
    if first >= 0:
        _keep(found, first, last, offset, best, threshold)
    return found


def _keep(found: list[Run], first: int, last: int, offset: int, weight: float, threshold: float) -> None:
    if weight >= threshold and last - first + 1 >= FEWEST_IN_RUN:
        found.append(Run(first, last, offset, weight))


def heaviest_runs(runs: Sequence[Run]) -> list[Run]:
    """Those that meet no heavier one, from the first row on."""
    kept: list[Run] = []
    for run in sorted(runs, key=lambda run: -run.weight):
        if all(run.last < other.first or run.first > other.last for other in kept):
            kept.append(run)
    return sorted(kept, key=lambda run: run.first)
