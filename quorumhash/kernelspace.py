"""The views seen from landmarks: scales, landmarks and bandwidths learned once, kernels and graphs for any rows.

ViewKernel   what the kernel of one view is made of; landmarks aligned across views
ViewGraph    what the landmark graph of one view is made of; landmarks of its own
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace

from quorumhash.checks import check_scaling, check_shape, is_number, require
from quorumhash.engines import Engine, Rows
from quorumhash.engines.threads import run_together
from quorumhash.landmarks import FloatMatrix, all_landmarks, graph_landmarks, refuse_rare_views, sample_scaled
from quorumhash.querykernel import fill_absent, weighted_mean
from quorumhash.scaling import Scaling, learn_scalings, put_views, scaled
from quorumhash.similarity import (
    graph_bandwidth,
    kernel_bandwidth,
    nearest_landmarks,
    rbf_kernel,
    squared_distances,
)
from quorumhash.targets import Graph, normalised_graph
from quorumhash.tensors import beside
from quorumhash.views import Views


@dataclass(frozen=True)
class ViewKernel:
    """Scale, shared landmarks (R, d) and bandwidth of one view."""

    scaling: Scaling
    landmarks: npt.NDArray[np.float32]
    bandwidth: float


@dataclass(frozen=True)
class ViewGraph:
    """Graph landmarks (L, d), bandwidth t and neighbours k of one view."""

    landmarks: npt.NDArray[np.float32]
    bandwidth: float
    n_neighbors: int


@dataclass(frozen=True)
class KernelSpace:
    """The kernels and graphs of all views, by name, and the bandwidth of the joined views' own graph."""

    kernels: dict[str, ViewKernel]
    graphs: dict[str, ViewGraph]
    joined_bandwidth: float


def learn_kernel_space(
    views: Views,
    engine: Engine,
    seed: int,
    *,
    n_kernel_landmarks: int,
    n_graph_landmarks: int,
    n_neighbors: int,
    landmarks: str,
    bandwidth: str,
) -> KernelSpace:
    """Learn scales on all rows; landmarks and bandwidths on a seeded sample of them. No graph landmarks, no graphs."""
    scalings = learn_scalings(views, engine)
    sample, present = sample_scaled(views, scalings, engine, seed)
    refuse_rare_views(views, present)
    sizes = n_kernel_landmarks, n_graph_landmarks
    shared, own = all_landmarks(sample, present, sizes, landmarks, seed)
    names = list(views)

    there = [engine.at_hand.beside(part) for part in sample.values()]

    def learned(m: int) -> tuple[Any, ViewKernel, ViewGraph | None]:
        squares, here = squared_distances(there[m], beside(shared[names[m]], there[m])), np.flatnonzero(present[:, m])
        kernel = ViewKernel(scalings[names[m]], shared[names[m]], kernel_bandwidth(squares[here], bandwidth))
        graph = _graph_of(own[m], there[m][here], n_neighbors) if n_graph_landmarks else None
        return squares, kernel, graph

    squares, kernels, graphs = zip(*run_together(learned, range(len(names)), rows=there[0]), strict=True)
    joined = graph_bandwidth(sum(squares[1:], start=squares[0]), n_neighbors)
    own_graphs = {name: graph for name, graph in zip(names, graphs, strict=True) if graph is not None}
    return KernelSpace(dict(zip(names, kernels, strict=True)), own_graphs, joined)


def learn_graph(points: FloatMatrix, n_landmarks: int, n_neighbors: int, seed: int) -> ViewGraph:
    """Landmarks and bandwidth of a graph over these points (s, d)."""
    landmarks = graph_landmarks(points, np.ones(len(points), dtype=bool), n_landmarks, seed)
    return _graph_of(landmarks, points, n_neighbors)


def _graph_of(landmarks: FloatMatrix, points: Any, n_neighbors: int) -> ViewGraph:
    squares = squared_distances(points, beside(landmarks, points))
    return ViewGraph(landmarks, graph_bandwidth(squares, n_neighbors), n_neighbors)


def landmark_graphs(
    views: Views, scalings: Mapping[str, Scaling], engine: Engine, seed: int, *, n_landmarks: int, n_neighbors: int
) -> list[Graph]:
    """The normalised landmark graph of every view over all rows; an absent view of an item has no neighbours."""
    sample, present = sample_scaled(views, scalings, engine, seed)
    refuse_rare_views(views, present)
    everywhere = put_presence(views, engine)
    graphs = []
    for m, (name, rows) in enumerate(zip(views, put_views(views, engine), strict=True)):
        graph = learn_graph(sample[name][present[:, m]], n_landmarks, n_neighbors, seed)
        positions, weights = engine.map_rows(_scaled_neighbours, scalings[name], graph, m, everywhere, rows)
        graphs.append(normalised_graph(positions, weights, len(graph.landmarks), engine))
    return graphs


def _scaled_neighbours(scaling: Scaling, graph: ViewGraph, view: int, present: Any, block: Any) -> Any:
    return _neighbours(scaled(block, scaling), graph, present[:, view])


def _neighbours(features: Any, graph: ViewGraph, present: Any) -> Any:
    """Positions and weights (n, k) of the nearest landmarks; weights 0 where the view is absent."""
    near = nearest_landmarks(squared_distances(features, graph.landmarks), graph.n_neighbors, graph.bandwidth)
    return near.positions, array_namespace(present).where(present[:, None], near.weights, 0.0)


def kernels_and_graphs(views: Views, space: KernelSpace, engine: Engine) -> tuple[list[Rows], list[Graph]]:
    """Kernel (N, R) float32 and normalised graph of every view, one pass over each view's features.

    An absent view of an item has no neighbours in its graph, and in its kernel the mean of the item's other views.
    """
    present = put_presence(views, engine)
    kernels, graphs = [], []
    for m, (name, rows) in enumerate(zip(views, put_views(views, engine), strict=True)):
        kernel, positions, weights = engine.map_rows(
            _kernel_and_graph, space.kernels[name], space.graphs[name], m, present, rows
        )
        kernels.append(kernel)
        graphs.append(normalised_graph(positions, weights, len(space.graphs[name].landmarks), engine))
    if any(not views.present(name).all() for name in views):
        kernels = list(engine.map_rows(fill_absent, present, *kernels, reuse=kernels))
    return kernels, graphs


def _kernel_and_graph(kernel: ViewKernel, graph: ViewGraph, view: int, present: Any, block: Any) -> Any:
    features = scaled(block, kernel.scaling)
    positions, weights = _neighbours(features, graph, present[:, view])
    return rbf_kernel(squared_distances(features, kernel.landmarks), kernel.bandwidth), positions, weights


def landmark_distances(kernels: tuple[ViewKernel, ...], *blocks: Any) -> list[Any]:
    """Squared distances (n, R) of one block to the shared landmarks per view; None for an absent view."""
    return [
        None if block is None else squared_distances(scaled(block, kernel.scaling), kernel.landmarks)
        for kernel, block in zip(kernels, blocks, strict=True)
    ]


def kernels_of_distances(kernels: tuple[ViewKernel, ...], squares: list[Any]) -> list[Any]:
    """Kernels (n, R) per view from squared distances; None for an absent view."""
    return [
        None if part is None else rbf_kernel(part, kernel.bandwidth)
        for part, kernel in zip(squares, kernels, strict=True)
    ]


def mean_kernel_rows(kernels: tuple[ViewKernel, ...], present: Any, *blocks: Any) -> Any:
    """The mean (n, R) of the kernels of the views an item has, float64, for one block."""
    return weighted_mean(present, *kernels_of_distances(kernels, landmark_distances(kernels, *blocks)))


def mean_kernel_scores(kernels: tuple[ViewKernel, ...], projection: Any, bias: Any, present: Any, *blocks: Any) -> Any:
    """The mean kernel of one block times a projection (R, p), plus a bias (p,)."""
    return mean_kernel_rows(kernels, present, *blocks) @ projection + bias


def kernel_scores(
    views: Views,
    kernels: dict[str, ViewKernel],
    projection: npt.NDArray[np.float64],
    bias: npt.NDArray[np.float64],
    engine: Engine,
) -> Rows:
    """Scores (n, p) of hash functions that are linear in the mean kernel."""
    walked = walked_views(views, engine)
    scores: Rows = engine.map_rows(mean_kernel_scores, tuple(kernels.values()), projection, bias, *walked)
    return scores


def put_presence(views: Views, engine: Engine) -> Rows:
    """Rows (n_views,) of which views every item has."""
    return engine.put(np.stack([views.present(name) for name in views], axis=1))


def walked_views(views: Views, engine: Engine) -> list[Rows | None]:
    """Presence of the views and their rows: what a block function receives as `present, *blocks`."""
    return [put_presence(views, engine), *put_views(views, engine)]


def check_kernel(kernel: Any, n_landmarks: int, width: int) -> None:
    """Refuse what is no kernel to this number of landmarks in a view of this width."""
    require(isinstance(kernel, ViewKernel))
    check_scaling(kernel.scaling, width)
    check_shape(kernel.landmarks, (n_landmarks, width))
    require(is_number(kernel.bandwidth) and kernel.bandwidth > 0)


def check_kernels(kernels: Any, n_landmarks: int, widths: Mapping[str, int]) -> None:
    """Refuse kernels that are not those of these views, in their order."""
    require(isinstance(kernels, dict) and list(kernels) == list(widths))
    for name, width in widths.items():
        check_kernel(kernels[name], n_landmarks, width)


def landmark_matrix(space_kernels: tuple[ViewKernel, ...]) -> list[FloatMatrix]:
    """Kernels (R, R) of the shared landmarks among themselves, one per view."""
    return [rbf_kernel(squared_distances(k.landmarks, k.landmarks), k.bandwidth) for k in space_kernels]
