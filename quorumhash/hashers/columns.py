"""Column names of pandas frames: remembered in fit, compared afterwards, so that no reordered table slips through."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn.utils.validation import _check_feature_names

from quorumhash.columngroups import GROUP_MARK
from quorumhash.errors import ViewsError


def learn_columns(hasher: Any, X: Any) -> None:
    """Remember columns: scikit-learn's feature_names_in_ of a frame that is one view, view_columns_ of all others."""
    for name in ("feature_names_in_", "view_columns_"):
        if hasattr(hasher, name):
            delattr(hasher, name)
    if _is_grouped(X):
        hasher.view_columns_ = _columns_by_view(X)
    elif _is_frame(X):
        _check_feature_names(hasher, X, reset=True)


def check_columns(hasher: Any, X: Any) -> None:
    """Refuse a frame whose columns are not those of fit, in their order; a whole view may be left out."""
    if _is_grouped(X):
        learned = getattr(hasher, "view_columns_", {})
        for view, columns in _columns_by_view(X).items():
            if view in learned and columns != learned[view]:
                raise ViewsError(
                    f"view {view!r} has columns {_shortened(columns)} but was fitted on {_shortened(learned[view])}: "
                    "give the same columns in the same order."
                )
    elif _is_frame(X) or (hasattr(hasher, "feature_names_in_") and hasattr(X, "shape")):
        try:
            _check_feature_names(hasher, X, reset=False)
        except ValueError as error:
            raise ViewsError(str(error)) from error


def _is_frame(X: Any) -> bool:
    return hasattr(X, "iloc") and hasattr(X, "columns")


def _is_grouped(X: Any) -> bool:
    if isinstance(X, Mapping):
        return any(_is_frame(part) for part in X.values())
    return _is_frame(X) and any(GROUP_MARK in str(column) for column in X.columns)


def _columns_by_view(frame: Any) -> dict[str, list[str]]:
    if isinstance(frame, Mapping):
        return {name: [str(c) for c in part.columns] for name, part in frame.items() if _is_frame(part)}
    groups: dict[str, list[str]] = {}
    for column in map(str, frame.columns):
        groups.setdefault(column.split(GROUP_MARK, 1)[0], []).append(column)
    return groups


def _shortened(columns: list[str]) -> str:
    return ", ".join(columns[:3]) + (", ..." if len(columns) > 3 else "")
