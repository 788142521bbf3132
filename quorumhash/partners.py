"""Whose is this view? Rows whose other views go with it best, by the same log odds that trust uses.

The vote on view m of row i, taken with the other views of row j in place of its own:

    S(i, j) = sum over views n of other sources of  h_mn w_jn l_mn(i, j)

    l_mn  log odds that the two rows belong together (evidence.py), from variates u of view m and v of view n
    w_jn  trust in view n of row j;  h_mn  the share of n in its source's vote on m

S is linear in what row i brings and in what row j brings, so that all pairs are one matrix product:

    S(i, j) = Q_i . C_j + c_j,   Q_i = [h p u, -h s u^2],   C_j = [w v, w],   c_j = sum of h w (base - s v^2)

(p, s: product and square of the pair's test). Few rows are compared with all. Of many, codes of C are searched in a
HammingIndex, and S is computed for what it finds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace

from quorumhash.codes import pack_bits, scores_to_bits
from quorumhash.copies import MOST_COPIES, few_copies
from quorumhash.engines import Engine
from quorumhash.index.hamming import HammingIndex
from quorumhash.inspection import Inspector
from quorumhash.judging import Judge, signatures_of
from quorumhash.scaling import put_views
from quorumhash.trust import TrustModel
from quorumhash.views import Views

FloatArray = npt.NDArray[np.float64]
Floats = npt.NDArray[np.float32]
Positions = npt.NDArray[np.int64]

N_PARTNERS = 5
EXACT_ROWS = 20_000  # up to so many, every suspicious row is compared with every row
N_VARIATES = 32  # per pair of views beyond that: those that tell most
N_BITS, N_CANDIDATES = 256, 100
BLOCK_ROWS = 65_536
QUERY_ROWS = 512  # compared with all rows in one go
SMALLEST_PRIOR = 1e-3  # that a row waits for a view though its own is believed


@dataclass(frozen=True)
class Matching:
    """The tests of one view against the views of other sources, side by side; D variates of N views."""

    view: int
    others: tuple[int, ...]  # (N,)
    left: tuple[FloatArray, ...]  # (s_m, c) of every pair
    right: tuple[FloatArray, ...]  # (s_n, c)
    left_offset: FloatArray  # (D,)
    right_offset: FloatArray
    product: FloatArray  # (D,) times the share of the pair
    square: FloatArray
    base: FloatArray  # (N,)
    owner: npt.NDArray[np.intp]  # (D,) position in others


@dataclass(frozen=True)
class MatchRows:
    """Q (n, D + N), C (n, D + N) and c (n,) of all rows, for one view."""

    asked: Floats
    offered: Floats
    constant: Floats

    def odds(self, rows: Positions, candidates: Positions) -> Floats:
        """S of rows with candidates, one each or (n, k) of them."""
        given = self.offered[candidates]
        found = np.einsum("nd,n...d->n...", self.asked[rows], given) + self.constant[candidates]
        return np.asarray(found, dtype=np.float32)


def learn_matching(model: TrustModel, view: int, n_rows: int) -> Matching:
    """The tests of one view out of a trust model; of many rows those variates alone that tell most."""
    parts = []
    for pair in model.pairs:
        if view not in (pair.first, pair.second):
            continue
        sides = (pair.left, pair.left_offset), (pair.right, pair.right_offset)
        own, other = sides if pair.first == view else sides[::-1]
        share = float(pair.shares[0 if pair.first == view else 1])
        kept = np.argsort(-pair.product, kind="stable")[: None if n_rows <= EXACT_ROWS else N_VARIATES]
        base = 0.5 * float(np.log1p(2 * pair.square[kept]).sum())  # 1 + 2 s = 1 / (1 - r^2)
        place = pair.second if pair.first == view else pair.first
        parts.append((place, own, other, kept, share, pair.product, pair.square, base))
    kept_of = [part[3] for part in parts]
    return Matching(
        view,
        tuple(part[0] for part in parts),
        tuple(part[1][0][:, part[3]] for part in parts),
        tuple(part[2][0][:, part[3]] for part in parts),
        np.concatenate([part[1][1][part[3]] for part in parts]),
        np.concatenate([part[2][1][part[3]] for part in parts]),
        np.concatenate([part[4] * part[5][part[3]] for part in parts]),
        np.concatenate([part[4] * part[6][part[3]] for part in parts]),
        np.array([part[4] * part[7] for part in parts]),
        np.repeat(np.arange(len(parts)), [len(kept) for kept in kept_of]),
    )


def match_views(views: Views, judge: Judge, matching: Matching, trust: FloatArray, engine: Engine) -> MatchRows:
    """What every row asks and offers; `trust` (n, M) is 0 where a view has no say."""
    rows = put_views(views, engine)
    found = engine.map_rows(_matched_rows, judge, matching, engine.put(trust), *rows)
    return MatchRows(*(engine.get(part) for part in found))


def own_odds(
    views: Views, inspector: Inspector, view: int, matches: MatchRows, trust: FloatArray, engine: Engine
) -> Floats:
    """S(i, i) of every row (n,), by tests that have not seen it; `matches` and `trust` as in match_views."""
    odds = np.empty(len(views), dtype=np.float32)
    for rows in np.array_split(np.arange(len(views)), 1 + len(views) // BLOCK_ROWS):
        odds[rows] = matches.odds(rows, rows)
    for rows, judge in inspector.held_out():
        matching = learn_matching(judge.trust, view, len(views))
        held = match_views(views[rows], judge, matching, trust[rows], engine)
        odds[rows] = held.odds(np.arange(len(rows)), np.arange(len(rows)))
    return odds


def _matched_rows(judge: Judge, matching: Matching, trust: Any, *blocks: Any) -> tuple[Any, Any, Any]:
    xp = array_namespace(trust)
    signatures = signatures_of(judge, trust, *blocks)
    own = signatures[matching.view]
    u = xp.concat([own[:, : part.shape[0]] @ part for part in matching.left], axis=1) - matching.left_offset
    others = [signatures[n][:, : part.shape[0]] @ part for n, part in zip(matching.others, matching.right, strict=True)]
    v = xp.concat(others, axis=1) - matching.right_offset
    sums = xp.astype(xp.asarray(matching.owner)[:, None] == xp.arange(len(matching.others))[None, :], xp.float64)
    w = xp.stack([trust[:, n] for n in matching.others], axis=1)
    asked = xp.concat([u * matching.product, -((u**2 * matching.square) @ sums)], axis=1)
    offered = xp.concat([v * (w @ sums.T), w], axis=1)
    constant = xp.sum(w * (matching.base - (v**2 * matching.square) @ sums), axis=1)
    return xp.astype(asked, xp.float32), xp.astype(offered, xp.float32), xp.astype(constant, xp.float32)


@dataclass(frozen=True)
class Homes:
    """How likely a row waits for a view, before the view is looked at: log prior (n,), and copies (n,) of the view.

    The home of a misplaced view holds something else there, or the same view again: a row that holds another view and
    is believed to be right waits for none. Rows do not hold the same view by chance, but as often as believed ones do.
    """

    log_prior: Floats
    copies: Positions  # rows with the same number hold the same view; -1: no other row holds it
    slope: float  # of the calibrated odds
    copied: float = 0.0  # log prior of a row that holds the same view, minus the log of how often believed rows do


def learn_homes(trust: FloatArray, usable: npt.NDArray[np.bool_], copies: Positions, slope: float) -> Homes:
    """From the trust in the view (n,), whether it is there and can be believed at all, and which rows hold the same."""
    doubt = np.where(usable, 1.0 - trust, 1.0)
    believed = copies[doubt < 0.5]
    n_alike = np.bincount(believed[believed >= 0], minlength=1)
    by_chance = np.mean((believed >= 0) & (n_alike[believed.clip(0)] > 1)) if len(believed) else 1.0
    copied = -float(np.log(max(by_chance, 1.0 / len(doubt))))
    prior = np.log(np.maximum(doubt, SMALLEST_PRIOR)).astype(np.float32)
    return Homes(prior, few_copies(copies), slope, copied)


def find_partners(
    matches: MatchRows, matching: Matching, homes: Homes, rows: Positions, seed: int
) -> tuple[Positions, Floats]:
    """For every given row the N_PARTNERS rows that its view most likely belongs to, not itself, and their log odds.

    The odds are those of the vote, slope S; the order also heeds the prior. -1 and -inf where there are fewer.
    """
    n_rows = len(matches.constant)
    near = None
    if n_rows > EXACT_ROWS and len(rows):
        near, copies = _candidates(matches, matching, rows, seed), _copies(homes, rows)
        is_known = (copies[:, :, None] == near[:, None, :]).any(axis=2)
        near = np.concatenate([near, np.where(is_known, rows[:, None], copies)], axis=1)
    found, odds = np.full((len(rows), N_PARTNERS), -1), np.full((len(rows), N_PARTNERS), -np.inf, dtype=np.float32)
    for start in range(0, len(rows), QUERY_ROWS):
        part = slice(start, start + QUERY_ROWS)
        asked = rows[part]
        if near is None:
            places = np.broadcast_to(np.arange(n_rows), (len(asked), n_rows))
            scores = homes.slope * (matches.asked[asked] @ matches.offered.T + matches.constant)
        else:
            places = near[part]
            scores = homes.slope * matches.odds(asked, places)
        same = (homes.copies[asked][:, None] == homes.copies[places]) & (homes.copies[asked][:, None] >= 0)
        ranked = scores + np.where(same, homes.copied, homes.log_prior[places])
        ranked = np.where(places == asked[:, None], -np.inf, ranked)
        best = np.argpartition(-ranked, min(N_PARTNERS, ranked.shape[1] - 1), axis=1)[:, :N_PARTNERS]
        best = np.take_along_axis(best, np.argsort(-np.take_along_axis(ranked, best, 1), axis=1, kind="stable"), 1)
        is_there = np.isfinite(np.take_along_axis(ranked, best, axis=1))
        odds[part, : best.shape[1]] = np.where(is_there, np.take_along_axis(scores, best, axis=1), -np.inf)
        found[part, : best.shape[1]] = np.where(is_there, np.take_along_axis(places, best, axis=1), -1)
    return found, odds


def _copies(homes: Homes, rows: Positions) -> Positions:
    """For every given row the rows that hold the same view (n, MOST_COPIES); the row itself where there are fewer."""
    order = np.argsort(homes.copies, kind="stable")
    ordered = homes.copies[order]
    first = np.searchsorted(ordered, homes.copies[rows])
    places = np.minimum(first[:, None] + np.arange(MOST_COPIES), len(order) - 1)
    is_copy = (ordered[places] == homes.copies[rows][:, None]) & (homes.copies[rows][:, None] >= 0)
    return np.where(is_copy, order[places], rows[:, None])


def _candidates(matches: MatchRows, matching: Matching, rows: Positions, seed: int) -> Positions:
    """Rows (n, N_CANDIDATES) that codes of u and v put near: signs of random sums of the variates that tell most."""
    n_variates = len(matching.product)
    rng = np.random.default_rng(seed)
    directions = rng.standard_normal((n_variates, N_BITS)).astype(np.float32)
    roots = np.sqrt(matching.product).astype(np.float32)
    index = HammingIndex(N_BITS, method="scan")
    index.add(_codes(matches.offered[:, :n_variates] * roots, directions))
    # Q holds p u, so that Q / sqrt(p) is the root of p times u
    asked = matches.asked[rows, :n_variates] / np.maximum(roots, 1e-12)
    return index.search(_codes(asked.astype(np.float32), directions), k=N_CANDIDATES + 1).ids


def _codes(points: Floats, directions: Floats) -> npt.NDArray[np.uint8]:
    return pack_bits(scores_to_bits(points @ directions))
