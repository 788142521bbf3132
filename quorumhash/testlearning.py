"""Tests of views and of pairs of views, learned from several sets of rows at once.

One set is all rows, or all but a fold. Every view of every set, then every pair, is a piece of work of its own, so that
many processors have something to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.engines.threads import run_together
from quorumhash.evidence import ViewTests, density_deviations, learn_view
from quorumhash.pairtests import PairTest, learn_pair, separations, with_shares
from quorumhash.progress import Done
from quorumhash.tensors import beside, on_host
from quorumhash.trust import NO_TRUST, TrustModel, doubts_of, is_ruled_out

FloatArray = npt.NDArray[np.float64]
Presence = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.intp]


@dataclass(frozen=True)
class TrustSample:
    """Signature and grain (s, k_m) per view, how many columns are signature, presence (s, M), mass points."""

    signatures: list[Any]  # on the host, or where an engine computes: what is learned comes to the host
    n_signature: list[int]
    present: Presence
    usable: Presence  # present and no mass point
    masses: list[tuple[FloatArray, FloatArray]]


def learn_tests(
    model: TrustModel, sample: TrustSample, trust: FloatArray, asked: Sequence[Positions], done: Done
) -> tuple[list[TrustModel], list[int]]:
    """Tests from each of several sets of rows, and which test of every pair was chosen: the best by rows not seen.

    The last sets are all rows but one fold each, `N_FOLDS` or `N_HELD_OUT` of them.
    """
    learned = tests_of_sets(model, sample, trust, asked, done)
    unseen = [(of, all_but(rows, len(sample.present))) for of, rows in zip(learned, asked, strict=True)]
    found = _separations(sample, [(*of, rows) for of, rows in unseen if len(rows)])
    chosen = [int(np.argmax(np.sum(of_pair, axis=0))) for of_pair in zip(*found, strict=True)]
    return [with_pairs(views, pairs, chosen) for views, pairs in learned], chosen


def tests_of_sets(
    model: TrustModel, sample: TrustSample, trust: FloatArray, asked: Sequence[Positions], done: Done
) -> list[tuple[TrustModel, list[list[PairTest]]]]:
    """From each of several sets of rows: view tests, and all tests of every pair of views."""
    widths = sample.n_signature

    def view_of(one: tuple[Positions, int]) -> tuple[ViewTests, FloatArray]:
        rows, m = one
        weights, usable = trust[rows, m] ** 2, sample.usable[rows, m]
        return learn_view(sample.signatures[m][rows], widths[m], weights, usable, sample.masses[m])

    def pair_of(one: tuple[Positions, FloatArray, tuple[int, int]]) -> list[PairTest]:
        rows, weights, (a, b) = one
        first, second = (sample.signatures[m][rows, : widths[m]] for m in (a, b))
        return learn_pair((a, b), first, second, weights[:, a] * weights[:, b])

    n_views = len(widths)
    near = sample.signatures[0]
    views = run_together(view_of, [(rows, m) for rows in asked for m in range(n_views)], done, near)
    models, jobs = [], []
    for i, rows in enumerate(asked):
        tests, deviations = zip(*views[i * n_views : (i + 1) * n_views], strict=True)
        models.append(replace(model, views=tests))
        taught = sample.usable[rows] & ~_ruled_out(models[-1], deviations)
        weights = np.where(taught, trust[rows], NO_TRUST)
        jobs += [(rows, weights, pair) for pair in pairs_of(n_views)]
    pairs, n_pairs = run_together(pair_of, jobs, done, near), len(pairs_of(n_views))
    return [(of, pairs[i * n_pairs : (i + 1) * n_pairs]) for i, of in enumerate(models)]


def all_but(rows: Positions, n_rows: int) -> Positions:
    """The other positions.

    >>> all_but(np.array([0, 3]), 5)
    array([1, 2, 4])
    """
    others = np.ones(n_rows, dtype=bool)
    others[rows] = False
    return np.flatnonzero(others)


def pairs_of(n_views: int) -> list[tuple[int, int]]:
    """All pairs of views, as tests of pairs name them."""
    return [(a, b) for a in range(n_views) for b in range(a)]


def _separations(
    sample: TrustSample, learned: Sequence[tuple[TrustModel, list[list[PairTest]], Positions]]
) -> list[list[FloatArray]]:
    """For each of several sets of tests, of every pair: how well each test tells rows it has not seen from mismatches;
    noise left out.
    """

    def deviations_of(one: tuple[TrustModel, Positions, int]) -> FloatArray:
        model, rows, m = one
        part = sample.signatures[m][rows]
        return on_host(density_deviations(beside(model.views[m], part), part))

    def separation_of(one: tuple[list[PairTest], Positions, Presence]) -> FloatArray:
        tests, rows, usable = one
        a, b = tests[0].first, tests[0].second
        both = rows[usable[:, a] & usable[:, b]]
        first, second = (sample.signatures[m][both, : sample.n_signature[m]] for m in (a, b))
        return separations(tests, first, second) if len(both) else np.zeros(len(tests))

    n_views, n_pairs = len(sample.signatures), len(pairs_of(len(sample.signatures)))
    near = sample.signatures[0]
    asked = [(model, rows, m) for model, _, rows in learned for m in range(n_views)]
    deviations = run_together(deviations_of, asked, rows=near)
    jobs = []
    for i, (model, pairs, rows) in enumerate(learned):
        usable = sample.usable[rows] & ~_ruled_out(model, deviations[i * n_views : (i + 1) * n_views])
        jobs += [(tests, rows, usable) for tests in pairs]
    found = run_together(separation_of, jobs, rows=near)
    return [found[i * n_pairs : (i + 1) * n_pairs] for i in range(len(learned))]


def _ruled_out(model: TrustModel, deviations: Sequence[FloatArray]) -> Presence:
    """Which rows (n, M) density alone rules out."""
    far: Presence = is_ruled_out(doubts_of(model.densities, deviations))
    return far


def with_pairs(model: TrustModel, pairs: list[list[PairTest]], chosen: Sequence[int]) -> TrustModel:
    """The model with the chosen test of every pair."""
    tests = [of_pair[i] for of_pair, i in zip(pairs, chosen, strict=True)]
    kin = [pair for pair in tests if model.sources[pair.first] == model.sources[pair.second]]
    strangers = [pair for pair in tests if model.sources[pair.first] != model.sources[pair.second]]
    return replace(model, pairs=with_shares(strangers, model.sources), kin=tuple(kin))
