"""What tests say of rows that they have not learned from: asked once, voted on as often as odds and trust change.

What a test says of a row (how far out it lies, the log odds that two of its views belong together) depends on the row
and the test alone. Densities, odds and which views count change from round to round, and are put to it then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.engines.threads import run_together
from quorumhash.evidence import density_deviations
from quorumhash.mismatches import pair_and_moved
from quorumhash.pairtests import PairTest, pair_evidence
from quorumhash.tensors import beside, on_host
from quorumhash.trust import TrustModel, count_votes, doubts_of

FloatArray = npt.NDArray[np.float64]
Positions = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Unseen:
    """Rows (n,), the tests that have not seen them, and what these say."""

    test: TrustModel
    rows: Positions
    deviations: FloatArray  # (M, n) of the density of every view
    odds: list[list[FloatArray]]  # of every pair, then of kin: (n,) as they are; with its first, its second view moved

    @property
    def evidence(self) -> list[FloatArray]:
        """Log odds (n,) of the rows as they are, of every pair, then of kin."""
        return [of_pair[0] for of_pair in self.odds]


def ask_unseen(
    tests: Sequence[TrustModel], rows: Sequence[Positions], signatures: Sequence[Any], *, is_moved: bool = True
) -> list[Unseen]:
    """Ask each of several tests about rows of its own; mismatches too, if they are wanted."""
    asked: list[tuple[int, int | PairTest]] = []
    for i, test in enumerate(tests):
        asked += [(i, what) for what in (*range(len(signatures)), *test.pairs, *test.kin)]

    def said(one: tuple[int, int | PairTest]) -> list[FloatArray]:
        i, what = one
        if isinstance(what, int):
            part = signatures[what][rows[i]]
            return [on_host(density_deviations(beside(tests[i].views[what], part), part))]
        parts = signatures[what.first][rows[i]], signatures[what.second][rows[i]]
        return pair_and_moved(what, *parts) if is_moved else [on_host(pair_evidence(beside(what, parts[0]), *parts))]

    answers = iter(run_together(said, asked, rows=signatures[0]))
    unseen = []
    for test, its in zip(tests, rows, strict=True):
        deviations = [next(answers)[0] for _ in signatures]
        unseen.append(Unseen(test, its, np.stack(deviations), [next(answers) for _ in (*test.pairs, *test.kin)]))
    return unseen


def density_doubts(unseen: Unseen) -> FloatArray:
    """What density says against the rows, (n, M)."""
    doubts: FloatArray = doubts_of(unseen.test.densities, list(unseen.deviations))
    return doubts


def trust_of_unseen(unseen: Sequence[Unseen], usable: npt.NDArray[np.bool_]) -> FloatArray:
    """Trust (s, M) in rows that are asked about once each; `usable` (s, M) views count."""
    trust = np.zeros(usable.shape)
    for few in unseen:
        trust[few.rows] = count_votes(few.test, ~usable[few.rows], density_doubts(few), few.evidence)[0]
    return trust
