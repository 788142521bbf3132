"""Lloyd's k-means from random rows, for several sets of points at once and on all cores.

scikit-learn's sums depend on the number of its threads. Here rows are shared out where they look for their centre, and
columns where they are summed: one thread and many give the same centres.

X (n, d) points less their mean, C (k, d) centres
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.engines.threads import side_by_side, threads_wanted
from quorumhash.progress import stage

FloatMatrix = npt.NDArray[np.float32]
FloatArray = npt.NDArray[np.float64]
Labels = npt.NDArray[np.intp]

CHUNK, COLUMNS = 256, 64  # rows that are assigned together, columns that are summed together
WORTH_A_THREAD = 2e7  # multiplications
MOST_THREADS = 32  # more wait for each other at every step
SETTLED = 1e-4  # of the mean variance of a column: where centres move less, all together, they stay


@dataclass
class _Course:
    """One set of points on its way."""

    points: FloatMatrix  # X
    columns: list[FloatMatrix]  # the same, some columns at a time
    centres: FloatMatrix  # C
    mean: FloatArray
    least_move: float
    labels: Labels
    is_settled: bool = False

    def __post_init__(self) -> None:
        self.move_to(self.centres)

    def move_to(self, centres: FloatMatrix) -> None:
        """Set C, and what distances are made of: -2 C^T, and |c|^2."""
        self.centres, self.factors = centres, (-2.0 * centres).T
        self.lengths = np.einsum("ij,ij->i", centres, centres)


def lloyd(jobs: Sequence[tuple[FloatMatrix, int, int]], max_iter: int) -> list[FloatMatrix]:
    """Centres (k, d) of each of several jobs (points (n, d), k, seed), n above k; the steps of scikit-learn's KMeans.

    >>> points = np.array([[0.0, 0.0], [0.0, 1.0], [9.0, 0.0], [9.0, 1.0]], dtype=np.float32)
    >>> np.sort(lloyd([(points, 2, 3)], 10)[0], axis=0)
    array([[0. , 0.5],
           [9. , 0.5]], dtype=float32)
    """
    with stage("k-means", max_iter) as done, side_by_side(MOST_THREADS) as together:
        courses = together(lambda job: _begun(*job), jobs)
        for _ in range(max_iter):
            moving = [course for course in courses if not course.is_settled]
            nearest = _nearest_centres(moving, together)
            for course, near, sums in zip(moving, nearest, _sums(moving, nearest, together), strict=True):
                _step(course, *near, sums)
            done(1)
    return [np.asarray(course.centres + course.mean, dtype=np.float32) for course in courses]


def _begun(points: FloatMatrix, n_centres: int, seed: int) -> _Course:
    mean = points.mean(axis=0, dtype=np.float64)
    centred = points - mean.astype(np.float32)
    n = len(points)
    random = np.random.RandomState(seed % 2**32)  # numbers that count up from a seed may leave its range
    first = random.choice(n, n_centres, replace=False, p=np.full(n, 1.0 / n))  # as scikit-learn
    least_move = SETTLED * float(np.einsum("ij,ij->", centred, centred)) / centred.size  # of columns without a mean
    columns = [np.ascontiguousarray(centred[:, at : at + COLUMNS]) for at in range(0, centred.shape[1], COLUMNS)]
    return _Course(centred, columns, centred[first], mean, least_move, np.full(len(points), -1))


def _nearest_centres(courses: Sequence[_Course], together: Any) -> list[tuple[Labels, FloatMatrix]]:
    """Of every set its rows' nearest centres (n,), and squared distances to them less |x|^2 (n,)."""
    starts = [range(0, len(course.points), CHUNK) for course in courses]
    chunks = [(c, slice(at, at + CHUNK)) for c, of in zip(courses, starts, strict=True) for at in of]
    found = iter(_in_shares(together, _assigned, chunks, float(sum(c.points.size * len(c.centres) for c in courses))))
    parts = [[next(found) for _ in of] for of in starts]
    return [(np.concatenate([x for x, _ in of]), np.concatenate([x for _, x in of])) for of in parts]


def _sums(courses: Sequence[_Course], nearest: Sequence[tuple[Labels, FloatMatrix]], together: Any) -> list[FloatArray]:
    """Of every set the sums (k, d) of the rows nearest to each centre."""
    chosen = [_chosen(course, labels) for course, (labels, _) in zip(courses, nearest, strict=True)]
    jobs = [(of, part) for course, of in zip(courses, chosen, strict=True) for part in course.columns]
    found = iter(_in_shares(together, _summed, jobs, 8.0 * sum(course.points.size for course in courses)))
    return [np.concatenate([next(found) for _ in course.columns], axis=1) for course in courses]


def _in_shares(together: Any, function: Any, jobs: Sequence[Any], work: float) -> list[Any]:
    """A function of all jobs, a run of them to a thread."""
    n_shares = max(1, min(threads_wanted(), len(jobs), int(work / WORTH_A_THREAD)))
    edges = np.linspace(0, len(jobs), n_shares + 1).astype(int)
    shares = [jobs[a:b] for a, b in pairwise(edges)]
    if n_shares == 1:
        return [function(*one) for one in jobs]
    return [said for share in together(lambda share: [function(*one) for one in share], shares) for said in share]


def _assigned(course: _Course, rows: slice) -> tuple[Labels, FloatMatrix]:
    """Of a chunk of rows: their nearest centres (n,), and squared distances less |x|^2 (n,)."""
    squares = course.points[rows] @ course.factors
    squares += course.lengths
    labels = squares.argmin(axis=1)
    return labels, squares[np.arange(len(labels)), labels]


def _chosen(course: _Course, labels: Labels) -> Any:
    """1 where a row is nearest to a centre, (k, n), sparse."""
    from scipy.sparse import csr_array

    ones = np.ones(len(labels), dtype=np.float32)
    return csr_array((ones, labels, np.arange(len(labels) + 1)), shape=(len(labels), len(course.centres))).T


def _summed(chosen: Any, columns: FloatMatrix) -> FloatArray:
    """Sums (k, c) of some columns (n, c) of the rows nearest to each centre."""
    return np.asarray(chosen @ columns, dtype=np.float64)


def _step(course: _Course, labels: Labels, nearness: FloatMatrix, sums: FloatArray) -> None:
    """New centres: the means of the rows nearest to each; where no row is nearest, the farthest row of all."""
    counts = np.bincount(labels, minlength=len(sums)).astype(np.float64)
    (empty,) = np.nonzero(counts == 0)
    if len(empty):
        points = course.points
        distances = nearness + np.einsum("ij,ij->i", points, points)
        for centre, row in zip(empty, np.argsort(-distances, kind="stable"), strict=False):
            sums[labels[row]] -= points[row]
            counts[labels[row]] -= 1
            sums[centre], counts[centre] = points[row], 1
    new = (sums / np.maximum(counts, 1.0)[:, None]).astype(np.float32)
    move = float(((new - course.centres).astype(np.float64) ** 2).sum())
    course.is_settled = bool((labels == course.labels).all()) or move <= course.least_move
    course.labels = labels
    course.move_to(new)
