"""Views put right after an audit: damaged ones dropped, replaced by what is expected, or sent back where they belong.

Repair does not wait for a verdict: a view becomes what is expected of it over the sets of views that may be the right
ones (expectation.py). One that is surely right stays as it is, bit by bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.expectation import shares_and_told
from quorumhash.judging import Judge, described_rows
from quorumhash.repair import SURE, joined_rows
from quorumhash.views import Views

FloatArray = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int64]

BLOCK_ROWS = 8_192
MISPLACED = ("swap", "shift")
DOUBTFUL = ("swap", "noise")  # verdicts that are a posterior; the others are facts, or about a whole group of rows


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
    shares, told = shares_and_told(model, belief, joined_rows(model, *coordinates))
    found = []
    for m, components in enumerate(judge.components):
        share = np.where(shares[:, m] > 1.0 - 1e-9, 1.0, shares[:, m])
        span = slice(model.edges[m], model.edges[m + 1])
        own = told[:, span] / np.where(share < 1, 1.0 - share, 1.0)[:, None] / model.factors[m] + model.mean[span]
        found.append((share, own @ components.directions.T / components.scaling.factor + components.scaling.mean))
    return found
