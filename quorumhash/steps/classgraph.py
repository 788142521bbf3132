"""A landmark graph that links items of one class only: the nearest among those that share a label.

Every class has landmarks of its own, and a row is linked to the nearest landmarks of its classes; a row without a
label has no neighbours. Without labels all rows are one class, and the graph is the usual one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace

from quorumhash.errors import RefusedError
from quorumhash.kernelspace import learn_graph
from quorumhash.landmarks import FloatMatrix
from quorumhash.similarity import Neighbours, nearest_landmarks, squared_distances


@dataclass(frozen=True)
class ClassGraph:
    """Landmarks (L, d), the class of each (L,), one bandwidth; labels are positions (n, 1) or memberships (n, C)."""

    landmarks: FloatMatrix
    classes: npt.NDArray[np.int64]
    bandwidth: float
    n_neighbors: int
    is_membership: bool


def label_rows(labels: npt.NDArray[Any] | None, n_rows: int) -> npt.NDArray[Any]:
    """Labels as the graph takes them: memberships (n, C) of 0 and 1, or class positions (n, 1), -1 for unlabelled."""
    if labels is None:
        return np.zeros((n_rows, 1), dtype=np.int64)
    if labels.ndim == 2:
        return (labels > 0).astype(np.int8)
    names, positions = np.unique(labels, return_inverse=True)
    if names.dtype.kind == "i":
        positions = np.where(labels < 0, -1, positions)
    return positions.astype(np.int64)[:, None]


def learn_class_graph(
    points: FloatMatrix, labels: npt.NDArray[Any], n_landmarks: int, n_neighbors: int, seed: int
) -> ClassGraph:
    """Landmarks shared out evenly among the classes of a sample (s, d), at least one for each."""
    is_membership = labels.dtype == np.int8
    n_classes = labels.shape[1] if is_membership else int(labels.max()) + 1
    members = [labels[:, c] > 0 if is_membership else labels[:, 0] == c for c in range(n_classes)]
    found = [c for c in range(n_classes) if members[c].any()]
    if not found:
        raise RefusedError("none of the sampled rows has a label: give labels, or learn without them.")
    each = max(1, n_landmarks // len(found))
    graphs = [learn_graph(points[members[c]], each, n_neighbors, seed) for c in found]
    return ClassGraph(
        np.concatenate([graph.landmarks for graph in graphs]),
        np.repeat(np.array(found), [len(graph.landmarks) for graph in graphs]),
        float(np.average([graph.bandwidth for graph in graphs], weights=[members[c].sum() for c in found])),
        n_neighbors,
        is_membership,
    )


def class_neighbours(graph: ClassGraph, labels: Any, features: Any) -> Neighbours:
    """The nearest landmarks of every row among those of its classes; weights 0 where it has none."""
    xp = array_namespace(features)
    allowed = labels[:, graph.classes] > 0 if graph.is_membership else labels == graph.classes[None, :]
    is_linked = xp.any(allowed, axis=1)[:, None]
    squares = xp.where(allowed, squared_distances(features, graph.landmarks), xp.inf)
    near = nearest_landmarks(xp.where(is_linked, squares, 0.0), graph.n_neighbors, graph.bandwidth)
    return Neighbours(near.positions, xp.where(is_linked, near.weights, 0.0))
