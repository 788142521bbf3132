"""Learning whom to trust, on a sample of rows: the tests by turns with the trust they give, then honest odds.

Tests learned from all rows would take damage for normal, so each round weights the rows by the trust of the one before.
That trust, odds and p-values are taken from tests that have not seen the row: those that have think well of it, wrong
as it may be, and would go on being taught by it. Of few rows the folds know too little: right rows would lose their
trust to weak tests, which then have nobody left to learn from. There the tests of all rows judge between rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.calibration import FEWEST_ROWS, Calibration, Curve, calibrate, curve_of_upper_tail
from quorumhash.copies import same_rows, without_copies
from quorumhash.engines.threads import run_together
from quorumhash.evidence import learn_view
from quorumhash.knownrows import learn_known, row_marks
from quorumhash.masspoints import grid_cells, is_mass_point, learn_mass_points
from quorumhash.mismatches import real_and_fake_votes
from quorumhash.progress import stage
from quorumhash.tensors import beside, on_host
from quorumhash.testlearning import Positions, TrustSample, all_but, learn_tests, pairs_of, tests_of_sets, with_pairs
from quorumhash.trust import (
    FIRST_TRUST,
    NO_TRUST,
    TrustModel,
    doubts_of,
    mark_rows,
    mass_rows,
    trust_rows,
    wrong_shares,
)
from quorumhash.unseen import Unseen, ask_unseen, density_doubts, trust_of_unseen

TRUST_ROWS = 5_000  # of the sample teach trust: its tests are learned three times over, and again for every fold

FloatArray = npt.NDArray[np.float64]
Presence = npt.NDArray[np.bool_]

N_ROUNDS = 3
N_FOLDS = 3
FEWEST_HELD_OUT, HELD_OUT_PER_COLUMN = 1_000, 10  # rows from which on folds teach tests fit to judge the rest
N_HELD_OUT, N_HELD_OUT_ROUNDS = 10, 2  # folds and rounds of cross_fitted
BULK = (1.0, 4.0)  # robust deviations between which the tail of a view's density is measured
UNTRUSTED = 0.05  # trust below which a row that is not dense is noise


def learn_trust(
    signatures: Sequence[Any], n_signature: Sequence[int], present: Presence, sources: Sequence[int],
    empties: Sequence[FloatArray] | None = None,
) -> TrustModel:  # fmt: skip
    """Learn from a sample; `sources` is the source of every view, `empties` how a row of zeros looks in each.

    Every so many of the rows teach the tests (TRUST_ROWS), all of them are what is known of items.
    """
    step = -(-len(present) // TRUST_ROWS)
    taught = slice(None, None, step)
    some, here, n_views = [part[taught] for part in signatures], present[taught], len(signatures)
    masses = learn_mass_points(some, n_signature, here, empties)
    shared = _shared(some, masses)
    sample = TrustSample(some, list(n_signature), here, here & ~shared, masses)
    tails = (curve_of_upper_tail(np.empty(0), BULK),) * n_views
    model = _with_calibrations(
        TrustModel((), (), (), tuple(sources), (), np.empty(0), np.empty(0), tails), [Calibration()] * n_views
    )
    if len(here) < FEWEST_ROWS:
        return _believing(model, sample)
    trust = np.where(sample.usable, FIRST_TRUST, NO_TRUST)
    folds = fold_positions(len(here), N_FOLDS)
    everyone = np.arange(len(here))
    without = [all_but(fold, len(everyone)) for fold in folds]
    is_held_out = len(here) >= max(FEWEST_HELD_OUT, HELD_OUT_PER_COLUMN * max(n_signature))
    asked = without if is_held_out else [everyone, *without]
    marks = [on_host(row_marks(grid_cells(r, beside(probes, r)))) for r, (probes, _) in zip(some, masses, strict=True)]
    copies = same_rows(np.stack(marks, axis=1), sample.usable)
    n_sets, n_tests = N_ROUNDS * len(asked) + 1 + N_FOLDS, n_views + len(pairs_of(n_views))
    with stage("learning whom to trust", n_sets * n_tests + 2 * N_ROUNDS + 2) as done:
        for _ in range(N_ROUNDS):
            tests, _ = learn_tests(model, sample, trust, asked, done)
            unseen = ask_unseen(tests[-N_FOLDS:], folds, some)
            done(1)
            model = _calibrated(tests[0], sample, unseen)
            judged = partial(trust_of_unseen, _with_odds(unseen, model)) if is_held_out else _judged_by(model, some)
            trust = without_copies(judged, sample.usable, copies, wrong_shares(model))
            done(1)
        (model, *tests), _ = learn_tests(model, sample, trust, [everyone, *without], done)
        unseen = ask_unseen(tests, folds, some)
        last = _calibrated(model, sample, unseen)
        done(1)
        curves = [new.curve for new in last.calibrations]  # counted with the odds that are kept
        model = _with_calibrations(
            model, [replace(c, curve=new) for c, new in zip(model.calibrations, curves, strict=True)]
        )
        if model.pairs:
            taught_by = [replace(few, rows=few.rows * step) for few in _with_odds(unseen, model)]
            model = with_known(model, signatures, present, taught_by)
        done(1)
    return model


def with_known(
    model: TrustModel, signatures: Sequence[Any], present: Presence, judged: Sequence[Unseen] = ()
) -> TrustModel:
    """The model with what the items of a sample hold; rows that have taught it are `judged` by tests of other rows."""
    others = all_but(np.concatenate([np.empty(0, dtype=np.intp), *(few.rows for few in judged)]), len(present))
    judged = [*judged, *ask_unseen([model], [others], signatures, is_moved=False)]
    there = beside(model, signatures[0])
    usable = present & ~on_host(mass_rows(there, signatures))
    marks, shares = on_host(mark_rows(there, signatures)), wrong_shares(model)
    trust = without_copies(partial(trust_of_unseen, judged), usable, same_rows(marks, usable), shares)
    return replace(model, known=learn_known(marks, usable, trust, shares))


def _shared(signatures: Sequence[Any], masses: Sequence[tuple[FloatArray, FloatArray]]) -> Presence:
    """Which views (s, M) are shared by too many rows."""
    columns = [on_host(is_mass_point(part, *beside(mass, part))) for part, mass in zip(signatures, masses, strict=True)]
    return np.stack(columns, axis=1)


def _judged_by(model: TrustModel, signatures: Sequence[Any]) -> Callable[[Presence], FloatArray]:
    """Trust (s, M) by one model, which has seen the rows."""
    everyone = np.arange(len(signatures[0]))
    return partial(trust_of_unseen, ask_unseen([model], [everyone], signatures, is_moved=False))


def _with_odds(unseen: Sequence[Unseen], model: TrustModel) -> list[Unseen]:
    """The same with the densities, odds and p-values of a model in every test."""
    by, odds = model.densities, model.calibrations
    return [replace(few, test=replace(_with_calibrations(few.test, odds), densities=by)) for few in unseen]


def cross_fitted(
    model: TrustModel, signatures: Sequence[Any], n_signature: Sequence[int], present: Presence
) -> tuple[TrustModel, tuple[TrustModel, ...]]:
    """A learned model again, and N_HELD_OUT models that have not seen one fold each: row i is of fold i % N_HELD_OUT.

    Tests that have seen a row think well of it even where it is wrong: with few rows and many features a mismatch that
    was learned from looks like a match. So every round goes by the trust that models without the row gave it. Noise is
    neither right nor a mismatch: what density and the others agree to be noise is left out of odds and p-values.
    """
    masses = [(view.probes, view.mass_points) for view in model.views]
    usable = present & ~_shared(signatures, masses)
    sample = TrustSample(list(signatures), list(n_signature), present, usable, masses)
    folds = fold_positions(len(present), N_HELD_OUT)
    everyone = np.arange(len(present))
    without = [all_but(fold, len(everyone)) for fold in folds]
    unseen: list[Unseen] = []
    chosen: list[int] = []
    trust = trust_rows(model, present, *signatures)
    n_tests = len(n_signature) + len(pairs_of(len(n_signature)))
    n_steps = N_HELD_OUT_ROUNDS * (N_HELD_OUT * n_tests + 3) + n_tests
    with stage("judging by tests that have not seen a row", n_steps) as done:
        for _ in range(N_HELD_OUT_ROUNDS):
            tests, chosen = learn_tests(model, sample, trust, without, done)
            unseen = ask_unseen(tests, folds, signatures)
            done(1)
            for _ in range(2):  # with the noise, and without what turned out to be noise
                model = _calibrated(model, sample, unseen)
                unseen = _with_odds(unseen, model)
                trust = trust_of_unseen(unseen, usable)
                doubted = np.zeros(present.shape, dtype=bool)
                for few in unseen:
                    doubted[few.rows] = density_doubts(few) < 0
                sample = replace(sample, usable=usable & ~(doubted & (trust <= UNTRUSTED)))
                done(1)
        (taught,) = tests_of_sets(model, sample, trust, [everyone], done)
    return with_pairs(*taught, chosen), tuple(few.test for few in unseen)


def _with_calibrations(model: TrustModel, calibrations: Sequence[Calibration]) -> TrustModel:
    slopes, log_odds = np.array([c.slope for c in calibrations]), np.array([c.log_odds for c in calibrations])
    return replace(model, calibrations=tuple(calibrations), slopes=slopes, log_odds=log_odds)


def _believing(model: TrustModel, sample: TrustSample) -> TrustModel:
    """Too few rows to learn a test from: everything present is believed."""
    nobody = np.zeros(len(sample.present), dtype=bool)
    views = [
        learn_view(part, sample.n_signature[m], np.ones(len(part)), nobody, (probes, points[:0]))[0]
        for m, (part, (probes, points)) in enumerate(zip(sample.signatures, sample.masses, strict=True))
    ]
    return replace(model, views=tuple(views), densities=(Curve(),) * len(views))


def fold_positions(n_rows: int, n_folds: int) -> list[Positions]:
    """Rows of each fold: row i is of fold i % n_folds.

    >>> [fold.tolist() for fold in fold_positions(5, 2)]
    [[0, 2, 4], [1, 3]]
    """
    return [np.arange(fold, n_rows, n_folds) for fold in range(n_folds)]


def _calibrated(model: TrustModel, sample: TrustSample, unseen: Sequence[Unseen]) -> TrustModel:
    """Densities, odds and p-values from the rows of each fold, which its tests have not seen: real, and mismatched."""
    n_rows, n_views = sample.present.shape
    votes, deviations = np.full((4, n_rows, n_views), np.nan), np.full((n_rows, n_views), np.nan)
    for few in unseen:
        deviations[few.rows] = few.deviations.T
    columns = [deviations[sample.usable[:, m], m] for m in range(n_views)]
    near = sample.signatures[0]
    densities = tuple(run_together(lambda column: curve_of_upper_tail(column, BULK), columns, rows=near))

    def counted(few: Unseen) -> FloatArray:
        doubts = doubts_of(densities, list(few.deviations))
        return real_and_fake_votes(few.test, few.odds, ~sample.usable[few.rows], doubts)

    for few, of_fold in zip(unseen, run_together(counted, unseen, rows=near), strict=True):
        votes[:, few.rows] = of_fold
    model = replace(model, densities=densities)
    real, fake, *evened = votes.transpose(0, 2, 1)
    parts = [(real[m], fake[m], (evened[0][m], evened[1][m])) for m in range(n_views)]
    found = run_together(lambda part: calibrate(*part), parts, rows=near)
    if len(set(model.sources)) == 2:  # a mismatch is one for all views alike: the least of what they say
        least = min(calibration.wrong_share for calibration in found)
        found = run_together(
            lambda one: one[1] if one[1].wrong_share == least else calibrate(*one[0], least),
            list(zip(parts, found, strict=True)),
            rows=near,
        )
        slope, log_odds = (float(np.mean([getattr(c, part) for c in found])) for part in ("slope", "log_odds"))
        found = [replace(c, slope=slope, log_odds=log_odds) for c in found]  # or the view judged worse is taken for it
    return _with_calibrations(model, found)
