"""Rows that come after fit: how far they have drifted from those of fit, and trust that follows slow drift.

    mean      how far the centre of a view has moved, in standard deviations of a typical direction of the view
    alarms    the share of rows with a p-value below ALARM; about ALARM where nothing has changed
    vote      how far the middle of the votes on a view has moved, in quartile ranges of the votes in fit

What follows the stream (`Stream`) is the centre of every view and the middle and spread of its votes. Both serve
reliability alone: codes never change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.calibration import Curve
from quorumhash.checks import check_shape, require
from quorumhash.coordinates import Components, emptied_rows
from quorumhash.describing import robust_scaling
from quorumhash.judging import Judge, signatures_of
from quorumhash.scaling import Scaling
from quorumhash.trust import p_value_rows, votes_rows

FloatArray = npt.NDArray[np.float64]

MEMORY = 10_000  # rows that the stream remembers, beginning with those of fit
ALARM = 0.01
FEWEST_ROWS = 30
MOVED, ALARMING, ESTRANGED = 0.5, 0.05, 0.5  # limits of mean, alarms and vote, from which on a refit is due


@dataclass(frozen=True)
class Stream:
    """What follows the rows after fit: per view the centre (d,), and middle and quartile range of the votes."""

    n_rows: float  # remembered
    centres: tuple[FloatArray, ...]
    middles: FloatArray  # (M,)
    ranges: FloatArray  # (M,)


@dataclass(frozen=True)
class DriftReport:
    """Whether a refit is due, and why; figures per view as the module's text says, NaN where too few rows have it.

    >>> DriftReport(["image"], [0.1], [0.01], [0.0], []).is_due
    False
    """

    names: list[str]
    mean: list[float]
    alarms: list[float]
    vote: list[float]
    reasons: list[str]

    @property
    def is_due(self) -> bool:
        """Whether any figure is beyond its limit."""
        return bool(self.reasons)


def first_stream(judge: Judge) -> Stream:
    """The state at the end of fit."""
    quartiles = np.array([_quartiles(c.curve) for c in judge.trust.calibrations])
    centres = tuple(np.array(components.scaling.mean) for components in judge.components)
    return Stream(float(MEMORY), centres, quartiles[:, 1], _ranges(quartiles))


def _ranges(quartiles: FloatArray) -> FloatArray:
    return np.maximum(quartiles[:, 2] - quartiles[:, 0], 1e-9)


def _quartiles(curve: Curve) -> list[float]:
    """Votes that a quarter, half and three quarters of the undamaged rows lie below."""
    return [float(np.interp(np.log(share), curve.log_p, curve.statistic)) for share in (0.25, 0.5, 0.75)]


def moved_judge(judge: Judge, stream: Stream) -> Judge:
    """The judge with every view centred where the stream is; there, views of fit are not known again."""
    moved = [
        replace(components, scaling=Scaling(centre, components.scaling.factor))
        for components, centre in zip(judge.components, stream.centres, strict=True)
    ]
    return replace(judge, components=tuple(moved), trust=replace(judge.trust, known=None))


def streamed_rows(judge: Judge, stream: Stream, present: Any, *blocks: Any) -> FloatArray:
    """Reliability (n, M) of one block, by a judge whose centres and votes follow the stream."""
    moved = moved_judge(judge, stream)
    signatures = signatures_of(moved, present, *blocks)
    votes, mass = votes_rows(moved.trust, present, *signatures)
    start = first_stream(judge)
    votes = (votes - stream.middles) / stream.ranges * start.ranges + start.middles
    return np.asarray(p_value_rows(judge.trust, present, votes, mass, *signatures))


def followed(judge: Judge, stream: Stream, present: npt.NDArray[np.bool_], blocks: Sequence[Any]) -> Stream:
    """The stream after more rows, which count as far as there are as many as it remembers."""
    counts = present.sum(axis=0)
    shares = np.where(counts >= FEWEST_ROWS, counts / (counts + min(stream.n_rows, MEMORY)), 0.0)
    centres = tuple(
        centre if not share else (1.0 - share) * centre + share * _centre(block[present[:, m]])
        for m, (centre, share, block) in enumerate(zip(stream.centres, shares, blocks, strict=True))
    )
    stream = replace(stream, n_rows=min(stream.n_rows + len(present), float(MEMORY)), centres=centres)
    quartiles = _vote_quartiles(moved_judge(judge, stream), present, blocks)
    here = shares * ~np.isnan(quartiles[:, 1])
    quartiles = np.nan_to_num(quartiles)
    return replace(
        stream,
        middles=(1.0 - here) * stream.middles + here * quartiles[:, 1],
        ranges=(1.0 - here) * stream.ranges + here * _ranges(quartiles),
    )


def _centre(block: Any) -> FloatArray:
    return robust_scaling(emptied_rows(np.asarray(block, dtype=np.float64)))[0].mean


def _vote_quartiles(judge: Judge, present: npt.NDArray[np.bool_], blocks: Sequence[Any]) -> FloatArray:
    """Quartiles (M, 3) of the votes on rows that are there and no mass points; NaN where they are few."""
    votes, mass = votes_rows(judge.trust, present, *signatures_of(judge, present, *blocks))
    usable = present & ~mass
    return np.array(
        [
            np.quantile(votes[usable[:, m], m], [0.25, 0.5, 0.75])
            if usable[:, m].sum() >= FEWEST_ROWS
            else [np.nan] * 3
            for m in range(votes.shape[1])
        ]
    )


def measure_drift(
    judge: Judge, stream: Stream, names: Sequence[str], present: npt.NDArray[np.bool_], blocks: Sequence[Any]
) -> DriftReport:
    """Compare rows with those of fit; alarms are counted with what has followed the stream so far."""
    start = first_stream(judge)
    p_values = streamed_rows(judge, stream, present, *blocks)
    quartiles = _vote_quartiles(judge, present, blocks)
    mean, alarms, vote = (np.full(len(names), np.nan) for _ in range(3))
    for m, components in enumerate(judge.components):
        if present[:, m].sum() < FEWEST_ROWS:
            continue
        mean[m] = _moved(components, blocks[m][present[:, m]])
        alarms[m] = float(np.mean(p_values[present[:, m], m] < ALARM))
        vote[m] = float((start.middles[m] - quartiles[m, 1]) / start.ranges[m])
    reasons = []
    for m, name in enumerate(names):
        if mean[m] > MOVED:
            reasons.append(f"the mean of view {name!r} has moved by {mean[m]:.2f} standard deviations")
        if alarms[m] > ALARMING:
            reasons.append(f"view {name!r} looks damaged in {100 * alarms[m]:.1f} % of the rows")
        if vote[m] > ESTRANGED:
            reasons.append(f"view {name!r} agrees with the others less than in fit")
    return DriftReport(list(names), mean.tolist(), alarms.tolist(), vote.tolist(), reasons)


def _moved(components: Components, block: Any) -> float:
    """The length of the move of the mean over the root mean square of what rows differ by, chance taken off."""
    block = np.asarray(block, dtype=np.float64)
    move = (_centre(block) - components.scaling.mean) * components.scaling.factor
    return float(np.sqrt(max(float(move @ move) - 1.0 / len(block), 0.0)))


def check_stream(stream: Any, widths: Sequence[int]) -> None:
    """Refuse what is no stream of views of these widths."""
    require(isinstance(stream, Stream) and len(stream.centres) == len(widths))
    for centre, width in zip(stream.centres, widths, strict=True):
        check_shape(centre, (width,))
    for part in (stream.middles, stream.ranges):
        check_shape(part, (len(widths),))
    require((stream.ranges > 0).all())


STREAM_PARTS = (Stream,)
