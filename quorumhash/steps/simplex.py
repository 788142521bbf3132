"""Weights of views: non-negative, summing to 1, and the best for a quadratic objective."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

RIDGE, SLACK = 1e-12, 1e-10  # relative: of a singular quadratic, and of the conditions of optimality
MOVES_PER_WEIGHT = 20


def minimise_on_simplex(quadratic: FloatArray, linear: FloatArray, start: FloatArray) -> FloatArray:
    """The minimum of a^T Q a + h^T a over a >= 0, sum a = 1, by an active set: never above the start, exact at the end.

    Q (m, m) is positive semi-definite, h (m,). On a face of the simplex the minimum is a linear system; a weight that
    would become negative leaves the face, one whose gradient is lower than that of the others enters it.

    >>> minimise_on_simplex(np.eye(3), np.array([0.0, 0.0, 4.0]), np.full(3, 1 / 3)).round(6)
    array([0.5, 0.5, 0. ])
    """
    Q, h, a = (quadratic + quadratic.T) / 2, np.asarray(linear, dtype=np.float64), np.array(start, dtype=np.float64)
    scale = max(np.abs(Q).max(), np.abs(h).max())
    if scale == 0:
        return a
    Q, h = Q / scale + RIDGE * np.eye(len(a)), h / scale
    face = a > 0
    for _ in range(MOVES_PER_WEIGHT * len(a)):
        goal = _minimum_on_face(Q, h, face)
        leaving = face & (goal < 0)
        if leaving.any():
            steps = np.where(leaving, a / np.where(leaving, a - goal, 1.0), np.inf)
            first = int(np.argmin(steps))
            a = a + steps[first] * (goal - a)
            face[first] = False
            a = np.where(face, np.maximum(a, 0.0), 0.0)
            continue
        a = goal
        gradient = 2 * Q @ a + h
        lowest = int(np.argmin(gradient))
        if face[lowest] or gradient[lowest] >= gradient[face].mean() - SLACK:
            break
        face[lowest] = True
    return np.asarray(a / a.sum(), dtype=np.float64)


def _minimum_on_face(Q: FloatArray, h: FloatArray, face: npt.NDArray[np.bool_]) -> FloatArray:
    """The minimum with sum 1 and zeros outside the face, negative weights allowed: one system with its multiplier."""
    size = int(face.sum())
    system = np.ones((size + 1, size + 1))
    system[:size, :size] = 2 * Q[np.ix_(face, face)]
    system[size, size] = 0.0
    solved = np.linalg.solve(system, np.append(-h[face], 1.0))
    goal = np.zeros(len(h))
    goal[face] = solved[:size]
    return goal
