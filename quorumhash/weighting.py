"""The views that count, and their repaired coordinates side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace

from quorumhash.judging import Judge, repaired_rows
from quorumhash.tensors import beside

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Weighting:
    """The views that count: where each lies among the repaired coordinates, (start, stop), and its weight (v,)."""

    views: tuple[tuple[int, int], ...]
    weights: FloatArray


def learn_weighting(judge: Judge, view_weights: FloatArray) -> Weighting:
    """The views with a weight above 0."""
    edges = judge.repair.edges
    counting = np.flatnonzero(view_weights > 0)
    return Weighting(tuple((edges[m], edges[m + 1]) for m in counting), view_weights[counting])


def worth_of_views(judge: Judge, weighting: Weighting) -> Any:
    """The weight (M,) of every view that the judge knows, 0 of those that do not count; where the weights are."""
    starts = list(judge.repair.edges)
    counting = np.zeros((len(starts) - 1, len(weighting.views)))
    for i, (start, _) in enumerate(weighting.views):
        counting[starts.index(start), i] = 1.0
    return beside(counting, weighting.weights) @ weighting.weights


def counted_rows(weighting: Weighting, judge: Judge, limits: Any, present: Any, *blocks: Any) -> Any:
    """Z (n, q) of one block of items, repaired, and as long as whole items are."""
    worth = worth_of_views(judge, weighting)
    return weighted_rows(weighting, repaired_rows(judge, limits, present, *blocks, worth=worth))


def weighted_rows(weighting: Weighting, repaired: Any) -> Any:
    """Z (n, q): the views that count, side by side, each times its weight."""
    parts = [repaired[:, start:stop] * weighting.weights[i] for i, (start, stop) in enumerate(weighting.views)]
    return array_namespace(repaired).concat(parts, axis=1)


def graph_spans(weighting: Weighting) -> list[slice]:
    """The columns of Z that each graph is made of: those of one view each, and all of them if the views are several."""
    stops = np.cumsum([stop - start for start, stop in weighting.views]).tolist()
    spans = [slice(start, stop) for start, stop in zip([0, *stops[:-1]], stops, strict=True)]
    return [*spans, slice(0, stops[-1])] if len(spans) > 1 else spans
