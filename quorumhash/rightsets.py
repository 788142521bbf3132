"""Which views of an item are right, asked of all of them at once.

The vote of trust.py asks about one view at a time, each other view as far as it is believed itself. Where as many views
are wrong as right every view has more against it than for it, the voters lose their say, and nothing is left but the
prior. Sets of views do not have that trouble: the set of right views is the one within which everything goes together.
With z_m = 1 where view m is right,

    log P(z) = sum over m of z_m f_m + sum over pairs of z_m z_n a_mn l_mn + constant

f_m is the log odds before any vote, with what density says; l_mn the evidence of a pair; a_mn the smaller of the two
slopes by which the vote is made honest: no pair may say more than the more careful of its views allows.

Views of one source err together. Two of them that go together are right together or wrong together, so such a pair adds
a_mn l_mn where z_m = z_n, be they 0 or 1; and a source has one prior, which its views share.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace, device

from quorumhash.trust import NO_TRUST, TrustModel, doubt_rows, gather_evidence, mass_rows, trust_rows

MOST_VIEWS = 8  # 2^8 sets
RULED_OUT = -1e3  # log odds of a view that is a fact, a mass point, or not there


def knows_sets(model: TrustModel) -> bool:
    """Whether sets of views can be asked; else the vote decides. Two sources of several views cannot be told apart."""
    has_argument = not model.kin or len(set(model.sources)) > 2
    return bool(model.pairs) and has_argument and len(model.sources) <= MOST_VIEWS


def belief_rows(model: TrustModel, present: Any, *signatures: Any) -> Any:
    """The posterior (n, M) that each view is right, by sets if they can be asked; NO_TRUST where a view has none."""
    if not knows_sets(model):
        return trust_rows(model, present, *signatures)
    usable = present & ~mass_rows(model, signatures)
    doubts, evidence = doubt_rows(model, usable, *signatures), gather_evidence(model, signatures)
    return right_views(model, usable, doubts, evidence).clip(NO_TRUST, None)


def right_views(model: TrustModel, usable: Any, doubts: Any, evidence: Sequence[Any]) -> Any:
    """The posterior (n, M) that each view is right: the sum of P(z) over the sets z that have it; 0 if not usable."""
    xp = array_namespace(doubts)
    sets = xp.asarray(_every_set(usable.shape[1]), device=device(doubts))
    n_alike = xp.asarray([float(model.sources.count(source)) for source in model.sources], device=device(doubts))
    log_p = xp.where(usable, model.log_odds / n_alike + doubts, RULED_OUT) @ sets.T
    pairs = (*model.pairs, *model.kin)
    for i, (pair, odds) in enumerate(zip(pairs, evidence, strict=True)):
        first, second = sets[:, pair.first], sets[:, pair.second]
        slope = xp.min(pair.shares * xp.stack([model.slopes[pair.first], model.slopes[pair.second]]))
        if i < len(model.pairs):
            log_p += (slope * odds)[:, None] * (first * second)
        else:  # of views that are not usable nothing is known to go together
            known = xp.astype(usable[:, pair.first] & usable[:, pair.second], odds.dtype)
            log_p += (slope * odds * known)[:, None] * xp.astype(first == second, odds.dtype)
    log_p -= xp.max(log_p, axis=1, keepdims=True)
    weights = xp.exp(log_p)
    return xp.where(usable, (weights @ sets) / xp.sum(weights, axis=1, keepdims=True), 0.0)


def _every_set(n_views: int) -> npt.NDArray[np.float64]:
    return np.array(list(itertools.product((0.0, 1.0), repeat=n_views)))
