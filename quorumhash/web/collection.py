"""What the page is about: a model, the stored codes and, where given, views, labels and pictures of the items."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from quorumhash.codes import Bytes
from quorumhash.engines.threads import ThreadsEngine
from quorumhash.errors import ParameterError
from quorumhash.hashers import HASHERS
from quorumhash.index.hamming import HammingIndex
from quorumhash.views import Views

Ids = npt.NDArray[np.int64]
RIVAL_ROWS = 20_000  # that the rival learns from


class PictureBook(Protocol):
    """Pictures of items."""

    def picture(self, item: int) -> bytes:
        """The picture of an item, PNG."""

    def name(self, item: int) -> str:
        """What the picture is called; may be empty."""

    def has(self, item: int) -> bool:
        """Whether there is a picture of the item."""


@dataclass(eq=False)
class Collection:
    """Items under ids. Row i of `views` and `labels` is about the item `row_ids[i]`; ids rise.

    Attributes
    ----------
    title : str
    hasher : a fitted hasher
    codes, ids : uint8 (n_items, n_bytes), int64 (n_items,)
        What is stored, by rising id.
    row_ids : int64 (n_rows,)
        The items that views and labels are about; some may not be stored.
    views : Views of n_rows rows, optional
    labels : (n_rows,), optional
    pictures : PictureBook, optional
    read_picture : callable, optional
        From the pixels (height, width, 3) of a new picture to views of one row.
    """

    title: str
    hasher: Any
    codes: Bytes
    ids: Ids
    row_ids: Ids
    views: Views | None = None
    labels: npt.NDArray[Any] | None = None
    pictures: PictureBook | None = None
    read_picture: Callable[[Any], Views] | None = None
    index: HammingIndex = field(init=False)
    _engine: ThreadsEngine = field(init=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        self.index = indexed(self.hasher.n_bits_, self.codes, self.ids)
        self._engine = ThreadsEngine()

    @property
    def method(self) -> str:
        """Name of the hasher's method."""
        return next((name for name, kind in HASHERS.items() if kind is type(self.hasher)), type(self.hasher).__name__)

    @cached_property
    def known_ids(self) -> Ids:
        """Every item that may be asked for, by rising id."""
        return np.union1d(self.ids, self.row_ids)

    def row(self, item: int) -> int | None:
        """The row of views and labels that is about an item."""
        return place(self.row_ids, item)

    def item_views(self, item: int) -> Views | None:
        """The views of one item, as one row."""
        row = self.row(item)
        return None if self.views is None or row is None else self.views[[row]]

    def label(self, item: int) -> str | None:
        """The label of an item as text; several are joined."""
        row = self.row(item)
        if self.labels is None or row is None:
            return None
        value = self.labels[row]
        return ", ".join(map(str, np.flatnonzero(value))) if np.ndim(value) else str(value)

    def code(self, item: int) -> Bytes:
        """The stored code (n_bytes,) of an item, or that of its views."""
        position, views = place(self.ids, item), self.item_views(item)
        if position is None and views is None:
            raise UnknownItemError(item)
        code: Bytes = self.encode(views)[0] if position is None and views is not None else self.codes[position]
        return code

    def encode(self, views: Views, hasher: Any = None) -> Bytes:
        """Codes of some rows by the model, or by another one."""
        with self._lock:  # one engine, one after the other: its threads are all there are
            codes: Bytes = (hasher or self.hasher).transform(views, engine=self._engine)
        return codes

    def reliability(self, views: Views) -> list[float | None] | None:
        """How far each view of one row can be believed; None where the method does not judge views."""
        if not hasattr(self.hasher, "reliability"):
            return None
        with self._lock:
            values = self.hasher.reliability(views, engine=self._engine)[0]
        return [None if np.isnan(value) else round(float(value), 4) for value in values]

    def told(self, item: int) -> dict[str, Any]:
        """What the page shows of an item."""
        return {
            "id": int(item),
            "name": self.pictures.name(item) if self.pictures else "",
            "label": self.label(item),
            "has_picture": bool(self.pictures and self.pictures.has(item)),
            "is_stored": place(self.ids, item) is not None,
        }


@dataclass(frozen=True, eq=False)
class Rival:
    """Another method on the same views, to compare with."""

    name: str
    hasher: Any
    index: HammingIndex


def learn_rival(collection: Collection, name: str = "itq") -> Rival | None:
    """The rival, learned from the stored items' views; None where there are none."""
    if collection.views is None:
        return None
    is_stored = np.isin(collection.row_ids, collection.ids)
    rows = np.flatnonzero(is_stored)
    if len(rows) < 2:
        return None
    sample = rows if len(rows) <= RIVAL_ROWS else np.sort(np.random.default_rng(0).choice(rows, RIVAL_ROWS, False))
    hasher = HASHERS[name](n_bits=collection.hasher.n_bits_, random_state=0).fit(collection.views[sample])
    codes = hasher.transform(collection.views[rows])
    return Rival(name, hasher, indexed(collection.hasher.n_bits_, codes, collection.row_ids[rows]))


def indexed(n_bits: int, codes: Bytes, ids: Ids) -> HammingIndex:
    """An index in memory."""
    index = HammingIndex(n_bits)
    index.add(codes, ids)
    return index


def place(ids: Ids, item: int) -> int | None:
    """The position of an id among rising ones.

    >>> place(np.array([3, 5, 9]), 5), place(np.array([3, 5, 9]), 6)
    (1, None)
    """
    if not -(2**63) <= item < 2**63:
        return None
    position = int(np.searchsorted(ids, item))
    return position if position < len(ids) and ids[position] == item else None


class UnknownItemError(ParameterError):
    """An id that is nowhere."""

    def __init__(self, item: int) -> None:
        super().__init__(f"item must be the id of an item that is here, got {item}; the list of items has them.")
