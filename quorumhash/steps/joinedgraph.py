"""The landmark graph of the joined views: one set of landmarks, every item tied to the nearest few.

    z_j (d,)  landmark, a k-means centre of the views side by side
    F  (N, L)  exp(-|x - z_j|^2 / t) for the k nearest landmarks of an item, rows sum to 1
    D  (L, L)  diag(F^T 1);  the graph between items is S = F D^(-1) F^T, never formed

An absent view counts as the mean, as everywhere in the joined views.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace

from quorumhash.checks import check_shape, is_number, require
from quorumhash.engines import Engine, Rows
from quorumhash.kernelspace import ViewGraph
from quorumhash.landmarks import sample_scaled, shared_landmarks
from quorumhash.scaling import LARGEST_SCALED, Scaling, joined_rows, put_views
from quorumhash.similarity import (
    collect_at_landmarks,
    dense_graph,
    graph_bandwidth,
    nearest_landmarks,
    spread_to_rows,
    squared_distances,
)
from quorumhash.steps.directions import graph_vectors
from quorumhash.views import Views

FloatArray = npt.NDArray[np.float64]


def learn_joined_graph(
    views: Views, scalings: dict[str, Scaling], engine: Engine, seed: int, n_landmarks: int, n_neighbors: int
) -> ViewGraph:
    """Landmarks by k-means and the bandwidth t, on a seeded sample."""
    sample, present = sample_scaled(views, scalings, engine, seed)
    landmarks = np.concatenate(list(shared_landmarks(sample, present, n_landmarks, "kmeans", seed).values()), axis=1)
    squares = squared_distances(np.concatenate(list(sample.values()), axis=1), landmarks)
    return ViewGraph(landmarks, graph_bandwidth(squares, n_neighbors), n_neighbors)


def joined_neighbours(scalings: tuple[Scaling, ...], graph: ViewGraph, *blocks: Any) -> Any:
    """Positions and weights (n, k) of one block's nearest landmarks."""
    joined = joined_rows(scalings, *blocks)
    xp = array_namespace(joined)
    rows = xp.astype(joined.clip(-LARGEST_SCALED, LARGEST_SCALED), xp.float32)
    near = nearest_landmarks(squared_distances(rows, graph.landmarks), graph.n_neighbors, graph.bandwidth)
    return near.positions, near.weights


def put_neighbours(views: Views, scalings: dict[str, Scaling], graph: ViewGraph, engine: Engine) -> tuple[Rows, Rows]:
    """F over all rows: positions and weights."""
    positions, weights = engine.map_rows(joined_neighbours, tuple(scalings.values()), graph, *put_views(views, engine))
    return positions, weights


def graph_scores(
    views: Views, scalings: dict[str, Scaling], graph: ViewGraph, table: FloatArray, engine: Engine
) -> Rows:
    """F @ table (n, p): every item's weighted mean of what the table (L, p) says of its nearest landmarks."""
    scores: Rows = engine.map_rows(spread_to_rows, *put_neighbours(views, scalings, graph, engine), table)
    return scores


def slowest_vectors(
    neighbours: tuple[Rows, Rows], n_landmarks: int, n_vectors: int, engine: Engine
) -> tuple[FloatArray, FloatArray]:
    """D's diagonal (L,) and W (L, r): F W are the r slowest eigenvectors of the graph, orthogonal, of mean square 1."""
    gram, totals = engine.sum_rows(_graph_sums, *neighbours, n_landmarks)
    inverse_root = np.where(totals > 0, 1.0 / np.sqrt(np.where(totals > 0, totals, 1.0)), 0.0)
    normalised = inverse_root[:, None] * gram * inverse_root
    values, vectors = graph_vectors(normalised, np.sqrt(totals), n_vectors)
    return totals, inverse_root[:, None] * vectors * np.sqrt(neighbours[0].n_rows / values)


def _graph_sums(positions: Any, weights: Any, n_landmarks: int) -> Any:
    """F^T F (L, L) and F^T 1 (L,) of one block; the block of F is made dense, only n x L."""
    block = dense_graph(positions, weights, n_landmarks)
    return collect_at_landmarks(positions, weights, block, n_landmarks), block.sum(0)


def check_joined_graph(graph: Any, table: Any, n_features: int, n_columns: int) -> None:
    """Refuse a graph of other views, or a table that is not about its landmarks."""
    require(isinstance(graph, ViewGraph))
    check_shape(graph.landmarks, (None, n_features))
    require(is_number(graph.bandwidth) and 0 < graph.bandwidth < np.inf)
    require(isinstance(graph.n_neighbors, int) and graph.n_neighbors > 0)
    check_shape(table, (len(graph.landmarks), n_columns))
