"""Which views see the same neighbourhoods: overlap of nearest neighbours between views, and the worth it gives a view.

No labels are needed: two good views agree on who is near whom far more often than chance, a weak one agrees with none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.engines.threads import run_together
from quorumhash.progress import stage
from quorumhash.similarity import squared_distances
from quorumhash.tensors import on_host

FloatArray = npt.NDArray[np.float64]

CHUNK = 256  # rows compared with all at a time
TIE_BREAK = 4  # times the rounding of a distance: closer than this, chance decides who is nearer


def neighbourhood_lift(
    sample: Mapping[str, npt.NDArray[Any]],
    present: npt.NDArray[np.bool_],
    n_neighbors: int = 20,
    limit: int = 2000,
    seed: int = 0,
) -> FloatArray:
    """How much more often than by chance two views name the same nearest neighbours, (M, M); 1 is chance.

    For each pair of views, over at most `limit` rows that have both: the mean share of common items among the
    n_neighbors nearest of a row in either view, the row itself left out, divided by the share that chance gives.
    Rows at equal distance are taken in a random order, another one in each view, so that copies of a row (zeros, a
    placeholder) bring no agreement of their own. The diagonal, and pairs with fewer than three common rows, are 1.

    Parameters
    ----------
    sample : mapping of str to array (s, d)
        Rows of every view.
    present : bool array (s, M)
        Which rows have which view.
    n_neighbors, limit, seed : int
        Neighbours compared (at most half of the common rows), rows used, seed of sample and ties.

    Examples
    --------
    >>> points = np.random.default_rng(0).standard_normal((200, 2))
    >>> noise = np.random.default_rng(1).standard_normal((200, 2))
    >>> both = np.ones((200, 3), dtype=bool)
    >>> neighbourhood_lift({"a": points, "b": 2 * points, "noise": noise}, both).round()
    array([[ 1., 10.,  1.],
           [10.,  1.,  1.],
           [ 1.,  1.,  1.]])
    """
    parts = list(sample.values())
    lift = np.ones((len(parts), len(parts)))
    pairs = [(m, n) for m in range(len(parts)) for n in range(m)]
    common = [_common_rows(present[:, m] & present[:, n], limit, seed) for m, n in pairs]
    looks = {}  # views without gaps meet every other on the same rows, and are looked at once
    for pair, rows in zip(pairs, common, strict=True):
        for v in pair:
            if len(rows) >= 3 and (v, rows.tobytes()) not in looks:
                looks[v, rows.tobytes()] = _look(on_host(parts[v][rows]), n_neighbors, [seed, v])
    jobs = [(look, start) for look in looks.values() for start in range(0, len(look.rows), CHUNK)]
    with stage("comparing views", len(jobs)) as done:
        run_together(lambda job: _mark_nearest(*job), jobs, done)
    for (m, n), rows in zip(pairs, common, strict=True):
        if len(rows) >= 3:
            own, other = looks[m, rows.tobytes()], looks[n, rows.tobytes()]
            shared = np.count_nonzero(own.is_near & other.is_near) / (own.n_near * len(rows))
            lift[m, n] = lift[n, m] = shared / (own.n_near / (len(rows) - 1))
    return lift


def _common_rows(both: npt.NDArray[np.bool_], limit: int, seed: int) -> npt.NDArray[np.intp]:
    common = np.flatnonzero(both)
    if len(common) > limit:
        common = np.sort(np.random.default_rng(seed).choice(common, size=limit, replace=False))
    return common


@dataclass(frozen=True)
class _Look:
    """Some rows (s, d) of a view, their squared lengths (s,), and which rows (s, s) are the nearest of each."""

    rows: npt.NDArray[Any]
    sizes: FloatArray
    is_near: npt.NDArray[np.bool_]
    n_near: int
    seed: list[int]


def _look(rows: npt.NDArray[Any], n_neighbors: int, seed: list[int]) -> _Look:
    rows = rows.astype(np.result_type(rows.dtype, np.float32), copy=False)
    sizes = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    is_near = np.zeros((len(rows), len(rows)), dtype=bool)
    return _Look(rows, sizes, is_near, min(n_neighbors, len(rows) // 2), seed)


def _mark_nearest(look: _Look, start: int) -> None:
    """The nearest rows of a chunk of rows, itself left out; ties fall at random."""
    rows, own = look.rows, np.arange(start, min(start + CHUNK, len(look.rows)))
    squares = look.sizes[own, None] + look.sizes  # in place: the pages of new matrices cost more than the sums
    squares *= TIE_BREAK * np.finfo(rows.dtype).eps
    squares += np.finfo(np.float64).tiny
    squares *= np.random.default_rng([*look.seed, start]).random(squares.shape)
    squares += squared_distances(rows[own], rows)
    squares[own - start, own] = np.inf
    look.is_near[own[:, None], np.argpartition(squares, look.n_near - 1, axis=1)[:, : look.n_near]] = True


def view_worth(lift: FloatArray) -> FloatArray:
    """The worth of whole views, (M,), length 1: leading eigenvector of max(lift - 1, 0); equal where no views agree."""
    excess = excess_lift(lift)
    if not excess.any():
        return np.full(len(lift), len(lift) ** -0.5)
    return np.asarray(np.abs(np.linalg.eigh(excess)[1][:, -1]))


def excess_lift(lift: FloatArray) -> FloatArray:
    """Agreement beyond chance, max(lift - 1, 0), (M, M); 0 on the diagonal."""
    excess = np.maximum(lift - 1.0, 0.0)
    np.fill_diagonal(excess, 0.0)
    return excess
