"""The dimensions that bits are cut from: those in which near items differ.

Bits cut from the dimensions of embed tell far items apart well, because far differences make most of the variance; who
is the nearest is decided by small ones. A kernel that levels off with distance turns this round. So for neighbours the
bits are cut from the principal components of

    k(x) = 1 / (1 + |x - z|^2 / (2 s^2))   to L landmarks z, s the mean distance to the 7th nearest of them

with their variances v levelled, each component divided by sqrt(v + LEVELLING * mean v). The kernel falls slowly: a row
far from all landmarks still has a direction. For groups, where items of a kind lie together already, bits are cut from
the dimensions themselves, and for a dial between from both side by side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace

from quorumhash.checks import check_shape, is_number, require
from quorumhash.engines import Engine
from quorumhash.engines.base import eigenpairs
from quorumhash.landmarks import distinct_rows, k_means
from quorumhash.proximal import fix_signs
from quorumhash.similarity import kernel_bandwidth, squared_distances
from quorumhash.tensors import beside, on_host

FloatArray = npt.NDArray[np.float64]

N_LANDMARKS = 400
ROWS_PER_LANDMARK = 3
MOST_ROWS = 5_000
N_DIRECTIONS = 256
LEVELLING = 10.0
SMALLEST_VALUE = 1e-6  # of the largest eigenvalue of a float32 kernel: less is rounding


@dataclass(frozen=True)
class Nearness:
    """Rows for bits: k(dimensions) @ from_kernel + dimensions @ from_dimensions - offset."""

    landmarks: npt.NDArray[np.float32]  # (L, p)
    bandwidth: float
    from_kernel: FloatArray  # (L, r)
    from_dimensions: FloatArray  # (p, r)
    offset: FloatArray  # (r,)


def learn_nearness(sample: Any, smoothing: float, seed: int, engine: Engine | None = None) -> Nearness | None:
    """Learn from dimensions (s, p) of sampled rows; None where the dial says groups, and bits need nothing more."""
    if smoothing == 1.0:
        return None
    sample = sample[:: -(-len(sample) // MOST_ROWS)]
    points = distinct_rows(on_host(sample).astype(np.float32))
    landmarks = k_means(points, max(2, min(N_LANDMARKS, len(points) // ROWS_PER_LANDMARK)), seed)
    there = beside(landmarks, sample)
    bandwidth = kernel_bandwidth(squared_distances(beside(points, sample), there))
    kernel = kernel_rows(there, bandwidth, sample)
    decompose = engine.eigenpairs if engine else eigenpairs
    values, vectors = decompose(kernel_rows(landmarks, bandwidth, landmarks))
    kept = values > SMALLEST_VALUE * values[-1]
    root = (vectors[:, kept] / np.sqrt(values[kept])) @ vectors[:, kept].T
    mean = on_host(kernel.sum(0)) / len(sample)
    centred = kernel - beside(mean, kernel)
    covariance = on_host(centred.T @ centred) / len(sample)
    variances, directions = _principal(root @ covariance @ root, decompose)
    levels = np.sqrt(variances + LEVELLING * max(float(variances.mean()), 1e-300))
    from_kernel = root @ directions / levels
    if smoothing == 0.0:
        nothing = np.zeros((sample.shape[1], from_kernel.shape[1]))
        return Nearness(landmarks, bandwidth, from_kernel, nothing, mean @ from_kernel)
    near = Nearness(landmarks, bandwidth, from_kernel, np.empty(0), mean)
    return _side_by_side(near, on_host(kernel), on_host(sample), smoothing)


def _principal(covariance: FloatArray, decompose: Any = eigenpairs) -> tuple[FloatArray, FloatArray]:
    variances, directions = decompose((covariance + covariance.T) / 2)
    order = slice(None, -N_DIRECTIONS - 1, -1)
    return np.maximum(variances[order], 0.0), fix_signs(directions[:, order])


def _side_by_side(near: Nearness, kernel: FloatArray, sample: FloatArray, smoothing: float) -> Nearness:
    """The components of both, each side of total variance 1 times its part of the dial, in order of variance."""
    parts = (kernel - near.offset) @ near.from_kernel, sample
    factors = [
        part / np.sqrt(max(float(rows.var(axis=0).sum()), 1e-300))
        for part, rows in zip((1.0 - smoothing, smoothing), parts, strict=True)
    ]
    both = np.concatenate([rows * factor for rows, factor in zip(parts, factors, strict=True)], axis=1)
    _, directions = _principal(np.cov(both.T, bias=True))
    first, second = np.split(directions, [parts[0].shape[1]])
    from_kernel, from_dimensions = near.from_kernel @ first * factors[0], second * factors[1]
    offset = near.offset @ from_kernel + sample.mean(axis=0) @ from_dimensions
    return Nearness(near.landmarks, near.bandwidth, from_kernel, from_dimensions, offset)


def kernel_rows(landmarks: Any, bandwidth: float, rows: Any) -> Any:
    """k (n, L): float64 for the products that follow, of float32 distances, which are coarser than the quotient."""
    xp = array_namespace(rows)
    squares = squared_distances(xp.astype(rows, xp.float32), landmarks)
    squares *= 0.5 / bandwidth**2
    squares += 1.0
    return xp.astype(1.0 / squares, xp.float64)


def near_rows(nearness: Nearness | None, dimensions: Any) -> Any:
    """What bits are cut from, (n, r), for dimensions (n, p)."""
    if nearness is None:
        return dimensions
    kernel = kernel_rows(nearness.landmarks, nearness.bandwidth, dimensions)
    return kernel @ nearness.from_kernel + dimensions @ nearness.from_dimensions - nearness.offset


def check_nearness(nearness: Any, n_dimensions: int) -> int:
    """Refuse what does not fit so many dimensions; how many columns bits are cut from."""
    if nearness is None:
        return n_dimensions
    require(isinstance(nearness, Nearness) and is_number(nearness.bandwidth) and nearness.bandwidth > 0)
    check_shape(nearness.landmarks, (None, n_dimensions))
    check_shape(nearness.from_kernel, (len(nearness.landmarks), None))
    n_columns = int(nearness.from_kernel.shape[1])
    check_shape(nearness.from_dimensions, (n_dimensions, n_columns))
    check_shape(nearness.offset, (n_columns,))
    return n_columns
