"""Views put right after an audit: damaged ones dropped, replaced by what is expected, or sent back where they belong.

Repair does not wait for a verdict. What is expected of view m of an item, over the sets z of its views that may be the
right ones:

    E[x_m] = sum over z of P(z) (x_m where z has m, else E[x_m | x_z]),   P(z) by the trust in each view, z not empty

E[x_m | x_z] is the prediction of repair.py. A view that is surely right stays as it is, bit by bit.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.judging import Judge, described_rows
from quorumhash.repair import repair_rows
from quorumhash.views import Views

FloatArray = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int64]

BLOCK_ROWS = 8_192
MISPLACED = ("swap", "shift")
DOUBTFUL = ("swap", "noise")  # verdicts that are a posterior; the others are facts, or about a whole group of rows
SURE = 0.95  # posterior from which on a view is taken for wrong, or for right
MOST_UNSURE = 6  # views of an item that are taken for right and for wrong by turns, those nearest to 1/2
SMALLEST_WEIGHT = 0.01  # of the likeliest set's: less likely ones are left out


@dataclass(frozen=True)
class Verdicts:
    """What an audit says of every view of every row, (n, M) each; trust is 0 where there is nothing to believe."""

    kinds: npt.NDArray[np.str_]
    p_values: FloatArray
    trust: FloatArray
    partners: Rows  # the best one, or -1


def corrected_views(views: Views, judge: Judge, verdicts: Verdicts, how: str) -> Views:
    """Corrected views. The views given are not changed."""
    kinds = verdicts.kinds
    belief = _belief(kinds, verdicts.trust)
    if how == "repair":
        return _repaired(views, judge, belief)
    matrices: dict[str, Any] = {name: np.array(views[name], dtype=_float_type(views, name)) for name in views}
    if how == "swap":
        for m, name in enumerate(views):
            belief[_sent_home(matrices[name], kinds[:, m], verdicts.partners[:, m]), m] = 1.0
        return _repaired(Views(matrices), judge, belief)
    dropped = _sparing(kinds != "", verdicts.p_values)
    for m, name in enumerate(views):
        matrices[name][dropped[:, m]] = np.nan
    return Views(matrices)


def _belief(kinds: npt.NDArray[np.str_], trust: FloatArray) -> FloatArray:
    """Trust (n, M) in view of the verdicts: 1 where a view is surely right, 0 where nothing of it is to be kept."""
    belief = np.where(trust >= SURE, 1.0, trust)
    belief = np.where(np.isin(kinds, DOUBTFUL), np.minimum(belief, 1.0 - SURE), belief)
    return np.where((kinds == "") | np.isin(kinds, DOUBTFUL), belief, 0.0)


def _float_type(views: Views, name: str) -> Any:
    kind = getattr(views.matrix(name), "dtype", np.dtype(np.float64))
    return kind if kind.kind == "f" else np.float64


def _sent_home(values: npt.NDArray[Any], kinds: npt.NDArray[np.str_], partners: Rows) -> Flags:
    """Put misplaced rows of one view where they belong, in place; gives the damaged rows (n,) that got their own.

    Of several rows that belong to one home the first is taken. A home that was not damaged keeps what it has.
    """
    misplaced = np.flatnonzero(np.isin(kinds, MISPLACED) & (partners >= 0))
    misplaced = misplaced[kinds[partners[misplaced]] != ""]
    homes, first = np.unique(partners[misplaced], return_index=True)
    values[homes] = values[misplaced[first]]
    is_home = np.zeros(len(values), dtype=bool)
    is_home[homes] = True
    return is_home


def _sparing(dropped: Flags, p_values: FloatArray) -> Flags:
    """What is dropped, but for the most credible view of items that would have none left."""
    absent = np.isnan(p_values)
    bare = np.flatnonzero((dropped | absent).all(axis=1))
    spared = np.nanargmax(np.where(absent, -1.0, p_values)[bare], axis=1) if len(bare) else np.empty(0, dtype=int)
    dropped = dropped.copy()
    dropped[bare, spared] = False
    return dropped


def _repaired(views: Views, judge: Judge, belief: FloatArray) -> Views:
    """Views that are not surely right, and missing ones, replaced by what is expected of them, in their features."""
    matrices = {name: np.array(views[name], dtype=_float_type(views, name)) for name in views}
    for m, name in enumerate(views):
        if views.matrix(name) is None:  # nothing to put a prediction into
            matrices[name] = np.full((len(views), len(judge.components[m].scaling.mean)), np.nan)
    rows = np.flatnonzero((belief < 1).any(axis=1) & (belief > 0).any(axis=1))
    for part in np.array_split(rows, 1 + len(rows) // BLOCK_ROWS):
        if not len(part):
            continue
        blocks = [np.asarray(matrices[name][part], dtype=np.float64) for name in views]
        for m, (shares, told) in enumerate(_expected(judge, belief[part], blocks)):
            hit = shares < 1
            own, share = blocks[m][hit], shares[hit, None]
            is_own = (share > 0) & ~np.isnan(own)
            mixed = share * np.where(is_own, own, 0.0) + (1.0 - share) * told[hit]
            matrices[views.names[m]][part[hit]] = np.where(is_own, mixed, told[hit])
    return Views(matrices)


def _expected(judge: Judge, belief: FloatArray, blocks: list[FloatArray]) -> list[tuple[FloatArray, FloatArray]]:
    """For every view of one block: the share (n,) of its own values, and what the others say if it is wrong (n, d)."""
    blocks = [np.where(belief[:, [m]] > 0, block, np.nan) for m, block in enumerate(blocks)]
    coordinates = described_rows(judge, belief > 0, *blocks)[0]
    model = judge.repair
    shares, told = np.zeros(belief.shape), np.zeros((len(belief), model.edges[-1]))
    rows, sets, weights = likely_sets(belief)
    kinds, numbers = np.unique(sets, axis=0, return_inverse=True)
    for number, is_right in enumerate(kinds):  # all rows with the same set at once: one small system
        of_set = np.flatnonzero(numbers.ravel() == number)
        at, weight = rows[of_set], weights[of_set, None]
        kept = np.broadcast_to(is_right.astype(np.float64), (len(at), len(is_right)))
        joined = repair_rows(model, kept, *(part[at] for part in coordinates))
        told[at] += weight * joined * np.repeat(~is_right, np.diff(model.edges))
        shares[at] += weight * is_right
    found = []
    for m, components in enumerate(judge.components):
        share = np.where(shares[:, m] > 1.0 - 1e-9, 1.0, shares[:, m])
        span = slice(model.edges[m], model.edges[m + 1])
        own = told[:, span] / np.where(share < 1, 1.0 - share, 1.0)[:, None] / model.factors[m] + model.mean[span]
        found.append((share, own @ components.directions.T / components.scaling.factor + components.scaling.mean))
    return found


def likely_sets(belief: FloatArray) -> tuple[Rows, Flags, FloatArray]:
    """Sets of right views: rows (k,), the set (k, M) and its weight (k,); the weights of a row sum to 1.

    Views err independently of each other here, save that not all of an item's can be wrong: of two that contradict each
    other, each is kept by half.
    """
    unsure = (belief > 0) & (belief < 1)
    distance = np.where(unsure, np.abs(belief - 0.5), np.inf)
    nearest = np.argsort(distance, axis=1, kind="stable")[:, :MOST_UNSURE]
    free, chance = np.take_along_axis(unsure, nearest, axis=1), np.take_along_axis(belief, nearest, axis=1)
    settled = belief >= 0.5
    np.put_along_axis(settled, nearest, np.where(free, False, np.take_along_axis(settled, nearest, axis=1)), axis=1)
    choices = np.array(list(itertools.product((False, True), repeat=nearest.shape[1])))
    weights = np.ones((len(belief), len(choices)))
    for i, choice in enumerate(choices.T):
        odds = np.where(choice, chance[:, [i]], 1.0 - chance[:, [i]])
        weights *= np.where(free[:, [i]], odds, ~choice)  # a view that is settled has no second choice
    weights *= settled.any(axis=1, keepdims=True) | choices.any(axis=1)
    weights = np.where(weights < SMALLEST_WEIGHT * weights.max(axis=1, keepdims=True), 0.0, weights)
    weights /= weights.sum(axis=1, keepdims=True)
    rows, chosen = np.nonzero(weights)
    sets = settled[rows]
    np.put_along_axis(sets, nearest[rows], choices[chosen] | np.take_along_axis(sets, nearest[rows], axis=1), axis=1)
    return rows, sets, weights[rows, chosen]
