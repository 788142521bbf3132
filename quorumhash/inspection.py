"""Every view of every row under the tests that need no second look: facts, p-values, posteriors, density.

A fact needs no test: a row that is absent, all zeros, or one value throughout. Facts are kept from what the tests learn
from. Everything else is what trust.py says, learned on a sample and applied block by block. A row of the sample is
judged by tests that have not seen it: those that have would take it for right, wrong as it may be.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace

from quorumhash.calibration import FEWEST_ROWS
from quorumhash.copies import same_rows
from quorumhash.engines import Engine
from quorumhash.errors import RefusedError
from quorumhash.judging import Judge, learn_judge, signatures_of
from quorumhash.landmarks import sample_positions
from quorumhash.repair import learn_repair
from quorumhash.scaling import put_views
from quorumhash.trust import TrustModel, examined_rows, mark_rows, trust_rows
from quorumhash.trustlearning import TRUST_ROWS, cross_fitted
from quorumhash.views import Views

FloatArray = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

FACTS = ("", "missing", "zero", "constant", "model_version", "copy")  # by number; the last two are treated as facts
FEWEST_VALUES = 2  # in a row that can be a fact: one number may well be 0


@dataclass(frozen=True)
class Inspection:
    """What the tests say of every view of every row, (n, M) each."""

    facts: npt.NDArray[np.int8]  # positions in FACTS
    p_values: FloatArray  # NaN where absent, 0 where a fact or a mass point speaks
    trust: FloatArray  # the posterior that the row is right
    mass: Flags  # shared by too many rows
    density: FloatArray  # log p-value of the view's own density
    copies: npt.NDArray[np.int64]  # rows with the same number hold the same view; -1: no other row holds it

    @property
    def usable(self) -> Flags:
        """Where a view is there, and neither a fact nor a mass point."""
        return np.asarray((self.facts == 0) & ~self.mass)


def find_facts(views: Views, engine: Engine) -> npt.NDArray[np.int8]:
    """Positions in FACTS (n, M)."""
    found = np.zeros((len(views), len(views.names)), dtype=np.int8)
    for m, (name, rows) in enumerate(zip(views, put_views(views, engine), strict=True)):
        if rows is not None:
            found[:, m] = engine.get(engine.map_rows(_fact_rows, rows))
        found[~views.present(name), m] = FACTS.index("missing")
    return found


def _fact_rows(block: Any) -> Any:
    xp = array_namespace(block)
    values = xp.astype(block, xp.float64)
    gaps = xp.isnan(values)
    low = xp.min(xp.where(gaps, xp.inf, values), axis=1)
    high = xp.max(xp.where(gaps, -xp.inf, values), axis=1)
    is_flat = (low == high) & (xp.sum(xp.astype(~gaps, xp.int64), axis=1) >= FEWEST_VALUES)
    kinds = xp.where(low == 0, FACTS.index("zero"), FACTS.index("constant"))
    return xp.astype(xp.where(is_flat, kinds, 0), xp.int8)


def refuse_unfit(views: Views, sources: Sequence[int], facts: npt.NDArray[np.int8]) -> None:
    """Refuse tables in which nothing can be compared with anything."""
    if len(set(sources)) < 2:
        what = f"one view, {views.names[0]!r}" if len(views.names) == 1 else "views of one source"
        raise RefusedError(f"an audit compares views of several sources with each other, got {what}; give another one.")
    if len(views) < FEWEST_ROWS:
        raise RefusedError(
            f"an audit needs at least {FEWEST_ROWS} rows to learn what is normal, got {len(views)}; give more rows."
        )
    there = facts == 0
    common = there.T.astype(np.int64) @ there.astype(np.int64)
    for m, name in enumerate(views):
        others = [n for n in range(len(views.names)) if sources[n] != sources[m]]
        if common[m, others].max() < FEWEST_ROWS:
            raise RefusedError(
                f"view {name!r} shares at most {common[m, others].max()} rows with values with a view of another "
                f"source: an audit needs an overlap of {FEWEST_ROWS} rows; give more rows or leave the view out."
            )


@dataclass(frozen=True)
class Inspector:
    """A judge, and for rows it was taught by, judges that were not: row taught[i] is for tests[i % len(tests)]."""

    judge: Judge
    taught: npt.NDArray[np.intp]
    tests: tuple[TrustModel, ...]

    def held_out(self) -> Iterator[tuple[npt.NDArray[np.intp], Judge]]:
        """Rows, and a judge that has not seen them."""
        for fold, test in enumerate(self.tests):
            yield self.taught[fold :: len(self.tests)], replace(self.judge, trust=test)


def learn_inspector(
    views: Views, sources: Sequence[int], facts: npt.NDArray[np.int8], engine: Engine, seed: int
) -> Inspector:
    """The judge of these views, from a sample of their rows without the facts, and judges that have not seen them."""
    positions = sample_positions(len(views), engine, seed)
    blocks = put_views(views, engine)
    sample = {n: engine.take_rows(b, positions) for n, b in zip(views, blocks, strict=True) if b is not None}
    present = facts[positions] == 0
    judge, judged = learn_judge(sample, present, sources)
    if not judge.trust.pairs:
        return Inspector(judge, positions[:0], ())
    signatures = judged.signatures
    widths = [components.n_signature for components in judge.components]
    some = slice(None, None, -(-len(present) // TRUST_ROWS))
    unknowing = replace(judge.trust, known=None)  # an audit compares all rows that hold the same view (copies.py)
    model, tests = cross_fitted(unknowing, [part[some] for part in signatures], widths, present[some])
    trust = trust_rows(model, present, *signatures)
    for fold, test in enumerate(tests):
        rows = np.arange(len(present))[some][fold :: len(tests)]
        trust[rows] = trust_rows(test, present[rows], *(part[rows] for part in signatures))
    judge = replace(judge, trust=model, repair=learn_repair(judged.coordinates, trust))
    return Inspector(judge, positions[some], tests)


def inspect_views(views: Views, inspector: Inspector, facts: npt.NDArray[np.int8], engine: Engine) -> Inspection:
    """The tests of a judge applied to all rows."""
    present = facts == 0
    found = engine.map_rows(_inspected_rows, inspector.judge, engine.put(present), *put_views(views, engine))
    parts = [np.array(engine.get(part)) for part in found]
    for rows, judge in inspector.held_out():
        few = views[rows]
        blocks = [None if few.matrix(name) is None else np.asarray(few[name]) for name in few]
        for part, held in zip(parts, _inspected_rows(judge, present[rows], *blocks), strict=True):
            part[rows] = held
    p_values, trust, mass, density, marks = parts
    p_values[facts > FACTS.index("missing")] = 0.0
    own = (present & ~mass) | (facts == FACTS.index("copy"))
    return Inspection(facts, p_values, trust, mass & present, density, same_rows(marks, own))


def _inspected_rows(judge: Judge, present: Any, *blocks: Any) -> tuple[Any, ...]:
    """What examined_rows says of one block, and the marks (n, M) that copies share."""
    signatures = signatures_of(judge, present, *blocks)
    return *examined_rows(judge.trust, present, *signatures), mark_rows(judge.trust, signatures)
