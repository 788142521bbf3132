"""Missing and distrusted views replaced by what the trusted ones predict.

The coordinates of all views together are taken as one Gaussian (mean mu, covariance C, learned from trusted rows). What
the trusted views t say about the doubted ones h is the conditional mean, read off the precision P = C^-1 for any set of
views:

    E[x_h | x_t] = -(P_hh)^-1 P_ht x_t,        x_h <- share x_h + (1 - share) E[x_h | x_t]

The share is 1 for a view that is believed: an item whose views are all believed is not touched.

A prediction is shorter than what it stands for, and an item made of predictions would lie near the middle, near to all
others. So a repaired item is drawn out to the length that a whole one is expected to have, over the views that count:
E |x|^2 = |x_t|^2 + |E[x_h | x_t]|^2 + tr (P_hh)^-1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace, device

from quorumhash.checks import check_shape, require
from quorumhash.engines.threads import run_together
from quorumhash.tensors import beside, on_host

FloatArray = npt.NDArray[np.float64]

BELIEVED = 0.5  # a posterior from here on, and a view is left as it is
SURE = 0.95  # a posterior from which on a view is taken for right, or for wrong
ALIKE, UNLIKE = 0.5, 0.25  # of the best view's trust: doubted much like it, and far more
HARDLY = 0.1  # less than believed, by this much of BELIEVED: what holds beside no believed view holds in full
RIDGE = 0.03  # of the mean variance
RIDGES = (0.01, 0.1, 1.0)  # the same, tried for a new view: few rows need more
LINKED = 5.0
ROUNDS = 4  # of expectation and maximisation
MOST_SETS = 64  # of doubted views, for these rounds: each is a system of its own
MOST_KEPT = 64  # sets of views whose predictors a model keeps
MOST_EXACT = 52  # powers of two whose sums a float64 holds exactly


@dataclass(frozen=True, eq=False)  # one is itself and no other: predictions are kept by it
class RepairModel:
    """Mean (q,) of the joined coordinates, one factor per view, where views begin, and the precision (q, q)."""

    mean: FloatArray
    factors: FloatArray  # (M,) after them every view has mean square 1 over its trusted rows
    edges: tuple[int, ...]  # M + 1
    precision: FloatArray


_predictors: WeakKeyDictionary[RepairModel, dict[tuple[bytes, str], tuple[Any, Any]]] = WeakKeyDictionary()


def learn_repair(coordinates: Sequence[Any], trust: FloatArray) -> RepairModel:
    """Learn the Gaussian from a sample: coordinates (s, k_m) per view and their trust (s, M)."""
    edges = tuple(int(edge) for edge in np.cumsum([0] + [part.shape[1] for part in coordinates]))
    joined = array_namespace(coordinates[0]).concat(list(coordinates), axis=1)
    weights = np.maximum(trust, 1e-9)
    columns = np.repeat(np.arange(len(coordinates)), np.diff(edges))
    spread = beside(weights, joined)[:, columns]
    mean = on_host((spread * joined).sum(0)) / weights.sum(0)[columns]
    joined -= beside(mean, joined)
    squares = np.add.reduceat(on_host((spread * joined**2).sum(0)), edges[:-1]) / weights.sum(0)
    factors = 1.0 / np.sqrt(np.where(squares > 0, squares, 1.0))
    joined *= beside(factors[columns], joined)
    weighted = spread  # in its place: these are the largest matrices here
    weighted *= joined
    pairs = on_host(weighted.T @ weighted) / (weights.T @ weights)[columns][:, columns]
    values, vectors = np.linalg.eigh((pairs + pairs.T) / 2)  # pairwise weights may leave it indefinite
    values = values.clip(0.0, None)
    precision = (vectors / (values + RIDGE * max(float(values.mean()), 1e-300))) @ vectors.T
    return _most_likely(RepairModel(mean, factors, edges, precision), joined, trust >= BELIEVED)


def _most_likely(model: RepairModel, joined: Any, believed: npt.NDArray[np.bool_]) -> RepairModel:
    """The Gaussian nearer to the likeliest, given what is believed of joined rows (s, q): a few rounds after the pairs.

    Covariances of pairs do not fit together, as each was measured on rows of its own. A round (expectation, then
    maximisation) puts conditional means where a view is not believed, adds what they leave open, (P_hh)^-1, and moves
    the mean: what is missing may lie elsewhere than what is seen.
    Rows of the rarer sets of views are left out; where that would be most of them, pairs have the last word.
    """
    whole = believed.all(axis=1)
    places = np.flatnonzero(~whole & believed.any(axis=1))
    rows, kept = (joined[beside(chosen, joined)] for chosen in (places, np.flatnonzero(whole)))
    sets = sorted(rows_alike(beside(~believed[places], joined)), key=lambda alike: -len(alike[0]))
    for at, _ in sets[MOST_SETS:]:
        rows[at] = 0.0  # no part of any sum
    n_rows = len(kept) + sum(len(at) for at, _ in sets[:MOST_SETS])
    if not sets or n_rows < (len(kept) + len(rows)) / 2:
        return model
    settled, settled_sum, columns = on_host(kept.T @ kept), on_host(kept.sum(0)), np.diff(model.edges)
    mean = np.zeros(len(settled))

    def filled(alike: tuple[Any, npt.NDArray[np.bool_]]) -> tuple[Any, Any]:
        at, hidden = alike
        h, t = (np.flatnonzero(part.repeat(columns)) for part in (hidden, ~hidden))
        left_open = np.linalg.inv(model.precision[np.ix_(h, h)])
        told = left_open @ model.precision[np.ix_(h, t)]
        block, start = np.ix_(h, h), mean[h] + told @ mean[t]
        h, t, told, start = beside((h, t, told, start), rows)
        rows[at[:, None], h] = start - rows[at[:, None], t] @ told.T
        return block, len(at) * left_open

    for _ in range(ROUNDS):
        total = settled.copy()
        for block, left_open in run_together(filled, sets[:MOST_SETS], rows=rows):
            total[block] += left_open
        mean = (settled_sum + on_host(rows.sum(0))) / n_rows
        covariance = (total + on_host(rows.T @ rows)) / n_rows - np.outer(mean, mean)
        floor = RIDGE * max(float(np.trace(covariance)) / len(covariance), 1e-300)
        precision = np.linalg.inv(covariance + floor * np.eye(len(covariance)))
        model = replace(model, precision=(precision + precision.T) / 2)
    return replace(model, mean=model.mean + mean / model.factors.repeat(columns))


def extend_repair(model: RepairModel, joined: FloatArray, coordinates: FloatArray, weights: FloatArray) -> RepairModel:
    """The Gaussian with one more view, which says what it says through the others: x_new = B x + noise of covariance R.

    What the views so far predict of each other does not change: with the new view integrated out it is the same model.
    `joined` (s, q) are repaired rows, `coordinates` (s, k) those of the new view, `weights` (s,) the trust in it. R is
    measured on rows that B was not learned from, and so is the ridge.
    """
    total = max(float(weights.sum()), 1e-300)
    mean = weights @ coordinates / total
    square = float(weights @ ((coordinates - mean) ** 2).sum(axis=1)) / total
    factor = 1.0 / np.sqrt(square) if square > 0 else 1.0
    new = (coordinates - mean) * factor
    tried = [(ridge, _held_out(joined, new, weights, ridge)) for ridge in RIDGES]
    ridge, residuals = min(tried, key=lambda one: float(weights @ (one[1] ** 2).sum(axis=1)))
    noise = (residuals * weights[:, None]).T @ residuals / total
    noise += RIDGE * max(float(np.trace(noise)) / len(noise), 1e-12) * np.eye(len(noise))
    told, certainty = _ridge(joined, new, weights, ridge).T, np.linalg.inv(noise)
    precision = np.block(
        [[model.precision + told.T @ certainty @ told, -told.T @ certainty], [-certainty @ told, certainty]]
    )
    return RepairModel(
        np.concatenate([model.mean, mean]),
        np.append(model.factors, factor),
        (*model.edges, model.edges[-1] + coordinates.shape[1]),
        (precision + precision.T) / 2,
    )


def _held_out(rows: FloatArray, target: FloatArray, weights: FloatArray, ridge: float) -> FloatArray:
    """Residuals of every row by what was learned from the other half of the rows."""
    residuals = np.empty_like(target)
    halves = np.arange(len(rows)) % 2 == 0
    for half in (halves, ~halves):
        residuals[half] = target[half] - rows[half] @ _ridge(rows[~half], target[~half], weights[~half], ridge)
    return residuals


def _ridge(rows: FloatArray, target: FloatArray, weights: FloatArray, ridge: float) -> FloatArray:
    gram = (rows * weights[:, None]).T @ rows
    floor = ridge * max(float(np.trace(gram)) / len(gram), 1e-300)
    return np.asarray(np.linalg.solve(gram + floor * np.eye(len(gram)), (rows * weights[:, None]).T @ target))


def shares_kept(trust: Any, limits: Any = 1.0) -> Any:
    """How much of its own values each view keeps, (n, M): all from BELIEVED on, less below, and no more than its limit.

    Where nothing is believed (two sources that contradict each other lose their trust together), the best view stays as
    it is, and so do views doubted much like it: nothing says which is wrong, and half of either is worse than both as
    they are. Views doubted far more are what is wrong, and keep what they would keep beside a believed one.
    Limits are shares of the best view that is left.
    """
    xp = array_namespace(trust)
    shares = (trust / BELIEVED).clip(0.0, 1.0) * (limits > 0)
    best = xp.max(shares, axis=1, keepdims=True)
    alike = ((shares / best.clip(1e-300, None) - UNLIKE) / (ALIKE - UNLIKE)).clip(0.0, 1.0)
    kept = (shares + ((1.0 - best) / HARDLY).clip(0.0, 1.0) * (1.0 - shares) * alike) * limits
    return kept / xp.max(kept, axis=1, keepdims=True).clip(1e-300, None)


def repair_rows(model: RepairModel, shares: Any, *coordinates: Any, worth: Any = None) -> Any:
    """Joined coordinates (n, q) of one block, centred and scaled; views with a share below 1 repaired by the others.

    With the `worth` (M,) of views an item that is repaired is as long over those that count as a whole one.
    """
    joined = joined_rows(model, *coordinates)
    for rows, doubted in rows_alike(shares < 1.0):
        if doubted.any():
            repaired = _repaired(model, doubted, shares[rows], joined[rows])
            joined[rows] = repaired if worth is None else _drawn_out(model, doubted, shares[rows], repaired, worth)
    return joined


def joined_rows(model: RepairModel, *coordinates: Any) -> Any:
    """Coordinates of all views side by side (n, q), centred and scaled."""
    views = [slice(start, stop) for start, stop in zip(model.edges[:-1], model.edges[1:], strict=True)]
    scaled = zip(coordinates, views, strict=True)
    return array_namespace(coordinates[0]).concat(
        [(part - model.mean[v]) * model.factors[m] for m, (part, v) in enumerate(scaled)], axis=1
    )


def rows_alike(flags: Any) -> Iterator[tuple[Any, npt.NDArray[np.bool_]]]:
    """Positions of the rows whose flags (n, M) are the same, and those flags (M,) on the host, for every set of them.

    Values of a block are looked at twice, whatever the number of rows: a device must come to rest for each look.
    """
    xp, n_views = array_namespace(flags), flags.shape[1]
    marks = 2.0 ** np.arange(n_views) if n_views <= MOST_EXACT else np.random.default_rng(0).random(n_views)
    pattern = xp.astype(flags, xp.float64) @ xp.asarray(marks, device=device(flags))  # sums tell sets apart
    order = xp.argsort(pattern)
    counts = on_host(xp.unique_counts(pattern)[1])
    stops = np.cumsum(counts)
    starts = stops - counts
    sets = on_host(flags[order[xp.asarray(starts, device=device(flags))]])
    for start, stop, views in zip(starts.tolist(), stops.tolist(), sets, strict=True):
        yield order[start:stop], views


def _repaired(model: RepairModel, doubted: npt.NDArray[np.bool_], shares: Any, given: Any) -> Any:
    """Rows (n, q) that doubt the same views (M,), those mixed with their conditional mean."""
    xp = array_namespace(given)
    hidden, predicted = predicted_views(model, doubted, given)
    owners = np.repeat(np.arange(len(doubted)), np.diff(model.edges))[doubted.repeat(np.diff(model.edges))]
    share = shares[:, xp.asarray(owners, device=device(given))]
    given[:, hidden] = share * given[:, hidden] + (1.0 - share) * predicted
    return given


def _drawn_out(model: RepairModel, doubted: npt.NDArray[np.bool_], shares: Any, repaired: Any, worth: Any) -> Any:
    """Rows (n, q) that doubt the same views (M,), as long over the views that count as they are expected to be."""
    xp, place = array_namespace(repaired), device(repaired)
    squared = xp.asarray(worth, device=place) ** 2
    owners = np.arange(len(doubted)).repeat(np.diff(model.edges))
    squares = (repaired**2) @ squared[xp.asarray(owners, device=place)]
    missing = (1.0 - shares) @ (squared * _predictor(model, doubted, repaired)[1])
    return repaired * xp.sqrt(1.0 + missing / xp.where(squares > 0, squares, xp.inf))[:, None]


def predicted_views(model: RepairModel, hidden: npt.NDArray[np.bool_], given: Any) -> tuple[Any, Any]:
    """Columns of the hidden views (M,), and what the others of joined rows (n, q) predict of them."""
    xp = array_namespace(given)
    is_hidden = np.repeat(hidden, np.diff(model.edges))
    h, t = (xp.asarray(np.flatnonzero(part), device=device(given)) for part in (is_hidden, ~is_hidden))
    return h, -(given[:, t] @ _predictor(model, hidden, given)[0].T)


def _predictor(model: RepairModel, hidden: npt.NDArray[np.bool_], rows: Any) -> tuple[Any, Any]:
    """(P_hh)^-1 P_ht of a set of hidden views (M,), and per view the variance (M,) that this leaves open.

    One small system for a set of views, however many rows; a model is asked for the same sets block after block.
    """
    kept, key = _predictors.setdefault(model, {}), (hidden.tobytes(), str(device(rows)))
    found = kept.get(key)
    if found is None:
        xp, owners = array_namespace(rows), np.arange(len(hidden)).repeat(np.diff(model.edges))
        h, t = (np.flatnonzero(part[owners]) for part in (hidden, ~hidden))
        precision = xp.asarray(model.precision, device=device(rows))
        is_owner = beside(1.0 * (owners[h] == np.arange(len(hidden))[:, None]), rows)
        h, t = (xp.asarray(part, device=device(rows)) for part in (h, t))
        inverse = xp.linalg.inv(precision[h][:, h])
        found = inverse @ precision[h][:, t], is_owner @ xp.linalg.diagonal(inverse)
        if len(kept) < MOST_KEPT:
            kept[key] = found
    return found


def linked_views(model: RepairModel) -> list[list[int]]:
    """Groups of views that tell far more about each other than others do, given all the rest: perhaps of one source.

    Information between two views given the others: -sum of log(1 - r^2) / 2 over their partial canonical correlations
    r, the singular values of P_mm^(-1/2) P_mn P_nn^(-1/2). Linked: more than LINKED times the median pair, and
    more than half of the closest.
    """
    views = [slice(start, stop) for start, stop in zip(model.edges[:-1], model.edges[1:], strict=True)]
    roots = []
    for view in views:
        values, vectors = np.linalg.eigh(model.precision[view, view])
        roots.append((vectors / np.sqrt(values)) @ vectors.T)
    pairs = [(m, n) for m in range(len(views)) for n in range(m)]
    if len(pairs) < 3:
        return []
    told = np.empty(len(pairs))
    for i, (a, b) in enumerate(pairs):
        r = np.linalg.svd(roots[a] @ model.precision[views[a], views[b]] @ roots[b], compute_uv=False)
        told[i] = -0.5 * np.log1p(-(np.minimum(r, 1.0 - 1e-9) ** 2)).sum()
    groups = [{m} for m in range(len(views))]
    strong = told > max(LINKED * float(np.median(told)), told.max() / 2)
    for pair in [pair for pair, is_strong in zip(pairs, strong, strict=True) if is_strong]:
        joined = set.union(*(group for group in groups if group & set(pair)))
        groups = [group for group in groups if not group & joined] + [joined]
    return sorted(sorted(group) for group in groups if len(group) > 1)


def check_repair(model: Any, widths: Sequence[int]) -> None:
    """Refuse a model that does not fit views of so many coordinates."""
    require(isinstance(model, RepairModel) and list(model.edges) == np.cumsum([0, *widths]).tolist())
    check_shape(model.mean, (sum(widths),))
    check_shape(model.factors, (len(widths),))
    check_shape(model.precision, (sum(widths), sum(widths)))
