"""Weighted means and covariances of rows on the host, and what makes rows white."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


def weighted_moments(rows: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Weighted mean (s,) and covariance (s, s), and the rows times the roots of their weights.

    The mean is taken off the sums, not off the rows: signatures are centred but for damage, and copies of rows are what
    learning spends its time on.
    """
    total = max(float(weights.sum()), 1e-300)
    mean = weights @ rows / total
    scaled = rows * np.sqrt(weights)[:, None]
    return mean, scaled.T @ scaled / total - np.outer(mean, mean), scaled  # by itself: half of the work of a product


def whitening_of(covariance: FloatArray, ridge: float) -> FloatArray:
    """W (s, s) with which rows of this covariance, and a ridge of its mean variance, become white."""
    values, vectors = np.linalg.eigh(covariance)
    values = np.maximum(values, 0.0)
    whitening: FloatArray = vectors / np.sqrt(values + ridge * max(float(values.mean()), 1e-300))
    return whitening


def widest_columns(covariance: FloatArray, n_columns: int) -> npt.NDArray[np.intp]:
    """The columns of the largest variance, in their order."""
    return np.sort(np.argsort(-np.diag(covariance), kind="stable")[:n_columns])
