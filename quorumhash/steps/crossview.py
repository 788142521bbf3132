"""What the views of an item say of each other, and views replaced by it where they are out of line.

    z_m = x_m C_m (q_m,) principal components of view m;  p_nm prediction of z_m by view n;  a_nm its precision
    zhat_m = sum_{n != m} w_n a_nm p_nm / sum_{n != m} w_n a_nm      what the others say of view m
    w_m    from |z_m - zhat_m| (agreement.py);   mended view  w_m x_m + (1 - w_m) zhat_m C_m^T

Weights and averages take turns for a few rounds. While learning, the regressions see each row with the weight of its
view, and their targets are the mended components.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace

from quorumhash.checks import check_shape, require
from quorumhash.engines import Engine
from quorumhash.kernelspace import put_presence
from quorumhash.proximal import row_norms
from quorumhash.scaling import put_views
from quorumhash.steps.agreement import agreement_weights, median_residuals, mended_rows, view_distances
from quorumhash.steps.bounds import Bound, BoundedSample, bounded_rows, check_bounds
from quorumhash.steps.components import moments
from quorumhash.steps.directions import principal_pairs
from quorumhash.steps.kernelridge import (
    Predictor,
    check_predictors,
    kernel_rows,
    learn_kernels,
    learn_predictor,
    predict_from_kernel,
)
from quorumhash.views import Views

ROUNDS = 3
SMALLEST_ERROR = 1e-9  # squared; rows have size 1
NO_WEIGHT = 1e-300


@dataclass(frozen=True)
class CrossView:
    """Bounds of the views, bases C_m (d_m, q_m), a predictor of all views' components per view, precision a (M, M) of
    view n about view m, median residual of every view (M,)."""

    bounds: tuple[Bound, ...]
    bases: tuple[npt.NDArray[np.float64], ...]
    predictors: tuple[Predictor, ...]
    precision: npt.NDArray[np.float64]
    scales: npt.NDArray[np.float64]


def learn_cross_view(
    views: Views,
    bounds: tuple[Bound, ...],
    sample: BoundedSample,
    engine: Engine,
    seed: int,
    *,
    n_components: int,
    n_landmarks: int | None,
) -> CrossView:
    """Learn what each view says of all views, in rounds that trust rows out of line less and less."""
    rows = engine.map_rows(bounded_rows, bounds, *put_views(views, engine))
    bases = tuple(principal_pairs(moments(part, engine)[1], n_components)[1] for part in rows)
    kernels = learn_kernels(sample, len(views), n_landmarks, seed)
    features = [engine.map_rows(kernel_rows, kernel, part) for kernel, part in zip(kernels, rows, strict=True)]
    own = engine.map_rows(_components, bases, *rows)
    present = put_presence(views, engine)
    targets, weights = own, present
    for _ in range(ROUNDS):
        predictors = tuple(
            learn_predictor(kernel, m, features[m], targets, weights, engine) for m, kernel in enumerate(kernels)
        )
        cross = CrossView(bounds, bases, predictors, np.ones((len(kernels),) * 2), np.ones(len(kernels)))
        errors, counts = engine.sum_rows(_pair_errors, cross, own, weights, *features)
        cross = replace(cross, precision=counts / np.maximum(errors, SMALLEST_ERROR))
        residuals = engine.map_rows(_residuals, cross, own, weights, *features)
        cross = replace(cross, scales=median_residuals(residuals, sample.positions, sample.present, engine))
        targets, weights = engine.map_rows(_reweighed, cross, own, present, weights, *features)
    return cross


def _components(bases: tuple[Any, ...], *rows: Any) -> Any:
    xp = array_namespace(rows[0])
    return xp.concat([part @ basis for part, basis in zip(rows, bases, strict=True)], axis=1)


def _cut(cross: CrossView, block: Any) -> list[Any]:
    """The components of each view, from those of all views side by side."""
    edges = [0]
    for basis in cross.bases:
        edges.append(edges[-1] + basis.shape[1])
    return [block[:, start:end] for start, end in pairwise(edges)]


def _said(cross: CrossView, features: tuple[Any, ...]) -> list[list[Any]]:
    """p_nm: for each view n its predictions (n, q_m) of every view m."""
    return [
        _cut(cross, predict_from_kernel(predictor, part))
        for predictor, part in zip(cross.predictors, features, strict=True)
    ]


def _pair_errors(cross: CrossView, own: Any, weights: Any, *features: Any) -> Any:
    """Weighted sums of squared errors of p_nm (M, M), and of the weights."""
    xp = array_namespace(own)
    weights, parts = xp.astype(weights, own.dtype), _cut(cross, own)
    errors = [
        xp.stack([weights[:, n] @ (weights[:, m] * row_norms(parts[m] - p) ** 2) for m, p in enumerate(said)])
        for n, said in enumerate(_said(cross, features))
    ]
    return xp.stack(errors), weights.T @ weights


def _others_say(cross: CrossView, weights: Any, said: list[list[Any]]) -> list[Any]:
    """zhat_m (n, q_m); 0, the mean, where no other view has any weight."""
    xp = array_namespace(weights)
    averages = []
    for m in range(len(said)):
        total, weight = xp.zeros_like(said[m][m]), xp.zeros_like(weights[:, 0])
        for n in range(len(said)):
            if n != m:
                share = weights[:, n] * cross.precision[n, m]
                total, weight = total + share[:, None] * said[n][m], weight + share
        averages.append(total / weight.clip(NO_WEIGHT, None)[:, None])
    return averages


def _residuals(cross: CrossView, own: Any, weights: Any, *features: Any) -> Any:
    weights = array_namespace(own).astype(weights, own.dtype)
    return view_distances(_cut(cross, own), _others_say(cross, weights, _said(cross, features)))


def _reweighed(cross: CrossView, own: Any, present: Any, weights: Any, *features: Any) -> Any:
    """Mended components (n, sum of q), and weights (n, M)."""
    parts, weights = _cut(cross, own), array_namespace(own).astype(weights, own.dtype)
    averages = _others_say(cross, weights, _said(cross, features))
    weights = agreement_weights(view_distances(parts, averages), cross.scales, present)
    return mended_rows(weights, parts, averages), weights


def mended_by_views(cross: CrossView, present: Any, *blocks: Any) -> Any:
    """The views of one block side by side, those out of line replaced by what the others say, (n, sum of d)."""
    xp = array_namespace(present)
    rows = bounded_rows(cross.bounds, *blocks)
    parts = [part @ basis for part, basis in zip(rows, cross.bases, strict=True)]
    said = _said(cross, tuple(kernel_rows(p.kernel, part) for p, part in zip(cross.predictors, rows, strict=True)))
    weights = xp.astype(present, xp.float64)
    for _ in range(ROUNDS):
        averages = _others_say(cross, weights, said)
        weights = agreement_weights(view_distances(parts, averages), cross.scales, present)
    expected = [average @ basis.T for average, basis in zip(averages, cross.bases, strict=True)]
    return mended_rows(weights, rows, expected)


def check_cross_view(cross: Any, widths: tuple[int, ...]) -> None:
    """Refuse parts that do not fit each other or these views."""
    require(isinstance(cross, CrossView) and len(cross.bases) == len(widths))
    check_bounds(cross.bounds, widths)
    for basis, width in zip(cross.bases, widths, strict=True):
        check_shape(basis, (width, None))
    check_predictors(cross.predictors, widths, sum(basis.shape[1] for basis in cross.bases))
    check_shape(cross.precision, (len(widths), len(widths)))
    check_shape(cross.scales, (len(widths),))
    require((cross.precision >= 0).all() and (cross.scales > 0).all())
