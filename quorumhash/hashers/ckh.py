"""CKH: compact kernel hashing with multiple features, one kernel mixed from all views."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace

from quorumhash.checks import (
    check_choice,
    check_count,
    check_graph_parameters,
    check_positive,
    check_shape,
    check_switch,
)
from quorumhash.engines import Engine, Rows
from quorumhash.errors import RefusedError
from quorumhash.hashers.base import About, BaseHasher
from quorumhash.kernelspace import ViewKernel, landmark_matrix, walked_views
from quorumhash.landmarks import default_n_landmarks, joined_sample, landmarks_for_bits, sample_positions
from quorumhash.progress import counted
from quorumhash.scaling import Scaling, joined_rows
from quorumhash.similarity import BANDWIDTH_RULES
from quorumhash.steps.centredkernels import (
    CentredKernels,
    centred_kernels,
    check_centred_kernels,
    kernel_scores,
    learn_centred_kernels,
)
from quorumhash.steps.classgraph import ClassGraph, class_neighbours, label_rows, learn_class_graph
from quorumhash.steps.directions import mixing_for_bits, whitening
from quorumhash.steps.simplex import minimise_on_simplex
from quorumhash.steps.smoothness import edge_sums, landmark_part, smoothest_directions
from quorumhash.views import Views

FloatArray = npt.NDArray[np.float64]


class CKHHasher(BaseHasher):
    """Compact kernel hashing: smooth, balanced, uncorrelated functions of one kernel that mixes the views' kernels.

        min  tr(Y^T (I - S) Y) + lambda tr(W^T J W),  Y = K W,  Y^T 1 = 0, Y^T Y = N I,  K = sum_m mu_m K_m,
             mu >= 0, sum mu = 1

    K_m (N, R) kernel of view m to shared landmarks, centred; J = sum_m mu_m J_m the landmarks' own kernel; S landmark
    graph of the joined views; W (R, P) hash functions; bits = sign(sum_m mu_m k_m W). W (an eigenproblem) and mu (a
    small quadratic programme) alternate; the constraint moves with mu, so a round may be worse than the one before:
    then the rounds end and the better one is kept. A view that an item lacks has no say. More bits than landmarks can
    give are random frames of the learned ones.

    The released code of the authors links each item to its nearest among those that share its label; a comparison of
    methods that learn without labels must not. The graph here is free of labels unless `supervised` asks for them.

    Parameters
    ----------
    n_bits : int
        Bits per code.
    lambda_ : float
        Weight of the norm of the hash functions.
    supervised : bool
        Link items of one label only; `fit` then needs y. Rows without a label have no neighbours.
    max_iter : int
        Rounds at most.
    n_landmarks : int, optional
        Shared landmarks of the kernels (R); from the numbers of rows and bits where not given.
    n_neighbors : int
        Nearest landmarks of each item in the graph.
    bandwidth : {"seventh", "median"}
        Kernel bandwidth per view: mean distance to the 7th landmark, or the median rule.
    rotate : bool
        Rotate the hash functions towards bits (ITQ); the objective stays the same. Not part of the published method.
    random_state : int, generator or None
        Seed of sample, landmarks, frames and rotation.

    Attributes
    ----------
    view_weights_ : array (n_views,)
        The weights mu.
    kernels_, projection_
        Kernels of the views and their means; hash functions (n_views R, n_bits), weights included.
    n_iter_ : int
        Rounds made.
    history_ : list of dict
        Objective of every round; a last one that is higher belongs to a round that was not kept.

    References
    ----------
    X. Liu, J. He, D. Liu and B. Lang, "Compact kernel hashing with multiple features", ACM MM 2012.

    Examples
    --------
    >>> import numpy as np
    >>> views = {"colour": np.eye(4), "shape": np.arange(8.0).reshape(4, 2)}
    >>> CKHHasher(n_bits=3).fit(views).transform(views, packed=False).shape
    (4, 3)
    """

    about = About(year=2012, fit_cost="N R (d + M R) + R^3 a round", encode_cost="d R + M R P", labels="optional")
    learned = ("kernels_", "projection_")
    told = ("view_weights_", "n_iter_", "history_")
    parts = (Scaling, ViewKernel, CentredKernels)

    def __init__(
        self,
        n_bits: int = 64,
        *,
        lambda_: float = 1.0,
        supervised: bool = False,
        max_iter: int = 10,
        n_landmarks: int | None = None,
        n_neighbors: int = 3,
        bandwidth: str = "seventh",
        rotate: bool = False,
        random_state: Any = 0,
    ) -> None:
        self.n_bits = n_bits
        self.lambda_ = lambda_
        self.supervised = supervised
        self.max_iter = max_iter
        self.n_landmarks = n_landmarks
        self.n_neighbors = n_neighbors
        self.bandwidth = bandwidth
        self.rotate = rotate
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_positive("lambda_", self.lambda_, self)
        check_count("max_iter", self.max_iter, 1, self)
        check_graph_parameters(self)
        check_choice("bandwidth", self.bandwidth, BANDWIDTH_RULES, self)
        check_switch("supervised", self.supervised, self)
        check_switch("rotate", self.rotate, self)
        if self.supervised and self._training_labels is None:
            raise RefusedError("CKHHasher with supervised=True learns from labels: call fit(X, y).")

    def _check_state(self) -> None:
        check_centred_kernels(self.kernels_, tuple(self.view_widths_.values()))
        check_shape(self.projection_, (self.kernels_.means.size, self.n_bits_))

    def _state_bytes(self, views: Views) -> int:
        return len(views) * 8 * self.n_bits if self.rotate else 0

    def _fit(self, views: Views, engine: Engine, seed: int) -> None:
        space = learn_centred_kernels(
            views, engine, seed, n_landmarks=landmarks_for_bits(self.n_landmarks, self.n_bits, len(views)),
            landmarks="kmeans", bandwidth=self.bandwidth,
        )  # fmt: skip
        walked, scalings = walked_views(views, engine), tuple(kernel.scaling for kernel in space.kernels)
        labels = label_rows(self._training_labels if self.supervised else None, len(views))
        graph = learn_class_graph(
            joined_sample(views, dict(zip(views, scalings, strict=True)), engine, seed).astype(np.float32),
            labels[sample_positions(len(views), engine, seed)],
            default_n_landmarks(len(views)), self.n_neighbors, seed,
        )  # fmt: skip
        gram, by_landmark, totals = engine.sum_rows(_sums, space, graph, engine.put(labels), *walked)
        roughness = gram - landmark_part(by_landmark, totals)  # K^T (I - S) K of all pairs of views
        mixed, self.view_weights_, self.history_ = alternate(
            _by_view(gram / len(views), len(scalings)), _by_view(roughness, len(scalings)),
            self.lambda_ * np.stack(landmark_matrix(space.kernels)).astype(np.float64), self.n_bits, self.max_iter,
        )  # fmt: skip
        self.n_iter_ = len(self.history_)
        directions = np.kron(self.view_weights_[:, None], mixed)
        self.kernels_, self.projection_ = space, directions @ mixing_for_bits(
            lambda: engine.map_rows(kernel_scores, space, directions, *walked),
            mixed.shape[1], self.n_bits, rotate=self.rotate, engine=engine, seed=seed,
        )  # fmt: skip

    def _scores(self, views: Views, engine: Engine) -> Rows:
        scores: Rows = engine.map_rows(kernel_scores, self.kernels_, self.projection_, *walked_views(views, engine))
        return scores


def alternate(
    spread: FloatArray, roughness: FloatArray, norms: FloatArray, n_bits: int, max_iter: int
) -> tuple[FloatArray, FloatArray, list[dict[str, float]]]:
    """Hash functions W (R, p), the weights mu they belong to, and the objective of every round.

    spread and roughness (M, R, M, R): K_i^T K_j / N and K_i^T (I - S) K_j; norms (M, R, R): lambda J_m. Ends with the
    first round that is no better than the one before.
    """
    mu, history = np.full(len(norms), 1 / len(norms)), list[dict[str, float]]()
    best, best_mu, lowest = np.zeros((norms.shape[1], 0)), mu, np.inf
    for _ in counted("rounds, at most", range(max_iter), max_iter, "rounds"):
        cost = np.einsum("i,irjs,j->rs", mu, roughness, mu) + np.tensordot(mu, norms, 1)
        W, objective = smoothest_directions(cost, whitening(np.einsum("i,irjs,j->rs", mu, spread, mu)), n_bits)
        history.append({"objective": objective})
        if objective >= lowest:
            break
        best, best_mu, lowest = W, mu, objective
        mixing = W @ W.T
        mu = minimise_on_simplex(np.einsum("irjs,rs->ij", roughness, mixing), np.einsum("mrs,rs->m", norms, mixing), mu)
    return best, best_mu, history


def _by_view(matrix: FloatArray, n_views: int) -> FloatArray:
    n_landmarks = len(matrix) // n_views
    return matrix.reshape(n_views, n_landmarks, n_views, n_landmarks)


def _sums(space: CentredKernels, graph: ClassGraph, labels: Any, present: Any, *blocks: Any) -> Any:
    """K^T K of all views' kernels side by side, and the sums of their graph, of one block."""
    kernels = centred_kernels(space, present, *blocks)
    joined = joined_rows(tuple(kernel.scaling for kernel in space.kernels), *blocks)
    near = class_neighbours(graph, labels, array_namespace(joined).astype(joined, graph.landmarks.dtype))
    return kernels.T @ kernels, *edge_sums(kernels, near.positions, near.weights, len(graph.landmarks))
