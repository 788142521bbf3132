"""Bring views to one scale: subtract the training mean, make the mean squared norm of every view 1.

Without this the view with the larger numbers decides every distance, landmark and bandwidth. A missing value takes the
training mean of its feature (0 after centring), which moves an item towards the middle and no further.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace, device

from quorumhash.engines import Engine, Rows
from quorumhash.errors import ViewsError
from quorumhash.views import Views

LARGEST_SCALED = 1e15  # training rows have size 1; further out is equally far, and float32 squares stay finite


@dataclass(frozen=True)
class Scaling:
    """What was learned about one view: the mean of every feature (d,) and one factor for the whole view."""

    mean: npt.NDArray[np.float64]
    factor: float


def learn_scalings(views: Views, engine: Engine) -> dict[str, Scaling]:
    """Mean and factor of every view over its present values, in two passes (mean first: no cancellation)."""
    scalings = {}
    for name in views:
        matrix = views.matrix(name)
        if matrix is None or not views.present(name).any():
            raise ViewsError(f"view {name!r} is missing in every row: leave it out of fit.")
        rows = engine.put(matrix)
        counts, sums = engine.sum_rows(_count_and_sum, rows)
        mean = sums / np.maximum(counts, 1)
        squares = float(engine.sum_rows(_centred_squares, rows, mean))
        mean_square = squares / int(views.present(name).sum())
        scalings[name] = Scaling(mean, 1.0 / np.sqrt(mean_square) if mean_square > 0 else 1.0)
    return scalings


def _count_and_sum(block: Any) -> Any:
    xp = array_namespace(block)
    values = xp.astype(block, xp.float64)
    missing = xp.isnan(values)
    return xp.sum(xp.astype(~missing, xp.float64), axis=0), xp.sum(xp.where(missing, 0.0, values), axis=0)


def _centred_squares(block: Any, mean: Any) -> Any:
    return (centred(block, mean) ** 2).sum()


def centred(block: Any, mean: Any) -> Any:
    """A block minus the training mean, float64, missing values 0."""
    xp = array_namespace(block)
    values = xp.astype(block, xp.float64) - mean
    return xp.where(xp.isnan(values), 0.0, values)


def scaled(block: Any, scaling: Scaling) -> Any:
    """A block centred and scaled; float32, as all distances and kernels are (docs/architecture.md)."""
    xp = array_namespace(block)
    values = (centred(block, scaling.mean) * scaling.factor).clip(-LARGEST_SCALED, LARGEST_SCALED)
    return xp.astype(values, xp.float32)


def separate_rows(scalings: tuple[Scaling, ...], *blocks: Any) -> list[Any]:
    """The views of one block, centred and scaled, float64 (n, d) each; an absent view (None) is 0."""
    given = next(block for block in blocks if block is not None)
    xp = array_namespace(given)
    return [
        xp.zeros((given.shape[0], len(scaling.mean)), dtype=xp.float64, device=device(given))
        if block is None
        else centred(block, scaling.mean) * scaling.factor
        for scaling, block in zip(scalings, blocks, strict=True)
    ]


def joined_rows(scalings: tuple[Scaling, ...], *blocks: Any) -> Any:
    """The views of one block side by side, centred and scaled, float64 (n, sum of d); an absent view (None) is 0."""
    parts = separate_rows(scalings, *blocks)
    return array_namespace(parts[0]).concat(parts, axis=1)


def joined_scores(scalings: tuple[Scaling, ...], projection: Any, *blocks: Any) -> Any:
    """The joined views of one block times a projection (sum of d, p)."""
    return joined_rows(scalings, *blocks) @ projection


def put_views(views: Views, engine: Engine) -> list[Rows | None]:
    """Rows of every view, None where the whole view is absent."""
    return [None if views.matrix(name) is None else engine.put(views.matrix(name)) for name in views]


def linear_scores(
    views: Views,
    scalings: dict[str, Scaling],
    projection: npt.NDArray[np.float64],
    engine: Engine,
    thresholds: npt.NDArray[np.float64] | float = 0.0,
) -> Rows:
    """Scores (n, p) of hash functions that are linear in the joined views, less their thresholds (p,)."""
    walked = put_views(views, engine)
    scores: Rows = engine.map_rows(_threshold_scores, tuple(scalings.values()), projection, thresholds, *walked)
    return scores


def _threshold_scores(scalings: tuple[Scaling, ...], projection: Any, thresholds: Any, *blocks: Any) -> Any:
    return joined_scores(scalings, projection, *blocks) - thresholds
