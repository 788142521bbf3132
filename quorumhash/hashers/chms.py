"""CHMS: composite hashing with multiple information sources, one weight per view."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.checks import (
    check_choice,
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
from quorumhash.steps.nearestgraph import (
    GRAPHS,
    NearestGraphs,
    fitted_targets,
    graph_bytes,
    mean_roughness,
    nearest_graphs,
)
from quorumhash.steps.simplex import minimise_on_simplex
from quorumhash.steps.thresholds import middle_of
from quorumhash.targets import GraphFactors, KernelSums, leading_targets, mean_graph_factors
from quorumhash.views import Views

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class WeightedTargets:
    """What is learned for given weights: W (d, P), X^T Y (d, P), the objective, and which targets are no rounding."""

    projection: FloatArray
    features_by_targets: FloatArray
    objective: float
    kept: Any


TargetStep = Callable[[FloatArray], WeightedTargets]  # of the weight of every feature, that of its view (d,)


class CHMSHasher(BaseHasher):
    """Composite hashing (CHMIS-AW): the views' average graph smooths the targets, weighted views predict them.

    A reconstruction: of the original only the abstract could be read, the objective below is ours.

        min  c1 tr(Y^T L Y) + c2 |Y - sum_m a_m X_m W_m|^2 + sum_m |W_m|^2,  Y^T Y = N I, Y^T 1 = 0, a >= 0, sum a = 1

    X_m (N, d_m) view m, centred and scaled; L Laplacian of the average of the views' landmark graphs; Y (N, P) targets;
    W_m (d_m, P); a_m weight of view m; bits = sign(sum_m a_m x_m W_m - t), t the training median of every bit.
    Targets with W (an eigenproblem) and weights (a small quadratic programme) alternate; no step raises the objective.
    Missing values and views count as the mean. More bits than there are targets are random frames of the learned ones.

    `graph="nearest"` is the form of its time: exact graphs of nearest items, weights exp(-d^2 / s^2), L unnormalised,
    and an N x N eigenproblem in every round. That is done on a sample, of 5,000 rows at most, where W is learned too.
    Landmarks have no say. It takes longer, and 1 GB.

    Parameters
    ----------
    n_bits : int
        Bits per code.
    graph_weight, fit_weight : float
        c1 and c2: weights of the smoothness along the graph and of the fit of the hash functions.
    max_iter, tol : int, float
        Rounds at most, and the relative change of the objective that ends them.
    graph : "landmarks" or "nearest"
        What each view's graph links an item with: its nearest landmarks, or its nearest items.
    n_landmarks : int, optional
        Landmarks of each view's landmark graph; from the number of rows where not given.
    n_neighbors : int
        Nearest landmarks, or nearest items, of each item.
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
        graph: str = "landmarks",
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
        self.graph = graph
        self.n_landmarks = n_landmarks
        self.n_neighbors = n_neighbors
        self.rotate = rotate
        self.random_state = random_state

    def _check_parameters(self) -> None:
        for name in ("graph_weight", "fit_weight", "tol"):
            check_positive(name, getattr(self, name), self)
        check_count("max_iter", self.max_iter, 1, self)
        check_choice("graph", self.graph, GRAPHS, self)
        check_graph_parameters(self)
        check_switch("rotate", self.rotate, self)

    def _check_state(self) -> None:
        check_scalings(self.scalings_, self.view_widths_)
        check_shape(self.projection_, (self.n_features_in_, self.n_bits_))
        check_shape(self.thresholds_, (self.n_bits_,))

    def _state_bytes(self, views: Views) -> int:
        return graph_bytes(self.graph, views, self.n_neighbors) + (len(views) * 8 * self.n_bits if self.rotate else 0)

    def _fit(self, views: Views, engine: Engine, seed: int) -> None:
        self.scalings_ = learn_scalings(views, engine)
        scalings, rows = tuple(self.scalings_.values()), put_views(views, engine)
        widths = list(views.widths.values())
        if self.graph == "nearest":
            graphs = nearest_graphs(views, self.scalings_, engine, seed, self.n_neighbors)
            gram = graphs.joined.T @ graphs.joined
            step = nearest_step(graphs, self.n_bits, self.graph_weight, self.fit_weight, engine)
        else:
            gram, step = self._landmark_step(views, rows, engine, seed)
        weights, targets, self.history_ = alternate(step, gram, widths, self.max_iter, self.tol)
        self.view_weights_, self.n_iter_ = weights, len(self.history_)
        directions = (np.repeat(weights, widths)[:, None] * targets.projection)[:, targets.kept]
        self.projection_ = full_projection(directions, self.n_bits, self.rotate, scalings, rows, engine, seed)
        self.thresholds_ = middle_of(joined_sample(views, self.scalings_, engine, seed) @ self.projection_)

    def _landmark_step(
        self, views: Views, rows: Sequence[Rows | None], engine: Engine, seed: int
    ) -> tuple[FloatArray, TargetStep]:
        graphs = landmark_graphs(
            views, self.scalings_, engine, seed,
            n_landmarks=self.n_landmarks or default_n_landmarks(len(views)), n_neighbors=self.n_neighbors,
        )  # fmt: skip
        factors = mean_graph_factors(graphs, self.graph_weight, engine)
        sums = joined_sums(tuple(self.scalings_.values()), rows, factors, engine)
        return sums.gram, landmark_step(factors, sums, self.n_bits, self.fit_weight)

    def _scores(self, views: Views, engine: Engine) -> Rows:
        return linear_scores(views, self.scalings_, self.projection_, engine, self.thresholds_)


def landmark_step(factors: GraphFactors, sums: KernelSums, n_bits: int, fit_weight: float) -> TargetStep:
    """The target step on landmark graphs."""

    def step(a: FloatArray) -> WeightedTargets:
        weighted = KernelSums(sums.gram * np.outer(a, a), sums.means * a, sums.cross * a)
        found = leading_targets(factors, weighted, n_bits, beta=fit_weight, delta=1 / fit_weight)
        by_targets = sums.cross.T @ found.graph_weights + sums.gram @ (a[:, None] * found.kernel_weights)
        return WeightedTargets(found.projection, by_targets, found.objective, slice(found.rank))

    return step


def nearest_step(
    graphs: NearestGraphs, n_bits: int, graph_weight: float, fit_weight: float, engine: Engine
) -> TargetStep:
    """The target step on graphs of nearest items."""
    roughness = mean_roughness(graphs, graph_weight)

    def step(a: FloatArray) -> WeightedTargets:
        weighted = graphs.joined * a
        found = fitted_targets(roughness, weighted, n_bits, beta=fit_weight, delta=1 / fit_weight, engine=engine)
        by_targets = graphs.joined.T @ found.targets
        return WeightedTargets(found.projection, by_targets, found.objective, found.is_foretold)

    return step


def alternate(
    step: TargetStep, gram: FloatArray, widths: list[int], max_iter: int, tol: float
) -> tuple[FloatArray, WeightedTargets, list[dict[str, float]]]:
    """Weights a of the views, the targets that belong to them, and the objective after every target step."""
    weights, history = np.full(len(widths), 1 / len(widths)), list[dict[str, float]]()
    with stage("rounds, at most", max_iter, "rounds") as done:
        while True:
            targets = step(np.repeat(weights, widths))
            history.append({"objective": targets.objective})
            done(1)
            decrease = history[-2]["objective"] - targets.objective if len(history) > 1 else np.inf
            if len(history) >= max_iter or decrease <= tol * abs(targets.objective):
                return weights, targets, history
            weights = _best_weights(gram, targets, widths, weights)


def _best_weights(gram: FloatArray, targets: WeightedTargets, widths: list[int], weights: FloatArray) -> FloatArray:
    """The weights for fixed targets and hash functions, from the weights they were found with.

    Least a^T G a - 2 g^T a on the simplex: G_kl = tr(Z_k^T Z_l), g_k = tr(Z_k^T Y), Z_k = X_k W_k (N, P).
    """
    starts, W = np.cumsum([0, *widths[:-1]]), targets.projection
    G = np.add.reduceat(np.add.reduceat(gram * (W @ W.T), starts, axis=0), starts, axis=1)
    g = np.add.reduceat(np.sum(W * targets.features_by_targets, axis=1), starts)
    return minimise_on_simplex(G, -2 * g, weights)
