"""Which points stand for all: shared kernel landmarks and per-view graph landmarks.

Kernel landmarks are aligned across views (row r of every view's landmarks is the same point), or the columns of the
kernels could not be compared (docs/method.md, E20). Graph landmarks may differ from view to view. Both are chosen once,
on the host, on a seeded sample, so that every engine sees the same ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.engines import Engine
from quorumhash.engines.threads import run_together
from quorumhash.errors import ParameterError, RefusedError
from quorumhash.lloyd import lloyd
from quorumhash.scaling import Scaling, scaled
from quorumhash.tensors import beside
from quorumhash.views import Views

FloatMatrix = npt.NDArray[np.float32]

LANDMARK_RULES = ("kmeans", "rows")
SAMPLE_ROWS = 10_000  # k-means and bandwidths see no more rows than this
ROWS_PER_LANDMARK = 50
LLOYD_STEPS = 10


def default_n_landmarks(n_rows: int) -> int:
    """How many landmarks serve n rows, where the user does not say: one for ten rows, 300 at most, 500 from 60,000 on.

    300 and 500 are the paper's figures for 30,000 and 100,000 rows. Few rows need fewer: with one landmark for one
    or two rows a damaged row becomes its own landmark and is believed (in prototypes 1,000 landmarks for 1,500 rows
    undid all robustness to swaps), so a landmark must stand for at least ten rows.

    >>> [default_n_landmarks(n) for n in (3, 100, 1_500, 30_000, 100_000)]
    [2, 10, 150, 300, 500]
    """
    return max(min(2, n_rows), min(n_rows // 10, 300 if n_rows < 60_000 else 500))


def rows_for_landmarks(rows: Any, seen: npt.NDArray[np.bool_], n_landmarks: int) -> Any:
    """Of rows (s, q) those that were `seen` (s,), if every landmark can stand for ten of them; else all.

    The others were predicted: they lie nearer to the middle than what is seen, and would draw landmarks there.
    """
    places = np.flatnonzero(seen)
    return rows[beside(places, rows)] if 10 * n_landmarks <= len(places) < len(rows) else rows


def landmarks_for_bits(n_landmarks: int | None, n_bits: int, n_rows: int) -> int:
    """How many landmarks: as asked for, or by the number of rows and at least two for a bit; never more than rows."""
    return min(n_landmarks or max(default_n_landmarks(n_rows), 2 * n_bits), n_rows)


def landmarks_of_joined_graph(n_landmarks: int | None, n_bits: int, n_rows: int) -> int:
    """How many landmarks a graph of the joined views has where it alone makes the bits.

    From 1,000 rows on one for three, up to 400: more than elsewhere, as tuning found (benchmarks/results/tuning.json).
    Of fewer rows so many would let the graph fall into parts, and items of the other parts would have no bit.

    >>> [landmarks_of_joined_graph(None, 32, n) for n in (50, 600, 1_500, 100_000)]
    [50, 64, 400, 500]
    """
    dense = min(n_rows // 3, 400) if n_rows >= 1_000 else 0
    return landmarks_for_bits(n_landmarks or max(landmarks_for_bits(None, n_bits, n_rows), dense), n_bits, n_rows)


def sample_positions(n_rows: int, engine: Engine, seed: int, limit: int = SAMPLE_ROWS) -> npt.NDArray[np.intp]:
    """Positions of a seeded sample of rows, rising; all of them where they are no more than the limit."""
    if n_rows <= limit:
        return np.arange(n_rows)
    return np.asarray(np.sort(engine.random(seed).choice(n_rows, size=limit, replace=False)))


def sample_scaled(
    views: Views, scalings: Mapping[str, Scaling], engine: Engine, seed: int, limit: int = SAMPLE_ROWS
) -> tuple[dict[str, FloatMatrix], npt.NDArray[np.bool_]]:
    """A seeded sample of rows, scaled: name -> (s, d) float32, and the presence of its rows (s, n_views)."""
    rows, near = sample_positions(len(views), engine, seed, limit), engine.at_hand
    taken = {name: near.put(engine.take_rows(engine.put(views.matrix(name)), rows)) for name in views}
    sample = {name: near.get(near.map_rows(scaled, part, scalings[name])) for name, part in taken.items()}
    return sample, np.stack([views.present(name)[rows] for name in views], axis=1)


def joined_sample(views: Views, scalings: Mapping[str, Scaling], engine: Engine, seed: int) -> npt.NDArray[np.float64]:
    """The sampled rows with their views side by side, (s, sum of d)."""
    sample, _ = sample_scaled(views, scalings, engine, seed)
    return np.concatenate(list(sample.values()), axis=1).astype(np.float64)


def refuse_rare_views(views: Views, present: npt.NDArray[np.bool_]) -> None:
    """Refuse a view that hardly any sampled row has: it gives no landmarks."""
    for m, name in enumerate(views):
        if present[:, m].sum() < 2:
            raise RefusedError(
                f"view {name!r} is there in {int(views.present(name).sum())} of {len(views)} rows, too few to learn "
                "from: leave it out of fit."
            )


def shared_landmarks(
    sample: Mapping[str, FloatMatrix], present: npt.NDArray[np.bool_], n_landmarks: int, rule: str, seed: int
) -> dict[str, FloatMatrix]:
    """R points with coordinates in every view: name -> (R, d).

    "kmeans": centres of k-means over the views side by side. "rows": training rows. Rows that lack a view are passed
    over as long as enough others remain.
    """
    return all_landmarks(sample, present, (n_landmarks, 0), rule, seed)[0]


def all_landmarks(
    sample: Mapping[str, FloatMatrix], present: npt.NDArray[np.bool_], sizes: tuple[int, int], rule: str, seed: int
) -> tuple[dict[str, FloatMatrix], list[FloatMatrix]]:
    """Shared landmarks, and the graph landmarks of every view, at once; `sizes` = (R, L), L = 0: no graphs."""
    if rule not in LANDMARK_RULES:
        raise ParameterError(f"landmarks must be one of {', '.join(LANDMARK_RULES)}, got {rule!r}.")
    n_shared, n_graph = sizes
    complete = present.all(axis=1)
    usable = complete if complete.sum() >= n_shared else np.ones(len(present), dtype=bool)
    joined = np.concatenate([part[usable] for part in sample.values()], axis=1)
    own = [part[present[:, m]] for m, part in enumerate(sample.values())] if n_graph else []
    joined, *own = run_together(distinct_rows, [joined, *own])
    jobs = [(joined, n_shared, seed)] if rule == "kmeans" else []
    found = k_means_together([*jobs, *((points, n_graph, seed) for points in own)])
    if rule == "kmeans":
        points = found.pop(0)
    else:
        points = joined[np.sort(np.random.default_rng(seed).permutation(len(joined))[:n_shared])]
    edges = np.cumsum([0] + [part.shape[1] for part in sample.values()])
    return {name: points[:, edges[i] : edges[i + 1]].copy() for i, name in enumerate(sample)}, found


def graph_landmarks(part: FloatMatrix, present: npt.NDArray[np.bool_], n_landmarks: int, seed: int) -> FloatMatrix:
    """L points of one view, (L, d): k-means over the sampled rows that have the view."""
    return k_means(distinct_rows(part[present]), n_landmarks, seed)


def k_means(points: FloatMatrix, n_centres: int, seed: int) -> FloatMatrix:
    """Centres of a few Lloyd steps from random rows, (min(n_centres, n), d); the points must be distinct."""
    return k_means_together([(points, n_centres, seed)])[0]


def k_means_together(jobs: Sequence[tuple[FloatMatrix, int, int]]) -> list[FloatMatrix]:
    """`k_means` of several sets of points: `lloyd` of some of their rows, or all of them where they are few."""
    few = [_some_rows(*job) for job in jobs]
    found = iter(lloyd([job for job in few if len(job[0]) > job[1]], LLOYD_STEPS))
    return [distinct_rows(next(found)) if len(points) > n else points for points, n, _ in few]


def _some_rows(points: FloatMatrix, n_centres: int, seed: int) -> tuple[FloatMatrix, int, int]:
    limit = ROWS_PER_LANDMARK * n_centres
    if len(points) > limit:
        points = points[np.sort(np.random.default_rng(seed).choice(len(points), size=limit, replace=False))]
    return points, n_centres, seed


def distinct_rows(points: FloatMatrix) -> FloatMatrix:
    """The first of every set of equal rows, in order; rows are told apart by a random projection, not by sorting them.

    >>> distinct_rows(np.array([[1, 2], [0, 0], [1, 2]], dtype=np.float32))
    array([[1., 2.],
           [0., 0.]], dtype=float32)
    """
    probe = np.random.default_rng(0).standard_normal(points.shape[1])
    _, first = np.unique(points @ probe, return_index=True)
    rows: FloatMatrix = points[np.sort(first)]
    return rows
