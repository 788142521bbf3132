"""Directions along which neighbours differ little: Laplacians of landmark graphs as small matrices.

    A (N, p)  features;  E (N, L)  edges of every row to a few landmarks;  Lambda = diag(E^T 1)
    A^T (diag(E 1) - E Lambda^-1 E^T) A  =  sum_ij E_ij (a_i - z_j)(a_i - z_j)^T,  z_j the mean of landmark j's rows

so the Laplacian of a graph with N nodes is a sum over rows (`edge_sums`) and a product over landmarks
(`landmark_part`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.proximal import fix_signs
from quorumhash.similarity import collect_at_landmarks

FloatArray = npt.NDArray[np.float64]


def edge_sums(features: Any, positions: Any, weights: Any, n_landmarks: int) -> tuple[Any, Any]:
    """E^T A (L, p) and E^T 1 (L,) of one block."""
    totals = collect_at_landmarks(positions, weights, weights[:, :1] * 0 + 1, n_landmarks)
    return collect_at_landmarks(positions, weights, features, n_landmarks), totals[:, 0]


def landmark_part(by_landmark: FloatArray, totals: FloatArray) -> FloatArray:
    """A^T E Lambda^-1 E^T A (p, p) from the sums; a landmark without rows has no part."""
    used = totals > 0
    part = by_landmark[used] / np.sqrt(totals[used])[:, None]
    return part.T @ part


def smoothest_directions(cost: FloatArray, basis: FloatArray, n_directions: int) -> tuple[FloatArray, float]:
    """W = T U, U the eigenvectors of the least eigenvalues of T^T cost T, and the sum of these: tr(W^T cost W)."""
    values, vectors = np.linalg.eigh(basis.T @ cost @ basis)
    return fix_signs(basis @ vectors[:, :n_directions]), float(values[:n_directions].sum())
