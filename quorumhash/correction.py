"""Views put right after an audit: damaged ones dropped, predicted from the others, or sent back where they belong."""

from __future__ import annotations

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


def corrected_views(
    views: Views, judge: Judge, kinds: npt.NDArray[np.str_], p_values: FloatArray, partners: Rows, how: str
) -> Views:
    """Corrected views; kinds, p_values and best partners are (n, M). The views given are not changed."""
    damaged = kinds != ""
    if how == "repair":
        return _repaired(views, judge, damaged)
    matrices: dict[str, Any] = {name: np.array(views[name], dtype=_float_type(views, name)) for name in views}
    if how == "swap":
        for m, name in enumerate(views):
            damaged[_sent_home(matrices[name], kinds[:, m], partners[:, m]), m] = False
        return _repaired(Views(matrices), judge, damaged)
    dropped = _sparing(damaged, p_values)
    for m, name in enumerate(views):
        matrices[name][dropped[:, m]] = np.nan
    return Views(matrices)


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


def _repaired(views: Views, judge: Judge, damaged: Flags) -> Views:
    """Damaged and missing views replaced by what the others predict, in the features of the view."""
    matrices = {name: np.array(views[name], dtype=_float_type(views, name)) for name in views}
    for m, name in enumerate(views):
        if views.matrix(name) is None:  # nothing to put a prediction into
            matrices[name] = np.full((len(views), len(judge.components[m].scaling.mean)), np.nan)
    rows = np.flatnonzero(damaged.any(axis=1) & ~damaged.all(axis=1))
    for part in np.array_split(rows, 1 + len(rows) // BLOCK_ROWS):
        if not len(part):
            continue
        blocks = [np.asarray(matrices[name][part], dtype=np.float64) for name in views]
        for m, predicted in enumerate(_predicted(judge, ~damaged[part], blocks)):
            hit = damaged[part, m]
            matrices[views.names[m]][part[hit]] = predicted[hit]
    return Views(matrices)


def _predicted(judge: Judge, believed: Flags, blocks: list[FloatArray]) -> list[FloatArray]:
    """Every view (n, d) of one block as the believed views say it is."""
    blocks = [np.where(believed[:, [m]], block, np.nan) for m, block in enumerate(blocks)]
    coordinates = described_rows(judge, believed, *blocks)[0]
    joined = repair_rows(judge.repair, believed.astype(np.float64), *coordinates)
    predicted = []
    for m, components in enumerate(judge.components):
        span = slice(judge.repair.edges[m], judge.repair.edges[m + 1])
        own = joined[:, span] / judge.repair.factors[m] + judge.repair.mean[span]
        predicted.append(own @ components.directions.T / components.scaling.factor + components.scaling.mean)
    return predicted
