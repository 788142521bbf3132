"""Similarity to landmarks: the RBF kernel and the truncated landmark graph, for one block of rows.

    K  (n, R)  kernel to the shared landmarks z_r          exp(-|x - z|^2 / (2 s^2)),  one bandwidth s per view
    F  (n, L)  graph to the view's own landmarks u_j       exp(-|x - u|^2 / t), the k nearest only, rows sum to 1

F is never dense: k positions and k weights per row (`Neighbours`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, is_numpy_array

from quorumhash.engines.threads import run_together
from quorumhash.errors import ParameterError
from quorumhash.tensors import is_tensor, on_host

BANDWIDTH_RULES = ("seventh", "median")
CHUNK = 1024  # rows
NEIGHBOUR_OF_BANDWIDTH = 7  # the neighbour that self-tuning (Zelnik-Manor and Perona) measures to


def squared_distances(block: Any, points: Any) -> Any:
    """Squared Euclidean distances (n, p) of rows to points, never negative.

    >>> squared_distances(np.array([[0.0, 3.0]]), np.array([[4.0, 0.0], [0.0, 3.0]]))
    array([[25.,  0.]])
    """
    distances = block @ (-2.0 * points).T  # twice a number is exact: the same as twice the product, and a pass less
    distances += squared_lengths(block)[:, None]
    distances += squared_lengths(points)[None, :]
    if is_numpy_array(distances):
        return distances.clip(0.0, None, out=distances)
    return distances.clip(0.0, None)


def squared_lengths(block: Any) -> Any:
    """Squared Euclidean norm of every row, (n,)."""
    if is_numpy_array(block):
        return np.einsum("ij,ij->i", block, block)
    return (block * block).sum(1)  # einsum is a product of batches there, and slow


def rbf_kernel(squares: Any, bandwidth: float) -> Any:
    """exp(-d^2 / (2 s^2)), in the dtype of the squared distances."""
    return array_namespace(squares).exp(squares * (-0.5 / bandwidth**2))


def kernel_bandwidth(squares: Any, rule: str = "seventh") -> float:
    """One bandwidth s for a view from squared distances of a sample to its landmarks.

    "seventh": the mean distance to the 7th nearest landmark. "median": 2 s^2 is the median squared distance.
    Never 0: where rows coincide with landmarks the mean positive distance serves, and 1 where all are equal.
    """
    if rule not in BANDWIDTH_RULES:
        raise ParameterError(f"bandwidth must be one of {', '.join(BANDWIDTH_RULES)}, got {rule!r}.")
    if rule == "median":
        bandwidth = float(np.sqrt(np.median(on_host(squares)) / 2.0))
    else:
        nth = min(NEIGHBOUR_OF_BANDWIDTH, squares.shape[1]) - 1
        bandwidth = _mean_distance(squares, nth)
    return bandwidth if bandwidth > 0 else _positive_mean(squares)


def graph_bandwidth(squares: Any, n_neighbors: int) -> float:
    """t = s^2 with s the mean distance to the k-th nearest landmark."""
    nth = min(n_neighbors, squares.shape[1]) - 1
    distance = _mean_distance(squares, nth)
    return (distance if distance > 0 else _positive_mean(squares)) ** 2


def _mean_distance(squares: Any, nth: int) -> float:
    """The mean distance of a row to the nth of its points, counted from 0."""
    if is_tensor(squares):
        nearest = on_host(array_namespace(squares).sort(squares, axis=1)[:, nth])
        return float(np.sqrt(nearest).mean(dtype=np.float64))
    chunks = [squares[start : start + CHUNK] for start in range(0, len(squares), CHUNK)]
    found = run_together(lambda chunk: np.partition(chunk, nth, axis=1)[:, nth], chunks)
    return float(np.sqrt(np.concatenate(found)).mean(dtype=np.float64))


def _positive_mean(squares: Any) -> float:
    squares = on_host(squares)
    positive = squares[squares > 0]
    return float(np.sqrt(positive.mean(dtype=np.float64))) if positive.size else 1.0


@dataclass(frozen=True)
class Neighbours:
    """A block of the truncated graph F: landmark positions (n, k) and their weights (n, k), rows summing to 1."""

    positions: Any
    weights: Any


def nearest_landmarks(squares: Any, n_neighbors: int, bandwidth: float) -> Neighbours:
    """The k nearest landmarks of every row and their weights exp(-d^2 / t), normalised; ties go to the lower position.

    The smallest distance is subtracted inside the exponential: it cancels, and no row can become 0 / 0.
    """
    xp = array_namespace(squares)
    rest = xp.astype(squares, squares.dtype, copy=True)
    every = xp.arange(rest.shape[0], device=device(rest))
    positions, nearest = [], []
    for _ in range(min(n_neighbors, rest.shape[1])):  # k is 3 or 5: k passes of argmin beat a sort
        position = xp.argmin(rest, axis=1)
        positions.append(position)
        nearest.append(rest[every, position])
        rest[every, position] = xp.inf
    chosen = xp.astype(xp.stack(nearest, axis=1), xp.float64)
    weights = xp.exp((chosen[:, :1] - chosen) / bandwidth)
    return Neighbours(xp.stack(positions, axis=1), weights / xp.sum(weights, axis=1, keepdims=True))


def spread_to_rows(positions: Any, weights: Any, table: Any) -> Any:
    """F @ table: for every row the weighted sum of its landmarks' entries, (n, p)."""
    total = weights[:, 0, None] * table[positions[:, 0]]
    for j in range(1, positions.shape[1]):
        total += weights[:, j, None] * table[positions[:, j]]
    return total


def dense_graph(positions: Any, weights: Any, n_landmarks: int) -> Any:
    """F itself, (n, L); the positions of a row are distinct."""
    xp = array_namespace(weights)
    graph = xp.zeros((weights.shape[0], n_landmarks), dtype=weights.dtype, device=device(weights))
    graph[xp.arange(graph.shape[0], device=device(weights))[:, None], positions] = weights
    return graph


def collect_at_landmarks(positions: Any, weights: Any, block: Any, n_landmarks: int) -> Any:
    """F^T @ block: for every landmark the weighted sum of the rows that chose it, (L, p)."""
    if is_numpy_array(block):
        from scipy.sparse import csr_array

        n, k = positions.shape
        graph = csr_array(
            (weights.ravel(), positions.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n_landmarks), copy=False
        )
        return np.asarray(graph.T @ block)
    xp = array_namespace(block)
    if block.device.type != "cpu":  # adding row by row, thousands of threads would wait for a few hundred landmarks
        graph = xp.zeros((block.shape[0], n_landmarks), dtype=block.dtype, device=block.device)
        return graph.scatter_add_(1, positions, weights).T @ block
    total = xp.zeros((n_landmarks, block.shape[1]), dtype=block.dtype, device=block.device)
    for j in range(positions.shape[1]):
        total.index_add_(0, positions[:, j], weights[:, j, None] * block)
    return total
