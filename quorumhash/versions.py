"""Rows of one view that another model made: a group at one with the other views, but not with the rest of its view.

Inner products within one group do not change when its embedding is turned, so they can be compared with those of the
other views whatever model made them. Of two groups A and B of rows of view m:

    r(A, B) = correlation over pairs (a in A, b in B) of  <x_a, x_b>  in view m and its mean over the other views,
              rows centred by the mean of their group

B is of another version than A where r(A, A) and r(B, B) are clearly above chance and r(A, B) is not: each knows its
own, and they do not know each other. Noise and swaps have r(B, B) = 0; clusters of one model have r(A, B) > 0, and hold
items of different kinds, which the other views show: which model made a row has nothing to do with what it is about.
Groups looked at: the rows that are doubted, and the smaller of two clusters of the view.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quorumhash.landmarks import k_means

FloatArray = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

FEWEST_ROWS = 12  # of a group
MOST_ROWS = 400  # of a group, compared with each other
N_SHUFFLES = 50
CLEAR = 4.0  # standard deviations of shuffled rows above which groups are at one
AS_CLEAR = 0.4  # of the larger of r(A, A) and r(B, B), for the smaller
CONTENT = 0.02  # share of another view's variance between two groups, from which on they differ in what they are about
STRANGE = 0.3  # of the smaller: two groups whose r is below, and not clearly above chance, know nothing of each other


@dataclass(frozen=True)
class Version:
    """A group of rows of one view: the doubted ones, or those nearer to the second of two centres (2, k)."""

    view: int
    centres: FloatArray | None


def find_version(
    coordinates: Sequence[FloatArray], view: int, doubted: Flags, usable: npt.NDArray[np.bool_], seed: int
) -> Version | None:
    """Look for one in a sample: coordinates (s, k_m) per view, doubted rows (s,) of the view, usable (s, M)."""
    others = [n for n in range(len(coordinates)) if n != view]
    here = usable[:, view] & usable[:, others].any(axis=1)
    if is_other_version(coordinates, view, here & ~doubted, here & doubted, usable, seed):
        return Version(view, None)
    if np.count_nonzero(here & ~doubted) < 2 * FEWEST_ROWS:
        return None
    centres = np.asarray(k_means(coordinates[view][here & ~doubted].astype(np.float32), 2, seed), dtype=np.float64)
    if len(centres) < 2:
        return None
    second = in_second_cluster(centres, coordinates[view])
    if np.count_nonzero(second & here) > np.count_nonzero(~second & here):
        centres, second = centres[::-1], ~second
    if is_other_version(coordinates, view, here & ~doubted & ~second, here & second, usable, seed):
        return Version(view, centres)
    return None


def in_second_cluster(centres: FloatArray, rows: FloatArray) -> Flags:
    """Which rows (n, k) are nearer to the second of two centres."""
    difference = centres[1] - centres[0]
    return np.asarray((rows - centres.mean(axis=0)) @ difference > 0)


def is_other_version(
    coordinates: Sequence[FloatArray], view: int, first: Flags, second: Flags, usable: Flags, seed: int
) -> bool:
    """Whether two groups of rows (s,) each go with the other views, and not with each other."""
    rng = np.random.default_rng(seed)
    groups = [rng.permutation(np.flatnonzero(group))[:MOST_ROWS] for group in (first, second)]
    if min(map(len, groups)) < FEWEST_ROWS:
        return False
    a, b = groups
    if _difference(coordinates, view, first, second, usable) > CONTENT + 1.0 / np.count_nonzero(first | second):
        return False
    own, its = (_agreement(coordinates, view, group, group, usable, rng) for group in groups)
    between = _agreement(coordinates, view, a, b, usable, rng)
    less, more = sorted((own[0], its[0]))
    is_at_one = min(own[1], its[1]) > CLEAR and less > AS_CLEAR * more
    return is_at_one and between[1] < CLEAR and between[0] < STRANGE * less


def _difference(coordinates: Sequence[FloatArray], view: int, first: Flags, second: Flags, usable: Flags) -> float:
    """The largest share of the variance of another view that lies between two groups."""
    shares = [0.0]
    for n, part in enumerate(coordinates):
        a, b = part[first & usable[:, n]], part[second & usable[:, n]]
        if n == view or min(len(a), len(b)) < 2:
            continue
        everyone = np.concatenate([a, b])
        between = len(a) * len(b) / len(everyone) ** 2 * float(((a.mean(axis=0) - b.mean(axis=0)) ** 2).sum())
        shares.append(between / max(float(everyone.var(axis=0).sum()), 1e-300))
    return max(shares)


def _agreement(
    coordinates: Sequence[FloatArray], view: int, a: npt.NDArray[np.intp], b: npt.NDArray[np.intp], usable: Flags,
    rng: np.random.Generator,
) -> tuple[float, float]:  # fmt: skip
    """r of two groups, and by how many standard deviations it exceeds that of shuffled rows."""
    own = _products(coordinates[view], a, b)
    others = np.zeros(own.shape)
    for n, part in enumerate(coordinates):
        if n != view:
            products = _products(np.where(usable[:, [n]], part, 0.0), a, b)
            others += products / max(float(np.linalg.norm(products)), 1e-300)
    apart = a[:, None] != b[None, :]
    found = _correlation(own, others, apart)
    shuffled = []
    for _ in range(N_SHUFFLES):
        order = rng.permutation(len(a))
        mixed = own[order][:, order] if a is b else own[order]
        shuffled.append(_correlation(mixed, others, apart))
    return found, (found - float(np.mean(shuffled))) / max(float(np.std(shuffled)), 1e-12)


def _products(rows: FloatArray, a: npt.NDArray[np.intp], b: npt.NDArray[np.intp]) -> FloatArray:
    return np.asarray((rows[a] - rows[a].mean(axis=0)) @ (rows[b] - rows[b].mean(axis=0)).T)


def _correlation(left: FloatArray, right: FloatArray, where: Flags) -> float:
    x, y = left[where], right[where]
    return float(x @ y / max(float(np.sqrt((x @ x) * (y @ y))), 1e-300))
