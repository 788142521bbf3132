"""One landmark graph for all views: from the alpha-mean of the views' distances to shared landmarks.

    D_ij = f^-1( sum_m w_m f(D_m,ij) ),   f(z) = z^((1 - alpha) / 2),  log z for alpha = 1

the matrix with the least alpha-divergence from those of the views: alpha -1 is the arithmetic mean, 1 the geometric,
3 the harmonic one. D_m is the squared distance in view m divided by that view's median edge; absent views are left
out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device

from quorumhash.engines import Engine
from quorumhash.landmarks import FloatMatrix, refuse_rare_views, sample_scaled, shared_landmarks
from quorumhash.scaling import Scaling
from quorumhash.similarity import graph_bandwidth, nearest_landmarks, squared_distances
from quorumhash.views import Views

LARGEST_ALPHA = 9.0  # beyond it powers of distances overflow; the mean is nearly the least or largest one there anyway
SMALLEST_DISTANCE = 1e-9  # in median edges


@dataclass(frozen=True)
class AveragedGraph:
    """Shared landmarks (R, d_m) per view, every view's median edge, alpha, bandwidth and number of neighbours."""

    landmarks: tuple[FloatMatrix, ...]
    median_edges: tuple[float, ...]
    alpha: float
    bandwidth: float
    n_neighbors: int


def learn_averaged_graph(
    views: Views,
    scalings: Mapping[str, Scaling],
    engine: Engine,
    seed: int,
    *,
    n_landmarks: int,
    n_neighbors: int,
    alpha: float,
) -> AveragedGraph:
    """Landmarks, median edges and the bandwidth of the averaged distances, on a seeded sample."""
    sample, present = sample_scaled(views, scalings, engine, seed)
    refuse_rare_views(views, present)
    landmarks = tuple(shared_landmarks(sample, present, min(n_landmarks, len(views)), "kmeans", seed).values())
    edges = []
    for m, part in enumerate(sample.values()):
        squares = squared_distances(part[present[:, m]], landmarks[m])
        k = min(n_neighbors, squares.shape[1])
        median = float(np.median(np.partition(squares, k - 1, axis=1)[:, :k]))
        edges.append(median if median > 0 else graph_bandwidth(squares, n_neighbors))
    graph = AveragedGraph(landmarks, tuple(edges), alpha, 1.0, n_neighbors)
    distances = averaged_distances(graph, present, *sample.values())
    return replace(graph, bandwidth=graph_bandwidth(distances, n_neighbors))


def alpha_mean(weights: Any, alpha: float, *distances: Any) -> Any:
    """The alpha-mean of matrices of distances (n, p), with weights (n, M) that sum to 1 in every row.

    >>> weights = np.full((1, 2), 0.5)
    >>> [float(alpha_mean(weights, a, np.array([[1.0]]), np.array([[4.0]]))[0, 0]) for a in (-1.0, 1.0, 3.0)]
    [2.5, 2.0, 1.6]
    """
    xp = array_namespace(weights)
    power = (1.0 - alpha) / 2.0
    total = xp.zeros_like(xp.astype(distances[0], xp.float64))
    for m, part in enumerate(distances):
        values = xp.astype(part, xp.float64).clip(SMALLEST_DISTANCE, None)
        total += weights[:, m, None] * (values**power if power else xp.log(values))
    return total ** (1.0 / power) if power else xp.exp(total)


def averaged_distances(graph: AveragedGraph, present: Any, *features: Any) -> Any:
    """The averaged squared distances (n, R) of one block of scaled features."""
    xp = array_namespace(present)
    weights = xp.astype(present, xp.float64)
    weights = weights / xp.sum(weights, axis=1, keepdims=True)
    squares = [squared_distances(part, graph.landmarks[m]) / graph.median_edges[m] for m, part in enumerate(features)]
    return alpha_mean(weights, graph.alpha, *squares)


def averaged_edges(graph: AveragedGraph, criterion: str, present: Any, *features: Any) -> Any:
    """Positions and weights (n, k) of one block's edges: similarities that sum to 1, or the distances themselves."""
    distances = averaged_distances(graph, present, *features)
    near = nearest_landmarks(distances, graph.n_neighbors, graph.bandwidth)
    if criterion == "similarity":
        return near.positions, near.weights
    every = array_namespace(distances).arange(distances.shape[0], device=device(distances))
    return near.positions, distances[every[:, None], near.positions]
