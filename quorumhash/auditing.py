"""What is wrong with these views: of which kind, which rows, and where misplaced data belong.

    missing, zero, constant   facts: no value, zeros, one value throughout
    placeholder               a row that too many items share (a mass point of evidence.py)
    shift                     in a run of rows the view goes with the row a few places on (joins.py)
    model_version             a group of rows has a relation of its own to the other views (versions.py)
    noise                     surely wrong, and far outside what rows of the view look like
    swap                      surely wrong, but looks like any row of the view; goes with another item (partners.py)

A verdict needs a p-value below the rate of false alarms and a posterior that it is wrong (of at least CERTAIN for a
swap, for noise see versions.noisy_rows): where few rows are damaged, a p-value alone would mark more right rows than
wrong ones. An odd item is no damage: what it is in one view it is in the others. Nor is noise what holds the values of
other items, where noise writes values of its own (ownvalues.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.auditreport import KINDS, AuditReport, Finding
from quorumhash.checks import is_number
from quorumhash.copies import SURELY_COPIED, owned_rows
from quorumhash.engines import Engine, open_engine
from quorumhash.errors import ParameterError
from quorumhash.findings import row_findings, shift_finding, version_finding
from quorumhash.inspection import (
    FACTS,
    Inspection,
    Inspector,
    find_facts,
    inspect_views,
    learn_inspector,
    refuse_unfit,
)
from quorumhash.joins import Run, find_runs, heaviest_runs, shift_gains, voted_offsets
from quorumhash.judging import Judge
from quorumhash.landmarks import sample_positions
from quorumhash.matrices import dense_rows
from quorumhash.overlap import neighbourhood_lift
from quorumhash.ownvalues import holds_known_values
from quorumhash.partners import (
    N_PARTNERS,
    MatchRows,
    find_partners,
    learn_homes,
    learn_matching,
    match_views,
    own_odds,
)
from quorumhash.progress import task_bar
from quorumhash.trust import wrong_shares
from quorumhash.versiongroups import described, version_rows
from quorumhash.versions import ATYPICAL, noisy_rows
from quorumhash.viewoptions import source_numbers
from quorumhash.views import Views

FloatArray = npt.NDArray[np.float64]
Positions = npt.NDArray[np.int64]

LIFT_ROWS = 2_000  # of the sample in which overlap is looked for
KNOWN_ROWS, MOST_NOISY = 5_000, 20_000  # whose values noise is compared with; of noise, as much as is looked at
CERTAIN = 0.98  # posterior that a row is wrong, from which on it is called a swap: of those below, too many are right


@dataclass(frozen=True)
class _Verdicts:
    """Kinds (n, M) as positions in KINDS + 1, 0 for none; partners (n, M, 5); whole-table findings; oddities (n, M)."""

    kinds: npt.NDArray[np.int8]
    partners: Positions
    findings: list[Finding]
    odd: npt.NDArray[np.bool_]
    owned: FloatArray  # (n, M) the posterior that a row is right among those that hold its view, NaN if it is alone


def audit(
    views: Any,
    sources: Any = None,
    *,
    false_alarms: float = 0.01,
    model: Any = None,
    random_state: int = 0,
    engine: str | Engine = "threads",
    verbose: bool = False,
) -> AuditReport:
    """Say what is wrong with views: a p-value for every view of every row, a kind and partners where it is damaged.

    Parameters
    ----------
    views : Views or anything Views accepts
        One row per item; at least two views and 30 rows.
    sources : dict of str to list of str, optional
        Views that come from one source (one photo, one text) and err together.
    false_alarms : float
        Share of undamaged views that may look suspicious; a verdict needs a p-value below it.
    model : QuorumHasher, optional
        A fitted one says what is normal, in place of the rows themselves; it brings its own sources.
    random_state : int
        Seed of the sample that is learned from.
    engine : str or Engine
        Where the rows are walked.
    verbose : bool
        Show a progress bar.

    Examples
    --------
    >>> import quorumhash as qh
    >>> digits = qh.load_dataset("digits")
    >>> report = audit(qh.damage(digits.views, "zero", rate=0.05))
    >>> report.kinds[report.kinds != ""][:2]
    array(['zero', 'zero'], dtype='<U13')
    >>> len(report.apply("drop"))
    1797
    """
    if not is_number(false_alarms) or not 0 < float(false_alarms) < 0.5:
        raise ParameterError(f"false_alarms must be a share above 0 and below 0.5, got {false_alarms!r}; give 0.01.")
    given = Views(views)
    judge: Judge | None = None
    if model is not None:
        if sources is not None:
            raise ParameterError("sources and model were both given: a model brings its own sources; leave them out.")
        judge, given = _of_model(model, given)
        numbers = list(judge.trust.sources)
    else:
        numbers = source_numbers(sources, given.names)
    with open_engine(engine) as opened, task_bar(verbose, 2 + len(given.names), "audit") as done:
        facts = find_facts(given, opened)
        refuse_unfit(given, numbers, facts)
        if judge is None:
            inspector = learn_inspector(given, numbers, facts, opened, random_state)
        else:
            inspector = Inspector(judge, np.empty(0, dtype=np.intp), ())
        done("what is normal")
        seen = inspect_views(given, inspector, facts, opened)
        facts, groups = _versions(given, inspector.judge, seen, false_alarms, opened, random_state)
        facts[(facts == 0) & (_owned(inspector.judge, seen) <= SURELY_COPIED)] = FACTS.index("copy")
        if (facts != seen.facts).any():  # what is normal is learned again without them
            inspector = inspector if model is not None else learn_inspector(given, numbers, facts, opened, random_state)
            seen = inspect_views(given, inspector, facts, opened)
        judge = inspector.judge
        done("every row")
        verdicts = replace(_first_verdicts(seen, false_alarms), findings=groups, owned=_owned(judge, seen))
        for m in range(len(given.names)):
            if any(m in (pair.first, pair.second) for pair in judge.trust.pairs):
                verdicts = _view_verdicts(given, inspector, seen, verdicts, m, opened, random_state, false_alarms)
            done(given.names[m])
        overlap = _overlap(given, judge, facts, opened, random_state)
    trust = np.where(seen.usable, seen.trust, 0.0)
    trust[verdicts.odd & (verdicts.kinds == 0)] = 1.0
    trust = np.where(np.isnan(verdicts.owned), trust, verdicts.owned)
    kinds = np.array(["", *KINDS])[verdicts.kinds]
    findings = [*verdicts.findings, *row_findings(given.names, kinds, verdicts.partners)]
    return AuditReport(
        list(given.names), seen.p_values, kinds, verdicts.partners, findings, float(false_alarms), trust, overlap,
        given, judge,
    )  # fmt: skip


def _of_model(model: Any, views: Views) -> tuple[Judge, Views]:
    judge, widths = getattr(model, "judge_", None), getattr(model, "view_widths_", None)
    if not isinstance(judge, Judge) or widths is None:
        raise ParameterError(
            f"model must be a fitted QuorumHasher, got {type(model).__name__}; fit one, or leave model out."
        )
    judge = replace(judge, trust=replace(judge.trust, known=None))  # rows that hold the same view are compared here
    return judge, views.aligned(widths, type(model).__name__)


def _number(kind: str) -> int:
    return 1 + KINDS.index(kind)


def _first_verdicts(seen: Inspection, false_alarms: float) -> _Verdicts:
    """Facts, placeholders, and what is surely wrong: noise where it is atypical, else a swap until looked at."""
    kinds = np.zeros(seen.facts.shape, dtype=np.int8)
    for i, fact in enumerate(FACTS[1:], start=1):
        kinds[seen.facts == i] = _number("swap" if fact == "copy" else fact)
    kinds[seen.mass] = _number("placeholder")
    suspected = seen.usable & (seen.p_values < false_alarms)
    kinds[suspected & (seen.trust <= 1.0 - CERTAIN)] = _number("swap")
    kinds[suspected & noisy_rows(seen.trust, seen.density)] = _number("noise")
    nowhere, nothing = np.full((*kinds.shape, N_PARTNERS), -1, dtype=np.int64), np.zeros(kinds.shape, dtype=bool)
    return _Verdicts(kinds, nowhere, [], nothing, np.full(kinds.shape, np.nan))


def _versions(
    views: Views, judge: Judge, seen: Inspection, false_alarms: float, engine: Engine, seed: int
) -> tuple[npt.NDArray[np.int8], list[Finding]]:
    """Facts with rows of another model version marked, and a finding for each group of them."""
    noisy = _first_verdicts(seen, false_alarms).kinds == _number("noise")
    facts, findings = seen.facts.copy(), []
    for m, group in version_rows(views, judge, seen, noisy, engine, seed).items():
        facts[group, m] = FACTS.index("model_version")
        findings.append(version_finding(views.names[m], np.flatnonzero(group), len(views)))
    return facts, findings


def _view_verdicts(
    views: Views, inspector: Inspector, seen: Inspection, verdicts: _Verdicts, m: int, engine: Engine, seed: int,
    false_alarms: float,
) -> _Verdicts:  # fmt: skip
    """Partners of the swaps of one view, then the runs in which its join is off."""
    judge, usable, trust = inspector.judge, seen.usable[:, m], np.where(seen.usable, seen.trust, 0.0)
    slope, matching = judge.trust.calibrations[m].slope, learn_matching(judge.trust, m, len(views))
    matches = match_views(views, judge, matching, trust, engine)
    own = own_odds(views, inspector, m, matches, trust, engine)
    kinds, partners, findings = verdicts.kinds.copy(), verdicts.partners.copy(), list(verdicts.findings)
    odd = verdicts.odd.copy()  # an odd item: what it is in one view, it is in the others
    odd[:, m] = usable & (seen.density[:, m] < np.log(ATYPICAL)) & (own > 0)
    kinds[odd[:, m] & (kinds[:, m] == _number("noise")), m] = 0
    kinds[_of_known_values(views, m, kinds[:, m], usable, engine, seed), m] = 0
    is_copied = ~np.isnan(verdicts.owned[:, m])
    kinds[is_copied, m] = np.where(verdicts.owned[is_copied, m] <= 1.0 - CERTAIN, _number("swap"), 0)
    doubted = np.flatnonzero(kinds[:, m] == _number("swap"))
    homes = learn_homes(seen.trust[:, m], usable, seen.copies[:, m], slope)
    found, odds = find_partners(matches, matching, homes, doubted, seed)
    partners[doubted, m] = np.where((odds > 0) & (odds > slope * own[doubted, None]), found, -1)
    offsets = voted_offsets(doubted, found[:, 0], len(views))
    shown = usable | (seen.facts[:, m] == FACTS.index("copy"))  # the first rows of a run are copies of those before it
    for run in _runs(matches, own, shown, slope, offsets, false_alarms / len(views.names)):
        rows = np.arange(run.first, run.last + 1)
        rows = rows[shown[rows]]
        kinds[rows, m] = _number("shift")
        targets = rows + run.offset
        partners[rows, m] = -1
        partners[rows, m, 0] = np.where((targets >= 0) & (targets < len(views)), targets, -1)
        findings.append(shift_finding(views.names[m], rows, run.first, run.last, run.offset, len(views)))
    return replace(verdicts, kinds=kinds, partners=partners, findings=findings, odd=odd)


def _of_known_values(
    views: Views, m: int, kinds: npt.NDArray[np.int8], usable: npt.NDArray[np.bool_], engine: Engine, seed: int
) -> npt.NDArray[np.intp]:
    """Rows of one view that are taken for noise, and are none by their values."""
    noisy, others = np.flatnonzero(kinds == _number("noise")), np.flatnonzero(usable & (kinds == 0))
    matrix = views.matrix(views.names[m])
    if matrix is None or not len(noisy):
        return noisy
    some = others[sample_positions(len(others), engine, seed, KNOWN_ROWS)]
    noise, known = (dense_rows(matrix, rows).astype(np.float64) for rows in (noisy[:MOST_NOISY], some))
    return noisy[:MOST_NOISY][holds_known_values(noise, known)]


def _owned(judge: Judge, seen: Inspection) -> FloatArray:
    """The posterior (n, M) that a row is right among those that hold the same view, NaN where it is alone."""
    if not judge.trust.pairs:
        return np.full(seen.trust.shape, np.nan)
    trust = np.where(seen.facts == FACTS.index("copy"), 0.0, seen.trust)
    return owned_rows(seen.copies, trust, wrong_shares(judge.trust))


def _runs(
    matches: MatchRows, own: npt.NDArray[np.float32], usable: npt.NDArray[np.bool_], slope: float, offsets: list[int],
    false_alarms: float,
) -> list[Run]:  # fmt: skip
    threshold = float(np.log(len(usable) * len(offsets) / false_alarms))
    runs = []
    for offset in offsets:
        runs += find_runs(shift_gains(matches, own, usable, slope, offset), offset, threshold)
    return heaviest_runs(runs)


def _overlap(views: Views, judge: Judge, facts: npt.NDArray[np.int8], engine: Engine, seed: int) -> FloatArray:
    """Neighbourhood lift (M, M) on a sample of rows."""
    positions = sample_positions(len(views), engine, seed, LIFT_ROWS)
    here = facts[positions] == 0
    coordinates = described(views[positions], judge, here)[0]
    return neighbourhood_lift(dict(zip(views, coordinates, strict=True)), here, seed=seed)
