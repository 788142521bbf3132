"""Rows of one view that another model made: a group at one with the other views, but not with the rest of its view.

Inner products within one group do not change when its embedding is turned, so they can be compared with those of the
other views whatever model made them. Of two groups A and B of rows of view m:

    r(A, B) = correlation over pairs (a in A, b in B) of  <x_a, x_b>  in view m and its mean over the other views,
              rows centred by the mean of their group

B is of another version than A where r(A, A) and r(B, B) are clearly above chance and r(A, B) is not: each knows its
own, and they do not know each other. Noise and swaps have r(B, B) = 0; clusters of one model have r(A, B) > 0, and hold
items of different kinds, which the other views show: which model made a row has nothing to do with what it is about.

Groups looked at: the rows taken for noise; those far from the core of the view, which is found by concentration
(spreads of the densest CORE of the rows, again and again), so that a group cannot widen the spreads it is measured by;
the smaller of two clusters. Rows that are doubted but look like any other are no group: chosen because they contradict
the other views, they are alike in how they do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.engines.threads import run_together
from quorumhash.evidence import ViewTests, density_deviations, learn_view
from quorumhash.landmarks import k_means
from quorumhash.repair import SURE
from quorumhash.tensors import beside, on_host

FloatArray = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

ATYPICAL = 0.01  # p-value of density below which a wrong view is noise: one in a hundred swaps looks like that
ABSURD = 0.001  # the same below which more likely wrong than right is enough
FEWEST_ROWS = 12  # of a group
MOST_ROWS = 400  # of a group, compared with each other
N_SHUFFLES = 50
CLEAR = 4.0  # standard deviations of shuffled rows above which groups are at one
AS_CLEAR = 0.4  # of the larger of r(A, A) and r(B, B), for the smaller
CONTENT = 0.02  # share of another view's variance between two groups, from which on they differ in what they are about
CORE, CORE_STEPS = 0.6, 4
FAR = 10.0  # robust deviations from the core
BY_CHANCE = 10.0  # times 1 / n, for clusters: they go by content, unless it was a model that parted them
VERSION_ROWS, FEWEST_TO_TEACH = 4_000, 1_000  # of a sample, in which one is looked for: at most; at least, for a fit
NO_CONTENT = 3.0  # times 1 / n, for a fit, which nobody looks at: groups by chance differ by 1 / n
STRANGE = 0.3  # of the smaller: two groups whose r is below, and not clearly above chance, know nothing of each other


@dataclass(frozen=True)
class Version:
    """A group of rows of one view: noise, or what is far from a core, or nearer to the second of two centres (2, k)."""

    view: int
    centres: FloatArray | None = None
    core: ViewTests | None = None


def find_version(
    coordinates: Sequence[FloatArray], view: int, noisy: Flags, usable: Flags, core: tuple[ViewTests, Any],
    seed: int, content: float = CONTENT,
) -> Version | None:  # fmt: skip
    """Look for one in a sample: coordinates (s, k_m) per view, noisy rows (s,) of the view, usable (s, M).

    `core` is what learn_core gave, and the view's signature and grain (s, k). `content` limits how far groups may
    differ in what they are about.
    """
    others = [n for n in range(len(coordinates)) if n != view]
    here = usable[:, view] & usable[:, others].any(axis=1)
    far = on_host(far_from_core(beside(core[0], core[1]), core[1]))
    for group, version in ((noisy, Version(view)), (far, Version(view, core=core[0]))):
        if is_other_version(coordinates, view, here & ~group, here & group, usable, seed, content):
            return version
    if np.count_nonzero(here & ~noisy) < 2 * FEWEST_ROWS:
        return None
    centres = np.asarray(k_means(coordinates[view][here & ~noisy].astype(np.float32), 2, seed), dtype=np.float64)
    if len(centres) < 2:
        return None
    second = in_second_cluster(centres, coordinates[view])
    if np.count_nonzero(second & here) > np.count_nonzero(~second & here):
        centres, second = centres[::-1], ~second
    by_chance = min(content, BY_CHANCE / np.count_nonzero(here))
    if is_other_version(coordinates, view, here & ~noisy & ~second, here & second, usable, seed, by_chance):
        return Version(view, centres=centres)
    return None


def other_version_rows(
    coordinates: Sequence[Any], signatures: Sequence[Any], n_signature: Sequence[int], usable: Flags,
    trust: FloatArray, density: FloatArray,
) -> Flags:  # fmt: skip
    """Which views (s, M) of a sample another model made than the rest of the view, by what believed other views say.

    `trust` (s, M) is that of rows, `density` its log p-values. More careful than an audit: of groups that may differ
    in what they are about nothing is said.
    """
    found, noisy = np.zeros(usable.shape, dtype=bool), noisy_rows(trust, density)
    some = slice(None, None, -(-len(usable) // VERSION_ROWS))
    few = [on_host(part[some]) for part in coordinates]

    def look(m: int) -> Flags | None:
        rows = signatures[m]
        core = learn_core(rows[some], n_signature[m], usable[some, m])
        speaking = usable[some] & (trust[some] >= 0.5)
        speaking[:, m] = usable[some, m]
        content = NO_CONTENT / max(int(np.count_nonzero(speaking[:, m])), 1)
        version = find_version(few, m, noisy[some, m], speaking, (core, rows[some]), 0, content)
        if version is None:
            return None
        if version.core is not None:
            return on_host(far_from_core(beside(version.core, rows), rows))
        return noisy[:, m] if version.centres is None else in_second_cluster(version.centres, on_host(coordinates[m]))

    for m, rows in enumerate(run_together(look, range(len(signatures)), rows=signatures[0])):
        if rows is not None:
            found[:, m] = rows
    return found & usable


def noisy_rows(trust: Any, density: Any) -> Any:
    """Which views (n, M) look like noise: surely wrong and atypical, or absurd and more likely wrong than right."""
    surely = (trust <= 1.0 - SURE) & (density < np.log(ATYPICAL))
    return surely | ((trust < 0.5) & (density < np.log(ABSURD)))


def learn_core(rows: Any, n_signature: int, usable: Flags) -> ViewTests:
    """The density of the core of a view, from signature and grain (s, k)."""
    nothing = np.zeros((rows.shape[1], 3))
    weights = usable.astype(np.float64)
    for _ in range(CORE_STEPS):
        core, deviations = learn_view(rows, n_signature, weights, usable, (nothing, nothing[:0]))
        limit = np.quantile(deviations[usable], CORE) if usable.any() else np.inf
        weights = (usable & (deviations <= limit)).astype(np.float64)
    return core


def far_from_core(core: ViewTests, rows: Any) -> Any:
    """Which rows (n,), given signature and grain (n, k), lie FAR outside."""
    return density_deviations(core, rows) > FAR


def in_second_cluster(centres: FloatArray, rows: FloatArray) -> Flags:
    """Which rows (n, k) are nearer to the second of two centres."""
    difference = centres[1] - centres[0]
    return np.asarray((rows - centres.mean(axis=0)) @ difference > 0)


def is_other_version(
    coordinates: Sequence[FloatArray], view: int, first: Flags, second: Flags, usable: Flags, seed: int,
    content: float = CONTENT,
) -> bool:  # fmt: skip
    """Whether two groups of rows (s,) each go with the other views, and not with each other."""
    rng = np.random.default_rng(seed)
    groups = [rng.permutation(np.flatnonzero(group))[:MOST_ROWS] for group in (first, second)]
    if min(map(len, groups)) < FEWEST_ROWS:
        return False
    a, b = groups
    if _difference(coordinates, view, first, second, usable) > content + 1.0 / np.count_nonzero(first | second):
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
    if a is b:  # no row is compared with itself, in whatever order
        for products in (own, others):
            np.fill_diagonal(products, 0.0)
    size = max(float(np.linalg.norm(own) * np.linalg.norm(others)), 1e-300)
    orders = [np.arange(len(a))] + [rng.permutation(len(a)) for _ in range(N_SHUFFLES)]
    mixed = ((own[order][:, order] if a is b else own[order]) for order in orders)
    found, *shuffled = (float(np.vdot(products, others)) / size for products in mixed)
    return found, (found - float(np.mean(shuffled))) / max(float(np.std(shuffled)), 1e-12)


def _products(rows: FloatArray, a: npt.NDArray[np.intp], b: npt.NDArray[np.intp]) -> FloatArray:
    return np.asarray((rows[a] - rows[a].mean(axis=0)) @ (rows[b] - rows[b].mean(axis=0)).T)
