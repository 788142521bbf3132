"""Lloyd's k-means from random rows, for several sets of points at once and on all cores.

scikit-learn's has one thread to a set here, because with more its sums depend on the number of threads. The sums of
fixed chunks of rows, added in their order, do not: one thread and many give the same centres.

X (n, d) points less their mean, C (k, d) centres
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from quorumhash.engines.threads import run_together, threads_wanted
from quorumhash.progress import stage

FloatMatrix = npt.NDArray[np.float32]
FloatArray = npt.NDArray[np.float64]
Labels = npt.NDArray[np.intp]

CHUNK = 512  # rows
WORTH_A_THREAD = 2e7  # multiplications
SETTLED = 1e-4  # of the mean variance of a column: where centres move less, all together, they stay


@dataclass
class _Course:
    """One set of points on its way."""

    points: FloatMatrix  # X
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
    courses = [_begun(*job) for job in jobs]
    with stage("k-means", max_iter) as done:
        for _ in range(max_iter):
            moving = [course for course in courses if not course.is_settled]
            chunks = [(c, slice(at, at + CHUNK)) for c in moving for at in range(0, len(c.points), CHUNK)]
            said = iter(_in_shares(chunks))
            for course in moving:
                _step(course, [next(said) for _ in range(0, len(course.points), CHUNK)])
            done(1)
    return [np.asarray(course.centres + course.mean, dtype=np.float32) for course in courses]


def _begun(points: FloatMatrix, n_centres: int, seed: int) -> _Course:
    mean = points.mean(axis=0, dtype=np.float64)
    centred = points - mean.astype(np.float32)
    n = len(points)
    first = np.random.RandomState(seed).choice(n, n_centres, replace=False, p=np.full(n, 1.0 / n))  # as scikit-learn
    least_move = SETTLED * float(np.einsum("ij,ij->", centred, centred)) / centred.size  # of columns without a mean
    return _Course(centred, centred[first], mean, least_move, np.full(len(points), -1))


Said = tuple[Labels, FloatMatrix, FloatMatrix]


def _in_shares(chunks: Sequence[tuple[_Course, slice]]) -> list[Said]:
    """`_assigned` of all chunks, a run of them to a thread."""
    work = sum(CHUNK * course.centres.size for course, _ in chunks)
    n_shares = max(1, min(threads_wanted(), len(chunks), int(work / WORTH_A_THREAD)))
    edges = np.linspace(0, len(chunks), n_shares + 1).astype(int)
    shares = [chunks[a:b] for a, b in pairwise(edges)]
    return [said for share in run_together(lambda share: [_assigned(*one) for one in share], shares) for said in share]


def _assigned(course: _Course, rows: slice) -> Said:
    """Of a chunk of rows: their nearest centres (n,), squared distances less |x|^2 (n,), sums by centre (k, d)."""
    from scipy.sparse import csr_array

    points, centres = course.points[rows], course.centres
    squares = points @ course.factors
    squares += course.lengths
    labels = squares.argmin(axis=1)
    ones = np.ones(len(points), dtype=np.float32)
    chosen = csr_array((ones, labels, np.arange(len(points) + 1)), shape=(len(points), len(centres)))
    return labels, squares[np.arange(len(points)), labels], chosen.T @ points


def _step(course: _Course, said: Sequence[Said]) -> None:
    """New centres: the means of the rows nearest to each; where no row is nearest, the farthest row of all."""
    labels = np.concatenate([part[0] for part in said])
    sums = np.zeros(course.centres.shape)
    for _, _, part in said:
        sums += part
    counts = np.bincount(labels, minlength=len(sums)).astype(np.float64)
    (empty,) = np.nonzero(counts == 0)
    if len(empty):
        points = course.points
        distances = np.concatenate([part[1] for part in said]) + np.einsum("ij,ij->i", points, points)
        for centre, row in zip(empty, np.argsort(-distances, kind="stable"), strict=False):
            sums[labels[row]] -= points[row]
            counts[labels[row]] -= 1
            sums[centre], counts[centre] = points[row], 1
    new = (sums / np.maximum(counts, 1.0)[:, None]).astype(np.float32)
    move = float(((new - course.centres).astype(np.float64) ** 2).sum())
    course.is_settled = bool((labels == course.labels).all()) or move <= course.least_move
    course.labels = labels
    course.move_to(new)
