"""No row of a view longer than the view's typical row: the first line of defence against gross damage.

Noise, sensor failures and unit mistakes make rows long, and long rows decide principal components, landmarks and
distances. A bounded row keeps its direction and loses its excess length. One view alone is left as it is: a defence
compares views, and with nothing to compare it is the plain method.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace

from quorumhash.checks import check_scaling, is_number, require
from quorumhash.engines import Engine
from quorumhash.kernelspace import walked_views
from quorumhash.landmarks import SAMPLE_ROWS, FloatMatrix, refuse_rare_views, sample_positions, sample_scaled
from quorumhash.proximal import row_norms
from quorumhash.scaling import LARGEST_SCALED, Scaling, learn_scalings, separate_rows
from quorumhash.views import Views


@dataclass(frozen=True)
class Bound:
    """Scale of one view, and the length that its scaled rows are shortened to."""

    scaling: Scaling
    longest: float


@dataclass(frozen=True)
class BoundedSample:
    """Rows that landmarks and medians are learned on: positions (s,), bounded rows (s, d) by view, presence (s, M)."""

    positions: npt.NDArray[np.intp]
    rows: dict[str, FloatMatrix]
    present: npt.NDArray[np.bool_]


def learn_bounds(
    views: Views, engine: Engine, seed: int, times: float = 1.0, limit: int = SAMPLE_ROWS
) -> tuple[dict[str, Bound], BoundedSample]:
    """Scales of all views, and `times` the median length of a seeded sample's rows as bound; the sample, bounded."""
    scalings = learn_scalings(views, engine)
    positions = sample_positions(len(views), engine, seed, limit)
    sample, present = sample_scaled(views, scalings, engine, seed, limit)
    refuse_rare_views(views, present)
    bounds, rows = {}, {}
    for m, name in enumerate(views):
        lengths = row_norms(sample[name][present[:, m]].astype(np.float64))
        lengths = lengths[lengths > 0]
        longest = times * float(np.median(lengths)) if lengths.size and len(sample) > 1 else LARGEST_SCALED
        bounds[name] = Bound(scalings[name], longest)
        rows[name] = np.asarray(shortened(sample[name], longest), dtype=np.float32)
    return bounds, BoundedSample(positions, rows, present)


def shortened(rows: Any, longest: float) -> Any:
    """Rows (n, d) that are longer than this, brought to it; the others as they are.

    >>> shortened(np.array([[3.0, 4.0], [0.0, 0.5]]), 1.0)
    array([[0.6, 0.8],
           [0. , 0.5]])
    """
    rows = rows.clip(-LARGEST_SCALED, LARGEST_SCALED)
    lengths = row_norms(rows)
    return rows * (longest / lengths.clip(longest, None))[:, None]


def bounded_rows(bounds: tuple[Bound, ...], *blocks: Any) -> tuple[Any, ...]:
    """The views of one block, scaled and bounded, float64 (n, d) each; an absent view is 0."""
    parts = separate_rows(tuple(bound.scaling for bound in bounds), *blocks)
    return tuple(shortened(part, bound.longest) for part, bound in zip(parts, bounds, strict=True))


def joined_bounded(bounds: tuple[Bound, ...], *blocks: Any) -> Any:
    """The same side by side, (n, sum of d)."""
    parts = bounded_rows(bounds, *blocks)
    return array_namespace(parts[0]).concat(parts, axis=1)


def map_views(function: Any, model: Any, views: Views, engine: Engine) -> Any:
    """Walk function(model, present, *blocks) over all rows of the views."""
    return engine.map_rows(function, model, *walked_views(views, engine))


def check_bounds(bounds: Any, widths: tuple[int, ...]) -> None:
    """Refuse bounds that are not those of views of these widths."""
    require(len(bounds) == len(widths) and all(isinstance(bound, Bound) for bound in bounds))
    for bound, width in zip(bounds, widths, strict=True):
        check_scaling(bound.scaling, width)
        require(is_number(bound.longest) and 0 < bound.longest < np.inf)
