"""IMH: landmarks embedded on their manifold, items placed between their nearest landmarks."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.checks import check_choice, check_graph_parameters, check_scalings, check_switch
from quorumhash.engines import Engine, Rows
from quorumhash.hashers.base import About, BaseHasher
from quorumhash.kernelspace import ViewGraph
from quorumhash.landmarks import landmarks_of_joined_graph
from quorumhash.scaling import Scaling, learn_scalings
from quorumhash.similarity import graph_bandwidth, spread_to_rows, squared_distances
from quorumhash.steps.directions import graph_vectors, mixing_for_bits
from quorumhash.steps.joinedgraph import (
    check_joined_graph,
    graph_scores,
    learn_joined_graph,
    put_neighbours,
)
from quorumhash.views import Views

FloatArray = npt.NDArray[np.float64]

EMBEDDINGS = ("laplacian", "tsne")
PERPLEXITY = 30.0


class InductiveManifoldHasher(BaseHasher):
    """Inductive hashing on manifolds: embed the landmarks of the joined views, place items between the nearest.

    Missing values and views count as the mean.

        z_j (d,)  landmark, a k-means centre;  y_j (P,)  its place in the embedding, centred
        y(x) = sum_j w_j y_j / sum_j w_j  over the k nearest landmarks, w_j = exp(-|x - z_j|^2 / t);  bits = sign(y(x))

    Above the number of eigenvectors of the landmarks' graph these serve again in random rotations.

    Parameters
    ----------
    n_bits : int
        Bits per code.
    embedding : {"laplacian", "tsne"}
        How the landmarks are embedded: Laplacian eigenmaps of their k-nearest graph, or exact t-SNE into n_bits
        dimensions (slower; time grows with the square of the landmarks). Both are in the publication.
    n_landmarks : int, optional
        Landmarks; by the number of rows where not given, at least 2 n_bits; from 1,000 rows on one for 3, to 400.
    n_neighbors : int
        Nearest landmarks of each item, and of each landmark in the graph.
    rotate : bool
        Rotate the places towards bits. False is the published method.
    random_state : int, generator or None
        Seed of landmarks, t-SNE and rotation.

    Attributes
    ----------
    scalings_ : dict of str to Scaling
        Mean and factor of every view.
    graph_ : ViewGraph
        Landmarks, bandwidth and neighbours.
    table_ : array (n_landmarks, n_bits)
        The landmarks' places.

    References
    ----------
    F. Shen, C. Shen, Q. Shi, A. van den Hengel and Z. Tang, "Inductive hashing on manifolds", CVPR 2013.

    Examples
    --------
    >>> import numpy as np
    >>> views = {"colour": np.eye(4), "shape": np.arange(8.0).reshape(4, 2)}
    >>> InductiveManifoldHasher(n_bits=12).fit(views).transform(views).shape
    (4, 2)
    """

    about = About(year=2013, fit_cost="N d L + L^3", encode_cost="d L + k P")
    learned = ("scalings_", "graph_", "table_")
    parts = (Scaling, ViewGraph)

    def __init__(
        self,
        n_bits: int = 64,
        *,
        embedding: str = "laplacian",
        n_landmarks: int | None = None,
        n_neighbors: int = 5,
        rotate: bool = False,
        random_state: Any = 0,
    ) -> None:
        self.n_bits = n_bits
        self.embedding = embedding
        self.n_landmarks = n_landmarks
        self.n_neighbors = n_neighbors
        self.rotate = rotate
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_graph_parameters(self)
        check_switch("rotate", self.rotate, self)
        check_choice("embedding", self.embedding, EMBEDDINGS, self)

    def _check_state(self) -> None:
        check_scalings(self.scalings_, self.view_widths_)
        check_joined_graph(self.graph_, self.table_, self.n_features_in_, self.n_bits_)

    def _state_bytes(self, views: Views) -> int:
        return len(views) * (16 * self.n_neighbors + 8 * self.n_bits) if self.rotate else 0

    def _fit(self, views: Views, engine: Engine, seed: int) -> None:
        self.scalings_ = learn_scalings(views, engine)
        n_landmarks = landmarks_of_joined_graph(self.n_landmarks, self.n_bits, len(views))
        self.graph_ = learn_joined_graph(views, self.scalings_, engine, seed, n_landmarks, self.n_neighbors)
        if self.embedding == "tsne" and len(self.graph_.landmarks) > 2:
            places = tsne_places(self.graph_.landmarks, self.n_bits, seed)
        else:
            places = laplacian_places(self.graph_.landmarks, self.n_bits, self.n_neighbors)
        places = places - places.mean(axis=0)
        self.table_ = places @ mixing_for_bits(
            lambda: engine.map_rows(
                spread_to_rows, *put_neighbours(views, self.scalings_, self.graph_, engine), places
            ),
            places.shape[1], self.n_bits, rotate=self.rotate, engine=engine, seed=seed,
        )  # fmt: skip

    def _scores(self, views: Views, engine: Engine) -> Rows:
        return graph_scores(views, self.scalings_, self.graph_, self.table_, engine)


def laplacian_places(landmarks: npt.NDArray[Any], n_dims: int, n_neighbors: int) -> FloatArray:
    """Laplacian eigenmaps of the landmarks, (L, r), r at most n_dims.

    A (L, L) weights exp(-|z_i - z_j|^2 / t) where one is among the k nearest of the other; D its degrees. The smallest
    non-trivial solutions of (D - A) y = l D y are y = D^(-1/2) v, v the largest eigenvectors of
    (I + D^(-1/2) A D^(-1/2)) / 2, which has no negative eigenvalues.
    """
    squares = squared_distances(landmarks, landmarks).astype(np.float64)
    np.fill_diagonal(squares, 0.0)
    nth = min(n_neighbors, len(squares) - 1)  # position 0 is the landmark itself
    near = squares <= np.partition(squares, nth, axis=1)[:, nth, None]
    affinity = np.where(near | near.T, np.exp(-squares / graph_bandwidth(squares, nth + 1)), 0.0)
    np.fill_diagonal(affinity, 0.0)
    degrees = affinity.sum(axis=1)
    root = np.sqrt(np.where(degrees > 0, degrees, 1.0))  # a landmark too far from all others stands alone
    normalised = affinity / np.outer(root, root)
    _, vectors = graph_vectors((np.eye(len(root)) + normalised) / 2, root, n_dims)
    return vectors / root[:, None]


def tsne_places(landmarks: npt.NDArray[Any], n_dims: int, seed: int) -> FloatArray:
    """Exact t-SNE of the landmarks, (L, n_dims)."""
    from sklearn.manifold import TSNE

    perplexity = min(PERPLEXITY, (len(landmarks) - 1) / 3)
    solver: Any = TSNE(n_dims, perplexity=perplexity, method="exact", init="random", random_state=seed)
    return np.asarray(solver.fit_transform(landmarks), dtype=np.float64)
