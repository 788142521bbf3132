"""The code targets: what the bits of every item should be, given the consensus kernel and the landmark graphs.

    minimise over Y, Y_1..Y_M, W, b   with Y^T Y = N I and Y^T 1 = 0 (samples as rows)
        sum_m [ 2 tr(Y_m^T L_m Y_m) + gamma |Y - Y_m|^2 ]  +  beta ( |K W + 1 b - Y|^2 + delta |W|^2 )

    K    (N, R)  consensus kernel, rows centred by the means where marked "centred"
    G_m  (N, L)  F_m Lambda_m^(-1/2), the graph of view m: S_m = G_m G_m^T, L_m = I - S_m
    Y    (N, P)  targets; W (R, P), b (P,) the hash functions

Y_m, W and b have closed forms; what is left is an eigenproblem of a matrix of rank M L + R + 1, solved through the Gram
matrix of its factors, so nothing N x N is ever formed.

Departures from the paper: the Y-step is not printed there at all (E10); Y^T 1 = 0 is added, or the first bit would be
constant (E12); Y^T Y = N I instead of I, so that targets have the size of bits (E13).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg
from array_api_compat import array_namespace

from quorumhash.engines import Engine, Rows
from quorumhash.engines.base import eigenpairs
from quorumhash.errors import RefusedError
from quorumhash.proximal import fix_signs
from quorumhash.similarity import collect_at_landmarks, dense_graph, spread_to_rows

FloatArray = npt.NDArray[np.float64]

SMALLEST_EIGENVALUE = 1e-10  # relative; directions of the kernel below this are rounding


@dataclass(frozen=True)
class Graph:
    """One view's landmark graph G = F Lambda^(-1/2) over all rows."""

    positions: Rows
    weights: Rows
    n_landmarks: int


@dataclass(frozen=True)
class GraphFactors:
    """All graphs as one factor: V_g = H [G_1 .. G_M] mixing, with its Gram matrix; fixed during a fit."""

    graphs: tuple[Graph, ...]
    means: FloatArray  # (q,) column means of [G_1 .. G_M]
    mixing: FloatArray  # (q, q) block diagonal: U_m sqrt(gamma^2 / (2 + gamma) / (1 + gamma / 2 - g_m))
    gram: FloatArray  # (q, q) mixing^T [G]^T H [G] mixing
    constant: float  # what the graph term costs per target of length 1, less what the factors win back

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of landmarks of every graph."""
        return tuple(graph.n_landmarks for graph in self.graphs)

    def walked(self) -> list[Rows]:
        """Positions and weights of every graph, in turn: what a block function receives as `*pairs`."""
        return _walked(self.graphs)


@dataclass(frozen=True)
class KernelSums:
    """What the targets need of the consensus kernel: centred Gram (R, R), means (R,), [G]^T H K (q, R)."""

    gram: FloatArray
    means: FloatArray
    cross: FloatArray


@dataclass(frozen=True)
class Targets:
    """Y = sum_m G_m graph_weights_m + K kernel_weights - offset, and the hash functions fitted to it."""

    graph_weights: FloatArray  # (q, P)
    kernel_weights: FloatArray  # (R, P)
    offset: FloatArray  # (P,)
    projection: FloatArray  # W (R, P)
    bias: FloatArray  # b (P,)
    objective: float
    misfit: float  # |K W + 1 b - Y|^2, the part of the objective (times beta) that moves with the consensus
    rank: int  # targets that are no rounding: the first so many


def normalised_graph(positions: Rows, weights: Rows, n_landmarks: int, engine: Engine) -> Graph:
    """G from F: weights divided by the root of their landmark's total; landmarks nobody chose keep weight 0."""
    totals = engine.sum_rows(_landmark_totals, positions, weights, n_landmarks)[:, 0]
    inverse_root = np.where(totals > 0, 1.0 / np.sqrt(np.where(totals > 0, totals, 1.0)), 0.0)
    scaled = engine.map_rows(_scale_weights, positions, weights, inverse_root, reuse=[weights])
    return Graph(positions, scaled, n_landmarks)


def _landmark_totals(positions: Any, weights: Any, n_landmarks: int) -> Any:
    return collect_at_landmarks(positions, weights, weights[:, :1] * 0 + 1, n_landmarks)


def _scale_weights(positions: Any, weights: Any, inverse_root: Any) -> Any:
    return weights * inverse_root[positions]


def graph_factors(graphs: Sequence[Graph], gamma: float, engine: Engine) -> GraphFactors:
    """The factor of the graph term: 2L + gamma I inverted by Woodbury on L landmarks."""
    gram, means, centred = _centred_graphs(graphs, engine)
    mixings = []
    for part in _diagonal_blocks(gram, [graph.n_landmarks for graph in graphs]):
        values, vectors = engine.eigenpairs(part)
        values = np.clip(values, 0.0, 1.0)
        mixings.append(fix_signs(vectors) * np.sqrt(gamma**2 / (2 + gamma) / (1 + gamma / 2 - values)))
    mixing = scipy.linalg.block_diag(*mixings)
    constant = 2 * len(graphs) * gamma / (2 + gamma)
    return GraphFactors(tuple(graphs), means, mixing, mixing.T @ centred @ mixing, constant)


def mean_graph_factors(graphs: Sequence[Graph], weight: float, engine: Engine) -> GraphFactors:
    """The factor of weight tr(Y^T L Y), L = I - mean_m S_m: the Laplacian of the views' average similarity."""
    _, means, centred = _centred_graphs(graphs, engine)
    share = weight / len(graphs)
    return GraphFactors(tuple(graphs), means, np.sqrt(share) * np.eye(len(means)), share * centred, weight)


def _centred_graphs(graphs: Sequence[Graph], engine: Engine) -> tuple[FloatArray, FloatArray, FloatArray]:
    """[G]^T [G], the column means of [G], and [G]^T H [G]."""
    n_rows = graphs[0].positions.n_rows
    gram, sums = engine.sum_rows(_graph_sums, tuple(graph.n_landmarks for graph in graphs), *_walked(graphs))
    means = sums / n_rows
    return gram, means, gram - n_rows * np.outer(means, means)


def _diagonal_blocks(matrix: FloatArray, sizes: Sequence[int]) -> list[FloatArray]:
    edges = np.cumsum([0, *sizes])
    return [matrix[a:b, a:b] for a, b in pairwise(edges)]


def _walked(graphs: Sequence[Graph]) -> list[Rows]:
    return [rows for graph in graphs for rows in (graph.positions, graph.weights)]


def _graph_sums(sizes: tuple[int, ...], *pairs: Any) -> Any:
    """[G]^T [G] (q, q) and [G]^T 1 (q,) of one block; the block of G is made dense, only n x q."""
    xp = array_namespace(pairs[1])
    graphs = zip(pairs[::2], pairs[1::2], sizes, strict=True)
    block = xp.concat([dense_graph(positions, weights, size) for positions, weights, size in graphs], axis=1)
    return cross_sums(sizes, block, *pairs), xp.sum(block, axis=0)


def kernel_sums(
    gram: FloatArray, sums: FloatArray, cross: FloatArray, graph_means: FloatArray, n_rows: int
) -> KernelSums:
    """Centre the raw sums K^T K, K^T 1 and [G]^T K, the column means of [G] given."""
    means = sums / n_rows
    return KernelSums(gram - n_rows * np.outer(means, means), means, cross - n_rows * np.outer(graph_means, means))


def cross_sums(sizes: tuple[int, ...], kernel: Any, *pairs: Any) -> Any:
    """[G]^T K (q, R) of one block, through the sparse graphs."""
    xp = array_namespace(kernel)
    parts = [
        collect_at_landmarks(positions, weights, kernel, size)
        for size, positions, weights in zip(sizes, pairs[::2], pairs[1::2], strict=True)
    ]
    return xp.concat(parts)


def solve_targets(
    factors: GraphFactors, sums: KernelSums, n_bits: int, *, beta: float, delta: float, engine: Engine | None = None
) -> Targets:
    """The best targets and their hash functions for a fixed consensus kernel; refuses where there are too few."""
    targets = leading_targets(factors, sums, n_bits, beta=beta, delta=delta, engine=engine)
    n_targets = targets.projection.shape[1]
    if n_targets < n_bits:
        raise RefusedError(
            f"{n_bits} bits cannot be learned from {n_targets} landmarks of kernel and graphs together: the rows "
            "repeat too much, or too few landmarks were asked for; use fewer bits or more landmarks."
        )
    return targets


def leading_targets(
    factors: GraphFactors, sums: KernelSums, n_bits: int, *, beta: float, delta: float, engine: Engine | None = None
) -> Targets:
    """The best targets and their hash functions, at most n_bits and at most as many as factors and features.

    Symbols: U_K diag(kappa) U_K^T the centred kernel Gram; V_K = K_c U_K sqrt(beta / (kappa + delta));
    V = [V_g, V_K] (N, q + R), V^T V = Omega diag(e) Omega^T; Y = sqrt(N) V Omega_P e_P^(-1/2).
    """
    n_rows = factors.graphs[0].positions.n_rows
    kappa, vectors = (engine.eigenpairs if engine else eigenpairs)(sums.gram)
    kept = kappa > SMALLEST_EIGENVALUE * kappa[-1]
    kappa, vectors = kappa[kept], fix_signs(vectors[:, kept])
    mixing_k = vectors * np.sqrt(beta / (kappa + delta))
    corner = factors.mixing.T @ (sums.cross @ mixing_k)
    gram = np.block([[factors.gram, corner], [corner.T, np.diag(beta * kappa / (kappa + delta))]])
    n_targets = min(n_bits, len(gram))
    values, omega, rank = _largest_eigenpairs(gram, n_targets, engine)
    omega *= np.sqrt(n_rows / values)
    q = len(factors.means)
    graph_weights, kernel_weights = factors.mixing @ omega[:q], mixing_k @ omega[q:]
    kernel_by_targets = sums.cross.T @ graph_weights + sums.gram @ kernel_weights
    projection = vectors @ ((vectors.T @ kernel_by_targets) / (kappa + delta)[:, None])
    # at the ridge solution |K W + 1 b - Y|^2 + delta |W|^2 = |Y|^2 - <W, K_c^T Y>, and |Y|^2 = N P
    misfit = n_rows * n_targets - np.sum(projection * kernel_by_targets) - delta * np.sum(projection**2)
    return Targets(
        graph_weights,
        kernel_weights,
        factors.means @ graph_weights + sums.means @ kernel_weights,
        projection,
        -(sums.means @ projection),
        float(n_rows * np.sum(factors.constant + beta - values)),
        float(misfit),
        rank,
    )


def _largest_eigenpairs(gram: FloatArray, n_pairs: int, engine: Engine | None) -> tuple[FloatArray, FloatArray, int]:
    """Eigenvalues in falling order, sign-fixed eigenvectors, rank; values that are rounding are lifted off zero."""
    values, vectors = (engine.eigenpairs if engine else eigenpairs)(gram, n_pairs)
    floor = max(SMALLEST_EIGENVALUE * values[-1], 1e-200)  # above 0 even where all rows are equal
    return np.maximum(values[::-1], floor), fix_signs(vectors[:, ::-1]), int(np.sum(values > floor))


def target_rows(kernel: Any, targets: Targets, sizes: tuple[int, ...], *pairs: Any) -> Any:
    """Y of one block, (n, P)."""
    total = kernel @ targets.kernel_weights - targets.offset
    start = 0
    for size, positions, weights in zip(sizes, pairs[::2], pairs[1::2], strict=True):
        total += spread_to_rows(positions, weights, targets.graph_weights[start : start + size])
        start += size
    return total
