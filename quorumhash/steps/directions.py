"""Directions from small symmetric matrices, and bits from directions where the two are not equally many.

What was summed over all rows is a small matrix on the host; its eigenvectors become the columns of hash functions. Data
may have fewer of them than there are bits: then scores are padded with zero columns and rotated (`rotate`), or the same
directions are used again in random frames (no rotation). Either way every bit is another cut through the same space.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace, device

from quorumhash.engines import Engine, Rows
from quorumhash.proximal import fix_signs, rotate_to_bits
from quorumhash.scaling import Scaling, joined_rows

FloatArray = npt.NDArray[np.float64]

SMALLEST_EIGENVALUE = 1e-10  # relative to the largest; below it is rounding of float64 sums
SMALLEST_OF_KERNEL = 1e-6  # the same for a matrix of float32 kernels
TIE_BREAK = 1e-9  # splits equal eigenvalues far above rounding and far below any difference that matters
SMALLEST_COMPONENT = 1e-9  # relative; a graph vector has only rounding in parts of the graph it does not touch


def joined_scatter(scalings: tuple[Scaling, ...], *blocks: Any) -> Any:
    """X^T X (d, d) of the joined views of one block."""
    joined = joined_rows(scalings, *blocks)
    return joined.T @ joined


def lasting_pairs(matrix: FloatArray, smallest: float = SMALLEST_EIGENVALUE) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues (r,), rising, and eigenvectors (d, r) of a symmetric matrix, those that are rounding left out.

    >>> lasting_pairs(np.diag([1.0, 9.0, 0.0]))[0]
    array([1., 9.])
    """
    values, vectors = np.linalg.eigh(matrix)
    kept = values > smallest * max(values[-1], 0.0)
    return values[kept], vectors[:, kept]


def principal_pairs(scatter: FloatArray, n_pairs: int) -> tuple[FloatArray, FloatArray]:
    """The largest eigenvalues, falling, and their sign-fixed eigenvectors (d, r): at most n_pairs, and no rounding."""
    values, vectors = lasting_pairs(scatter)
    return values[::-1][:n_pairs], fix_signs(vectors[:, ::-1][:, :n_pairs])


def principal_directions(scatter: FloatArray, n_directions: int) -> FloatArray:
    """Eigenvectors (d, r) of the largest eigenvalues, falling; r is n_directions or the rank, if that is less.

    There is at least one: where all rows are alike, any direction will do.

    >>> principal_directions(np.diag([1.0, 9.0, 0.0]), 3)
    array([[0., 1.],
           [1., 0.],
           [0., 0.]])
    """
    _, vectors = principal_pairs(scatter, n_directions)
    return vectors if vectors.shape[1] else np.eye(len(scatter), 1)


def whitening(spread: FloatArray, ridge: float = 0.0, smallest: float = SMALLEST_EIGENVALUE) -> FloatArray:
    """T (p, r) with T^T (spread + ridge I) T = I over the directions that have any spread."""
    values, vectors = lasting_pairs(spread, smallest)
    basis: FloatArray = vectors / np.sqrt(values + ridge)
    return basis


def inverse_root(kernel: FloatArray) -> FloatArray:
    """The pseudo-inverse square root of a kernel matrix; eigenvalues that are rounding are left out.

    >>> inverse_root(np.diag([4.0, 0.0]))
    array([[0.5, 0. ],
           [0. , 0. ]])
    """
    values, vectors = lasting_pairs(kernel, SMALLEST_OF_KERNEL)
    root: FloatArray = (vectors / np.sqrt(values)) @ vectors.T
    return root


def graph_vectors(matrix: FloatArray, trivial: FloatArray, n_vectors: int) -> tuple[FloatArray, FloatArray]:
    """Largest eigenpairs of a graph's normalised matrix, (r,) falling and (L, r), without the trivial one.

    The trivial vector has eigenvalue 1 and says the same of every item. Further eigenvalues of 1 are kept: they belong
    to a graph in several parts, and tell the parts apart. A ramp on the diagonal decides between equal eigenvalues, so
    that every engine finds the same vectors.
    """
    trivial = trivial / np.linalg.norm(trivial)
    ramp = np.diag(TIE_BREAK * np.linspace(0.0, 1.0, len(matrix)))
    values, vectors = np.linalg.eigh(matrix - np.outer(trivial, trivial) + ramp)
    n_kept = max(1, min(n_vectors, int(np.sum(values > 2 * TIE_BREAK))))
    values, vectors = values[::-1][:n_kept], fix_signs(vectors[:, ::-1][:, :n_kept])
    touched = np.abs(vectors) > SMALLEST_COMPONENT * np.max(np.abs(vectors), axis=0)
    return np.maximum(values, TIE_BREAK), np.where(touched, vectors, 0.0)


def mixing_for_bits(
    scores: Callable[[], Rows], n_directions: int, n_bits: int, *, rotate: bool, engine: Engine, seed: int
) -> FloatArray:
    """The matrix (n_directions, n_bits) that makes bits of directions; `scores` gives the rows' scores, if needed."""
    if not rotate:
        return random_frames(n_directions, n_bits, engine.random(seed))
    rows = scores()
    if n_directions < n_bits:
        rows = engine.map_rows(pad_columns, rows, n_bits)
    return rotate_to_bits(rows, n_bits, engine, seed)[:n_directions]


def random_frames(n_directions: int, n_bits: int, generator: np.random.Generator) -> FloatArray:
    """The directions as they are, then as often as needed turned by a random rotation, (n_directions, n_bits).

    >>> random_frames(3, 2, np.random.default_rng(0))
    array([[1., 0.],
           [0., 1.],
           [0., 0.]])
    """
    if n_directions == 0:
        return np.zeros((0, n_bits))  # nothing was learned: constant bits
    frames = [np.eye(n_directions)]
    while len(frames) * n_directions < n_bits:
        frames.append(np.linalg.qr(generator.standard_normal((n_directions, n_directions)))[0])
    return np.hstack(frames)[:, :n_bits]


def pad_columns(block: Any, n_columns: int) -> Any:
    """A block with zero columns on its right, up to n_columns."""
    xp = array_namespace(block)
    width = n_columns - block.shape[1]
    return xp.concat([block, xp.zeros((block.shape[0], width), dtype=block.dtype, device=device(block))], axis=1)
