"""MFH: multiple feature hashing, linear hash functions and view-wise targets that the views' graphs smooth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.checks import (
    check_choice,
    check_graph_parameters,
    check_positive,
    check_scalings,
    check_shape,
    check_switch,
)
from quorumhash.engines import Engine, Rows
from quorumhash.hashers.base import About, BaseHasher
from quorumhash.kernelspace import landmark_graphs
from quorumhash.landmarks import default_n_landmarks
from quorumhash.scaling import Scaling, learn_scalings, linear_scores, put_views
from quorumhash.steps.lineartargets import full_projection, joined_sums
from quorumhash.steps.nearestgraph import GRAPHS, agreed_roughness, fitted_targets, graph_bytes, nearest_graphs
from quorumhash.targets import graph_factors, leading_targets
from quorumhash.views import Views


class MFHHasher(BaseHasher):
    """Multiple feature hashing: targets that every view's graph smooths and a linear function of all views predicts.

        min  sum_m [ tr(Y_m^T L_m Y_m) + gamma |Y - Y_m|^2 ] + alpha ( |X W - Y|^2 + beta |W|^2 )
        s.t. Y^T Y = N I, Y^T 1 = 0

    X (N, d) the views side by side, centred and scaled; L_m Laplacian of view m's graph; Y (N, P) targets; W (d, P)
    hash functions; bits = sign(x W). Missing values and views count as the mean.

    The graphs are landmark graphs, so that the eigenproblem has the size of landmarks and features, not of rows, and
    Y^T 1 = 0 leaves the constant eigenvector out. More bits than there are targets are random frames of the learned
    ones.

    `graph="nearest"` is the published form: exact graphs of nearest items, weights exp(-d^2 / s^2), L the unnormalised
    Laplacian, and N x N matrices, inverted and decomposed. As in a public port of the method that is done on a sample,
    of 5,000 rows at most, where W is learned too; s^2 is the median squared distance of rows, and a bit's threshold the
    mean of all rows. Landmarks have no say. It takes longer, and 1 GB.

    Parameters
    ----------
    n_bits : int
        Bits per code.
    gamma : float
        Weight of the agreement of each view's targets with the common ones.
    alpha, beta : float
        Weight of the fit of the hash functions, and their ridge.
    graph : "landmarks" or "nearest"
        What each view's graph links an item with: its nearest landmarks, or, as published, its nearest items.
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
    scalings_ : dict of str to Scaling
        Mean and factor of every view.
    projection_ : array (n_features, n_bits)
        The hash functions.

    References
    ----------
    J. Song et al., "Multiple feature hashing for real-time large scale near-duplicate video retrieval", ACM MM 2011.

    Examples
    --------
    >>> import numpy as np
    >>> views = {"colour": np.eye(4), "shape": np.arange(8.0).reshape(4, 2)}
    >>> MFHHasher(n_bits=3).fit(views).transform(views, packed=False).shape
    (4, 3)
    """

    about = About(year=2011, fit_cost="N d (d + L) + (d + M L)^3", encode_cost="d P")
    learned = ("scalings_", "projection_")
    parts = (Scaling,)

    def __init__(
        self,
        n_bits: int = 64,
        *,
        gamma: float = 1e-3,
        alpha: float = 1.0,
        beta: float = 1e-2,
        graph: str = "landmarks",
        n_landmarks: int | None = None,
        n_neighbors: int = 5,
        rotate: bool = False,
        random_state: Any = 0,
    ) -> None:
        self.n_bits = n_bits
        self.gamma = gamma
        self.alpha = alpha
        self.beta = beta
        self.graph = graph
        self.n_landmarks = n_landmarks
        self.n_neighbors = n_neighbors
        self.rotate = rotate
        self.random_state = random_state

    def _check_parameters(self) -> None:
        for name in ("gamma", "alpha", "beta"):
            check_positive(name, getattr(self, name), self)
        check_choice("graph", self.graph, GRAPHS, self)
        check_graph_parameters(self)
        check_switch("rotate", self.rotate, self)

    def _check_state(self) -> None:
        check_scalings(self.scalings_, self.view_widths_)
        check_shape(self.projection_, (self.n_features_in_, self.n_bits_))

    def _state_bytes(self, views: Views) -> int:
        return graph_bytes(self.graph, views, self.n_neighbors) + (len(views) * 8 * self.n_bits if self.rotate else 0)

    def _fit(self, views: Views, engine: Engine, seed: int) -> None:
        self.scalings_ = learn_scalings(views, engine)
        scalings, rows = tuple(self.scalings_.values()), put_views(views, engine)
        if self.graph == "nearest":
            directions = self._nearest_directions(views, engine, seed)
        else:
            directions = self._landmark_directions(views, rows, engine, seed)
        self.projection_ = full_projection(directions, self.n_bits, self.rotate, scalings, rows, engine, seed)

    def _landmark_directions(
        self, views: Views, rows: Sequence[Rows | None], engine: Engine, seed: int
    ) -> npt.NDArray[np.float64]:
        graphs = landmark_graphs(
            views, self.scalings_, engine, seed,
            n_landmarks=self.n_landmarks or default_n_landmarks(len(views)), n_neighbors=self.n_neighbors,
        )  # fmt: skip
        # the target step counts the graph term twice: all weights but the ridge are doubled
        factors = graph_factors(graphs, 2 * self.gamma, engine)
        sums = joined_sums(tuple(self.scalings_.values()), rows, factors, engine)
        targets = leading_targets(factors, sums, self.n_bits, beta=2 * self.alpha, delta=self.beta, engine=engine)
        return targets.projection[:, : targets.rank]

    def _nearest_directions(self, views: Views, engine: Engine, seed: int) -> npt.NDArray[np.float64]:
        graphs = nearest_graphs(views, self.scalings_, engine, seed, self.n_neighbors)
        roughness = agreed_roughness(graphs, self.gamma)
        found = fitted_targets(roughness, graphs.joined, self.n_bits, beta=self.alpha, delta=self.beta, engine=engine)
        return found.projection[:, found.is_foretold]

    def _scores(self, views: Views, engine: Engine) -> Rows:
        return linear_scores(views, self.scalings_, self.projection_, engine)
