"""From the features of new items to scores: kernels to the shared landmarks, one query kernel, hash functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.checks import check_shape, is_number, require
from quorumhash.kernelspace import ViewKernel, check_kernel, kernels_of_distances, landmark_distances
from quorumhash.querykernel import QUERY_KERNELS, query_kernel
from quorumhash.similarity import nearest_landmarks, spread_to_rows


@dataclass(frozen=True)
class Encoder:
    """Everything that turns a block of features into scores; see `encode_rows`."""

    kernels: tuple[ViewKernel, ...]
    projection: npt.NDArray[np.float64]  # W (R, P), rotated
    bias: npt.NDArray[np.float64]  # b (P,)
    basis: npt.NDArray[np.float64]  # (R, rank)
    query_kernel: str
    prototype_scores: npt.NDArray[np.float64]  # (R, P) scores of the shared landmarks
    prototype_bandwidth: float
    n_neighbors: int  # prototypes that count; 0 to encode by the hash functions


def encode_rows(encoder: Encoder, present: Any, *blocks: Any) -> Any:
    """Scores (n, P) of one block, by the hash functions or, as the paper does out of sample, by prototypes."""
    squares = landmark_distances(encoder.kernels, *blocks)
    if encoder.n_neighbors:
        near = nearest_landmarks(_joined_squares(present, squares), encoder.n_neighbors, encoder.prototype_bandwidth)
        return spread_to_rows(near.positions, near.weights, encoder.prototype_scores)
    kernels = kernels_of_distances(encoder.kernels, squares)
    kernel = query_kernel(encoder.query_kernel, encoder.basis, present, *kernels)
    return kernel @ encoder.projection + encoder.bias


def _joined_squares(present: Any, squares: list[Any]) -> Any:
    """Squared distance over all views, from those an item has: their mean times the number of views."""
    total = sum(present[:, m, None] * part for m, part in enumerate(squares) if part is not None)
    return total * (len(squares) / present.sum(1)[:, None])


def check_encoder(encoder: Any, widths: tuple[int, ...], n_bits: int) -> None:
    """Refuse an encoder whose parts do not fit each other or these views."""
    require(isinstance(encoder, Encoder) and len(encoder.kernels) == len(widths))
    n_landmarks = len(encoder.projection)
    for kernel, width in zip(encoder.kernels, widths, strict=True):
        check_kernel(kernel, n_landmarks, width)
    check_shape(encoder.projection, (n_landmarks, n_bits))
    check_shape(encoder.bias, (n_bits,))
    check_shape(encoder.basis, (n_landmarks, None))
    check_shape(encoder.prototype_scores, (n_landmarks, n_bits))
    require(is_number(encoder.prototype_bandwidth) and encoder.prototype_bandwidth > 0)
    require(encoder.query_kernel in QUERY_KERNELS)
    require(isinstance(encoder.n_neighbors, int) and encoder.n_neighbors >= 0)
