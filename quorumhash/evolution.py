"""Views that come and go after fit, while codes stay: what a new view says of the coordinates that codes are made of.

A view that is added is learned from items that have it beside the old views: which coordinates of the old views it
speaks for (extend_repair of repair.py), and how far it can be believed (trustlearning.py). An item that has it gets the
coordinates it lacks predicted from it. Dimensions, rotation and bits are those of fit. Items without an added view take
the very path they took before, and keep their codes to the bit.

A slot is a place for a view: those of fit first, then one for every view added. A view that is dropped or replaced
leaves its slot empty for good, for the coordinates it stands for are still what codes are made of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace

from quorumhash.calibration import FEWEST_ROWS
from quorumhash.checks import require
from quorumhash.coordinates import Components, default_n_components, empty_signature
from quorumhash.describing import describe
from quorumhash.errors import ParameterError, RefusedError, ViewsError
from quorumhash.judging import Judge, check_judge, described_rows, repaired_rows
from quorumhash.landmarks import SAMPLE_ROWS
from quorumhash.repair import extend_repair
from quorumhash.trust import TrustModel, trust_rows
from quorumhash.trustlearning import learn_trust, with_known
from quorumhash.views import Views
from quorumhash.weighting import Weighting, worth_of_views

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Evolution:
    """The views a model knows by now: the judge of all slots, their names ("" where a view was dropped) and widths."""

    judge: Judge
    slots: tuple[str, ...]
    widths: tuple[int, ...]


def active_views(evolution: Evolution) -> dict[str, int]:
    """Name and width of the views that may be given, in the order of their slots."""
    return {name: width for name, width in zip(evolution.slots, evolution.widths, strict=True) if name}


def slot_views(evolution: Evolution, views: Views, owner: str) -> Views:
    """Views with one member per slot, absent where the slot is empty or nothing was given."""
    aligned = views.aligned(active_views(evolution), owner)
    return Views({f"{i}: {name}": aligned.matrix(name) if name else None for i, name in enumerate(evolution.slots)})


def without_view(evolution: Evolution, name: str) -> Evolution:
    """The view's slot left empty."""
    known = active_views(evolution)
    if name not in known:
        raise ParameterError(f"there is no view {name!r} to drop: the views are {', '.join(known)}.")
    if len(known) == 1:
        raise RefusedError(f"view {name!r} is the only one left: a model needs a view; add another one first.")
    return replace(evolution, slots=tuple("" if slot == name else slot for slot in evolution.slots))


def with_view(evolution: Evolution, name: str, new_view: Any, rows: Views, seed: int) -> Evolution:
    """One more slot, learned from rows (one member per slot) that have the new view too."""
    if not isinstance(name, str) or not name or name in evolution.slots:
        raise ParameterError(
            f"the name of a new view must be a text that no view bears yet, got {name!r}; replace_view replaces one."
        )
    try:
        given = Views({name: new_view, "items": np.zeros((len(rows), 1))})  # rows without the new view are allowed
    except ViewsError as error:
        raise ViewsError(f"new view {name!r} and rows must be about the same items: {error}") from error
    both = np.flatnonzero(given.present(name))
    if len(both) < FEWEST_ROWS:
        raise RefusedError(
            f"new view {name!r} is there in {len(both)} of the {len(rows)} rows: at least {FEWEST_ROWS} must have it "
            "beside the old views, better 10,000; give more rows."
        )
    if len(both) > SAMPLE_ROWS:
        both = np.sort(np.random.default_rng(seed).choice(both, SAMPLE_ROWS, replace=False))
    judge = _extended(evolution.judge, np.asarray(given[name][both], dtype=np.float64), rows[both])
    return Evolution(judge, (*evolution.slots, name), (*evolution.widths, given.widths[name]))


def _extended(judge: Judge, new: FloatArray, rows: Views) -> Judge:
    present = np.stack([rows.present(name) for name in rows], axis=1)
    blocks = [None if rows.matrix(name) is None else np.asarray(rows[name], dtype=np.float64) for name in rows]
    joined = repaired_rows(judge, np.ones(present.shape[1]), present, *blocks)
    signatures = described_rows(judge, present, *blocks)[1]
    everyone = np.ones(len(new), dtype=bool)
    components, signature, coordinates = describe(new, everyone, default_n_components(1 + present.shape[1]))
    signatures.append(signature)
    present = np.concatenate([present, everyone[:, None]], axis=1)
    trust = _extended_trust(judge.trust, signatures, (*judge.components, components), present)
    believed = trust_rows(trust, present, *signatures)[:, -1]
    repair = extend_repair(judge.repair, joined, coordinates, believed)
    return Judge((*judge.components, components), trust, repair)


def _extended_trust(
    model: TrustModel, signatures: list[FloatArray], components: Sequence[Components], present: npt.NDArray[np.bool_]
) -> TrustModel:
    """The tests so far, and those of the new view and of its pairs; a source of its own."""
    sources = (*model.sources, 1 + max(model.sources))
    widths, empties = [c.n_signature for c in components], [empty_signature(c) for c in components]
    learned = learn_trust(signatures, widths, present, sources, empties)
    newest = len(model.views)
    extended = TrustModel(
        (*model.views, learned.views[-1]),
        (*model.pairs, *(pair for pair in learned.pairs if pair.first == newest)),
        model.kin,
        sources,
        (*model.calibrations, learned.calibrations[-1]),
        np.append(model.slopes, learned.slopes[-1]),
        np.append(model.log_odds, learned.log_odds[-1]),
        (*model.densities, learned.densities[-1]),
    )
    return with_known(extended, signatures, present)


def evolved_rows(judge: Judge, evolved: Judge, weighting: Weighting, limits: Any, present: Any, *blocks: Any) -> Any:
    """Repaired coordinates (n, q) of the fitted slots for one block; rows without an added view by the fitted judge."""
    xp = array_namespace(present)
    n_fitted, n_columns = len(judge.components), judge.repair.edges[-1]
    added = xp.any(present[:, n_fitted:], axis=1)
    repaired = xp.zeros((present.shape[0], n_columns), dtype=xp.float64)
    for chosen, by, n_slots in ((~added, judge, n_fitted), (added, evolved, present.shape[1])):
        if xp.any(chosen):
            parts = [None if block is None else block[chosen] for block in blocks[:n_slots]]
            worth = worth_of_views(by, weighting)  # an added view counts for nothing: it speaks for the others
            given = repaired_rows(by, limits[:n_slots], present[chosen][:, :n_slots], *parts, worth=worth)
            repaired[chosen] = given[:, :n_columns]
    return repaired


def check_evolution(evolution: Any, judge: Judge) -> None:
    """Refuse what is no later state of a model with this judge."""
    require(isinstance(evolution, Evolution) and len(evolution.slots) == len(evolution.widths) >= len(judge.components))
    require(all(isinstance(slot, str) for slot in evolution.slots) and any(evolution.slots))
    require(all(isinstance(width, int) and width > 0 for width in evolution.widths))
    check_judge(evolution.judge, evolution.widths)


EVOLUTION_PARTS = (Evolution,)
