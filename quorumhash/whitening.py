"""Weighted means and covariances of rows, and what makes rows white."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace

from quorumhash.tensors import beside, on_host

FloatArray = npt.NDArray[np.float64]


def weighted_moments(rows: Any, weights: FloatArray) -> tuple[FloatArray, FloatArray, Any]:
    """Weighted mean (s,) and covariance (s, s), and the rows (n, s), where they are, times the roots of their weights.

    The mean is taken off the sums, not off the rows: signatures are centred but for damage, and copies of rows are what
    learning spends its time on.
    """
    total, there = max(float(weights.sum()), 1e-300), beside(weights, rows)
    mean = on_host(there @ rows) / total
    scaled = rows * array_namespace(rows).sqrt(there)[:, None]
    squares = on_host(scaled.T @ scaled)  # by itself: half of the work of a product
    return mean, squares / total - np.outer(mean, mean), scaled


def whitening_of(covariance: FloatArray, ridge: float) -> FloatArray:
    """W (s, s) with which rows of this covariance, and a ridge of its mean variance, become white.

    By a Cholesky factor: any other W is this one turned, and eigenvectors cost ten times as much. They are asked where
    rows are all alike, and what is left of their covariance is rounding of either sign.
    """
    from scipy.linalg import lapack

    n_columns = len(covariance)
    ridged = covariance + ridge * max(float(np.trace(covariance)) / n_columns, 1e-300) * np.eye(n_columns)
    factor, told = lapack.dpotrf(ridged)  # ridged = factor^T factor, factor upper triangular
    if told == 0:
        whitening: FloatArray = lapack.dtrtri(factor)[0]
        return whitening
    values, vectors = np.linalg.eigh(covariance)
    values = values.clip(0.0, None)
    return np.asarray(vectors / np.sqrt(values + ridge * max(float(values.mean()), 1e-300)))


def widest_columns(covariance: FloatArray, n_columns: int) -> npt.NDArray[np.intp]:
    """The columns of the largest variance, in their order."""
    return np.sort(np.argsort(-np.diag(covariance), kind="stable")[:n_columns])
