"""What every dataset is: views of the same items, their labels, and who is trained on, stored and asked for."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.errors import ParameterError
from quorumhash.views import Views

QUERY_SHARE = 6  # of a thinned dataset's rows at most one in so many is a query

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
    truth_views : tuple of str
        The views in which true neighbours are sought; empty: all.
    sources : dict of str to list of str
        The views of every source, which err together; empty: every view is a source of its own.

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
    truth_views: tuple[str, ...] = ()
    sources: dict[str, list[str]] = field(default_factory=dict)

    def __repr__(self) -> str:
        views = ", ".join(f"{name} {width}" for name, width in self.views.widths.items())
        rows = f"{len(self.train_rows)} to train on, {len(self.database_rows)} in the database, {len(self.query_rows)}"
        return f"Dataset({self.name!r}, {len(self.views)} items: {views}; {rows} queries)"


def thinned(dataset: Dataset, max_rows: int) -> Dataset:
    """The dataset with at most `max_rows` queries and database items: its first queries, a sixth at most, and the first
    rows of database and training set to fill up.

    The rows of a dataset stand in a fixed random order, so the first ones are a random sample, always the same.

    >>> rows = np.arange(100)
    >>> thinned(Dataset("toy", Views(np.eye(100)), rows, rows[20:], rows[20:], rows[:20], "Items."), max_rows=60)
    Dataset('toy', 60 items: view0 100; 50 to train on, 50 in the database, 10 queries)
    """
    if max_rows < QUERY_SHARE:
        raise ParameterError(f"max_rows must be a whole number from {QUERY_SHARE} up, got {max_rows}; give more rows.")
    if len(dataset.views) <= max_rows:
        return dataset
    query_rows = dataset.query_rows[: max_rows // QUERY_SHARE]
    others = [rows[: max_rows - len(query_rows)] for rows in (dataset.train_rows, dataset.database_rows)]
    kept = np.unique(np.concatenate([query_rows, *others]))
    train_rows, database_rows = (np.searchsorted(kept, rows) for rows in others)
    return replace(
        dataset,
        views=dataset.views[kept],
        labels=dataset.labels[kept],
        train_rows=train_rows,
        database_rows=database_rows,
        query_rows=np.searchsorted(kept, query_rows),
        images=None if dataset.images is None else dataset.images[kept],
    )


def validation_cut(dataset: Dataset) -> Dataset:
    """The training rows alone, every sixth of them a query and the others learned from and searched in.

    For choosing parameters: neither the queries of the dataset nor its other database items are seen.

    >>> rows = np.arange(100)
    >>> validation_cut(Dataset("toy", Views(np.eye(100)), rows, rows[20:80], rows[20:], rows[:20], "Items."))
    Dataset('toy', 60 items: view0 100; 50 to train on, 50 in the database, 10 queries)
    """
    kept, rows = dataset.train_rows, np.arange(len(dataset.train_rows))
    is_query = rows % QUERY_SHARE == 0
    return replace(
        dataset,
        views=dataset.views[kept],
        labels=dataset.labels[kept],
        train_rows=rows[~is_query],
        database_rows=rows[~is_query],
        query_rows=rows[is_query],
        images=None if dataset.images is None else dataset.images[kept],
    )


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
