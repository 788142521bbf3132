"""Which views of an item are right, asked of all of them at once.

The vote of trust.py asks about one view at a time, each other view as far as it is believed itself. Where as many views
are wrong as right every view has more against it than for it, the voters lose their say, and nothing is left but the
prior. Sets of views do not have that trouble: the set of right views is the one within which everything goes together.
With z_m = 1 where view m is right,

    log P(z) = sum over m of z_m f_m + sum over pairs of z_m z_n a_mn l_mn + constant

f_m is the log odds before any vote, with what density says; l_mn the evidence of a pair; a_mn the smaller of the two
slopes by which the vote is made honest: no pair may say more than the more careful of its views allows.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from quorumhash.correction import SURE
from quorumhash.inspection import Inspection, Inspector
from quorumhash.judging import Judge, described_rows
from quorumhash.trust import TrustModel, doubt_rows, gather_evidence
from quorumhash.views import Views

FloatArray = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

MOST_VIEWS = 8  # 2^8 sets
BLOCK_ROWS = 8_192
RULED_OUT = -1e3  # log odds of a view that is a fact, a mass point, or not there


def joint_trust(views: Views, inspector: Inspector, seen: Inspection) -> FloatArray:
    """The posterior (n, M) that each view is right, 0 where it is not usable; by tests that have not seen the row.

    Rows of which the vote doubts no view keep the vote's trust. So does everything where there are more than MOST_VIEWS
    views, or several of one source: those err together, and their number is no argument.
    """
    trust = np.where(seen.usable, seen.trust, 0.0)
    model = inspector.judge.trust
    if model.kin or not model.pairs or trust.shape[1] > MOST_VIEWS:
        return trust
    is_doubted = np.any(seen.usable & (seen.trust < SURE), axis=1, keepdims=True)[:, 0]
    is_taught = np.zeros(len(trust), dtype=bool)
    for rows, judge in inspector.held_out():
        is_taught[rows] = True
        rows = rows[is_doubted[rows]]
        trust[rows] = _joint_rows(views[rows], judge, seen.usable[rows])
    rest = np.flatnonzero(is_doubted & ~is_taught)
    for rows in np.array_split(rest, 1 + len(rest) // BLOCK_ROWS):
        trust[rows] = _joint_rows(views[rows], inspector.judge, seen.usable[rows])
    return trust


def _joint_rows(views: Views, judge: Judge, usable: Flags) -> FloatArray:
    if not len(usable):
        return np.empty(usable.shape)
    blocks = [None if views.matrix(name) is None else np.asarray(views[name], dtype=np.float64) for name in views]
    signatures = described_rows(judge, usable, *blocks)[1]
    evidence = gather_evidence(judge.trust, signatures)
    return right_views(judge.trust, usable, doubt_rows(judge.trust, *signatures), evidence)


def right_views(model: TrustModel, usable: Flags, doubts: FloatArray, evidence: Sequence[FloatArray]) -> FloatArray:
    """The posterior (n, M) that each view is right: the sum of P(z) over the sets z that have it."""
    sets = np.array(list(itertools.product((0.0, 1.0), repeat=usable.shape[1])))
    log_p = np.where(usable, model.log_odds + doubts, RULED_OUT) @ sets.T
    for pair, odds in zip(model.pairs, evidence, strict=True):
        slope = float(np.min(pair.shares * model.slopes[[pair.first, pair.second]]))
        log_p += np.multiply.outer(slope * odds, sets[:, pair.first] * sets[:, pair.second])
    weights = np.exp(log_p - log_p.max(axis=1, keepdims=True))
    posterior: FloatArray = (weights @ sets) / weights.sum(axis=1, keepdims=True)
    return np.where(usable, posterior, 0.0)
