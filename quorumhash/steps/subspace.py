"""A subspace that most views of most items lie near, and rows mended towards it.

    x_m (d_m,) bounded views, w_m weights, C_m (d_m, q) directions, l (q,) variances along them, v variance of the rest
    place of an item  u = (sum_m w_m C_m^T C_m + v diag(1/l))^-1 sum_m w_m C_m^T x_m;   implied view  u C_m^T

The weights follow from how far each view is from what the place implies (agreement.py), the place from the weights; a
few rounds of both. With all weights 1 the place is that of probabilistic principal components.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace, device

from quorumhash.checks import check_shape, is_number, require
from quorumhash.engines import Engine, Rows
from quorumhash.scaling import put_views
from quorumhash.steps.agreement import agreement_weights, median_residuals, mended_rows, view_distances
from quorumhash.steps.bounds import Bound, BoundedSample, bounded_rows, check_bounds, joined_bounded, map_views
from quorumhash.steps.components import moments
from quorumhash.steps.directions import principal_pairs
from quorumhash.views import Views

LEARNING_ROUNDS = 4
WEIGHING_ROUNDS = 4  # per item
SMALLEST_REST = 1e-9  # rows have size 1


@dataclass(frozen=True)
class Subspace:
    """Where items lie: mean (d,), directions (d, q), variances along them (q,), variance of the rest, scales (M,)."""

    bounds: tuple[Bound, ...]
    mean: npt.NDArray[np.float64]
    directions: npt.NDArray[np.float64]
    variances: npt.NDArray[np.float64]
    rest: float
    scales: npt.NDArray[np.float64]  # median residual of every view


def learn_subspace(
    views: Views, bounds: tuple[Bound, ...], sample: BoundedSample, rank: int, engine: Engine
) -> tuple[Subspace, Rows]:
    """The subspace, learned on rows mended by it in turn; and the mended rows (N, sum of d)."""
    mended = engine.map_rows(joined_bounded, bounds, *put_views(views, engine))
    for _ in range(LEARNING_ROUNDS):
        mean, scatter = moments(mended, engine)
        values, directions = principal_pairs(scatter / mended.n_rows, rank)
        rest = (np.trace(scatter) / mended.n_rows - values.sum()) / max(len(scatter) - len(values), 1)
        space = Subspace(bounds, mean, directions, values, max(float(rest), SMALLEST_REST), np.ones(len(bounds)))
        residuals = map_views(_residuals, space, views, engine)
        space = replace(space, scales=median_residuals(residuals, sample.positions, sample.present, engine))
        mended = map_views(mended_by_subspace, space, views, engine)
    return space, mended


def implied_views(space: Subspace, weights: Any, rows: tuple[Any, ...]) -> list[Any]:
    """What an item's place in the subspace implies for each view, (n, d_m), the views weighted by (n, M)."""
    xp = array_namespace(weights)
    edges = [0]
    for part in rows:
        edges.append(edges[-1] + part.shape[1])
    views = [slice(start, end) for start, end in pairwise(edges)]
    q = len(space.variances)
    matrix = space.rest * (xp.eye(q, dtype=xp.float64, device=device(weights)) / space.variances)[None, :, :]
    vector = xp.zeros((weights.shape[0], q), dtype=xp.float64, device=device(weights))
    for m, (view, part) in enumerate(zip(views, rows, strict=True)):
        C = space.directions[view, :]
        matrix = matrix + weights[:, m, None, None] * (C.T @ C)[None, :, :]
        vector = vector + weights[:, m, None] * ((part - space.mean[view]) @ C)
    place = xp.linalg.solve(matrix, vector[:, :, None])[:, :, 0]
    return [space.mean[view] + place @ space.directions[view, :].T for view in views]


def _residuals(space: Subspace, present: Any, *blocks: Any) -> Any:
    rows = bounded_rows(space.bounds, *blocks)
    weights = array_namespace(present).astype(present, rows[0].dtype)
    return view_distances(rows, implied_views(space, weights, rows))


def mended_by_subspace(space: Subspace, present: Any, *blocks: Any) -> Any:
    """The views of one block side by side, those out of line moved to what the others imply, (n, sum of d)."""
    rows = bounded_rows(space.bounds, *blocks)
    implied = implied_views(space, array_namespace(present).astype(present, rows[0].dtype), rows)
    for _ in range(WEIGHING_ROUNDS):
        weights = agreement_weights(view_distances(rows, implied), space.scales, present)
        implied = implied_views(space, weights, rows)
    return mended_rows(weights, rows, implied)


def check_subspace(space: Any, widths: tuple[int, ...]) -> None:
    """Refuse a subspace whose parts do not fit each other or these views."""
    require(isinstance(space, Subspace) and is_number(space.rest) and 0 < space.rest < np.inf)
    check_bounds(space.bounds, widths)
    check_shape(space.mean, (sum(widths),))
    check_shape(space.directions, (sum(widths), None))
    check_shape(space.variances, (space.directions.shape[1],))
    check_shape(space.scales, (len(widths),))
    require((space.variances > 0).all() and (space.scales > 0).all())
