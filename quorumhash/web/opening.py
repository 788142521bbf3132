"""A collection from files, or the demo's from a dataset whose stored items were damaged on purpose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from quorumhash.corruption import damage
from quorumhash.datasets import load_dataset
from quorumhash.datasets.base import thinned
from quorumhash.datasets.digits import digit_views
from quorumhash.errors import ParameterError
from quorumhash.features import extract_features
from quorumhash.features.pictures import brightness
from quorumhash.hashers import load
from quorumhash.hashers.quorum import QuorumHasher
from quorumhash.index.store import SegmentFile
from quorumhash.viewfiles import read_array, read_views
from quorumhash.views import Views
from quorumhash.web.collection import Collection
from quorumhash.web.pictures import ArrayPictures, as_digit, folder_pictures, resized

DEMO_ROWS = 6_000
DEMO_BITS = 64
# what the demo's stored items suffer, and how many of them
DEMO_DAMAGE = (("swap", 0.03), ("noise", 0.015), ("zero", 0.008), ("placeholder", 0.008), ("drop_view", 0.015))
SHIFTED = 0.05  # a stretch of one view's rows moved on by one
PICTURE_VIEWS = ("gist", "colour", "texture", "pixels")
LEAST_SIDE = 16


@dataclass(frozen=True)
class Files:
    """What `quorumhash serve` was given; only model and index are needed."""

    model: Path
    index: Path
    views: Sequence[str] = ()
    ids: Path | None = None
    labels: Path | None = None
    images: Path | None = None
    upload_side: int | None = None  # of the pictures that the model's views were made from; None: no uploads


def open_collection(files: Files) -> Collection:
    """The items of an index file, with what else is known of them."""
    hasher = load(files.model)
    with SegmentFile(files.index, readonly=True) as segments:
        codes, ids = segments.load()
        held, n_bits = segments.model, segments.n_bits
    if n_bits != hasher.n_bits_ or (held and held != hasher.fingerprint()):
        raise ParameterError(
            f"{files.index} holds codes of another model than {files.model}; give the one that made it."
        )
    if not len(ids):
        raise ParameterError(f"{files.index} holds no items; fill it with `quorumhash index add` first.")
    order = np.argsort(ids)
    codes, ids = np.asarray(codes)[order], np.asarray(ids, dtype=np.int64)[order]
    views = read_views(files.views) if files.views else None
    if views is not None:
        views.aligned(hasher.view_widths_, type(hasher).__name__)  # refuses views of another model
    row_ids, order = _row_ids(files.ids, ids if views is None else np.arange(len(views)))
    labels = None if files.labels is None else read_array(files.labels)
    if labels is not None and (labels.ndim not in (1, 2) or len(labels) != len(row_ids)):
        raise ParameterError(f"--labels must have one entry for each of {len(row_ids)} rows, got {labels.shape}.")
    return Collection(
        title=files.index.name,
        hasher=hasher,
        codes=codes,
        ids=ids,
        row_ids=row_ids[order],
        views=None if views is None else views[order],
        labels=None if labels is None else np.asarray(labels)[order],
        pictures=None if files.images is None else folder_pictures(files.images, row_ids),
        read_picture=None if files.upload_side is None else _picture_reader(hasher, files.upload_side),
    )


def _row_ids(path: Path | None, by_default: Any) -> tuple[Any, Any]:
    """Ids of the rows of views and labels, and the order in which they rise."""
    row_ids = np.asarray(by_default if path is None else read_array(path))
    if row_ids.shape != (len(by_default),) or row_ids.dtype.kind not in "iu" or len(np.unique(row_ids)) < len(row_ids):
        raise ParameterError(
            f"--ids must be {len(by_default)} different whole numbers, one for each row, got {row_ids.dtype} "
            f"{row_ids.shape}; write them with numpy.save."
        )
    row_ids = row_ids.astype(np.int64)
    return row_ids, np.argsort(row_ids)


def demo_collection(name: str = "digits") -> Collection:
    """Stored items damaged on purpose, and the dataset's queries beside them, which are neither stored nor damaged."""
    dataset = thinned(load_dataset(name), DEMO_ROWS)
    if dataset.images is None:
        raise ParameterError(f"the demo needs a dataset with pictures, {name} has none; use digits or cifar10.")
    stored = np.sort(dataset.database_rows)
    rows = np.concatenate([stored, np.sort(dataset.query_rows)])
    damaged, clean = _damaged(dataset.views[stored]), dataset.views[np.sort(dataset.query_rows)]
    views = Views({view: np.vstack([damaged[view], clean[view]]) for view in dataset.views})
    hasher = QuorumHasher(n_bits=DEMO_BITS, random_state=0).fit(damaged)
    return Collection(
        title=f"{name}, damaged on purpose",
        hasher=hasher,
        codes=hasher.transform(damaged),
        ids=np.arange(len(stored)),
        row_ids=np.arange(len(rows)),
        views=views,
        labels=dataset.labels[rows],
        pictures=ArrayPictures(dataset.images[rows], is_ink=name == "digits"),
        read_picture=_read_digit if name == "digits" else _picture_reader(hasher, *_kind_of(dataset.images)),
    )


def _kind_of(images: Any) -> tuple[int, bool]:
    """Pixels a side, and whether the pictures are grey."""
    return max(images.shape[1:3]), images.ndim == 3


def _damaged(views: Views) -> Views:
    """Several kinds one after the other, then a shift in the last view."""
    for i, (kind, rate) in enumerate(DEMO_DAMAGE):
        views = damage(views, kind, rate=rate, random_state=i)
    return damage(views, "shift", rate=SHIFTED, random_state=0, names=[views.names[-1]])


def _read_digit(pixels: Any) -> Views:
    return digit_views(as_digit(pixels))


def _picture_reader(hasher: Any, side: int, is_grey: bool = False) -> Any:
    """A function from a picture to those of the model's views that the library takes from pictures of side x side."""
    if side < LEAST_SIDE:
        raise ParameterError(f"--uploads must be a number of pixels from {LEAST_SIDE} up, got {side}.")
    blank = np.zeros((1, side, side) if is_grey else (1, side, side, 3))
    found = extract_features(blank, PICTURE_VIEWS, is_cached=False).widths
    names = tuple(name for name in PICTURE_VIEWS if hasher.view_widths_.get(name) == found[name])
    if not names:
        raise ParameterError(
            f"pictures can be uploaded where the model has views of {', '.join(PICTURE_VIEWS)} as extract_features "
            f"makes them; it has {', '.join(hasher.view_widths_)}."
        )

    def read(pixels: Any) -> Views:
        small = np.round(resized(pixels, side))[None]
        return extract_features(brightness(small) if is_grey else small, names, is_cached=False)

    return read
