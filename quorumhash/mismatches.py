"""Votes on rows as they are and on mismatches made on purpose: what odds and p-values are learned from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace

from quorumhash.pairtests import PairTest, odds_of_variates, pair_variates
from quorumhash.tensors import beside, on_host
from quorumhash.trust import TrustModel, count_votes, evened_votes, is_ruled_out

FloatArray = npt.NDArray[np.float64]
Presence = npt.NDArray[np.bool_]


def real_and_fake_votes(
    model: TrustModel, evidence: Sequence[Sequence[FloatArray]], out: Presence, doubts: FloatArray
) -> FloatArray:
    """Votes on rows as they are, and on rows with a view taken from another row, then both evened: (4, n, M).

    `evidence` is `pair_and_moved` of every pair, then of kin. NaN where ruled out. Mismatches come in two kinds, by
    turns: a view moved with its whole source, and one alone.
    """
    shift, pairs = _shift(out), (*model.pairs, *model.kin)
    far = is_ruled_out(doubts)
    votes = np.full((4, *out.shape), np.nan)
    votes[::2] = _both_votes(model, out, doubts, [odds for odds, _, _ in evidence])
    votes[::2, out | far] = np.nan
    for m in range(out.shape[1]):
        kin = [n for n, source in enumerate(model.sources) if source == model.sources[m]]
        for start, moved in enumerate((kin, [m])):
            if start == 0 or len(kin) > 1:  # a view that is its whole source: both kinds are one
                gone, doubt = out.copy(), doubts.copy()
                gone[:, moved], doubt[:, moved] = np.roll(out[:, moved], shift, 0), np.roll(doubts[:, moved], shift, 0)
                odds = [
                    of[0] if (p.first in moved) == (p.second in moved) else of[1 if p.first in moved else 2]
                    for p, of in zip(pairs, evidence, strict=True)
                ]
                found = _both_votes(model, gone, doubt, odds)[:, :, m]
                found[:, gone[:, m] | np.roll(far[:, m], shift)] = np.nan
            votes[1::2, start::2, m] = found[:, start::2]
    return votes


def _both_votes(model: TrustModel, out: Presence, doubts: FloatArray, odds: Sequence[FloatArray]) -> FloatArray:
    """Votes as they are, and evened, (2, n, M)."""
    trust, votes = count_votes(model, out, doubts, odds)
    return np.stack([votes, evened_votes(model, out, doubts, trust, votes)])


def pair_and_moved(pair: PairTest, first: Any, second: Any) -> list[FloatArray]:
    """Log odds (n,) of a pair on rows of its views as they are, with the first moved, and with the second moved."""
    xp, pair = array_namespace(first), beside(pair, first)
    u, v = pair_variates(pair, first, second)
    moved_u, moved_v = (xp.roll(part, _shift(part), axis=0) for part in (u, v))
    return [on_host(odds_of_variates(pair, *variates)) for variates in ((u, v), (moved_u, v), (u, moved_v))]


def _shift(rows: Any) -> int:
    """How far rows are moved to be mismatched."""
    return 1 + len(rows) // 3
