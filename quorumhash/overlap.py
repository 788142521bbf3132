"""Which views see the same neighbourhoods: overlap of nearest neighbours between views, and the worth it gives a view.

No labels are needed: two good views agree on who is near whom far more often than chance, a weak one agrees with none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.engines.threads import run_together
from quorumhash.progress import counted
from quorumhash.similarity import squared_distances

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
    known: dict[tuple[int, bytes], npt.NDArray[np.bool_]] = {}  # views without gaps meet every other on the same rows
    pairs = [(m, n) for m in range(len(parts)) for n in range(m)]
    for m, n in counted("comparing views", pairs, len(pairs), "pairs"):
        common = np.flatnonzero(present[:, m] & present[:, n])
        if len(common) > limit:
            common = np.sort(np.random.default_rng(seed).choice(common, size=limit, replace=False))
        if len(common) < 3:
            continue
        for v in (m, n):
            if (v, common.tobytes()) not in known:
                known[v, common.tobytes()] = _nearest(parts[v][common], n_neighbors, [seed, v])
        near = known[m, common.tobytes()]
        k = np.count_nonzero(near[0])
        shared = np.count_nonzero(near & known[n, common.tobytes()]) / (k * len(common))
        lift[m, n] = lift[n, m] = shared / (k / (len(common) - 1))
    return lift


def _nearest(rows: npt.NDArray[Any], n_neighbors: int, seed: list[int]) -> npt.NDArray[np.bool_]:
    """Mask (s, s) of the nearest rows of every row, itself left out; ties fall at random."""
    rng, every = np.random.default_rng(seed), np.arange(len(rows))
    rows = rows.astype(np.result_type(rows.dtype, np.float32), copy=False)
    sizes = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    k = min(n_neighbors, len(rows) // 2)
    mask = np.zeros((len(rows), len(rows)), dtype=bool)

    def mark(job: tuple[slice, FloatArray]) -> None:
        some, chance = job
        squares = sizes[some, None] + sizes
        squares *= TIE_BREAK * np.finfo(rows.dtype).eps
        squares += np.finfo(np.float64).tiny
        squares *= chance
        squares += squared_distances(rows[some], rows)
        own = every[some]
        squares[own - some.start, own] = np.inf
        mask[own[:, None], np.argpartition(squares, k - 1, axis=1)[:, :k]] = True

    chunks = [slice(start, min(start + CHUNK, len(rows))) for start in range(0, len(rows), CHUNK)]
    run_together(mark, [(some, rng.random((some.stop - some.start, len(rows)))) for some in chunks])
    return mask


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
