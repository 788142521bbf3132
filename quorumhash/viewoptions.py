"""Options that name views, from words to numbers: objective, weights, sources; every mistake gets one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.checks import is_number
from quorumhash.errors import ParameterError

FloatArray = npt.NDArray[np.float64]

OBJECTIVES = {"neighbours": 0.0, "groups": 1.0}


def dial_of(objective: Any) -> float:
    """The smoothing g from 0 to 1."""
    if isinstance(objective, str) and objective in OBJECTIVES:
        return OBJECTIVES[objective]
    if is_number(objective) and 0 <= float(objective) <= 1:
        return float(objective)
    raise ParameterError(
        f"objective of QuorumHasher must be 'neighbours', 'groups' or a number from 0 to 1, got {objective!r}."
    )


def given_weights(view_weights: Any, names: tuple[str, ...]) -> FloatArray | None:
    """Weights (M,) as the user gave them; None for "auto"."""
    if isinstance(view_weights, str) and view_weights in ("auto", "equal"):
        return None if view_weights == "auto" else np.ones(len(names))
    if isinstance(view_weights, Mapping):
        weights = _checked_weights("view_weights of QuorumHasher", view_weights, names)
        if weights.any():
            return weights
        raise ParameterError(
            f"view_weights of QuorumHasher must leave at least one view a weight above 0, got {view_weights!r}."
        )
    raise ParameterError(
        f"view_weights of QuorumHasher must be 'auto', 'equal' or a dict of view to weight, got {view_weights!r}."
    )


def call_limits(view_weights: Any, names: tuple[str, ...]) -> FloatArray:
    """How much of its own each view may keep in one call (M,), the largest 1."""
    if view_weights is None:
        return np.ones(len(names))
    if not isinstance(view_weights, Mapping):
        raise ParameterError(f"view_weights of a call must be a dict of view to weight, got {view_weights!r}.")
    weights = _checked_weights("view_weights of a call", view_weights, names)
    if not weights.any():
        raise ParameterError(
            f"view_weights of a call must leave at least one view a weight above 0, got {view_weights!r}."
        )
    return np.asarray(weights / weights.max())


def _checked_weights(what: str, weights: Mapping[str, Any], names: tuple[str, ...]) -> FloatArray:
    for name, weight in weights.items():
        if name not in names:
            raise ParameterError(f"{what} names {name!r}, which is no view: the views are {', '.join(names)}.")
        if not is_number(weight) or not 0 <= float(weight) < np.inf:
            raise ParameterError(f"{what} must be numbers from 0 up, got {weight!r} for {name!r}.")
    return np.array([float(weights.get(name, 1.0)) for name in names])


def source_numbers(sources: Any, names: tuple[str, ...]) -> list[int]:
    """The source of every view, as a number; views not named are sources of their own."""
    if sources is None:
        return list(range(len(names)))
    if not isinstance(sources, Mapping) or any(isinstance(v, str) or not np.iterable(v) for v in sources.values()):
        raise ParameterError(f"sources of QuorumHasher must be a dict of source to list of views, got {sources!r}.")
    number: dict[str, int] = {}
    for i, (source, views) in enumerate(sources.items()):
        for name in views:
            if name not in names:
                raise ParameterError(
                    f"sources of QuorumHasher names {name!r} in {source!r}, which is no view: "
                    f"the views are {', '.join(names)}."
                )
            if name in number:
                raise ParameterError(f"sources of QuorumHasher name view {name!r} twice: a view has one source.")
            number[name] = i
    return [number.get(name, len(sources) + i) for i, name in enumerate(names)]
