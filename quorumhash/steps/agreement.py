"""How far each view of an item agrees with what the views together say of it, and rows mended accordingly.

    e (n, M)  distance of each view to what is expected of it;  s (M,)  its median over training items
    w (n, M)  1 / (1 + (e / (1.3 s))^4), divided by the item's largest, 0 where the view is absent

Cauchy's weight with the power 4 for 2: a view in line keeps more of its weight, one out of line loses more. The most
credible view of an item is taken as it is, so an item with one view is never changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace

from quorumhash.engines import Engine, Rows
from quorumhash.proximal import row_norms

IN_LINE = 1.3  # times the median: where a view has lost half of its weight
SHARPNESS = 4
SMALLEST_SCALE = 1e-6  # rows have size 1


def view_distances(rows: Sequence[Any], expected: Sequence[Any]) -> Any:
    """Residuals e (n, M): how far each view (n, d_m) is from what is expected of it."""
    xp = array_namespace(rows[0])
    return xp.stack([row_norms(own - other) for own, other in zip(rows, expected, strict=True)], axis=1)


def agreement_weights(residuals: Any, scales: Any, present: Any) -> Any:
    """Weights w (n, M) from residuals e (n, M) and their scales s (M,)."""
    xp = array_namespace(residuals)
    weights = xp.astype(present, xp.float64) / (1.0 + (residuals / (IN_LINE * scales)) ** SHARPNESS)
    return weights / xp.max(weights, axis=1, keepdims=True)


def median_residuals(
    residuals: Rows, positions: npt.NDArray[np.intp], present: npt.NDArray[np.bool_], engine: Engine
) -> npt.NDArray[np.float64]:
    """Median residual of every view over the sampled rows that have it, (M,); never so small that rounding decides."""
    sampled = engine.take_rows(residuals, positions)
    return np.array([max(np.median(sampled[present[:, m], m]), SMALLEST_SCALE) for m in range(sampled.shape[1])])


def mended_rows(weights: Any, rows: Sequence[Any], expected: Sequence[Any]) -> Any:
    """The views side by side, each moved to what is expected of it as far as it is out of line, (n, sum of d)."""
    xp = array_namespace(weights)
    parts = [
        weights[:, m, None] * own + (1.0 - weights[:, m, None]) * other
        for m, (own, other) in enumerate(zip(rows, expected, strict=True))
    ]
    return xp.concat(parts, axis=1)
