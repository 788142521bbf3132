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
    """W (s, s) with which rows of this covariance, and a ridge of its mean variance, become white.

    By a Cholesky factor: any other W is this one turned, and eigenvectors cost ten times as much.
    """
    from scipy.linalg import lapack

    n_columns = len(covariance)
    ridged = covariance + ridge * max(float(np.trace(covariance)) / n_columns, 1e-300) * np.eye(n_columns)
    factor, told = lapack.dpotrf(ridged)  # ridged = factor^T factor, factor upper triangular
    if told != 0:
        raise np.linalg.LinAlgError("a covariance that is not positive, or not finite")
    whitening: FloatArray = lapack.dtrtri(factor)[0]
    return whitening


def widest_columns(covariance: FloatArray, n_columns: int) -> npt.NDArray[np.intp]:
    """The columns of the largest variance, in their order."""
    return np.sort(np.argsort(-np.diag(covariance), kind="stable")[:n_columns])
