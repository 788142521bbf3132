"""Views that items of fit hold: what it tells when another item comes with the same view.

A picture of the wrong product is most often the picture of another product. Where that product was among the rows of
fit, its picture is known, and who goes with it best. By the hypotheses of copies.py for a set of two, the owner with
the vote A and another item with the vote a, the odds that this one is right are

    (r e^A + (1 - r) (1 - e) / 2) e^a  /  (1 - r) ((1 - e) / 2 e^A + e)

Without the owner they would be e^a (1 - e) / e. The quotient of the two does not depend on a: it is the doubt that a
known view comes with, learned once and looked up. It is for another item only: one that has a second view of the owner
as well, of another source, is the owner itself, met again, and one that has no view to compare with the owner's may be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace, device

from quorumhash.checks import check_shape, require
from quorumhash.copies import MOST_COPIES, few_copies, same_rows, twins_among_copies, vote_ratios
from quorumhash.engines.threads import run_together

FloatArray = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

MOST_STEPS = 2**20  # of the grid, in either direction; a mark is three numbers of steps in one
NOTHING = np.iinfo(np.int64).max  # the mark of a view that is not there


@dataclass(frozen=True)
class KnownView:
    """Marks (k,) of one view's rows, rising, the item of fit that owns each, and the doubt (k,) it brings to others."""

    marks: Integers
    owners: Integers
    doubts: FloatArray  # <= 0


@dataclass(frozen=True)
class KnownRows:
    """What the items of fit hold: per view the marks that can be looked up, and the marks (s, M) of all items."""

    views: tuple[KnownView, ...]
    items: Integers


def row_marks(cells: Any) -> Any:
    """One number (n,) for the cell (n, 3) of the grid of masspoints.py that a row falls into."""
    xp = array_namespace(cells)
    steps = xp.astype(cells.clip(-MOST_STEPS, MOST_STEPS), xp.int64)
    return (steps[:, 0] * (2 * MOST_STEPS + 1) + steps[:, 1]) * (2 * MOST_STEPS + 1) + steps[:, 2]


def learn_known(marks: Integers, usable: Flags, trust: FloatArray, wrong_shares: FloatArray) -> KnownRows:
    """From the marks (s, M) of items, where they count, and the trust (s, M) in each, known views left out."""
    ratios = vote_ratios(trust, wrong_shares)

    def known(m: int) -> KnownView:
        groups, e = same_rows(marks[:, [m]], usable[:, [m]])[:, 0], float(wrong_shares[m])
        twins = twins_among_copies(few_copies(groups), ratios[:, m], e)
        return _known_view(marks[:, m], usable[:, m], ratios[:, m], e, twins)

    views = run_together(known, range(len(wrong_shares)))
    return KnownRows(tuple(views), np.where(usable, marks, NOTHING))


def _known_view(marks: Integers, usable: Flags, ratios: FloatArray, e: float, twins: float) -> KnownView:
    rows = np.flatnonzero(usable)
    best_first = rows[np.argsort(-ratios[rows], kind="stable")]
    found, first, counts = np.unique(marks[best_first], return_index=True, return_counts=True)
    kept = counts <= MOST_COPIES  # what more items hold is nobody's own
    owners = best_first[first[kept]]
    with_owner = np.logaddexp(np.log(twins) + ratios[owners], np.log((1 - twins) * (1 - e) / 2))
    without = np.log1p(-twins) + np.logaddexp(np.log((1 - e) / 2) + ratios[owners], np.log(e))
    doubts = with_owner - without - np.log((1 - e) / e)
    return KnownView(found[kept], owners, np.minimum(doubts, 0.0))


def known_doubts(known: KnownRows, sources: Sequence[int], usable: Any, marks: Any) -> Any:
    """What known views say against a row, (n, M): 0, or the doubt of a view whose owner is another item."""
    xp = array_namespace(usable)
    row = xp.where(usable, marks, NOTHING - 1)  # equal to no item's
    columns = []
    for m, view in enumerate(known.views):
        if not view.marks.shape[0]:
            columns.append(xp.zeros(usable.shape[0], dtype=xp.float64, device=device(usable)))
            continue
        own = row[:, m] + 0  # a column of its own: torch searches in lines of memory
        at = xp.searchsorted(view.marks, own).clip(0, view.marks.shape[0] - 1)
        others = xp.asarray([source != sources[m] for source in sources], device=device(usable))
        held = known.items[view.owners[at]]
        is_compared = xp.any(usable & others & (held != NOTHING), axis=1)
        is_other = (view.marks[at] == own) & is_compared & ~xp.any((held == row) & others, axis=1)
        columns.append(xp.where(is_other, view.doubts[at], 0.0))
    return xp.stack(columns, axis=1)


def check_known(known: Any, n_views: int) -> None:
    """Refuse what are no known rows of so many views."""
    require(isinstance(known, KnownRows) and len(known.views) == n_views)
    check_shape(known.items, (None, n_views), "i")
    for view in known.views:
        require(isinstance(view, KnownView))
        check_shape(view.doubts, (None,))
        for part in (view.marks, view.owners):
            check_shape(part, (len(view.doubts),), "i")
        require((np.diff(view.marks) > 0).all())
        require(((view.owners >= 0) & (view.owners < len(known.items))).all())


KNOWN_PARTS = (KnownRows, KnownView)
