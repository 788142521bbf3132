"""Learning whom to trust, on a sample of rows: the tests by turns with the trust they give, then honest odds.

Tests learned from all rows would take damage for normal, so each round weights the rows by the trust of the one before.
That trust, odds and p-values are taken from tests that have not seen the row: those that have think well of it, wrong
as it may be, and would go on being taught by it. Of few rows the folds know too little: right rows would lose their
trust to weak tests, which then have nobody left to learn from. There the tests of all rows judge between rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from quorumhash.calibration import FEWEST_ROWS, Calibration, Curve, calibrate, curve_of_upper_tail
from quorumhash.copies import same_rows, without_copies
from quorumhash.engines.threads import run_together
from quorumhash.evidence import density_deviations, learn_view
from quorumhash.knownrows import learn_known, row_marks
from quorumhash.masspoints import grid_cells, is_mass_point, learn_mass_points
from quorumhash.mismatches import real_and_fake_votes
from quorumhash.pairtests import PairTest, learn_pair, separations, with_shares
from quorumhash.progress import Done, stage
from quorumhash.trust import (
    DOUBTFUL,
    FIRST_TRUST,
    NO_TRUST,
    TrustModel,
    doubts_of,
    examined_rows,
    is_ruled_out,
    mark_rows,
    mass_rows,
    trust_rows,
    wrong_shares,
)

TRUST_ROWS = 5_000  # of the sample teach trust: its tests are learned three times over, and again for every fold

FloatArray = npt.NDArray[np.float64]
Presence = npt.NDArray[np.bool_]

N_ROUNDS = 3
N_FOLDS = 3
FEWEST_HELD_OUT, HELD_OUT_PER_COLUMN = 1_000, 10  # rows from which on folds teach tests fit to judge the rest
N_HELD_OUT, N_HELD_OUT_ROUNDS = 10, 2  # folds and rounds of cross_fitted
BULK = (1.0, 4.0)  # robust deviations between which the tail of a view's density is measured
UNTRUSTED = 0.05  # trust below which a row that is not dense is noise


@dataclass(frozen=True)
class TrustSample:
    """Signature and grain (s, k_m) per view, how many columns are signature, presence (s, M), mass points."""

    signatures: list[FloatArray]
    n_signature: list[int]
    present: Presence
    usable: Presence  # present and no mass point
    masses: list[tuple[FloatArray, FloatArray]]


def learn_trust(
    signatures: Sequence[FloatArray], n_signature: Sequence[int], present: Presence, sources: Sequence[int],
    empties: Sequence[FloatArray] | None = None,
) -> TrustModel:  # fmt: skip
    """Learn from a sample; `sources` is the source of every view, `empties` how a row of zeros looks in each.

    Every so many of the rows teach the tests (TRUST_ROWS), all of them are what is known of items.
    """
    taught = slice(None, None, -(-len(present) // TRUST_ROWS))
    some, here, n_views = [part[taught] for part in signatures], present[taught], len(signatures)
    masses = learn_mass_points(some, n_signature, here, empties)
    shared = np.stack([is_mass_point(part, *mass) for part, mass in zip(some, masses, strict=True)], axis=1)
    sample = TrustSample(some, list(n_signature), here, here & ~shared, masses)
    tails = (curve_of_upper_tail(np.empty(0), BULK),) * n_views
    model = _with_calibrations(
        TrustModel((), (), (), tuple(sources), (), np.empty(0), np.empty(0), tails), [Calibration()] * n_views
    )
    if len(here) < FEWEST_ROWS:
        return _believing(model, sample)
    trust = np.where(sample.usable, FIRST_TRUST, NO_TRUST)
    folds = _folds(sample)
    everyone, without = np.ones(len(here), dtype=bool), [~inside for inside in folds]
    is_held_out = len(here) >= max(FEWEST_HELD_OUT, HELD_OUT_PER_COLUMN * max(n_signature))
    asked = without if is_held_out else [everyone, *without]
    marks = np.stack([row_marks(grid_cells(part, probes)) for part, (probes, _) in zip(some, masses, strict=True)], 1)
    copies = same_rows(marks, sample.usable)
    with stage("learning whom to trust", N_ROUNDS * len(asked) + (N_ROUNDS + 2) * N_FOLDS + 1) as done:
        for _ in range(N_ROUNDS):
            tests, _ = _learn_tests(model, sample, trust, asked, done)
            model = _calibrated(tests[0], sample, tests[-N_FOLDS:], done)
            if is_held_out:
                judged = partial(_held_out_trust, _with_odds(tests, model), folds, some)
            else:
                judged = partial(_trust_of, model, some)
            trust = without_copies(judged, sample.usable, copies, wrong_shares(model))
        (model, *tests), _ = _learn_tests(model, sample, trust, [everyone, *without], done)
        last = _calibrated(model, sample, tests, done)
    curves = [new.curve for new in last.calibrations]  # counted with the odds that are kept
    model = _with_calibrations(
        model, [replace(c, curve=new) for c, new in zip(model.calibrations, curves, strict=True)]
    )
    return with_known(model, signatures, present, _with_odds(tests, model)) if model.pairs else model


def with_known(
    model: TrustModel, signatures: Sequence[FloatArray], present: Presence, tests: Sequence[TrustModel] = ()
) -> TrustModel:
    """The model with what the items of a sample hold; `tests` judge, fold by fold, the rows that have taught them."""
    step, rows = -(-len(present) // TRUST_ROWS), np.arange(len(present))
    folds = [rows % (step * len(tests)) == step * fold for fold in range(len(tests))]

    def judged(usable: Presence) -> FloatArray:
        trust = _trust_of(model, signatures, usable)
        held_out = _held_out_trust(tests, folds, signatures, usable)
        return np.where((rows % step == 0)[:, None], held_out, trust) if tests else trust

    marks, shares = mark_rows(model, signatures), wrong_shares(model)
    usable = present & ~mass_rows(model, signatures)
    trust = without_copies(judged, usable, same_rows(marks, usable), shares)
    return replace(model, known=learn_known(marks, usable, trust, shares))


def _trust_of(model: TrustModel, signatures: Sequence[FloatArray], usable: Presence) -> FloatArray:
    trust: FloatArray = trust_rows(model, usable, *signatures)
    return trust


def _held_out_trust(
    tests: Sequence[TrustModel], folds: Sequence[Presence], signatures: Sequence[FloatArray], usable: Presence
) -> FloatArray:
    return _held_out_rows(tests, folds, usable, signatures)[0]


def _with_odds(tests: Sequence[TrustModel], model: TrustModel) -> list[TrustModel]:
    """Tests with the densities, odds and p-values of a model."""
    by, odds = model.densities, model.calibrations
    return [replace(_with_calibrations(test, odds), densities=by) for test in tests]


def cross_fitted(
    model: TrustModel, signatures: Sequence[FloatArray], n_signature: Sequence[int], present: Presence
) -> tuple[TrustModel, tuple[TrustModel, ...]]:
    """A learned model again, and N_HELD_OUT models that have not seen one fold each: row i is of fold i % N_HELD_OUT.

    Tests that have seen a row think well of it even where it is wrong: with few rows and many features a mismatch that
    was learned from looks like a match. So every round goes by the trust that models without the row gave it. Noise is
    neither right nor a mismatch: what density and the others agree to be noise is left out of odds and p-values.
    """
    masses = [(view.probes, view.mass_points) for view in model.views]
    shared = np.stack([is_mass_point(part, *mass) for part, mass in zip(signatures, masses, strict=True)], axis=1)
    usable = present & ~shared
    sample = TrustSample(list(signatures), list(n_signature), present, usable, masses)
    folds = _folds(sample, N_HELD_OUT)
    tests: list[TrustModel] = []
    chosen: list[int] = []
    trust = trust_rows(model, present, *signatures)
    with stage("judging by tests that have not seen a row", 3 * N_HELD_OUT * N_HELD_OUT_ROUNDS) as done:
        for _ in range(N_HELD_OUT_ROUNDS):
            tests, chosen = _learn_tests(model, sample, trust, [~inside for inside in folds], done)
            for _ in range(2):  # with the noise, and without what turned out to be noise
                model = _calibrated(model, sample, tests, done)
                tests = _with_odds(tests, model)
                trust, density = _held_out_rows(tests, folds, present, signatures)
                sample = replace(sample, usable=usable & ((density > np.log(DOUBTFUL)) | (trust > UNTRUSTED)))
    everyone = _learned(model, sample, trust, np.ones(len(present), dtype=bool))
    return _with_pairs(*everyone, chosen), tuple(tests)


def _held_out_rows(
    tests: Sequence[TrustModel], folds: Sequence[Presence], present: Presence, signatures: Sequence[FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Trust (s, M) and log p-value of density (s, M) by tests that have not seen the row."""
    trust, density = np.zeros(present.shape), np.zeros(present.shape)
    for inside, test in zip(folds, tests, strict=True):
        _, trust[inside], _, density[inside] = examined_rows(
            test, present[inside], *(part[inside] for part in signatures)
        )
    return trust, density


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


def _learn_tests(
    model: TrustModel, sample: TrustSample, trust: FloatArray, asked: Sequence[Presence], done: Done
) -> tuple[list[TrustModel], list[int]]:
    """Tests from each of several sets of rows, and which test of every pair was chosen: the best by rows not seen.

    The last sets are all rows but one fold each, `N_FOLDS` or `N_HELD_OUT` of them.
    """
    learned = run_together(partial(_learned, model, sample, trust), asked, done)
    unseen = [(views, pairs, ~rows) for (views, pairs), rows in zip(learned, asked, strict=True) if not rows.all()]
    found = run_together(lambda held: _separations(sample, *held), unseen)
    chosen = [int(np.argmax(np.sum(of_pair, axis=0))) for of_pair in zip(*found, strict=True)]
    return [_with_pairs(views, pairs, chosen) for views, pairs in learned], chosen


def _learned(
    model: TrustModel, sample: TrustSample, trust: FloatArray, rows: Presence
) -> tuple[TrustModel, list[list[PairTest]]]:
    """View tests from the given rows alone, and all tests of every pair of views."""
    parts = [part[rows] for part in sample.signatures]
    weights, usable, widths = trust[rows], sample.usable[rows], sample.n_signature
    learned = [
        learn_view(part, widths[m], weights[:, m] ** 2, usable[:, m], sample.masses[m]) for m, part in enumerate(parts)
    ]
    model = replace(model, views=tuple(view for view, _ in learned))
    far = _ruled_out(model, [deviations for _, deviations in learned])
    weights = np.where(far | ~usable, NO_TRUST, weights)
    pairs = [(a, b) for a in range(len(parts)) for b in range(a)]
    return model, [learn_pair(a, b, parts, widths, weights[:, a] * weights[:, b]) for a, b in pairs]


def _separations(
    sample: TrustSample, model: TrustModel, pairs: list[list[PairTest]], rows: Presence
) -> list[FloatArray]:
    """Of every pair, how well each of its tests tells rows it has not seen from mismatches; noise left out."""
    parts = [part[rows] for part in sample.signatures]
    usable = sample.usable[rows] & ~_ruled_out(
        model, [density_deviations(*of) for of in zip(model.views, parts, strict=True)]
    )
    found = []
    for tests in pairs:
        first, second = tests[0].first, tests[0].second
        both = usable[:, first] & usable[:, second]
        found.append(
            separations(tests, parts[first][both], parts[second][both]) if both.any() else np.zeros(len(tests))
        )
    return found


def _ruled_out(model: TrustModel, deviations: Sequence[FloatArray]) -> Presence:
    """Which rows (n, M) density alone rules out."""
    far: Presence = is_ruled_out(doubts_of(model.densities, deviations))
    return far


def _with_pairs(model: TrustModel, pairs: list[list[PairTest]], chosen: Sequence[int]) -> TrustModel:
    tests = [of_pair[i] for of_pair, i in zip(pairs, chosen, strict=True)]
    kin = [pair for pair in tests if model.sources[pair.first] == model.sources[pair.second]]
    strangers = [pair for pair in tests if model.sources[pair.first] != model.sources[pair.second]]
    return replace(model, pairs=with_shares(strangers, model.sources), kin=tuple(kin))


def _folds(sample: TrustSample, n_folds: int = N_FOLDS) -> list[Presence]:
    n_rows = len(sample.present)
    return [np.arange(n_rows) % n_folds == fold for fold in range(n_folds)]


def _calibrated(model: TrustModel, sample: TrustSample, tests: Sequence[TrustModel], done: Done) -> TrustModel:
    """Densities, odds and p-values from the rows of each fold, which its tests have not seen: real, and mismatched."""
    n_rows, n_views = sample.present.shape
    votes, deviations = np.full((4, n_rows, n_views), np.nan), np.full((n_rows, n_views), np.nan)
    folds = _folds(sample, len(tests))
    held_out = [[part[inside] for part in sample.signatures] for inside in folds]
    for inside, test, parts in zip(folds, tests, held_out, strict=True):
        for m, part in enumerate(parts):
            deviations[inside, m] = density_deviations(test.views[m], part)
    densities = tuple(curve_of_upper_tail(deviations[sample.usable[:, m], m], BULK) for m in range(n_views))

    def counted(fold: int) -> FloatArray:
        inside = folds[fold]
        doubts = doubts_of(densities, list(deviations[inside].T))
        return real_and_fake_votes(tests[fold], held_out[fold], ~sample.usable[inside], doubts)

    for inside, of_fold in zip(folds, run_together(counted, range(len(folds)), done), strict=True):
        votes[:, inside] = of_fold
    model = replace(model, densities=densities)
    real, fake, *evened = votes.transpose(0, 2, 1)
    columns = [(real[m], fake[m], (evened[0][m], evened[1][m])) for m in range(n_views)]
    found = run_together(lambda column: calibrate(*column), columns)
    if len(set(model.sources)) == 2:  # a mismatch is one for all views alike: the least of what they say
        least = min(calibration.wrong_share for calibration in found)
        found = [calibrate(*column, least) for column in columns]
        slope, log_odds = (float(np.mean([getattr(c, part) for c in found])) for part in ("slope", "log_odds"))
        found = [replace(c, slope=slope, log_odds=log_odds) for c in found]  # or the view judged worse is taken for it
    return _with_calibrations(model, found)
