"""The default solver: repaired coordinates -> smoothed along landmark graphs -> few dimensions, in order of variance.

    Z (n, q)   repaired coordinates of the weighted views, side by side
    F (n, L)   ties to landmarks: one graph per weighted view and one of all together, k landmarks a row and graph
    A = [Z, F] everything an item is described by;  H = A^T A: one pass over rows gives all that follows
    T (L, q)   what landmarks say of an item: averages of Z over the items tied to them, averaged again
    Y = (1 - g) Z + g F T,  g the dial: 0 keeps distances (neighbours), 1 brings items of a kind together (groups)

The dimensions are the principal components of Y with their variances kept, as maps of A: Y is never stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace, device

from quorumhash.checks import check_shape, is_number, require
from quorumhash.classes import MOST_KEPT, TOLD, Told, class_table, learn_guess
from quorumhash.engines import Engine
from quorumhash.judging import Judge
from quorumhash.kernelspace import ViewGraph
from quorumhash.landmarks import distinct_rows, k_means_together, rows_for_landmarks
from quorumhash.proximal import fix_signs
from quorumhash.similarity import (
    collect_at_landmarks,
    dense_graph,
    graph_bandwidth,
    nearest_landmarks,
    spread_to_rows,
    squared_distances,
)
from quorumhash.teachers import Teachers
from quorumhash.tensors import on_host
from quorumhash.weighting import Weighting, counted_rows, graph_spans, weighted_rows

FloatArray = npt.NDArray[np.float64]

SMALLEST_VARIANCE = 1e-10  # of the largest: less is rounding


@dataclass(frozen=True)
class Encoder:
    """What turns repaired coordinates into dimensions: rows @ linear + ties @ tables - offset."""

    weighting: Weighting
    graphs: tuple[ViewGraph, ...]
    linear: FloatArray  # (q, p)
    tables: tuple[FloatArray, ...]  # (L, p) of every graph
    offset: FloatArray  # (p,)


@dataclass(frozen=True)
class Dial:
    """g, and how the graphs are made."""

    smoothing: float
    n_steps: int
    n_landmarks: int
    n_neighbors: int


@dataclass(frozen=True)
class Moments:
    """Sums over rows: of A (a,), and A^T A (a, a); q columns of A are Z."""

    n_rows: int
    n_columns: int
    sums: FloatArray
    gram: FloatArray

    def variance(self, maps: FloatArray) -> float:
        """Of all columns of A @ maps together."""
        mean = self.sums @ maps / self.n_rows
        return max(0.0, float(np.einsum("ij,ij->", maps, self.gram @ maps)) / self.n_rows - float(mean @ mean))


def learn_encoder(
    weighting: Weighting, teachers: Teachers, dial: Dial, engine: Engine, seed: int, n_dimensions: int
) -> Encoder:
    """Learn graphs from the sample, then dimensions from all items that there are."""
    rows, items, labels = weighted_rows(weighting, teachers.sample), teachers.items, teachers.labels
    is_graphed = dial.smoothing > 0 or labels is not None
    graphs = learn_graphs(rows, teachers.believed, weighting, dial, seed) if is_graphed else ()
    if items is None:
        n_rows, (sums, gram) = len(rows), engine.sum_rows(moment_rows, weighting, graphs, engine.put(rows))
    else:
        n_rows = items.present.n_rows
        sums, gram = engine.sum_rows(item_moment_rows, weighting, graphs, *items.everything)
    moments = Moments(n_rows, rows.shape[1], sums, gram)
    smoothed = _smoothed_maps(moments, graphs, dial.n_steps)
    if labels is None:
        maps = _mixed(smoothed, dial.smoothing)
    else:
        at_landmarks = engine.sum_rows(label_rows, weighting, graphs, labels.classes, *labels.items.everything)
        maps = _told_maps(moments, at_landmarks, smoothed, graphs, weighting, labels.told, dial)
    directions, offset = principal_map(maps, sums, gram, n_rows, n_dimensions)
    cuts = np.cumsum([len(graph.landmarks) for graph in graphs])[:-1]
    tables = tuple(np.split(directions[rows.shape[1] :], cuts)) if graphs else ()
    return Encoder(weighting, graphs, directions[: rows.shape[1]], tables, offset)


def learn_graphs(rows: Any, believed: Any, weighting: Weighting, dial: Dial, seed: int) -> tuple[ViewGraph, ...]:
    """One landmark graph per span, from weighted rows of the sample, (s, q); `believed` (s, v) says which views are."""
    graphs, spans = [], graph_spans(weighting)
    seen = [*believed.T, np.ones(len(rows), dtype=bool)][: len(spans)]  # kinds of items may lack a view altogether
    parts = [
        on_host(rows_for_landmarks(rows[:, span], which, dial.n_landmarks)).astype(np.float32)
        for span, which in zip(spans, seen, strict=True)
    ]
    found = k_means_together([(distinct_rows(part), dial.n_landmarks, seed + i) for i, part in enumerate(parts)])
    for points, landmarks in zip(parts, found, strict=True):
        bandwidth = graph_bandwidth(squared_distances(points, landmarks), dial.n_neighbors)
        graphs.append(ViewGraph(landmarks, bandwidth, dial.n_neighbors))
    return tuple(graphs)


def tie_rows(graphs: Sequence[ViewGraph], weighting: Weighting, rows: Any) -> list[tuple[Any, Any]]:
    """Positions and weights (n, k) of every graph for one block of weighted rows."""
    xp = array_namespace(rows)
    ties = []
    for graph, span in zip(graphs, graph_spans(weighting), strict=False):
        squares = squared_distances(xp.astype(rows[:, span], xp.float32), graph.landmarks)
        near = nearest_landmarks(squares, graph.n_neighbors, graph.bandwidth)
        ties.append((near.positions, near.weights))
    return ties


def moment_rows(weighting: Weighting, graphs: tuple[ViewGraph, ...], rows: Any) -> tuple[Any, Any]:
    """Of one block of weighted rows: the sum of A (a,), and H = A^T A (a, a)."""
    xp = array_namespace(rows)
    ties = tie_rows(graphs, weighting, rows)
    sizes = [graph.landmarks.shape[0] for graph in graphs]
    everything = xp.concat([rows] + [dense_graph(*tie, size) for tie, size in zip(ties, sizes, strict=True)], axis=1)
    gram = rows.T @ rows
    if ties:  # of Z^T F the transpose is there already: F^T is sparse, and Z^T would not be
        lower = xp.concat(
            [collect_at_landmarks(*tie, everything, size) for tie, size in zip(ties, sizes, strict=True)], axis=0
        )
        gram = xp.concat([xp.concat([gram, lower[:, : rows.shape[1]].T], axis=1), lower], axis=0)
    return xp.sum(everything, axis=0), gram


def item_moment_rows(
    weighting: Weighting, graphs: tuple[ViewGraph, ...], judge: Judge, limits: Any, present: Any, *blocks: Any
) -> tuple[Any, Any]:
    """The same of one block of items, repaired first."""
    return moment_rows(weighting, graphs, counted_rows(weighting, judge, limits, present, *blocks))


def label_rows(
    weighting: Weighting, graphs: tuple[ViewGraph, ...], labels: Any, judge: Judge, limits: Any, present: Any,
    *blocks: Any,
) -> Any:  # fmt: skip
    """F^T [labels, is labelled] (L, c + 1) of one block."""
    xp = array_namespace(present)
    (shown,) = xp.nonzero(xp.any(labels != 0, axis=1))
    parts = [None if block is None else block[shown] for block in blocks]
    rows = counted_rows(weighting, judge, limits, present[shown], *parts)
    labels = xp.astype(labels[shown], rows.dtype)
    labels = xp.concat([labels, xp.ones((shown.shape[0], 1), dtype=rows.dtype, device=device(rows))], axis=1)
    ties = tie_rows(graphs, weighting, rows)
    sizes = [graph.landmarks.shape[0] for graph in graphs]
    collected = [collect_at_landmarks(*tie, labels, size) for tie, size in zip(ties, sizes, strict=True)]
    return xp.concat(collected, axis=0)


def _shares(graphs: Sequence[ViewGraph]) -> FloatArray:
    """v (L,): the share of each landmark's graph in the mean over graphs."""
    emphasis = np.array([1.0] * (len(graphs) - 1) + [max(len(graphs) - 1.0, 1.0)])  # all views together: half of it
    return np.repeat(emphasis / emphasis.sum(), [len(graph.landmarks) for graph in graphs])


def _smoothed_maps(moments: Moments, graphs: Sequence[ViewGraph], n_steps: int) -> FloatArray:
    """The coordinates as their landmarks say, F T, as a map of A (a, q); 0 where there are no graphs."""
    q = moments.n_columns
    maps = np.zeros((len(moments.gram), q))
    if graphs:
        maps[q:] = smoothed_table(moments.gram, moments.sums[q:], q, _shares(graphs), n_steps)
    return maps


def _mixed(smoothed: FloatArray, smoothing: float) -> FloatArray:
    """Y = (1 - g) Z + g F T as a map of A."""
    q = smoothed.shape[1]
    maps = smoothing * smoothed
    maps[:q] = (1.0 - smoothing) * np.eye(q)
    return maps


def _told_maps(
    moments: Moments, at_landmarks: FloatArray, smoothed: FloatArray, graphs: Sequence[ViewGraph],
    weighting: Weighting, told: Told, dial: Dial,
) -> FloatArray:  # fmt: skip
    """Y with what labels say (classes.py): coordinates smoothed less, and the classes guessed near and far."""
    q = moments.n_columns
    ties = tie_rows(graphs, weighting, weighted_rows(weighting, told.repaired))
    tables = np.split(smoothed[q:], np.cumsum([len(graph.landmarks) for graph in graphs])[:-1])
    rows = sum(spread_to_rows(*tie, table) for tie, table in zip(ties, tables, strict=True))
    guess = learn_guess(np.asarray(rows), told.classes, moments.variance(smoothed))
    near = np.zeros((len(smoothed), told.classes.shape[1]))
    near[q:] = _shares(graphs)[:, None] * class_table(moments.gram[q:, q:], at_landmarks)
    maps = _mixed(smoothed, dial.smoothing * (1.0 - min(guess.correlation, MOST_KEPT)))
    share = TOLD * guess.correlation**2 * moments.variance(maps) / 2
    both = [part * np.sqrt(share / max(moments.variance(part), 1e-300)) for part in (near, smoothed @ guess.slopes)]
    return np.hstack([maps, *both])


def smoothed_table(
    gram: FloatArray, totals: FloatArray, n_columns: int, shares: FloatArray, n_steps: int
) -> FloatArray:
    """v T (L, q): every step averages Y = F v T (Z at first) over the items tied to each landmark.

    `gram` is H, `totals` F^T 1 (L,), `shares` v (L,) the share of each landmark's graph in the mean over graphs.
    """
    inverse = 1.0 / np.maximum(totals, 1e-12)
    table = inverse[:, None] * gram[n_columns:, :n_columns]
    for _ in range(n_steps - 1):
        table = inverse[:, None] * (gram[n_columns:, n_columns:] @ (shares[:, None] * table))
    return shares[:, None] * table


def principal_map(
    maps: FloatArray, sums: FloatArray, gram: FloatArray, n_rows: int, n_dimensions: int
) -> tuple[FloatArray, FloatArray]:
    """The principal components of Y = A maps as a map of A (a, p), falling in variance, and their offset (p,)."""
    mean = sums @ maps / n_rows
    covariance = maps.T @ gram @ maps / n_rows - np.outer(mean, mean)
    variances, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    rank = int(np.sum(variances > SMALLEST_VARIANCE * max(variances[-1], 1e-300)))
    directions = fix_signs(vectors[:, ::-1][:, : max(1, min(rank, n_dimensions))])
    return maps @ directions, mean @ directions


def embed_rows(judge: Judge, encoder: Encoder, limits: Any, present: Any, *blocks: Any) -> Any:
    """Dimensions (n, p) of one block, centred, in order of variance."""
    return _placed(encoder, counted_rows(encoder.weighting, judge, limits, present, *blocks))


def placed_rows(encoder: Encoder, repaired: Any) -> Any:
    """Dimensions (n, p) of repaired rows (n, all q)."""
    return _placed(encoder, weighted_rows(encoder.weighting, repaired))


def _placed(encoder: Encoder, rows: Any) -> Any:
    total = rows @ encoder.linear - encoder.offset
    for tie, table in zip(tie_rows(encoder.graphs, encoder.weighting, rows), encoder.tables, strict=True):
        total = total + spread_to_rows(*tie, table)
    return total


def check_encoder(encoder: Any, judge: Judge) -> None:
    """Refuse an encoder whose parts do not fit each other or this judge."""
    require(isinstance(encoder, Encoder) and isinstance(encoder.weighting, Weighting))
    edges = [list(view) for view in zip(judge.repair.edges[:-1], judge.repair.edges[1:], strict=True)]
    require(encoder.weighting.views and all(list(view) in edges for view in encoder.weighting.views))
    check_shape(encoder.weighting.weights, (len(encoder.weighting.views),))
    spans = graph_spans(encoder.weighting)
    n_columns = spans[-1].stop
    check_shape(encoder.linear, (n_columns, None))
    n_dimensions = encoder.linear.shape[1]
    check_shape(encoder.offset, (n_dimensions,))
    require(len(encoder.graphs) == len(encoder.tables) and len(encoder.graphs) in (0, len(spans)))
    for graph, table, span in zip(encoder.graphs, encoder.tables, spans, strict=False):
        require(isinstance(graph, ViewGraph))
        check_shape(graph.landmarks, (None, span.stop - span.start))
        require(is_number(graph.bandwidth) and graph.bandwidth > 0 and graph.n_neighbors >= 1)
        check_shape(table, (len(graph.landmarks), n_dimensions))


ENCODER_PARTS = (Encoder, Weighting, ViewGraph)
