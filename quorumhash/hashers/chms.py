"""CHMS: composite hashing with multiple information sources, one weight per view."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.checks import (
    check_count,
    check_graph_parameters,
    check_positive,
    check_scalings,
    check_shape,
    check_switch,
)
from quorumhash.engines import Engine, Rows
from quorumhash.hashers.base import About, BaseHasher
from quorumhash.kernelspace import landmark_graphs
from quorumhash.landmarks import default_n_landmarks, joined_sample
from quorumhash.progress import stage
from quorumhash.scaling import Scaling, learn_scalings, linear_scores, put_views
from quorumhash.steps.lineartargets import full_projection, joined_sums
from quorumhash.steps.simplex import minimise_on_simplex
from quorumhash.steps.thresholds import middle_of
from quorumhash.targets import GraphFactors, KernelSums, Targets, leading_targets, mean_graph_factors
from quorumhash.views import Views

FloatArray = npt.NDArray[np.float64]


class CHMSHasher(BaseHasher):
    """Composite hashing (CHMIS-AW): the views' average graph smooths the targets, weighted views predict them.

    A reconstruction: of the original only the abstract could be read, the objective below is ours.

        min  c1 tr(Y^T L Y) + c2 |Y - sum_m a_m X_m W_m|^2 + sum_m |W_m|^2,  Y^T Y = N I, Y^T 1 = 0, a >= 0, sum a = 1

    X_m (N, d_m) view m, centred and scaled; L Laplacian of the average of the views' landmark graphs; Y (N, P) targets;
    W_m (d_m, P); a_m weight of view m; bits = sign(sum_m a_m x_m W_m - t), t the training median of every bit.
    Targets with W (an eigenproblem) and weights (a small quadratic programme) alternate; no step raises the objective.
    Missing values and views count as the mean. More bits than there are targets are random frames of the learned ones.

    Parameters
    ----------
    n_bits : int
        Bits per code.
    graph_weight, fit_weight : float
        c1 and c2: weights of the smoothness along the graph and of the fit of the hash functions.
    max_iter, tol : int, float
        Rounds at most, and the relative change of the objective that ends them.
    n_landmarks : int, optional
        Landmarks of each view's graph; from the number of rows where not given.
    n_neighbors : int
        Nearest landmarks of each item.
    rotate : bool
        Rotate the targets towards bits (ITQ); the objective stays the same. Not part of the published method.
    random_state : int, generator or None
        Seed of sample, landmarks, frames and rotation.

    Attributes
    ----------
    view_weights_ : array (n_views,)
        The weights a.
    scalings_, projection_, thresholds_
        Mean and factor of every view; hash functions (n_features, n_bits), weights included; medians (n_bits,).
    n_iter_ : int
        Rounds made.
    history_ : list of dict
        Objective after the target step of every round.

    References
    ----------
    D. Zhang, F. Wang and L. Si, "Composite hashing with multiple information sources", SIGIR 2011.

    Examples
    --------
    >>> import numpy as np
    >>> views = {"colour": np.eye(4), "shape": np.arange(8.0).reshape(4, 2)}
    >>> CHMSHasher(n_bits=3).fit(views).transform(views, packed=False).shape
    (4, 3)
    """

    about = About(year=2011, fit_cost="N d (d + L) + (d + M L)^3 a round", encode_cost="d P", is_reconstruction=True)
    learned = ("scalings_", "projection_", "thresholds_")
    told = ("view_weights_", "n_iter_", "history_")
    parts = (Scaling,)

    def __init__(
        self,
        n_bits: int = 64,
        *,
        graph_weight: float = 100.0,
        fit_weight: float = 100.0,
        max_iter: int = 50,
        tol: float = 1e-5,
        n_landmarks: int | None = None,
        n_neighbors: int = 5,
        rotate: bool = False,
        random_state: Any = 0,
    ) -> None:
        self.n_bits = n_bits
        self.graph_weight = graph_weight
        self.fit_weight = fit_weight
        self.max_iter = max_iter
        self.tol = tol
        self.n_landmarks = n_landmarks
        self.n_neighbors = n_neighbors
        self.rotate = rotate
        self.random_state = random_state

    def _check_parameters(self) -> None:
        for name in ("graph_weight", "fit_weight", "tol"):
            check_positive(name, getattr(self, name), self)
        check_count("max_iter", self.max_iter, 1, self)
        check_graph_parameters(self)
        check_switch("rotate", self.rotate, self)

    def _check_state(self) -> None:
        check_scalings(self.scalings_, self.view_widths_)
        check_shape(self.projection_, (self.n_features_in_, self.n_bits_))
        check_shape(self.thresholds_, (self.n_bits_,))

    def _state_bytes(self, views: Views) -> int:
        graphs = 16 * len(views.names) * self.n_neighbors  # a position and a weight for every neighbour
        return len(views) * (graphs + (8 * self.n_bits if self.rotate else 0))

    def _fit(self, views: Views, engine: Engine, seed: int) -> None:
        self.scalings_ = learn_scalings(views, engine)
        scalings, rows = tuple(self.scalings_.values()), put_views(views, engine)
        graphs = landmark_graphs(
            views, self.scalings_, engine, seed,
            n_landmarks=self.n_landmarks or default_n_landmarks(len(views)), n_neighbors=self.n_neighbors,
        )  # fmt: skip
        factors = mean_graph_factors(graphs, self.graph_weight, engine)
        sums = joined_sums(scalings, rows, factors, engine)
        widths = list(views.widths.values())
        weights, targets, self.history_ = alternate(
            factors, sums, widths, self.n_bits, self.fit_weight, self.max_iter, self.tol
        )
        self.view_weights_, self.n_iter_ = weights, len(self.history_)
        directions = (np.repeat(weights, widths)[:, None] * targets.projection)[:, : targets.rank]
        self.projection_ = full_projection(directions, self.n_bits, self.rotate, scalings, rows, engine, seed)
        self.thresholds_ = middle_of(joined_sample(views, self.scalings_, engine, seed) @ self.projection_)

    def _scores(self, views: Views, engine: Engine) -> Rows:
        return linear_scores(views, self.scalings_, self.projection_, engine, self.thresholds_)


def alternate(
    factors: GraphFactors,
    sums: KernelSums,
    widths: list[int],
    n_bits: int,
    fit_weight: float,
    max_iter: int,
    tol: float,
) -> tuple[FloatArray, Targets, list[dict[str, float]]]:
    """Weights a of the views, the targets that belong to them, and the objective after every target step."""
    weights, history = np.full(len(widths), 1 / len(widths)), list[dict[str, float]]()
    with stage("rounds, at most", max_iter, "rounds") as done:
        while True:
            a = np.repeat(weights, widths)
            weighted = KernelSums(sums.gram * np.outer(a, a), sums.means * a, sums.cross * a)
            targets = leading_targets(factors, weighted, n_bits, beta=fit_weight, delta=1 / fit_weight)
            history.append({"objective": targets.objective})
            done(1)
            decrease = history[-2]["objective"] - targets.objective if len(history) > 1 else np.inf
            if len(history) >= max_iter or decrease <= tol * abs(targets.objective):
                return weights, targets, history
            weights = _best_weights(sums, targets, widths, weights)


def _best_weights(sums: KernelSums, targets: Targets, widths: list[int], weights: FloatArray) -> FloatArray:
    """The weights for fixed targets and hash functions, from the weights they were found with.

    Least a^T G a - 2 g^T a on the simplex: G_kl = tr(Z_k^T Z_l), g_k = tr(Z_k^T Y), Z_k = X_k W_k (N, P).
    """
    starts, W = np.cumsum([0, *widths[:-1]]), targets.projection
    weighted = np.repeat(weights, widths)[:, None] * targets.kernel_weights
    features_by_targets = sums.cross.T @ targets.graph_weights + sums.gram @ weighted  # X^T Y (d, P)
    G = np.add.reduceat(np.add.reduceat(sums.gram * (W @ W.T), starts, axis=0), starts, axis=1)
    g = np.add.reduceat(np.sum(W * features_by_targets, axis=1), starts)
    return minimise_on_simplex(G, -2 * g, weights)
