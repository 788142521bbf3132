"""Textbook forms of the paper's problem with N x N matrices: what the fast forms are compared with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import quorumhash as qh
from quorumhash.engines.threads import ThreadsEngine
from quorumhash.similarity import nearest_landmarks, squared_distances
from quorumhash.targets import Graph, normalised_graph


@dataclass
class Toy:
    """A small problem with both forms of every object: dense arrays, and rows in an engine."""

    engine: ThreadsEngine
    kernel: np.ndarray  # K (N, R)
    kernels: list[np.ndarray]
    dense_graphs: list[np.ndarray]  # S_m (N, N)
    graphs: list[Graph]


def make_toy(n=120, n_views=2, n_kernel=15, n_graph=12, k=3, seed=0, block_rows=37) -> Toy:
    rng = np.random.default_rng(seed)
    engine = ThreadsEngine(n_threads=2, block_rows=block_rows)
    centres = rng.standard_normal((5, 6)) * 2
    kernels, dense_graphs, graphs = [], [], []
    groups = rng.integers(0, 5, n)
    for _ in range(n_views):
        X = centres[groups] + rng.standard_normal((n, 6)) * 0.7
        Z = X[rng.choice(n, n_kernel, replace=False)]
        U = X[rng.choice(n, n_graph, replace=False)]
        kernels.append(np.exp(-squared_distances(X, Z) / 12.0))
        near = nearest_landmarks(squared_distances(X, U), k, 4.0)
        F = np.zeros((n, n_graph))
        F[np.arange(n)[:, None], near.positions] = near.weights
        dense_graphs.append(F @ np.diag(1 / F.sum(0)) @ F.T)
        graphs.append(normalised_graph(engine.put(near.positions), engine.put(near.weights), n_graph, engine))
    return Toy(engine, np.mean(kernels, axis=0), kernels, dense_graphs, graphs)


def dense_a(toy: Toy, gamma: float, beta: float, delta: float) -> np.ndarray:
    """A with tr(Y^T A Y) = objective after Y_m, W and b are eliminated (SPEC 1.3 a-d), by plain inverses."""
    n, r = toy.kernel.shape
    identity = np.eye(n)
    A = np.zeros((n, n))
    for S in toy.dense_graphs:
        L = identity - S
        A += gamma * identity - gamma**2 * np.linalg.inv(2 * L + gamma * identity)
    H = identity - np.ones((n, n)) / n
    K = H @ toy.kernel
    return A + beta * (H - K @ np.linalg.inv(K.T @ K + delta * np.eye(r)) @ K.T)


def full_objective(toy: Toy, Y, Ys, W, b, gamma: float, beta: float, delta: float) -> float:
    """The objective before anything is eliminated; the graph term as the double sum the paper prints."""
    total = 0.0
    for S, Y_m in zip(toy.dense_graphs, Ys, strict=True):
        distances = ((Y_m[:, None, :] - Y_m[None, :, :]) ** 2).sum(-1)
        total += (S * distances).sum() + gamma * ((Y - Y_m) ** 2).sum()
    return total + beta * (((toy.kernel @ W + b - Y) ** 2).sum() + delta * (W**2).sum())


def best_view_targets(toy: Toy, Y, gamma: float) -> list[np.ndarray]:
    n = len(Y)
    return [gamma * np.linalg.solve(2 * (np.eye(n) - S) + gamma * np.eye(n), Y) for S in toy.dense_graphs]


def consensus_objective(kernel, kernels, alpha: float, lambda_: float, norm: str = "l21") -> float:
    errors = [K - kernel for K in kernels]
    sizes = [np.linalg.norm(E, axis=1).sum() if norm == "l21" else np.abs(E).sum() for E in errors]
    return alpha * np.linalg.svd(kernel, compute_uv=False).sum() + lambda_ * sum(sizes)


def five_groups(n: int) -> qh.Views:
    """Five groups in three views of 4, 6 and 3 features, the last one noisy."""
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 5, n)
    widths, noise = {"a": 4, "b": 6, "c": 3}, {"a": 0.5, "b": 0.8, "c": 2.0}
    return qh.Views(
        {
            name: 2 * rng.standard_normal((5, width))[groups] + noise[name] * rng.standard_normal((n, width))
            for name, width in widths.items()
        }
    )
