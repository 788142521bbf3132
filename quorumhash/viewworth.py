"""The worth of whole views, without labels: which views form the quorum.

Two good views of the same items agree about who is near whom far more often than chance (overlap.py). Where the views
fall into communities that agree among themselves and hardly with each other (embeddings here, colours there),
no mean of all of them is near to either: the community that agrees most is kept. Where they do not, all views count
alike: a weak view that agrees with the rest a little costs little, and helps when others are damaged.

    A    lift - 1, at least 0, (M, M): agreement beyond chance
    cut  of two sides: A between them / A of the one with all + the same for the other (normalised cut)
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt

from quorumhash.overlap import excess_lift

FloatArray = npt.NDArray[np.float64]

LARGEST_CUT = 0.75  # views that agree all alike have cuts from 1.2 up
FAINTEST = 0.5  # mean agreement a community needs to count as one: less is chance
FAINT = 0.05  # of the best view's mean agreement: less is none
MOST_TRIED = 12  # views up to which every split is tried; beyond, the splits along one eigenvector


def overlap_weights(lift: FloatArray) -> FloatArray:
    """Weights (M,): 1 for the views of the quorum, 0 for the others.

    >>> overlap_weights(np.array([[1, 13, 3, 3], [13, 1, 2, 2], [3, 2, 1, 8], [3, 2, 8, 1.0]]))
    array([1., 1., 0., 0.])
    >>> overlap_weights(np.array([[1, 9, 5], [9, 1, 6], [5, 6, 1.0]]))
    array([1., 1., 1.])
    """
    agreement = excess_lift(lift)
    kept = np.arange(len(lift))
    while len(kept) > 3:
        cut, side = _best_split(agreement[np.ix_(kept, kept)])
        if cut > LARGEST_CUT:
            break
        best = max((kept[side], kept[~side]), key=lambda views: _mean_agreement(agreement, views))
        if _mean_agreement(agreement, best) < FAINTEST:
            break
        kept = best
    if len(kept) > 2:
        means = agreement[np.ix_(kept, kept)].sum(axis=1)
        kept = kept[means >= FAINT * means.max()]
    weights = np.zeros(len(lift))
    weights[kept] = 1.0
    return weights


def _mean_agreement(agreement: FloatArray, views: npt.NDArray[np.intp]) -> float:
    return float(agreement[np.ix_(views, views)].sum() / (len(views) * (len(views) - 1)))


def _best_split(agreement: FloatArray) -> tuple[float, npt.NDArray[np.bool_]]:
    """The smallest normalised cut into two sides of at least two views each, and one of the sides (M,)."""
    n_views = len(agreement)
    if n_views <= MOST_TRIED:
        chosen = [c for size in range(2, n_views // 2 + 1) for c in combinations(range(n_views), size)]
    else:
        degrees = np.maximum(agreement.sum(axis=1), 1e-12)
        second = np.linalg.eigh(agreement / np.sqrt(np.outer(degrees, degrees)))[1][:, -2] / np.sqrt(degrees)
        order = np.argsort(second)
        chosen = [tuple(order[:size]) for size in range(2, n_views - 1)]
    sides = np.zeros((len(chosen), n_views), dtype=bool)
    for row, views in enumerate(chosen):
        sides[row, list(views)] = True
    within = sides.astype(np.float64)
    volumes = np.stack([within @ agreement.sum(axis=1), (1 - within) @ agreement.sum(axis=1)])
    between = np.einsum("ci,ij,cj->c", within, agreement, 1 - within)
    cuts = (between / np.maximum(volumes, 1e-12)).sum(axis=0)
    best = int(np.argmin(cuts))
    return float(cuts[best]), sides[best]
