"""KLSH: signs of random projections in the space of the mean kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.checks import check_choice, check_count, check_shape
from quorumhash.consensus import mean_kernel
from quorumhash.engines import Engine, Rows
from quorumhash.hashers.base import About, BaseHasher
from quorumhash.kernelspace import ViewKernel, check_kernels, kernel_scores, landmark_matrix, learn_kernel_space
from quorumhash.scaling import Scaling
from quorumhash.similarity import BANDWIDTH_RULES
from quorumhash.steps.directions import inverse_root
from quorumhash.views import Views

FloatArray = npt.NDArray[np.float64]


class KLSHHasher(BaseHasher):
    """Kernelized locality-sensitive hashing: random hyperplanes in the feature space of the mean kernel over views.

    A hyperplane's normal is the sum of a few random landmarks, whitened by the kernel of all of them: by the central
    limit theorem nearly Gaussian. There is no limit to the bits, and no rotation: the directions are random anyhow.

        k(x) (R,)  mean over the views an item has of the RBF kernels to R training rows;  K (R, R)  the same among them
        k_c, K_c  both centred in feature space by the landmarks' mean
        w = sqrt((R - 1) / t) K_c^(-1/2) e_S,  S  t random landmarks;  bit = sign(w k_c(x))

    Parameters
    ----------
    n_bits : int
        Bits per code.
    n_landmarks : int
        Training rows that span the hyperplanes (R); all rows where there are fewer.
    n_summed : int, optional
        Landmarks summed for one hyperplane (t); a quarter of them, 10 at most, where not given.
    bandwidth : {"median", "seventh"}
        Kernel bandwidth per view: the median rule, or the mean distance to the 7th landmark.
    random_state : int, generator or None
        Seed of landmarks and hyperplanes.

    Attributes
    ----------
    kernels_ : dict of str to ViewKernel
        Scale, landmarks and bandwidth of every view.
    projection_, bias_ : array (n_landmarks, n_bits), (n_bits,)
        The hyperplanes.

    References
    ----------
    B. Kulis and K. Grauman, "Kernelized locality-sensitive hashing for scalable image search", ICCV 2009.

    Examples
    --------
    >>> import numpy as np
    >>> views = {"colour": np.eye(4), "shape": np.arange(8.0).reshape(4, 2)}
    >>> KLSHHasher(n_bits=12).fit(views).transform(views).shape
    (4, 2)
    """

    about = About(year=2009, fit_cost="N d + R^3", encode_cost="d R + R P", rotation="no: directions are random")
    learned = ("kernels_", "projection_", "bias_")
    parts = (Scaling, ViewKernel)

    def __init__(
        self,
        n_bits: int = 64,
        *,
        n_landmarks: int = 100,
        n_summed: int | None = None,
        bandwidth: str = "median",
        random_state: Any = 0,
    ) -> None:
        self.n_bits = n_bits
        self.n_landmarks = n_landmarks
        self.n_summed = n_summed
        self.bandwidth = bandwidth
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_count("n_landmarks", self.n_landmarks, 2, self)
        if self.n_summed is not None:
            check_count("n_summed", self.n_summed, 1, self)
        check_choice("bandwidth", self.bandwidth, BANDWIDTH_RULES, self)

    def _check_state(self) -> None:
        check_shape(self.projection_, (None, self.n_bits_))
        check_kernels(self.kernels_, len(self.projection_), self.view_widths_)
        check_shape(self.bias_, (self.n_bits_,))

    def _fit(self, views: Views, engine: Engine, seed: int) -> None:
        self.kernels_ = learn_kernel_space(
            views, engine, seed, n_kernel_landmarks=self.n_landmarks, n_graph_landmarks=0,
            n_neighbors=1, landmarks="rows", bandwidth=self.bandwidth,
        ).kernels  # fmt: skip
        kernel = mean_kernel(*landmark_matrix(tuple(self.kernels_.values())))
        summed = self.n_summed or min(max(len(kernel) // 4, 1), 10)
        self.projection_ = random_normals(kernel, self.n_bits, min(summed, len(kernel)), engine.random(seed))
        self.bias_ = -(kernel.mean(axis=0) @ self.projection_)

    def _scores(self, views: Views, engine: Engine) -> Rows:
        return kernel_scores(views, self.kernels_, self.projection_, self.bias_, engine)


def random_normals(kernel: FloatArray, n_bits: int, n_summed: int, generator: np.random.Generator) -> FloatArray:
    """Normals w of random hyperplanes over the landmarks, (R, n_bits).

    Each column sums to 0, being in the span of the centred kernel, so that w k_c(x) = w (k(x) - mean of K's rows).
    """
    n_landmarks = len(kernel)
    centring = np.eye(n_landmarks) - 1.0 / n_landmarks
    chosen = np.zeros((n_landmarks, n_bits))
    for bit in range(n_bits):
        chosen[generator.choice(n_landmarks, n_summed, replace=False), bit] = 1.0
    normals = inverse_root(centring @ kernel @ centring) @ chosen
    return np.asarray(np.sqrt((n_landmarks - 1) / n_summed) * (normals - normals.mean(axis=0)))
