"""What every dataset is: views of the same items, their labels, and who is trained on, stored and asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.views import Views

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Dataset:
    """Items with views and labels, cut once and for all.

    Attributes
    ----------
    name : str
    views : Views of n_items rows
    labels : int64 (n_items,), or 0 and 1 (n_items, n_labels)
    train_rows, database_rows, query_rows : int64 (n_train,), (n_database,), (n_queries,)
        Rows to learn from, to search in, and to search for; no query is in the database or learned from.
    description : str
        One or two sentences: what the items are, how many, which views.
    images : (n_items, height, width) or (n_items, height, width, channels), optional
        The pictures, where the items are pictures.

    Examples
    --------
    >>> rows = np.arange(3)
    >>> Dataset("toy", Views(np.eye(3)), rows, rows[:2], rows[:2], rows[2:], "Three items.")
    Dataset('toy', 3 items: view0 3; 2 to train on, 2 in the database, 1 queries)
    """

    name: str
    views: Views
    labels: Rows
    train_rows: Rows
    database_rows: Rows
    query_rows: Rows
    description: str
    images: npt.NDArray[Any] | None = None

    def __repr__(self) -> str:
        views = ", ".join(f"{name} {width}" for name, width in self.views.widths.items())
        rows = f"{len(self.train_rows)} to train on, {len(self.database_rows)} in the database, {len(self.query_rows)}"
        return f"Dataset({self.name!r}, {len(self.views)} items: {views}; {rows} queries)"


def stratified_order(labels: Rows, seed: int) -> Rows:
    """A fixed random order of the rows of labels (n_items,) in which every stretch has each label in proportion.

    The same on every platform and version of NumPy.

    >>> np.array([0, 0, 0, 0, 1, 1])[stratified_order(np.array([0, 0, 0, 0, 1, 1]), seed=0)]
    array([0, 1, 0, 0, 1, 0])
    """
    shuffled = np.argsort(np.random.PCG64(seed).random_raw(len(labels)))  # raw bits never change between versions
    place = np.empty(len(labels))
    for label in np.unique(labels):
        rows = shuffled[labels[shuffled] == label]
        place[rows] = (np.arange(len(rows)) + 0.5) / len(rows)
    return shuffled[np.argsort(place[shuffled], kind="stable")].astype(np.int64)
