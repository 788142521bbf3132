"""What is expected of views that may be wrong, over the sets of an item's views that may be the right ones; for audits.

    E[x_m] = sum over sets z of P(z) (x_m where z has m, else E[x_m | x_z]),   P(z) by the belief in each view

E[x_m | x_z] is the prediction of repair.py. No set is empty: not all views of an item can be wrong.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device

from quorumhash.repair import RepairModel, predicted_views, rows_alike

MOST_UNSURE = 6  # views of an item that are taken for right and for wrong by turns, those nearest to 1/2
SMALLEST_WEIGHT = 0.01  # of the likeliest set's: less likely ones are left out


def shares_and_told(model: RepairModel, belief: Any, joined: Any) -> tuple[Any, Any]:
    """The share (n, M) of its own that every view keeps, and what the others say, (n, q), by the share that is lost.

    `belief` (n, M) is 1 where a view is surely right, 0 where nothing of it is to be kept; in every row one is above 0.
    """
    xp = array_namespace(belief)
    shares, told = xp.zeros_like(belief), xp.zeros_like(joined)
    rows, sets, weights = likely_sets(belief)
    for places, is_right in rows_alike(sets):  # all rows with the same set at once: one small system
        at, weight = rows[places], weights[places][:, None]
        shares[at] += weight * xp.asarray(is_right.astype(np.float64), device=device(belief))
        if not is_right.all():
            hidden, predicted = predicted_views(model, ~is_right, joined[at])
            told[at[:, None], hidden] += weight * predicted
    return shares, told


def likely_sets(belief: Any) -> tuple[Any, Any, Any]:
    """Sets of right views: rows (k,), the set (k, M) and its weight (k,); the weights of a row sum to 1.

    Views err independently of each other here, save that not all of an item's can be wrong: of two that contradict each
    other, each is kept by half.
    """
    xp, (n_rows, n_views) = array_namespace(belief), belief.shape
    unsure = (belief > 0) & (belief < 1)
    distance = xp.where(unsure, xp.abs(belief - 0.5), 1.0)
    nearest = xp.argsort(distance, axis=1, stable=True)[:, :MOST_UNSURE]
    places = nearest + n_views * xp.arange(n_rows, device=device(belief))[:, None]  # in the table as one line
    free, chance = (xp.reshape(part, (-1,))[places] for part in (unsure, belief))
    settled = xp.reshape(belief >= 0.5, (-1,))
    settled[places] = settled[places] & ~free
    settled = xp.reshape(settled, (n_rows, n_views))
    choices = np.array(list(itertools.product((False, True), repeat=nearest.shape[1])))
    choices = xp.asarray(choices, device=device(belief))
    weights = xp.ones((n_rows, choices.shape[0]), dtype=belief.dtype, device=device(belief))
    for i in range(choices.shape[1]):
        chosen = choices[:, i][None, :]
        odds = xp.where(chosen, chance[:, i : i + 1], 1.0 - chance[:, i : i + 1])
        weights *= xp.where(free[:, i : i + 1], odds, xp.astype(~chosen, belief.dtype))  # settled: no second choice
    weights *= xp.astype(xp.any(settled, axis=1)[:, None] | xp.any(choices, axis=1), belief.dtype)
    weights = xp.where(weights < SMALLEST_WEIGHT * xp.max(weights, axis=1, keepdims=True), 0.0, weights)
    weights /= xp.sum(weights, axis=1, keepdims=True)
    rows, chosen = xp.nonzero(weights)
    sets = xp.reshape(settled[rows], (-1,))
    places = nearest[rows] + n_views * xp.arange(rows.shape[0], device=device(belief))[:, None]
    sets[places] = sets[places] | choices[chosen]
    return rows, xp.reshape(sets, (-1, n_views)), weights[rows, chosen]
