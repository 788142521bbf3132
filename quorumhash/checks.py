"""What hashers check alike: parameters before a fit, learned values after a model file was read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from quorumhash.errors import ModelFileError, ParameterError
from quorumhash.scaling import Scaling


def is_number(value: Any) -> bool:
    """Whether this is a real number (True and False are not)."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_count(name: str, value: Any, smallest: int, hasher: Any) -> None:
    """Refuse what is no whole number from `smallest` up."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < smallest:
        raise ParameterError(
            f"{name} of {type(hasher).__name__} must be a whole number from {smallest} up, got {value!r}."
        )


def check_switch(name: str, value: Any, hasher: Any) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(value, bool | np.bool_):
        raise ParameterError(f"{name} of {type(hasher).__name__} must be True or False, got {value!r}.")


def check_positive(name: str, value: Any, hasher: Any, above: float = 0.0) -> None:
    """Refuse what is no finite number above a bound."""
    if not (is_number(value) and above < value < np.inf):
        raise ParameterError(
            f"{name} of {type(hasher).__name__} must be a finite number above {above:g}, got {value!r}."
        )


def check_choice(name: str, value: Any, known: Sequence[str], hasher: Any) -> None:
    """Refuse what is none of the known words."""
    if value not in known:
        raise ParameterError(f"{name} of {type(hasher).__name__} must be one of {', '.join(known)}, got {value!r}.")


def check_landmarks(hasher: Any) -> None:
    """Refuse a number of landmarks that is neither None nor a whole number from 1 up."""
    if hasher.n_landmarks is not None:
        check_count("n_landmarks", hasher.n_landmarks, 1, hasher)


def check_graph_parameters(hasher: Any) -> None:
    """Refuse numbers of landmarks and neighbours out of range."""
    check_landmarks(hasher)
    check_count("n_neighbors", hasher.n_neighbors, 1, hasher)


def require(is_met: Any) -> None:
    """Refuse learned values that do not fit each other."""
    if not is_met:
        raise ModelFileError("the parts of the model do not fit each other; restore the file from a copy or fit again.")


def check_shape(array: Any, shape: tuple[int | None, ...], kind: str = "f") -> None:
    """Refuse what is no finite array of this shape and kind of number; None stands for any length."""
    require(isinstance(array, np.ndarray) and array.dtype.kind == kind and array.ndim == len(shape))
    require(all(wanted in (None, length) for wanted, length in zip(shape, array.shape, strict=True)))
    require(np.isfinite(array).all())


def check_scaling(scaling: Any, width: int) -> None:
    """Refuse a scaling that is not one of a view of this width."""
    require(isinstance(scaling, Scaling) and is_number(scaling.factor) and np.isfinite(scaling.factor))
    check_shape(scaling.mean, (width,))


def check_scalings(scalings: Any, widths: Mapping[str, int]) -> None:
    """Refuse scalings that are not those of these views, in their order."""
    require(isinstance(scalings, dict) and list(scalings) == list(widths))
    for name, width in widths.items():
        check_scaling(scalings[name], width)


def check_widths(widths: Any, n_features: Any, n_bits: Any, columns: Any) -> None:
    """Refuse widths, counts and column names of no possible model."""
    require(isinstance(widths, dict) and widths)
    require(all(isinstance(width, int) and width > 0 for width in widths.values()))
    require(isinstance(n_features, int) and n_features == sum(widths.values()))
    require(isinstance(n_bits, int) and n_bits > 0)
    require(isinstance(columns, dict) and all(len(columns.get(name, [])) in (0, widths[name]) for name in widths))
