"""K-ITQ: principal components of the mean kernel over views, rotated towards bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from quorumhash.checks import check_choice, check_landmarks, check_shape, check_switch
from quorumhash.consensus import mean_kernel
from quorumhash.engines import Engine, Rows
from quorumhash.hashers.base import About, BaseHasher
from quorumhash.kernelspace import (
    ViewKernel,
    check_kernels,
    kernel_scores,
    landmark_matrix,
    learn_kernel_space,
    mean_kernel_rows,
    mean_kernel_scores,
    walked_views,
)
from quorumhash.landmarks import landmarks_for_bits
from quorumhash.scaling import Scaling
from quorumhash.similarity import BANDWIDTH_RULES
from quorumhash.steps.directions import inverse_root, mixing_for_bits, principal_directions
from quorumhash.views import Views


class KernelITQHasher(BaseHasher):
    """Kernel PCA of the mean kernel over views, then iterative quantization: what the mean kernel alone is worth.

    The kernel is approximated on landmarks (Nystrom); with every row a landmark the components are exact. An absent
    view is left out of an item's mean.

        k(x) (R,)  mean over the views an item has of the RBF kernels to R shared landmarks;  K (R, R)  among them
        f(x) = K^(-1/2) k(x), centred over the training rows;  C (R, P)  principal directions of f
        Q (P, P)  minimises |sign(f C Q) - f C Q|;  bits = sign(f(x) C Q)

    Where there are fewer than P components, they are padded with zeros before the rotation.

    Parameters
    ----------
    n_bits : int
        Bits per code.
    n_landmarks : int, optional
        Landmarks (R), k-means centres over the joined views; chosen from the number of rows where not given, at least
        2 n_bits.
    bandwidth : {"median", "seventh"}
        Kernel bandwidth per view: the median rule, or the mean distance to the 7th landmark.
    rotate : bool
        Rotate the components towards bits. True is the method; False takes the signs of the components.
    random_state : int, generator or None
        Seed of landmarks and rotation.

    Attributes
    ----------
    kernels_ : dict of str to ViewKernel
        Scale, landmarks and bandwidth of every view.
    projection_, bias_ : array (n_landmarks, n_bits), (n_bits,)
        The hash functions over the mean kernel.

    References
    ----------
    B. Schoelkopf, A. Smola and K.-R. Mueller, "Nonlinear component analysis as a kernel eigenvalue problem", Neural
    Computation 1998; Y. Gong and S. Lazebnik, "Iterative quantization", CVPR 2011.

    Examples
    --------
    >>> import numpy as np
    >>> views = {"colour": np.eye(4), "shape": np.arange(8.0).reshape(4, 2)}
    >>> KernelITQHasher(n_bits=12).fit(views).transform(views).shape
    (4, 2)
    """

    about = About(year=1998, fit_cost="N d R + N R^2 + R^3", encode_cost="d R + R P")
    learned = ("kernels_", "projection_", "bias_")
    parts = (Scaling, ViewKernel)

    def __init__(
        self,
        n_bits: int = 64,
        *,
        n_landmarks: int | None = None,
        bandwidth: str = "median",
        rotate: bool = True,
        random_state: Any = 0,
    ) -> None:
        self.n_bits = n_bits
        self.n_landmarks = n_landmarks
        self.bandwidth = bandwidth
        self.rotate = rotate
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_switch("rotate", self.rotate, self)
        check_landmarks(self)
        check_choice("bandwidth", self.bandwidth, BANDWIDTH_RULES, self)

    def _check_state(self) -> None:
        check_shape(self.projection_, (None, self.n_bits_))
        check_kernels(self.kernels_, len(self.projection_), self.view_widths_)
        check_shape(self.bias_, (self.n_bits_,))

    def _state_bytes(self, views: Views) -> int:
        return 8 * len(views) * self.n_bits if self.rotate else 0

    def _fit(self, views: Views, engine: Engine, seed: int) -> None:
        self.kernels_ = learn_kernel_space(
            views, engine, seed, n_kernel_landmarks=landmarks_for_bits(self.n_landmarks, self.n_bits, len(views)),
            n_graph_landmarks=0, n_neighbors=1, landmarks="kmeans", bandwidth=self.bandwidth,
        ).kernels  # fmt: skip
        kernels, rows = tuple(self.kernels_.values()), walked_views(views, engine)
        gram, sums = engine.sum_rows(_kernel_moments, kernels, *rows)
        mean = sums / len(views)
        root = inverse_root(mean_kernel(*landmark_matrix(kernels)))
        directions = root @ principal_directions(root @ (gram - np.outer(sums, mean)) @ root, self.n_bits)
        mixing = mixing_for_bits(
            lambda: engine.map_rows(mean_kernel_scores, kernels, directions, -(mean @ directions), *rows),
            directions.shape[1], self.n_bits, rotate=self.rotate, engine=engine, seed=seed,
        )  # fmt: skip
        self.projection_, self.bias_ = directions @ mixing, -(mean @ directions @ mixing)

    def _scores(self, views: Views, engine: Engine) -> Rows:
        return kernel_scores(views, self.kernels_, self.projection_, self.bias_, engine)


def _kernel_moments(kernels: tuple[ViewKernel, ...], present: Any, *blocks: Any) -> Any:
    """k^T k (R, R) and the sum of k (R,) of one block."""
    kernel = mean_kernel_rows(kernels, present, *blocks)
    return kernel.T @ kernel, kernel.sum(0)
