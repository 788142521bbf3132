"""Graphs of nearest items, and code targets from their dense Laplacians: the target step as MFH published it.

    min  tr(Y^T S Y) + beta ( |X W - Y|^2 + delta |W|^2 )   with Y^T Y = N I and Y^T 1 = 0

    X (N, d)  joined views of the rows, centred
    S (N, N)  how rough targets are along the graphs, S 1 = 0
    Y (N, P)  targets, eigenvectors of an N x N matrix; W (d, P) hash functions

N^3 operations, so N is a sample of the rows. quorumhash/targets.py does the same on landmark graphs, for any N.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse
from scipy.linalg.lapack import dpotrf, dpotri

from quorumhash.engines import Engine
from quorumhash.engines.threads import run_together
from quorumhash.landmarks import refuse_rare_views, sample_scaled
from quorumhash.progress import estimated
from quorumhash.proximal import fix_signs
from quorumhash.scaling import Scaling
from quorumhash.similarity import CHUNK, kernel_bandwidth, nearest_landmarks, rbf_kernel, squared_distances
from quorumhash.steps.directions import SMALLEST_EIGENVALUE, lasting_pairs
from quorumhash.views import Views

FloatArray = npt.NDArray[np.float64]

GRAPHS = ("landmarks", "nearest")
MOST_ROWS = 5_000  # what a public port of MFH trains on; a matrix then has 200 MB, all 30,000 rows would have 7 GB
ROWS_FOR_BANDWIDTH = 500


@dataclass(frozen=True)
class NearestGraphs:
    """Sampled rows X (N, d), centred, and the similarities (N, N, sparse, symmetric) of every view's graph."""

    joined: FloatArray
    similarities: tuple[Any, ...]


@dataclass(frozen=True)
class FittedTargets:
    """Y (N, P), W (d, P), the objective, and which targets the features foretell at all (P,); others are rounding."""

    targets: FloatArray
    projection: FloatArray
    objective: float
    is_foretold: npt.NDArray[np.bool_]


def nearest_graphs(
    views: Views, scalings: Mapping[str, Scaling], engine: Engine, seed: int, n_neighbors: int
) -> NearestGraphs:
    """The graph of every view over a seeded sample of rows, or all where they are few; absent views have no edges."""
    sample, present = sample_scaled(views, scalings, engine, seed, limit=MOST_ROWS)
    refuse_rare_views(views, present)
    joined = np.concatenate(list(sample.values()), axis=1).astype(np.float64)
    graphs = []
    for m, points in enumerate(sample.values()):
        here = np.flatnonzero(present[:, m])
        rows, columns, weights = nearest_edges(points[here], n_neighbors)
        edges = (weights / 2, (here[rows], here[columns]))
        half = scipy.sparse.coo_array(edges, shape=(len(points), len(points))).tocsr()
        graphs.append(half + half.T)
    return NearestGraphs(joined - joined.mean(axis=0), tuple(graphs))


def nearest_edges(points: npt.NDArray[Any], n_neighbors: int) -> tuple[Any, Any, FloatArray]:
    """Every row with its nearest others, (n k,) each: row, neighbour, and exp(-d^2 / s^2).

    s is the median distance of rows, as for a kernel; rows at one distance are taken in their order.
    """
    n_rows, k = len(points), min(n_neighbors, len(points) - 1)
    bandwidth = kernel_bandwidth(squared_distances(points[:: max(1, n_rows // ROWS_FOR_BANDWIDTH)], points), "median")

    def near(start: int) -> tuple[Any, Any]:
        squares = squared_distances(points[start : start + CHUNK], points)
        own = np.arange(len(squares))
        squares[own, start + own] = np.inf
        positions = nearest_landmarks(squares, k, 1.0).positions
        return positions, rbf_kernel(squares[own[:, None], positions], bandwidth)

    positions, weights = zip(*run_together(near, range(0, n_rows, CHUNK)), strict=True)
    rows, columns = np.repeat(np.arange(n_rows), k), np.concatenate(positions).ravel()
    return rows, columns, np.concatenate(weights).ravel().astype(np.float64)


def laplacian(similarity: Any) -> FloatArray:
    """Degrees minus similarities, dense (N, N)."""
    dense: FloatArray = -similarity.toarray()
    dense.flat[:: len(dense) + 1] += np.asarray(similarity.sum(axis=1)).ravel()
    return dense


def mean_roughness(graphs: NearestGraphs, weight: float) -> FloatArray:
    """weight L, L the Laplacian of the average of all views' similarities."""
    return weight * laplacian(sum(graphs.similarities) / len(graphs.similarities))


def agreed_roughness(graphs: NearestGraphs, gamma: float) -> FloatArray:
    """S of what Y costs with the best Y_m: sum_m [ gamma I - gamma^2 (L_m + gamma I)^(-1) ]."""
    total = np.zeros((len(graphs.joined),) * 2)
    for similarity in graphs.similarities:
        shifted = laplacian(similarity)
        diagonal = shifted.reshape(-1)[:: len(shifted) + 1]
        diagonal += max(gamma, SMALLEST_EIGENVALUE * diagonal.max())  # else rounding makes it indefinite
        total -= gamma**2 * _inverse(shifted)
    total.flat[:: len(total) + 1] += gamma * len(graphs.similarities)
    return total


def _inverse(matrix: FloatArray) -> FloatArray:
    """The inverse of a positive definite matrix, by Cholesky: half the work of a general one."""
    with estimated("inverting a graph's matrix", float(len(matrix)) ** 3):
        inverse, _ = dpotri(dpotrf(matrix, lower=True)[0], lower=True, overwrite_c=True)
    whole: FloatArray = np.tril(inverse) + np.tril(inverse, -1).T
    return whole


def fitted_targets(
    roughness: FloatArray, features: FloatArray, n_bits: int, *, beta: float, delta: float, engine: Engine
) -> FittedTargets:
    """The best targets and their hash functions: at most n_bits, and one fewer than there are rows."""
    n_rows = len(features)
    kappa, vectors = lasting_pairs(features.T @ features)
    root = features @ (vectors * np.sqrt(beta / (kappa + delta)))
    cost = root @ root.T
    np.subtract(roughness, cost, out=cost)
    cost.flat[:: n_rows + 1] += beta
    cost -= beta / n_rows  # the constant vector costs nothing so far, and would be the first target: made the dearest
    cost += (beta + np.linalg.norm(cost, 1)) / n_rows
    values, found = engine.eigenpairs(np.negative(cost, out=cost), min(n_bits, n_rows - 1))
    targets = np.sqrt(n_rows) * fix_signs(found[:, ::-1])
    features_by_targets = features.T @ targets
    projection = vectors @ ((vectors.T @ features_by_targets) / (kappa + delta)[:, None])
    shares = np.sum(projection * features_by_targets, axis=0) / n_rows  # of a target's square: correlations, squared
    return FittedTargets(targets, projection, -float(n_rows * values.sum()), shares > SMALLEST_EIGENVALUE**2)


def graph_bytes(graph: str, views: Views, n_neighbors: int) -> int:
    """What a fit holds of its graphs: matrices of the target step, six at a time, or positions and weights of ties."""
    if graph == "nearest":
        return 6 * 8 * min(len(views), MOST_ROWS) ** 2
    return len(views) * 16 * len(views.names) * n_neighbors
