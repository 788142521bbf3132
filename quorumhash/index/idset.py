"""A sorted set of ids that says which are there."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]


class IdSet:
    """Which ids are there, 8 bytes each; never changed, every step gives a new set.

    >>> ids = IdSet(np.array([5, 2])).with_added(np.array([3])).without(np.array([5]))
    >>> ids.has(np.array([2, 3, 4, 5])).tolist()
    [True, True, False, False]
    """

    def __init__(self, ids: Ids) -> None:
        self._sorted = np.sort(ids)

    def has(self, ids: Ids) -> npt.NDArray[np.bool_]:
        """Which of the ids (n,) are there."""
        if not len(self._sorted):
            return np.zeros(len(ids), dtype=np.bool_)
        places = np.minimum(np.searchsorted(self._sorted, ids), len(self._sorted) - 1)
        found: npt.NDArray[np.bool_] = self._sorted[places] == ids
        return found

    def with_added(self, ids: Ids) -> IdSet:
        """The set with ids that are not in it."""
        ordered = np.sort(ids)
        return self._of(np.insert(self._sorted, np.searchsorted(self._sorted, ordered), ordered))

    def without(self, ids: Ids) -> IdSet:
        """The set without ids that are in it."""
        return self._of(np.delete(self._sorted, np.searchsorted(self._sorted, ids)))

    @staticmethod
    def _of(ordered: Ids) -> IdSet:
        made = IdSet(ordered[:0])
        made._sorted = ordered
        return made
