"""How far each (item, view) can be believed; the same rule for stored and for new items.

The tests of evidence.py and pairtests.py are put together by a vote. Every view is judged by the views of other
sources, each as far as it is believed itself; views of one source share one vote, because they err together and would
vouch for each other:

    t_m = sum over other sources S of  mean over views n of S, by what they tell about m, of  w_n l_mn
    s_m = t_m + sum over views n of m's own source of  sigmoid(l_mn) t_n,   views that go together judged together
    w_m = sigmoid(a_m s_m + b_m + d_m + log((1 - e_m) / e_m)),   repeated, from the view's own evidence alone

e_m is the share of wrong rows in view m; a_m, b_m turn the vote into honest log odds (calibration.py); d_m <= 0 is the
log p-value of the row's density where it is below DOUBTFUL, and what it tells that an item of fit holds the same view
(knownrows.py). A mass point is not believed whatever the others say, and has no vote. Two sources alone cannot say
which of them is wrong, unless one is known to be another item's: both lose trust alike, and repair.py keeps what it has
where it believes nothing. How the model is learned: trustlearning.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace

from quorumhash.calibration import Calibration, Curve, check_calibration, check_curve, log_p_rows
from quorumhash.checks import check_shape, require
from quorumhash.evidence import ViewTests, check_view, density_deviations
from quorumhash.knownrows import KNOWN_PARTS, KnownRows, check_known, known_doubts, row_marks
from quorumhash.masspoints import grid_cells, is_mass_point
from quorumhash.pairtests import LARGEST_EVIDENCE, PairTest, check_pair, pair_evidence

FloatArray = npt.NDArray[np.float64]

N_VOTES = 8
FIRST_TRUST, NO_TRUST = 0.8, 1e-3
ALL_HERE = 1.0 - 1e-9  # share of a vote that is left, up to rounding
DOUBTFUL = 0.01  # p-value of density below which it speaks against a row
RULED_OUT = 1e-4  # the same below which a row teaches nothing
DECIDED = 0.5  # trust below which a known view has decided against a row


@dataclass(frozen=True)
class TrustModel:
    """Everything `trust_rows` and `reliability_rows` need."""

    views: tuple[ViewTests, ...]
    pairs: tuple[PairTest, ...]  # of views of different sources
    kin: tuple[PairTest, ...]  # of views of one source
    sources: tuple[int, ...]  # the source of every view
    calibrations: tuple[Calibration, ...]
    slopes: FloatArray  # (M,) of the calibrations
    log_odds: FloatArray  # (M,)
    densities: tuple[Curve, ...]  # log p-values of density
    known: KnownRows | None = None  # what the items of fit hold


def wrong_shares(model: TrustModel) -> FloatArray:
    """e (M,), the share of wrong rows in every view."""
    return np.array([calibration.wrong_share for calibration in model.calibrations])


def doubt_rows(model: TrustModel, usable: Any, *signatures: Any) -> Any:
    """What density and known views say against each row, (n, M), 0 or less; `usable` views are there and no masses."""
    doubts = _density_doubts(model, signatures)
    if model.known is None:
        return doubts
    return doubts + known_doubts(model.known, model.sources, usable, mark_rows(model, signatures))


def _density_doubts(model: TrustModel, signatures: Sequence[Any]) -> Any:
    tests = zip(model.views, signatures, strict=True)
    return doubts_of(model.densities, [density_deviations(view, rows) for view, rows in tests])


def mark_rows(model: TrustModel, signatures: Sequence[Any]) -> Any:
    """Marks (n, M) by which the views of a row are known again."""
    marks = [row_marks(grid_cells(rows, view.probes)) for view, rows in zip(model.views, signatures, strict=True)]
    return array_namespace(marks[0]).stack(marks, axis=1)


def doubts_of(densities: Sequence[Curve], deviations: Sequence[Any]) -> Any:
    """What density says, (n, M), from the deviations (n,) of every view: how far log p falls below a doubtful row's."""
    return (_log_p_columns(densities, deviations) - float(np.log(DOUBTFUL))).clip(-8.0, 0.0)


def is_ruled_out(doubts: Any) -> Any:
    """Whether density alone rules a row out, where this is what it says against it."""
    return doubts < float(np.log(RULED_OUT / DOUBTFUL))


def _log_p_columns(curves: Sequence[Curve], deviations: Sequence[Any]) -> Any:
    columns = [log_p_rows(curve, -part) for curve, part in zip(curves, deviations, strict=True)]
    return array_namespace(deviations[0]).stack(columns, axis=1)


def mass_rows(model: TrustModel, signatures: Sequence[Any]) -> Any:
    """Which views (n, M) are shared by too many items."""
    columns = [is_mass_point(r, v.probes, v.mass_points) for v, r in zip(model.views, signatures, strict=True)]
    return array_namespace(columns[0]).stack(columns, axis=1)


def usable_rows(model: TrustModel, present: Any, *signatures: Any) -> Any:
    """Which views (n, M) have something to say: present and no mass points; all that are present where none has."""
    return _something(present & ~mass_rows(model, signatures), present)


def _something(here: Any, present: Any) -> Any:
    """What is here, or what is present where nothing is."""
    xp = array_namespace(here)
    return xp.where(xp.any(here, axis=1)[:, None], here, present)


def gather_evidence(model: TrustModel, signatures: Sequence[Any]) -> list[Any]:
    """Log odds (n,) of every pair, then of kin."""
    return [pair_evidence(pair, signatures[pair.first], signatures[pair.second]) for pair in (*model.pairs, *model.kin)]


def count_votes(model: TrustModel, out: Any, doubts: Any, evidence: Sequence[Any]) -> tuple[Any, Any]:
    """Trust (n, M), and the vote s (n, M) it comes from with doubt taken off; `out` rows have no vote and no trust.

    Inside, views are rows (M, n): a view's column of a matrix lies scattered in memory, and is read sixteen times.
    """
    xp, n_views = array_namespace(doubts), len(model.sources)
    free, doubts = (
        xp.stack([part[:, m] for m in range(n_views)], axis=0) for part in (xp.where(out, 0.0, 1.0), doubts)
    )
    slopes, log_odds = model.slopes[:, None], model.log_odds[:, None]
    links = [
        free[pair.first] * free[pair.second] / (1.0 + xp.exp(-odds))
        for pair, odds in zip(model.kin, evidence[len(model.pairs) :], strict=True)
    ]
    voters = free * FIRST_TRUST * xp.exp(doubts)
    votes = trust = voters
    for _ in range(N_VOTES):
        rows: list[Any] = [0.0 * voters[0] for _ in range(n_views)]
        for pair, odds in zip(model.pairs, evidence, strict=False):
            a, b = pair.first, pair.second
            rows[a] = rows[a] + pair.shares[0] * voters[b] * odds
            rows[b] = rows[b] + pair.shares[1] * voters[a] * odds
        own = list(rows)
        for pair, link in zip(model.kin, links, strict=True):
            a, b = pair.first, pair.second
            rows[a], rows[b] = rows[a] + link * own[b], rows[b] + link * own[a]
        votes = xp.stack(rows, axis=0) + doubts / slopes
        trust = 1.0 / (1.0 + xp.exp(-(votes * slopes + log_odds).clip(-30.0, 30.0)))
        voters = 0.5 * (voters + free * trust)  # by half: else views that contradict each other go to and fro
    votes, trust = (xp.stack([part[m] for m in range(n_views)], axis=1) for part in (votes, trust))
    return xp.where(out, NO_TRUST, trust), votes


def evened_votes(model: TrustModel, out: Any, doubts: Any, trust: Any, votes: Any) -> Any:
    """Votes (n, M) as far below or above the usual as they would be if all voters were there and right; for p-values.

    With all voters a right row has the vote E on average, with those that are left the share r of it and a spread
    smaller by sqrt(r). Without this a view is suspected because others are missing or wrong. Two sources that
    contradict each other lose all trust together, and would look as if nothing had been said: there, only those count
    as gone that are absent or known for noise.
    """
    xp, n_views = array_namespace(votes), votes.shape[1]
    here = xp.where(out, 0.0, trust if len(set(model.sources)) > 2 else xp.exp(doubts))
    usual: list[Any] = [0.0] * n_views
    left: list[Any] = [0.0 * here[:, 0] for _ in range(n_views)]
    for pair in model.pairs:
        told = min(pair.base, LARGEST_EVIDENCE)  # the mean of l over right rows
        for m, voter, share in ((pair.first, pair.second, pair.shares[0]), (pair.second, pair.first, pair.shares[1])):
            usual[m], left[m] = usual[m] + share * told, left[m] + share * told * here[:, voter]
    columns = []
    for m in range(n_views):
        share = left[m] / (usual[m] + 1e-300)
        own = doubts[:, m] / model.slopes[m]
        by_others = (votes[:, m] - own - left[m]) / xp.sqrt(share.clip(1e-12, 1.0))
        columns.append(xp.where(share < ALL_HERE, usual[m] + by_others + own, votes[:, m]))
    return xp.stack(columns, axis=1)


def _judged(model: TrustModel, present: Any, signatures: Sequence[Any]) -> tuple[Any, Any, Any]:
    """Trust (n, M), the votes (n, M) that p-values are read from, and which views are mass points.

    Curves of p-values know nothing of known views, so those count in rows that they decide, and in no others: an item
    of fit that comes back with one view renewed has a known view, and is believed.
    """
    mass = mass_rows(model, signatures)
    out, doubts, evidence = ~present | mass, _density_doubts(model, signatures), gather_evidence(model, signatures)
    trust, votes = _counted(model, out, doubts, evidence)
    if model.known is None:
        return trust, votes, mass
    xp, known = array_namespace(votes), known_doubts(model.known, model.sources, ~out, mark_rows(model, signatures))
    trust, told = _counted(model, out, doubts + known, evidence)
    is_decided = xp.any((known < 0) & (trust < DECIDED), axis=1)
    return trust, xp.where(is_decided[:, None], told, votes), mass


def _counted(model: TrustModel, out: Any, doubts: Any, evidence: Sequence[Any]) -> tuple[Any, Any]:
    trust, votes = count_votes(model, out, doubts, evidence)
    return trust, evened_votes(model, out, doubts, trust, votes)


def trust_rows(model: TrustModel, present: Any, *signatures: Any) -> Any:
    """The posterior (n, M) that each view of each row is right; NO_TRUST where it is absent or a mass point."""
    return believed_rows(model, present, *signatures)[1]


def believed_rows(model: TrustModel, present: Any, *signatures: Any) -> tuple[Any, Any]:
    """`usable_rows` and `trust_rows`, for who wants both."""
    here = present & ~mass_rows(model, signatures)
    trust, _ = count_votes(model, ~here, doubt_rows(model, here, *signatures), gather_evidence(model, signatures))
    return _something(here, present), trust


def votes_rows(model: TrustModel, present: Any, *signatures: Any) -> tuple[Any, Any]:
    """The votes (n, M) that p-values are read from, and which views are mass points."""
    return _judged(model, present, signatures)[1:]


def p_value_rows(model: TrustModel, present: Any, votes: Any, mass: Any, *signatures: Any) -> Any:
    """The share (n, M) of undamaged rows that would look at least as suspicious; NaN where absent."""
    xp = array_namespace(present)
    if model.pairs:
        log_p = xp.stack([log_p_rows(c.curve, votes[:, m]) for m, c in enumerate(model.calibrations)], axis=1)
    else:  # nobody to ask: density alone
        log_p = density_rows(model, *signatures)
    return xp.where(present, xp.where(mass, 0.0, xp.exp(log_p)), xp.nan)


def density_rows(model: TrustModel, *signatures: Any) -> Any:
    """Log p-values (n, M) of how far rows lie from the bulk of their view."""
    tests = zip(model.views, signatures, strict=True)
    return _log_p_columns(model.densities, [density_deviations(view, rows) for view, rows in tests])


def examined_rows(model: TrustModel, present: Any, *signatures: Any) -> tuple[Any, Any, Any, Any]:
    """Of every view of every row, (n, M) each: p-value, posterior, whether a mass point, log p-value of density."""
    trust, votes, mass = _judged(model, present, signatures)
    p_values = p_value_rows(model, present, votes, mass, *signatures)
    return p_values, trust, mass, density_rows(model, *signatures)


def reliability_rows(model: TrustModel, present: Any, *signatures: Any) -> Any:
    """The p-values (n, M) of rows."""
    return p_value_rows(model, present, *votes_rows(model, present, *signatures), *signatures)


def check_trust(model: Any, signatures: Sequence[tuple[int, int]]) -> None:
    """Refuse a model that does not fit views with such numbers of signature and grain columns."""
    n_views = len(signatures)
    require(isinstance(model, TrustModel) and len(model.views) == len(model.sources) == n_views)
    require(len(model.calibrations) == len(model.densities) == n_views)
    require(all(isinstance(source, int) for source in model.sources))
    for view, (n_signature, n_grain) in zip(model.views, signatures, strict=True):
        check_view(view, n_signature, n_grain)
    for pair in (*model.pairs, *model.kin):
        check_pair(pair, [n_signature for n_signature, _ in signatures])
    for part in (model.slopes, model.log_odds):
        check_shape(part, (n_views,))
    for calibration, curve in zip(model.calibrations, model.densities, strict=True):
        check_calibration(calibration)
        check_curve(curve)
    if model.known is not None:
        check_known(model.known, n_views)


TRUST_PARTS = (TrustModel, ViewTests, PairTest, Calibration, Curve, *KNOWN_PARTS)
