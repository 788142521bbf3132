"""Which columns of a table belong to which view: column "gist__12" belongs to view "gist"."""

from __future__ import annotations

from collections.abc import Sequence

from quorumhash.errors import ViewsError

GROUP_MARK = "__"


def column_groups(columns: Sequence[str]) -> dict[str, list[int]]:
    """Positions of the columns of each view, by their names name__feature; empty where no column is called so.

    >>> column_groups(["gist__0", "gist__1", "words__0"])
    {'gist': [0, 1], 'words': [2]}
    """
    plain = [column for column in columns if GROUP_MARK not in column]
    if len(plain) == len(columns):
        return {}
    if plain:
        raise ViewsError(
            f"column {plain[0]!r} belongs to no view: a frame's columns must all be called name{GROUP_MARK}feature "
            "(or none of them, for one view); rename it or leave it out."
        )
    groups: dict[str, list[int]] = {}
    for position, column in enumerate(columns):
        groups.setdefault(column.split(GROUP_MARK, 1)[0], []).append(position)
    if "" in groups:
        raise ViewsError(f"column {columns[groups[''][0]]!r} names no view before its {GROUP_MARK}; rename it.")
    return groups
