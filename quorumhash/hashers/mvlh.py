"""MVLH: multi-view latent hashing, binary codes as latent factors of all views' kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from quorumhash.checks import check_choice, check_count, check_landmarks, check_positive, check_shape, is_number
from quorumhash.engines import Engine, Rows
from quorumhash.errors import ParameterError
from quorumhash.hashers.base import About, BaseHasher
from quorumhash.kernelspace import ViewKernel, walked_views
from quorumhash.landmarks import LANDMARK_RULES, landmarks_for_bits
from quorumhash.scaling import Scaling
from quorumhash.similarity import BANDWIDTH_RULES
from quorumhash.steps.centredkernels import (
    CentredKernels,
    centred_kernels,
    check_centred_kernels,
    kernel_scores,
    learn_centred_kernels,
)
from quorumhash.steps.latentbits import latent_projection, solve_latent_bits
from quorumhash.views import Views


class MVLHHasher(BaseHasher):
    """Multi-view latent hashing: bits from which every view's kernel can be rebuilt, found without relaxing them.

        min  sum_m mu_m^t ( |Phi_m - V U_m|^2 + lambda |U_m|^2 ),  V (N, P) in {-1, 1},  mu >= 0, sum mu = 1

    Phi_m (N, R) kernel of view m to shared landmarks, centred, all views of one size; U_m (P, R). Every step is exact
    and lowers the objective: U_m by ridge regression, V bit by bit, mu in closed form, mu_m^(t/2) in all of them alike.
    bits = sign(phi U^T (U U^T + ridge I)^-1), phi and U the views side by side, weighted. The published form has no
    ridge: it multiplies what the factors leave unexplained, the more the longer the code. A view that an item lacks has
    no say. Bits are found as such, so there is nothing to rotate.

    Parameters
    ----------
    n_bits : int
        Bits per code.
    lambda_ : float
        Ridge of the factors.
    power : float
        t, above 1: near 1 one view gets all the weight, the larger the more equal the weights.
    encoding_ridge : float
        Ridge of the encoding of items, relative to the mean eigenvalue of U U^T; 0 is the published form.
    max_iter, tol : int, float
        Rounds at most, and the relative decrease of the objective that ends them.
    n_landmarks : int, optional
        Shared landmarks of the kernels (R); from the numbers of rows and bits where not given.
    landmarks : {"kmeans", "rows"}
        Centres over the joined views, or training rows (as published).
    bandwidth : {"seventh", "median"}
        Kernel bandwidth per view: mean distance to the 7th landmark, or the median rule.
    random_state : int, generator or None
        Seed of sample, landmarks and the first bits.

    Attributes
    ----------
    view_weights_ : array (n_views,)
        The weights mu.
    kernels_, projection_
        Kernels of the views and their means; hash functions (n_views R, n_bits), weights included.
    n_iter_ : int
        Rounds made.
    history_ : list of dict
        Objective after every round.

    References
    ----------
    X. Shen, F. Shen, Q.-S. Sun and Y.-H. Yuan, "Multi-view latent hashing for efficient multimedia search", ACM MM
    2015.

    Examples
    --------
    >>> import numpy as np
    >>> views = {"colour": np.eye(4), "shape": np.arange(8.0).reshape(4, 2)}
    >>> MVLHHasher(n_bits=3).fit(views).transform(views, packed=False).shape
    (4, 3)
    """

    about = About(
        year=2015, fit_cost="N R (d + M P) a round", encode_cost="d R + M R P", rotation="no: bits are found as such"
    )
    learned = ("kernels_", "projection_")
    told = ("view_weights_", "n_iter_", "history_")
    parts = (Scaling, ViewKernel, CentredKernels)

    def __init__(
        self,
        n_bits: int = 64,
        *,
        lambda_: float = 0.01,
        power: float = 2.0,
        encoding_ridge: float = 1.0,
        max_iter: int = 100,
        tol: float = 1e-5,
        n_landmarks: int | None = None,
        landmarks: str = "kmeans",
        bandwidth: str = "seventh",
        random_state: Any = 0,
    ) -> None:
        self.n_bits = n_bits
        self.lambda_ = lambda_
        self.power = power
        self.encoding_ridge = encoding_ridge
        self.max_iter = max_iter
        self.tol = tol
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.bandwidth = bandwidth
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_positive("lambda_", self.lambda_, self)
        check_positive("power", self.power, self, above=1.0)
        check_positive("tol", self.tol, self)
        if not (is_number(self.encoding_ridge) and 0 <= self.encoding_ridge < np.inf):
            raise ParameterError(
                f"encoding_ridge of MVLHHasher must be a finite number from 0 up, got {self.encoding_ridge!r}."
            )
        check_count("max_iter", self.max_iter, 1, self)
        check_landmarks(self)
        check_choice("landmarks", self.landmarks, LANDMARK_RULES, self)
        check_choice("bandwidth", self.bandwidth, BANDWIDTH_RULES, self)

    def _check_state(self) -> None:
        check_centred_kernels(self.kernels_, tuple(self.view_widths_.values()))
        check_shape(self.projection_, (self.kernels_.means.size, self.n_bits_))

    def _state_bytes(self, views: Views) -> int:
        n_landmarks = landmarks_for_bits(self.n_landmarks, self.n_bits, len(views))
        return len(views) * (4 * len(views.names) * n_landmarks + self.n_bits)

    def _fit(self, views: Views, engine: Engine, seed: int) -> None:
        space = learn_centred_kernels(
            views, engine, seed, n_landmarks=landmarks_for_bits(self.n_landmarks, self.n_bits, len(views)),
            landmarks=self.landmarks, bandwidth=self.bandwidth,
        )  # fmt: skip
        features = engine.map_rows(_float32_kernels, space, *walked_views(views, engine))
        signs = engine.random(seed).integers(0, 2, (len(views), self.n_bits), dtype=np.int8) * 2 - 1
        found = solve_latent_bits(
            features, engine.put(signs), len(views.names), engine,
            ridge=self.lambda_, power=self.power, max_iter=self.max_iter, tol=self.tol,
        )  # fmt: skip
        self.kernels_, self.projection_ = space, latent_projection(found, self.encoding_ridge)
        self.view_weights_, self.history_, self.n_iter_ = found.view_weights, found.history, len(found.history)

    def _scores(self, views: Views, engine: Engine) -> Rows:
        scores: Rows = engine.map_rows(kernel_scores, self.kernels_, self.projection_, *walked_views(views, engine))
        return scores


def _float32_kernels(space: CentredKernels, present: Any, *blocks: Any) -> Any:
    kernels = centred_kernels(space, present, *blocks)
    return array_namespace(kernels).astype(kernels, array_namespace(kernels).float32)
