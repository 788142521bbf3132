"""SSH: sequential spectral hashing with multiple representations, one bit after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.checks import check_choice, check_graph_parameters, check_scalings, check_shape, is_number
from quorumhash.engines import Engine, Rows
from quorumhash.errors import ParameterError
from quorumhash.hashers.base import About, BaseHasher
from quorumhash.kernelspace import put_presence
from quorumhash.landmarks import default_n_landmarks, joined_sample
from quorumhash.progress import stage
from quorumhash.proximal import fix_signs, signs
from quorumhash.scaling import Scaling, joined_rows, learn_scalings, linear_scores, put_views, scaled
from quorumhash.steps.averagedgraph import LARGEST_ALPHA, AveragedGraph, averaged_edges, learn_averaged_graph
from quorumhash.steps.directions import random_frames, whitening
from quorumhash.steps.smoothness import edge_sums, landmark_part
from quorumhash.steps.thresholds import middle_of
from quorumhash.views import Views

FloatArray = npt.NDArray[np.float64]

CRITERIA = ("similarity", "distance")
RIDGE = 1e-3  # relative to the mean variance of a feature


class SSHHasher(BaseHasher):
    """Sequential spectral hashing (MSSH): bits learned in turn, each uncorrelated with the binary bits before it.

    A reconstruction: of the original only the abstract could be read, and which criterion it maximises is our reading.

        w_t = argmin  w^T X^T (I - S) X w  s.t.  w^T X^T X w = N,  b_s^T X w = 0 for s < t;  b_t = sign(X w_t - median)

    X (N, d) the views side by side, centred and scaled; S landmark graph of the alpha-averaged distances of all views;
    bits = sign(x w_t - median_t). A ridge is added to both forms in w: to the constraint alone it would make directions
    without variance look smooth. Missing values count as the mean; averaged distances leave absent views out. More bits
    than features are random frames of the learned ones. A rotation would undo the sequence: there is none.

    Parameters
    ----------
    n_bits : int
        Bits per code.
    alpha : float
        Which mean of the views' distances: -1 arithmetic, 1 geometric, 3 harmonic; from -9 to 9.
    criterion : {"distance", "similarity"}
        The largest local variance: the edges weighted by their averaged distance, w^T w = 1; or the least difference
        of neighbours relative to the variance, as above.
    n_landmarks : int, optional
        Landmarks of the graph; from the number of rows where not given.
    n_neighbors : int
        Nearest landmarks of each item.
    random_state : int, generator or None
        Seed of sample, landmarks and frames.

    Attributes
    ----------
    scalings_, projection_, thresholds_
        Mean and factor of every view; hash functions (n_features, n_bits); medians (n_bits,).

    References
    ----------
    S. Kim, Y. Kang and S. Choi, "Sequential spectral learning to hash with multiple representations", ECCV 2012.

    Examples
    --------
    >>> import numpy as np
    >>> views = {"colour": np.eye(4), "shape": np.arange(8.0).reshape(4, 2)}
    >>> SSHHasher(n_bits=3).fit(views).transform(views, packed=False).shape
    (4, 3)
    """

    about = About(
        year=2012,
        fit_cost="N d (d + L) + P d^3",
        encode_cost="d P",
        is_reconstruction=True,
        rotation="no: bits are learned in turn",
    )
    learned = ("scalings_", "projection_", "thresholds_")
    parts = (Scaling,)

    def __init__(
        self,
        n_bits: int = 64,
        *,
        alpha: float = 1.0,
        criterion: str = "distance",
        n_landmarks: int | None = None,
        n_neighbors: int = 5,
        random_state: Any = 0,
    ) -> None:
        self.n_bits = n_bits
        self.alpha = alpha
        self.criterion = criterion
        self.n_landmarks = n_landmarks
        self.n_neighbors = n_neighbors
        self.random_state = random_state

    def _check_parameters(self) -> None:
        if not (is_number(self.alpha) and abs(self.alpha) <= LARGEST_ALPHA):
            raise ParameterError(f"alpha of SSHHasher must be a number from -9 to 9, got {self.alpha!r}.")
        check_choice("criterion", self.criterion, CRITERIA, self)
        check_graph_parameters(self)

    def _check_state(self) -> None:
        check_scalings(self.scalings_, self.view_widths_)
        check_shape(self.projection_, (self.n_features_in_, self.n_bits_))
        check_shape(self.thresholds_, (self.n_bits_,))

    def _fit(self, views: Views, engine: Engine, seed: int) -> None:
        self.scalings_ = learn_scalings(views, engine)
        scalings, rows = tuple(self.scalings_.values()), put_views(views, engine)
        graph = learn_averaged_graph(
            views, self.scalings_, engine, seed, alpha=float(self.alpha), n_neighbors=self.n_neighbors,
            n_landmarks=self.n_landmarks or default_n_landmarks(len(views)),
        )  # fmt: skip
        present = put_presence(views, engine)
        scatter, by_landmark, totals = engine.sum_rows(_sums, graph, self.criterion, scalings, present, *rows)
        roughness = scatter - landmark_part(by_landmark, totals)  # X^T (diag(E 1) - E Lambda^-1 E^T) X
        if self.criterion == "similarity":
            ridge = RIDGE * np.trace(scatter) / len(scatter)
            basis = whitening(scatter / len(views), ridge / len(views))
            cost = basis.T @ (roughness + ridge * np.eye(len(scatter))) @ basis
        else:
            basis = np.linalg.qr(whitening(scatter))[0]
            cost = -basis.T @ roughness @ basis
        sample = joined_sample(views, self.scalings_, engine, seed)
        learned = learn_in_turn(cost, basis, self.n_bits, sample, scalings, rows, engine)
        self.projection_ = learned @ random_frames(learned.shape[1], self.n_bits, engine.random(seed))
        self.thresholds_ = middle_of(sample @ self.projection_)

    def _scores(self, views: Views, engine: Engine) -> Rows:
        return linear_scores(views, self.scalings_, self.projection_, engine, self.thresholds_)


def _sums(graph: AveragedGraph, criterion: str, scalings: tuple[Scaling, ...], present: Any, *blocks: Any) -> Any:
    """X^T diag(E 1) X, E^T X and E^T 1 of one block."""
    features = [scaled(block, scaling) for block, scaling in zip(blocks, scalings, strict=True)]
    positions, weights = averaged_edges(graph, criterion, present, *features)
    joined = joined_rows(scalings, *blocks)
    scatter = joined.T @ (joined * weights.sum(1)[:, None])
    return scatter, *edge_sums(joined, positions, weights, graph.landmarks[0].shape[0])


def learn_in_turn(
    cost: FloatArray,
    basis: FloatArray,
    n_bits: int,
    sample: FloatArray,
    scalings: tuple[Scaling, ...],
    rows: Sequence[Rows | None],
    engine: Engine,
) -> FloatArray:
    """Directions (d, at most r), each of least cost among those whose scores are uncorrelated with all earlier bits.

    cost (r, r) in the coordinates of the basis (d, r). One pass over the rows for every bit.
    """
    taken, learned = np.zeros((len(cost), 0)), []
    with stage("bits", min(n_bits, len(cost)), "bits") as done:
        for _ in range(min(n_bits, len(cost))):
            free = np.linalg.qr(taken, mode="complete")[0][:, taken.shape[1] :]
            coordinates = free @ np.linalg.eigh(free.T @ cost @ free)[1][:, :1]
            direction = fix_signs(basis @ coordinates)  # not the coordinates: a basis may turn within equal eigenvalues
            threshold = middle_of(sample @ direction)
            correlation = basis.T @ engine.sum_rows(_bits_by_features, scalings, direction, threshold, *rows)
            learned.append(direction)
            taken = np.concatenate([taken, correlation if correlation.any() else coordinates], axis=1)
            done(1)
    return np.concatenate(learned, axis=1) if learned else np.zeros((len(basis), 0))


def _bits_by_features(scalings: tuple[Scaling, ...], direction: Any, threshold: Any, *blocks: Any) -> Any:
    joined = joined_rows(scalings, *blocks)
    return joined.T @ signs(joined @ direction - threshold)
