"""AGH: anchor graph hashing, the slowest vectors of the joined views' landmark graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace

from quorumhash.checks import check_graph_parameters, check_scalings, check_shape, check_switch, require
from quorumhash.engines import Engine, Rows
from quorumhash.errors import ParameterError
from quorumhash.hashers.base import About, BaseHasher
from quorumhash.kernelspace import ViewGraph
from quorumhash.landmarks import landmarks_of_joined_graph
from quorumhash.scaling import Scaling, learn_scalings
from quorumhash.similarity import collect_at_landmarks, spread_to_rows
from quorumhash.steps.directions import mixing_for_bits
from quorumhash.steps.joinedgraph import (
    check_joined_graph,
    learn_joined_graph,
    put_neighbours,
    slowest_vectors,
)
from quorumhash.views import Views

FloatArray = npt.NDArray[np.float64]

ROUNDING = 1e-9  # of targets, which have size 1: a target that stands on its threshold is above it, on every engine


class AnchorGraphHasher(BaseHasher):
    """Anchor graph hashing: bits from the slowest eigenvectors of the landmark graph of the joined views.

    Missing values and views count as the mean.

        F (N, L)  nearest landmarks of every item, rows sum to 1;  D = diag(F^T 1);  S = F D^(-1) F^T, never formed
        v, e      eigenpairs of D^(-1/2) F^T F D^(-1/2), the trivial one left out
        Y = F W,  W = sqrt(N) D^(-1/2) v e^(-1/2);  first bits = sign(Y)
        second layer, a second bit of y: sign(y - t_up) if y > 0, sign(t_down - y) otherwise

    A new item has its own row of F. Above the number of eigenvectors they serve again in random rotations.

    Departure: the authors' code drops every eigenvalue above 0.999. Here only the trivial vector goes; where the graph
    falls into parts, further eigenvalues of 1 tell the parts apart, the best bits there are.

    Parameters
    ----------
    n_bits : int
        Bits per code.
    n_layers : {2, 1}
        Bits per eigenvector; with two, half as many eigenvectors are needed. Both are in the publication;
        two rank the digits better.
    n_landmarks : int, optional
        Landmarks (L); by the number of rows where not given, at least 2 n_bits; from 1,000 rows on one for 3, to 400.
    n_neighbors : int
        Nearest landmarks of each item.
    rotate : bool
        Rotate the eigenvectors towards bits, which leaves the objective as it is. False is the published method.
    random_state : int, generator or None
        Seed of landmarks and rotation.

    Attributes
    ----------
    scalings_ : dict of str to Scaling
        Mean and factor of every view.
    graph_ : ViewGraph
        Landmarks, bandwidth and neighbours.
    table_ : array (n_landmarks, n_vectors)
        What the landmarks say of an item (W).
    thresholds_ : array (2, n_bits - n_vectors)
        t_up and t_down of the second layer.

    References
    ----------
    W. Liu, J. Wang, S. Kumar and S.-F. Chang, "Hashing with graphs", ICML 2011.

    Examples
    --------
    >>> import numpy as np
    >>> views = {"colour": np.eye(4), "shape": np.arange(8.0).reshape(4, 2)}
    >>> AnchorGraphHasher(n_bits=12).fit(views).transform(views).shape
    (4, 2)
    """

    about = About(year=2011, fit_cost="N d L + L^3", encode_cost="d L + k P")
    learned = ("scalings_", "graph_", "table_", "thresholds_")
    parts = (Scaling, ViewGraph)

    def __init__(
        self,
        n_bits: int = 64,
        *,
        n_layers: int = 2,
        n_landmarks: int | None = None,
        n_neighbors: int = 3,
        rotate: bool = False,
        random_state: Any = 0,
    ) -> None:
        self.n_bits = n_bits
        self.n_layers = n_layers
        self.n_landmarks = n_landmarks
        self.n_neighbors = n_neighbors
        self.rotate = rotate
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_graph_parameters(self)
        check_switch("rotate", self.rotate, self)
        if isinstance(self.n_layers, bool) or self.n_layers not in (1, 2):
            raise ParameterError(f"n_layers of AnchorGraphHasher must be 1 or 2, got {self.n_layers!r}.")

    def _check_state(self) -> None:
        check_scalings(self.scalings_, self.view_widths_)
        check_shape(self.thresholds_, (2, None))
        n_vectors = self.n_bits_ - self.thresholds_.shape[1]
        require(self.thresholds_.shape[1] in (0, self.n_bits_ // 2))
        check_joined_graph(self.graph_, self.table_, self.n_features_in_, n_vectors)

    def _state_bytes(self, views: Views) -> int:
        return len(views) * (16 * self.n_neighbors + (8 * self.n_bits if self.rotate else 0))

    def _fit(self, views: Views, engine: Engine, seed: int) -> None:
        self.scalings_ = learn_scalings(views, engine)
        n_landmarks = landmarks_of_joined_graph(self.n_landmarks, self.n_bits, len(views))
        self.graph_ = learn_joined_graph(views, self.scalings_, engine, seed, n_landmarks, self.n_neighbors)
        neighbours = put_neighbours(views, self.scalings_, self.graph_, engine)
        n_second = self.n_bits // 2 if self.n_layers == 2 else 0
        totals, table = slowest_vectors(neighbours, len(self.graph_.landmarks), self.n_bits - n_second, engine)
        self.table_ = table @ mixing_for_bits(
            lambda: engine.map_rows(spread_to_rows, *neighbours, table),
            table.shape[1], self.n_bits - n_second, rotate=self.rotate, engine=engine, seed=seed,
        )  # fmt: skip
        self.thresholds_ = second_thresholds(neighbours, totals, self.table_[:, :n_second], engine)

    def _scores(self, views: Views, engine: Engine) -> Rows:
        neighbours = put_neighbours(views, self.scalings_, self.graph_, engine)
        scores: Rows = engine.map_rows(_both_layers, *neighbours, self.table_, self.thresholds_)
        return scores


def _both_layers(positions: Any, weights: Any, table: Any, thresholds: Any) -> Any:
    targets = spread_to_rows(positions, weights, table)
    xp = array_namespace(targets)
    halved = targets[:, : thresholds.shape[1]]
    second = xp.where(halved > 0, halved - thresholds[0, :], thresholds[1, :] - halved)
    return xp.concat([targets, second], axis=1)


def second_thresholds(
    neighbours: tuple[Rows, Rows], totals: FloatArray, table: FloatArray, engine: Engine
) -> FloatArray:
    """t_up and t_down (2, p) of the second bits of Y = F table, whose columns have mean 0.

    They minimise z^T (I - S) z over z = y - t_up where y > 0, t_down - y elsewhere, with z^T 1 = 0: closed form in
    tau = t_up + t_down = (p^T (I - S) u) / (p^T (I - S) p), p = [y > 0], u = |y|. A vector that is constant on whole
    parts of the graph leaves tau open; then 0 serves.
    """
    n_rows = neighbours[0].n_rows
    count, total, at_up, at_size = engine.sum_rows(_side_sums, *neighbours, table)
    inverse = np.where(totals > 0, 1.0 / np.where(totals > 0, totals, 1.0), 0.0)
    numerator = total - np.einsum("lp,l,lp->p", at_up, inverse, at_size)
    denominator = count - np.einsum("lp,l,lp->p", at_up, inverse, at_up)
    is_open = denominator <= ROUNDING * n_rows
    tau = np.where(is_open, 0.0, numerator / np.where(is_open, 1.0, denominator))
    t_up, t_down = (2 * total + (n_rows - count) * tau) / n_rows, (count * tau - 2 * total) / n_rows
    return np.stack([t_up - ROUNDING, t_down + ROUNDING])


def _side_sums(positions: Any, weights: Any, table: Any) -> Any:
    """Number and sum of the positive y (p,), F^T [y > 0] and F^T |y| (L, p) of one block."""
    targets = spread_to_rows(positions, weights, table)
    xp = array_namespace(targets)
    up = xp.astype(targets > 0, targets.dtype)
    at_up, at_size = (collect_at_landmarks(positions, weights, part, table.shape[0]) for part in (up, xp.abs(targets)))
    return up.sum(0), (up * targets).sum(0), at_up, at_size
