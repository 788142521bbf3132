"""Learned values as plain trees (dict, list, text, number, array) for the model file, and back."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from quorumhash.errors import ModelFileError

PART = "part"


def to_plain(value: Any) -> Any:
    """A tree without classes: a dataclass becomes {"part": its name, **fields}; a random generator becomes None."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: to_plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {PART: type(value).__name__, **fields}
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return value.tolist() if value.dtype == object else value
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.random.Generator | np.random.RandomState):
        return None
    return value


def from_plain(tree: Any, parts: Sequence[type]) -> Any:
    """The value again; only the dataclasses named in `parts` are ever made."""
    if isinstance(tree, list):
        return [from_plain(item, parts) for item in tree]
    if not isinstance(tree, dict):
        return tree
    values = {key: from_plain(item, parts) for key, item in tree.items() if key != PART}
    if PART not in tree:
        return values
    known = {part.__name__: part for part in parts}
    if tree[PART] not in known:
        raise ModelFileError(f"the model holds an unknown part {tree[PART]!r}; it was made by another program.")
    try:
        return known[tree[PART]](**values)
    except TypeError as error:
        raise ModelFileError(f"part {tree[PART]!r} of the model does not fit this version: {error}.") from error
