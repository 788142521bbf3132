"""Datasets of pictures: features, the cut into training rows, database and queries, and patches removed from pictures.

    queries    1,000, in proportion to the labels; another `split`, other ones
    training   30,000 of the others; the vocabulary of visual words is learned on these alone
    database   all but the queries

With damage="patch" a square over a quarter of the pixels is removed from every picture before any feature is made, the
vocabulary included. Three readings of what then stands there:

    black      zeros, as a careless reader has it: the square's edges are features like any other
    mean       the mean colour of what is left of the picture
    masked     nothing: the pixels are known to be missing, and so are the features that rest on them (NaN)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.datasets.base import Dataset, stratified_order
from quorumhash.errors import ParameterError
from quorumhash.features import EXTRACTORS, extract_features, kept_vocabulary
from quorumhash.patches import patch_pixels

Images = npt.NDArray[np.uint8]  # (n, height, width) or (n, height, width, 3)
Labels = npt.NDArray[np.int64]

N_QUERIES, QUERY_SHARE = 1_000, 6  # of a small dataset at most one row in so many is a query
N_TRAIN = 30_000
N_WORDS = 300
READINGS = ("black", "mean", "masked")
STREAM = 0x9A7C4  # of the places of patches, apart from other draws with the same seed
ROWS_AT_ONCE = 4_096


@dataclass(frozen=True)
class PictureSet:
    """Pictures and their labels, as they were read."""

    name: str
    images: Images
    labels: Labels
    description: str


@dataclass(frozen=True)
class PictureOptions:
    """What a dataset of pictures is asked for.

    Attributes
    ----------
    views : of gist, words, colour, texture and pixels.
    damage : None, or "patch".
    reading : of a patch: "black", "mean" or "masked"; see the module.
    rate : share of the pixels that a patch covers.
    random_state : seed of the patches' places.
    split : seed of the rows: which are queries, which are learned from.
    """

    views: tuple[str, ...]
    damage: str | None = None
    reading: str = "black"
    rate: float = 0.25
    random_state: int = 0
    split: int = 0

    def __post_init__(self) -> None:
        if self.damage not in (None, "patch"):
            raise ParameterError(f'damage of pictures must be None or "patch", got {self.damage!r}; choose one.')
        if self.reading not in READINGS:
            raise ParameterError(f"reading must be one of {', '.join(READINGS)}, got {self.reading!r}; choose one.")
        if not 0 < self.rate < 1:
            raise ParameterError(f"rate must be between 0 and 1, got {self.rate!r}; give a share such as 0.25.")
        unknown = [name for name in self.views if name not in EXTRACTORS]
        if unknown or not self.views:
            raise ParameterError(f"views must be of {', '.join(EXTRACTORS)}, got {self.views!r}; choose among them.")


def picture_options(views: tuple[str, ...], given: dict[str, Any]) -> PictureOptions:
    """Options by name over these default views, or a refusal that names the known ones."""
    unknown = sorted(set(given) - set(PictureOptions.__dataclass_fields__))
    if unknown:
        known = ", ".join(PictureOptions.__dataclass_fields__)
        raise ParameterError(f"options of this dataset are {known}, got {unknown[0]!r}; leave it out.")
    return PictureOptions(**{"views": views, **given, **({"views": tuple(given["views"])} if "views" in given else {})})


def picture_dataset(pictures: PictureSet, options: PictureOptions) -> Dataset:
    """The dataset with its features: made once, then read from the cache."""
    order = stratified_order(pictures.labels, options.split)
    n_queries = min(N_QUERIES, len(order) // QUERY_SHARE)
    train_rows = order[n_queries : n_queries + N_TRAIN]
    images, mask, told = pictures.images, None, ""
    if options.damage is not None:
        images, mask = patched(images, options.reading, options.rate, options.random_state)
        told = f" A square over {options.rate:.0%} of the pixels of every picture is removed ({options.reading})."
    vocabulary = None
    if "words" in options.views:
        sample = np.sort(train_rows)
        vocabulary = kept_vocabulary(images[sample], N_WORDS, None if mask is None else mask[sample])
    return Dataset(
        name=pictures.name,
        views=extract_features(images, options.views, mask=mask, vocabulary=vocabulary, verbose=True),
        labels=pictures.labels,
        train_rows=train_rows,
        database_rows=order[n_queries:],
        query_rows=order[:n_queries],
        description=pictures.description + told,
        images=images,
    )


def patched(
    images: Images, reading: str, rate: float, random_state: int
) -> tuple[Images, npt.NDArray[np.bool_] | None]:
    """Pictures with a square removed, at the same places in every reading, and, if "masked", where (n, height, width).

    >>> images, mask = patched(np.full((2, 8, 8), 9, dtype=np.uint8), "masked", rate=0.25, random_state=0)
    >>> int((images[0] == 0).sum()), int(mask[0].sum())
    (16, 16)
    """
    n, height, width = images.shape[:3]
    rng = np.random.default_rng([random_state, STREAM])
    covered = patch_pixels(n, rate, (height, width), rng).reshape(n, height, width)
    new = np.array(images)
    new[covered] = 0
    if reading == "mean":
        for start in range(0, n, ROWS_AT_ONCE):
            rows = slice(start, start + ROWS_AT_ONCE)
            _fill_with_mean(new[rows], covered[rows])
    return new, covered if reading == "masked" else None


def _fill_with_mean(images: Images, covered: npt.NDArray[np.bool_]) -> None:
    """Put the mean of what is left, per channel, in the place of the covered pixels, which are 0."""
    n_left = (~covered).sum(axis=(1, 2)).reshape(-1, *[1] * (images.ndim - 1))
    mean = images.sum(axis=(1, 2), dtype=np.float64, keepdims=True) / n_left
    np.copyto(images, np.rint(mean).astype(np.uint8), where=covered.reshape(*covered.shape, *[1] * (images.ndim - 3)))
