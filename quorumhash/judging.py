"""From the rows of all views to trust and repaired coordinates: the tests, the vote and the repair as one step.

Learned on one seeded sample of rows, at hand; applied to any rows, stored or new, block by block.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace, device

from quorumhash.checks import require
from quorumhash.coordinates import (
    COMPONENT_PARTS,
    Components,
    check_components,
    coordinate_rows,
    default_n_components,
    empty_signature,
    scaled_and_completed,
    signature_rows,
)
from quorumhash.describing import describe
from quorumhash.engines import Engine, Rows
from quorumhash.engines.threads import run_together
from quorumhash.knownrows import learn_known
from quorumhash.progress import stage
from quorumhash.repair import RepairModel, check_repair, learn_repair, repair_rows, shares_kept
from quorumhash.tensors import beside, on_host
from quorumhash.trust import (
    TRUST_PARTS,
    TrustModel,
    believed_rows,
    check_trust,
    density_rows,
    mark_rows,
    mass_rows,
    reliability_rows,
    trust_rows,
    usable_rows,
    wrong_shares,
)
from quorumhash.trustlearning import learn_trust
from quorumhash.versions import FEWEST_TO_TEACH, other_version_rows
from quorumhash.views import Views

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Judge:
    """What turns the rows of all views into trust and repaired coordinates."""

    components: tuple[Components, ...]
    trust: TrustModel
    repair: RepairModel


@dataclass(frozen=True)
class Judged:
    """The sampled rows as the judge sees them: signature and coordinates of every view, trust (s, M)."""

    signatures: list[Any]  # where the engine computes, as coordinates are
    coordinates: list[Any]
    trust: FloatArray


def learn_judge(
    sample: Mapping[str, npt.NDArray[Any]], present: npt.NDArray[np.bool_], sources: Sequence[int],
    n_components: int | None = None, engine: Engine | None = None,
) -> tuple[Judge, Judged]:  # fmt: skip
    """Learn from sampled rows (s, d) per view; products of whole rows are made where the engine computes, if given."""
    width, parts = n_components or default_n_components(len(sample)), list(sample.values())

    def described(m: int) -> tuple[Components, Any, Any]:
        return describe(parts[m], present[:, m], width, engine)

    with stage("describing views", len(parts), "views") as done:
        components, signatures, coordinates = zip(
            *run_together(described, range(len(parts)), done, parts[0]), strict=True
        )
    widths = [c.n_signature for c in components]
    empties = [empty_signature(c) for c in components]
    trust_model = learn_trust(signatures, widths, present, sources, empties)
    trust = _walked(engine, trust_rows, trust_model, present, *signatures)
    judge = Judge(components, trust_model, learn_repair(coordinates, trust))
    return judge, Judged(list(signatures), list(coordinates), trust)


def _walked(engine: Engine | None, function: Any, model: Any, *rows: Any) -> Any:
    """A function of blocks over rows at hand, by the engine if there is one."""
    if engine is None:
        return function(model, *rows)
    return engine.get(engine.map_rows(function, model, *map(engine.put, rows)))


def learn_one_model_judge(
    sample: Mapping[str, npt.NDArray[Any]], present: npt.NDArray[np.bool_], sources: Sequence[int],
    n_components: int | None = None, engine: Engine | None = None,
) -> tuple[Judge, Judged]:  # fmt: skip
    """The same, but that rows of a view which another model made than the rest teach nothing, if there are such."""
    judge, judged = learn_judge(sample, present, sources, n_components, engine)
    if len(present) < FEWEST_TO_TEACH:
        return judge, judged
    usable = present & ~on_host(mass_rows(beside(judge.trust, judged.signatures[0]), judged.signatures))
    widths = [c.n_signature for c in judge.components]
    density = _walked(engine, density_rows, judge.trust, *judged.signatures)
    strange = other_version_rows(judged.coordinates, judged.signatures, widths, usable, judged.trust, density)
    again = strange.any()
    return learn_judge(sample, present & ~strange, sources, n_components, engine) if again else (judge, judged)


def described_rows(judge: Judge, present: Any, *blocks: Any) -> tuple[list[Any], list[Any]]:
    """Coordinates and signatures of every view for one block; zero where a view is absent."""
    described = [
        (coordinate_rows(components, values), signature_rows(components, values))
        for components, values in zip(judge.components, _completed_views(judge, present, *blocks), strict=True)
    ]
    return [coordinates for coordinates, _ in described], [signatures for _, signatures in described]


def signatures_of(judge: Judge, present: Any, *blocks: Any) -> list[Any]:
    """The signatures alone: all that judging needs."""
    completed = _completed_views(judge, present, *blocks)
    return [signature_rows(components, values) for components, values in zip(judge.components, completed, strict=True)]


def _completed_views(judge: Judge, present: Any, *blocks: Any) -> Iterator[Any]:
    xp = array_namespace(present)
    for components, block in zip(judge.components, blocks, strict=True):
        if block is None:
            shape = present.shape[0], components.directions.shape[0]
            yield xp.zeros(shape, dtype=xp.float64, device=device(present))
        else:
            yield scaled_and_completed(components, block)


def knowing_all(judge: Judge, present: Rows, blocks: Sequence[Rows | None], engine: Engine) -> Judge:
    """The judge with what all rows hold, not those of the sample alone."""
    unknowing = replace(judge, trust=replace(judge.trust, known=None))
    found = engine.map_rows(_held_rows, unknowing, present, *blocks)
    usable, marks, trust = (np.asarray(engine.get(part)) for part in found)
    known = learn_known(marks, usable, trust, wrong_shares(judge.trust))
    return replace(judge, trust=replace(judge.trust, known=known))


def _held_rows(judge: Judge, present: Any, *blocks: Any) -> tuple[Any, Any, Any]:
    """Of one block, (n, M) each: views that count, the marks by which they are known again, and trust."""
    signatures = signatures_of(judge, present, *blocks)
    usable = present & ~mass_rows(judge.trust, signatures)
    return usable, mark_rows(judge.trust, signatures), trust_rows(judge.trust, present, *signatures)


def repaired_rows(judge: Judge, limits: Any, present: Any, *blocks: Any, worth: Any = None) -> Any:
    """Repaired coordinates (n, q) of all views; `limits` (M,) caps how much of its own each view keeps in this call.

    With the `worth` (M,) of views repaired rows are as long over those that count as whole ones (repair.py).
    """
    coordinates, signatures = described_rows(judge, present, *blocks)
    usable, trust = believed_rows(judge.trust, present, *signatures)
    return repaired_coordinates(judge, limits, worth, usable, trust, *coordinates)


def repaired_coordinates(judge: Judge, limits: Any, worth: Any, usable: Any, trust: Any, *coordinates: Any) -> Any:
    """The same from coordinates and trust (n, M) that are known already, as those of the sample are.

    Of views that are not `usable` (n, M) nothing is kept. An item whose views all have a limit of 0 keeps them.
    """
    xp = array_namespace(usable)
    here = xp.astype(usable, limits.dtype)
    limits = xp.where(xp.any(here * limits > 0, axis=1)[:, None], limits, 1.0)
    return repair_rows(judge.repair, shares_kept(trust * here, limits), *coordinates, worth=worth)


def repaired_sample(judge: Judge, judged: Judged, present: npt.NDArray[np.bool_], engine: Engine, worth: Any) -> Any:
    """Repaired coordinates (s, q) of the sampled rows themselves, where the engine computes."""
    usable = _walked(engine, usable_rows, judge.trust, present, *judged.signatures)
    everyone, rows = np.ones(len(judge.components)), (usable, judged.trust, *judged.coordinates)
    return engine.held(engine.map_rows(repaired_coordinates, judge, everyone, worth, *map(engine.put, rows)))


def repaired_views(judge: Judge, views: Views, worth: Any = None) -> FloatArray:
    """Repaired coordinates (n, q) of a few thousand rows at most, on the host."""
    present = np.stack([views.present(name) for name in views], axis=1)
    everyone = np.ones(present.shape[1])
    blocks = (np.asarray(views[name], dtype=np.float64) for name in views)
    return np.asarray(repaired_rows(judge, everyone, present, *blocks, worth=worth))


def pair_distances(judge: Judge, views: Views, pairs: npt.NDArray[np.int64]) -> FloatArray:
    """Squared distances (M, n_pairs) in every view between two rows each, after repair; a few thousand rows at most."""
    rows, places = np.unique(pairs, return_inverse=True)
    repaired = repaired_views(judge, views[rows])
    first, second = places.reshape(-1, 2).T
    difference = repaired[first] - repaired[second]
    return np.asarray(np.add.reduceat(difference**2, judge.repair.edges[:-1], axis=1).T)


def judged_rows(judge: Judge, present: Any, *blocks: Any) -> Any:
    """Reliability (n, M) of one block."""
    return reliability_rows(judge.trust, present, *signatures_of(judge, present, *blocks))


def check_judge(judge: Any, widths: Sequence[int]) -> None:
    """Refuse a judge whose parts do not fit each other or views of these widths."""
    require(isinstance(judge, Judge) and len(judge.components) == len(widths))
    for components, width in zip(judge.components, widths, strict=True):
        check_components(components, width)
    signatures = [(c.n_signature, c.grain.shape[1]) for c in judge.components]
    check_trust(judge.trust, signatures)
    check_repair(judge.repair, [c.directions.shape[1] for c in judge.components])


JUDGE_PARTS = (Judge, RepairModel, *TRUST_PARTS, *COMPONENT_PARTS)
