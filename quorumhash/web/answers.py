"""Answers of the search: plain lists and numbers, ready to be sent."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from quorumhash.codes import Bytes, hamming_distances
from quorumhash.errors import ParameterError
from quorumhash.index.hamming import HammingIndex
from quorumhash.web.collection import Collection, place

FEW_ITEMS = 100_000
MOST_FOUND = 200  # of the items within a radius that are shown


def about(collection: Collection) -> dict[str, Any]:
    """What the page needs to know before anything is asked."""
    known = collection.known_ids
    return {
        "title": collection.title,
        "method": collection.method,
        "n_bits": int(collection.hasher.n_bits_),
        "n_items": len(collection.ids),
        "n_new_items": len(known) - len(collection.ids),
        "first_id": int(known[0]),
        "last_id": int(known[-1]),
        "views": list(collection.hasher.view_widths_),
        "has_views": collection.views is not None,
        "has_labels": collection.labels is not None,
        "has_pictures": collection.pictures is not None,
        "takes_uploads": collection.read_picture is not None,
        "judges_views": hasattr(collection.hasher, "reliability"),
    }


def some_items(collection: Collection, limit: int, seed: int, only_new: bool = False) -> list[dict[str, Any]]:
    """A random choice of items, the same for the same seed; `only_new` leaves out those that are stored."""
    known = np.setdiff1d(collection.row_ids, collection.ids) if only_new else collection.known_ids
    chosen = np.random.default_rng(seed).choice(known, min(limit, len(known)), replace=False)
    return [collection.told(int(item)) for item in chosen]


def one_item(collection: Collection, item: int) -> dict[str, Any]:
    """An item with its code and how far its views can be believed."""
    views = collection.item_views(item)
    told = {**collection.told(item), "code": collection.code(item).tobytes().hex()}
    values = None if views is None else collection.reliability(views)
    return {**told, "reliability": _by_view(collection, values)}


def is_quick(collection: Collection, item: int) -> bool:
    """Whether a search for the item takes well below a millisecond: few codes to scan, and none to make."""
    return len(collection.ids) <= FEW_ITEMS and place(collection.ids, item) is not None


def search_item(collection: Collection, item: int, k: int, radius: int | None) -> dict[str, Any]:
    """The items nearest to an item that is here, itself left out."""
    return found(collection, collection.code(item), k, radius, leave_out=item)


def search_picture(collection: Collection, pixels: Any, k: int, radius: int | None) -> dict[str, Any]:
    """The items nearest to a picture that was sent."""
    if collection.read_picture is None:
        raise ParameterError("this model's views are not made from pictures here: pick a stored item instead.")
    views = collection.read_picture(pixels)
    code = collection.encode(views)[0]
    values = collection.reliability(views)
    answer = found(collection, code, k, radius)
    return {**answer, "code": code.tobytes().hex(), "reliability": _by_view(collection, values)}


def found(
    collection: Collection, code: Bytes, k: int, radius: int | None = None, leave_out: int | None = None
) -> dict[str, Any]:
    """Matches of one code, nearest first, and the seconds of the search alone."""
    started = time.perf_counter()
    if radius is None:
        ids, distances = nearest(collection.index, code, k, leave_out)
        n_found = len(ids)
    else:
        within = collection.index.within(code[None], radius=radius)
        keep = within.ids != (-1 if leave_out is None else leave_out)
        n_found = int(keep.sum())
        ids, distances = within.ids[keep][:MOST_FOUND], within.distances[keep][:MOST_FOUND]
    seconds = time.perf_counter() - started
    codes = collection.codes[np.searchsorted(collection.ids, ids)]
    matches = [
        {**collection.told(int(item)), "distance": int(distance), "code": stored.tobytes().hex()}
        for item, distance, stored in zip(ids, distances, codes, strict=True)
    ]
    return {"matches": matches, "n_found": n_found, "seconds": seconds}


def nearest(index: HammingIndex, code: Bytes, k: int, leave_out: int | None = None) -> tuple[Any, Any]:
    """Ids and distances of the k nearest of one code, an item left out where it is among them."""
    matches = index.search(code[None], k=k + (leave_out is not None))
    keep = matches.ids[0] != leave_out if leave_out is not None else np.ones(matches.ids.shape[1], dtype=bool)
    return matches.ids[0][keep][:k], matches.distances[0][keep][:k]


def n_flipped(code: Bytes, other: Bytes) -> int:
    """Bits in which two codes differ."""
    return int(hamming_distances(code[None], other[None])[0, 0])


def _by_view(collection: Collection, values: list[float | None] | None) -> list[dict[str, Any]] | None:
    if values is None:
        return None
    return [{"view": name, "value": value} for name, value in zip(collection.hasher.view_widths_, values, strict=True)]
