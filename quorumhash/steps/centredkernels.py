"""The kernels of all views to shared landmarks, each less its training mean, side by side: features of an item.

A view that an item lacks takes the training mean, which is 0 here: it has no say in the item's scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace, device

from quorumhash.checks import check_shape, require
from quorumhash.engines import Engine
from quorumhash.kernelspace import ViewKernel, check_kernel, landmark_distances, learn_kernel_space, walked_views
from quorumhash.similarity import rbf_kernel
from quorumhash.views import Views

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class CentredKernels:
    """The kernel of every view, landmarks aligned, and the kernels' means over the training rows (n_views, R)."""

    kernels: tuple[ViewKernel, ...]
    means: FloatArray


def learn_centred_kernels(
    views: Views, engine: Engine, seed: int, *, n_landmarks: int, landmarks: str, bandwidth: str
) -> CentredKernels:
    """Learn scales and means on all rows; landmarks and bandwidths on a seeded sample of them."""
    kernels = learn_kernel_space(
        views, engine, seed, n_kernel_landmarks=n_landmarks, n_graph_landmarks=0, n_neighbors=1, landmarks=landmarks,
        bandwidth=bandwidth,
    ).kernels.values()  # fmt: skip
    n_shared = len(next(iter(kernels)).landmarks)
    zero = CentredKernels(tuple(kernels), np.zeros((len(kernels), n_shared)))
    totals = engine.sum_rows(_totals, zero, *walked_views(views, engine)).reshape(zero.means.shape)
    counts = np.array([views.present(name).sum() for name in views])
    return CentredKernels(zero.kernels, totals / counts[:, None])


def centred_kernels(space: CentredKernels, present: Any, *blocks: Any) -> Any:
    """The features (n, n_views R) of one block, float64."""
    xp = array_namespace(present)
    parts = []
    for m, squares in enumerate(landmark_distances(space.kernels, *blocks)):
        if squares is None:
            shape = (present.shape[0], space.means.shape[1])
            parts.append(xp.zeros(shape, dtype=xp.float64, device=device(present)))
        else:
            kernel = xp.astype(rbf_kernel(squares, space.kernels[m].bandwidth), xp.float64) - space.means[m]
            parts.append(xp.where(present[:, m, None], kernel, 0.0))
    return xp.concat(parts, axis=1)


def _totals(space: CentredKernels, present: Any, *blocks: Any) -> Any:
    return centred_kernels(space, present, *blocks).sum(0)


def kernel_scores(space: CentredKernels, projection: Any, present: Any, *blocks: Any) -> Any:
    """Scores (n, p) of one block: its features times a projection (n_views R, p)."""
    return centred_kernels(space, present, *blocks) @ projection


def check_centred_kernels(space: Any, widths: tuple[int, ...]) -> None:
    """Refuse kernels whose parts do not fit each other or these views."""
    require(isinstance(space, CentredKernels) and len(space.kernels) == len(widths))
    check_shape(space.means, (len(widths), None))
    for kernel, width in zip(space.kernels, widths, strict=True):
        check_kernel(kernel, space.means.shape[1], width)
