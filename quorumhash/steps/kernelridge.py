"""Each view on its own predicts a target that all views share: ridge regression on kernels to the view's landmarks.

    k (R,)  RBF kernel of a row to the view's R landmarks;  prediction = k W + b
    min over W, b   sum_i w_i |k_i W + b - y_i|^2 + r |W|^2,   r = relative x trace of the centred Gram matrix / R

A damaged view spoils its own prediction and no other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace

from quorumhash.checks import check_shape, is_number, require
from quorumhash.engines import Engine, Rows
from quorumhash.landmarks import default_n_landmarks, graph_landmarks
from quorumhash.similarity import kernel_bandwidth, rbf_kernel, squared_distances
from quorumhash.steps.bounds import BoundedSample

RELATIVE_RIDGE = 1e-2


@dataclass(frozen=True)
class LandmarkKernel:
    """Landmarks (R, d) and bandwidth of one view."""

    landmarks: npt.NDArray[np.float32]
    bandwidth: float


@dataclass(frozen=True)
class Predictor:
    """Kernel of one view, and the regression on it: projection (R, p), bias (p,)."""

    kernel: LandmarkKernel
    projection: npt.NDArray[np.float64]
    bias: npt.NDArray[np.float64]


def learn_kernels(sample: BoundedSample, n_rows: int, n_landmarks: int | None, seed: int) -> list[LandmarkKernel]:
    """A kernel per view, landmarks by k-means on the sampled rows that have it."""
    kernels = []
    for m, rows in enumerate(sample.rows.values()):
        held = sample.present[:, m]
        landmarks = graph_landmarks(rows, held, n_landmarks or default_n_landmarks(n_rows), seed)
        kernels.append(LandmarkKernel(landmarks, kernel_bandwidth(squared_distances(rows[held], landmarks))))
    return kernels


def kernel_rows(kernel: LandmarkKernel, block: Any) -> Any:
    """Kernel (n, R) of one block of a view's bounded rows, float32."""
    xp = array_namespace(block)
    return rbf_kernel(squared_distances(xp.astype(block, xp.float32), kernel.landmarks), kernel.bandwidth)


def learn_predictor(
    kernel: LandmarkKernel, view: int, features: Rows, targets: Rows, weights: Rows, engine: Engine
) -> Predictor:
    """Regress targets (N, p) on a view's kernel (N, R); weights (N, M) say how much each row counts per view."""
    gram, cross, feature_sums, target_sums, total = engine.sum_rows(_ridge_sums, view, features, targets, weights)
    feature_mean, target_mean = feature_sums / total, target_sums / total
    gram -= total * np.outer(feature_mean, feature_mean)
    cross -= total * np.outer(feature_mean, target_mean)
    ridge = RELATIVE_RIDGE * np.trace(gram) / len(gram) or 1.0  # all rows alike: any ridge gives the mean
    projection = np.linalg.solve(gram + ridge * np.eye(len(gram)), cross)
    return Predictor(kernel, projection, target_mean - feature_mean @ projection)


def _ridge_sums(view: int, features: Any, targets: Any, weights: Any) -> Any:
    xp = array_namespace(features)
    features, weight = xp.astype(features, xp.float64), xp.astype(weights[:, view], xp.float64)
    weighted = features * weight[:, None]
    sums = weighted.T @ features, weighted.T @ targets, xp.sum(weighted, axis=0), weight @ targets, xp.sum(weight)
    return sums


def predict(predictor: Predictor, block: Any) -> Any:
    """Predictions (n, p), float64, of one block of a view's bounded rows."""
    return predict_from_kernel(predictor, kernel_rows(predictor.kernel, block))


def predict_from_kernel(predictor: Predictor, features: Any) -> Any:
    """The same where the kernel (n, R) is at hand."""
    xp = array_namespace(features)
    return xp.astype(features, xp.float64) @ predictor.projection + predictor.bias


def check_predictors(predictors: Any, widths: tuple[int, ...], n_targets: int) -> None:
    """Refuse predictors that are not those of views of these widths, of targets of this length."""
    require(len(predictors) == len(widths) and all(isinstance(p, Predictor) for p in predictors))
    for predictor, width in zip(predictors, widths, strict=True):
        kernel = predictor.kernel
        require(isinstance(kernel, LandmarkKernel) and is_number(kernel.bandwidth) and kernel.bandwidth > 0)
        check_shape(kernel.landmarks, (None, width))
        check_shape(predictor.projection, (len(kernel.landmarks), n_targets))
        check_shape(predictor.bias, (n_targets,))
