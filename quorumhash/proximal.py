"""The shelf of small operators: shrink rows, entries, singular values; rotate scores towards bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace, is_numpy_array

from quorumhash.engines import Engine, Rows
from quorumhash.engines.base import eigenpairs
from quorumhash.engines.threads import one_blas_thread

FloatArray = npt.NDArray[np.float64]

MOST_TURNED = 100_000  # rows that a rotation is learned from
AS_LARGE = 1e-4  # of the largest component: the same size but for rounding


def shrink_rows(block: Any, threshold: float) -> Any:
    """Shorten every row by the threshold, to zero at most: the proximal operator of threshold * sum of row norms.

    >>> shrink_rows(np.array([[3.0, 4.0], [0.3, 0.4]]), 1.0)
    array([[2.4, 3.2],
           [0. , 0. ]])
    """
    return block * row_shrinkage(block, threshold)[:, None]


def row_shrinkage(block: Any, threshold: float) -> Any:
    """The factor in [0, 1] by which shrink_rows multiplies every row, (n,)."""
    xp = array_namespace(block)
    norms = row_norms(block)
    return (1.0 - threshold / xp.where(norms > 0, norms, 1.0)).clip(0.0, None)


def shrink_entries(block: Any, threshold: float) -> Any:
    """Move every entry towards zero by the threshold: the proximal operator of threshold * sum of |entries|.

    >>> shrink_entries(np.array([[3.0, -0.5]]), 1.0)
    array([[2., 0.]])
    """
    return block - block.clip(-threshold, threshold)


def row_norms(block: Any) -> Any:
    """Euclidean norm of every row, (n,)."""
    if is_numpy_array(block):
        return np.sqrt(np.einsum("ij,ij->i", block, block))
    return array_namespace(block).linalg.vector_norm(block, axis=1)  # einsum is a product of batches there, and slow


@dataclass(frozen=True)
class SpectralShrinkage:
    """X -> X @ operator shrinks the singular values of X (n, r); `basis` (r, rank) spans what is left, by `factors`."""

    basis: FloatArray
    factors: FloatArray  # (rank,)
    nuclear_norm: float

    @property
    def operator(self) -> FloatArray:
        """(r, r)."""
        return np.asarray((self.basis * self.factors) @ self.basis.T)

    @property
    def rank(self) -> int:
        """Number of singular values above the threshold."""
        return int(self.basis.shape[1])


def shrink_singular_values(
    gram: FloatArray, threshold: float, floor: float = 0.0, engine: Engine | None = None
) -> SpectralShrinkage:
    """The proximal operator of threshold * nuclear norm for a tall matrix X, from its Gram matrix X^T X alone.

    X = U S V^T has X^T X = V S^2 V^T, and U max(S - threshold, 0) V^T = X V diag(max(1 - threshold / S, 0)) V^T, so
    the long side is never decomposed. What would be left with at most `floor` counts as zero: at a solution many
    singular values stand exactly at the threshold, and rounding must not decide the rank.
    """
    squares, vectors = (engine.eigenpairs if engine else eigenpairs)(gram)
    values = np.sqrt(np.maximum(squares, 0.0))
    kept = values > threshold + floor
    basis, values = vectors[:, kept], values[kept]
    return SpectralShrinkage(basis, 1.0 - threshold / values, float(np.sum(values - threshold)))


def fix_signs(vectors: FloatArray) -> FloatArray:
    """Columns with their largest component positive, so that every engine and library gives the same eigenvectors.

    Of components as large but for rounding the first decides: rounding differs from machine to machine.
    """
    if vectors.size == 0:
        return vectors
    sizes = np.abs(vectors)
    first = np.argmax(sizes >= (1.0 - AS_LARGE) * sizes.max(axis=0), axis=0)
    largest = vectors[first, np.arange(vectors.shape[1])]
    return vectors * np.where(largest < 0, -1.0, 1.0)


def signs(scores: Any) -> Any:
    """1 where a score is 0 or more, -1 elsewhere, as bits are.

    >>> signs(np.array([-2.0, 0.0, 3.0]))
    array([-1.,  1.,  1.])
    """
    return 2.0 * array_namespace(scores).astype(scores >= 0, scores.dtype) - 1.0


def decomposed(matrix: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """U, singular values and V^T of a small square matrix, by the slower way where the quick one does not converge."""
    try:
        left, values, right = np.linalg.svd(matrix)
    except np.linalg.LinAlgError:
        import scipy.linalg

        left, values, right = scipy.linalg.svd(matrix, lapack_driver="gesvd")
    return left, values, right


def rotate_to_bits(scores: Rows, n_bits: int, engine: Engine, seed: int, n_steps: int = 50) -> FloatArray:
    """The rotation (p, p) that brings scores closest to their signs: iterative quantization (Gong and Lazebnik).

    Alternates B = sign(V R) and the orthogonal Procrustes solution R = U_A U_B^T of B^T V = U_B S U_A^T, from a random
    rotation; each step lowers |B - V R|, in float64. Of more than MOST_TURNED rows some, evenly spread, are looked at:
    a rotation has few numbers, and fifty walks over all rows would cost more than the rest of a fit.
    """
    rotation, _ = np.linalg.qr(engine.random(seed).standard_normal((n_bits, n_bits)))
    near = engine.at_hand
    if near is not engine or scores.n_rows > MOST_TURNED:
        positions = np.arange(0, scores.n_rows, -(-scores.n_rows // MOST_TURNED))
        scores = near.put(engine.sample(scores, positions))
    with one_blas_thread():
        for _ in range(n_steps):
            bits_by_scores = near.sum_rows(_signs_times_scores, scores, rotation)
            left, _, right = decomposed(bits_by_scores)
            rotation = (left @ right).T
    return rotation


def _signs_times_scores(block: Any, rotation: Any) -> Any:
    return signs(block @ rotation).T @ block
