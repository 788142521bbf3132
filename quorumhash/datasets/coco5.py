"""coco5: 15,925 photographs of everyday objects in five views; read from coco5.npz in QUORUMHASH_DATA.

    image            256   principal components of an embedding of the photograph (EfficientNet-Lite0)
    caption          384   embedding of one caption (MiniLM)
    colour_moments   225   5 x 5 blocks, three moments
    wavelet_texture  128   64 sub-bands, mean and spread
    visual_words     500   counts of local descriptors

17 labels, several per photograph. Four views come from the photograph and err together, the caption is the other
source. True neighbours are those in image and caption: the other three are weak, and what is alike in them is not what
a person calls alike; where other views are asked for, neighbours are sought in those. Every sixteenth photograph or so,
1,000, is a query, the others are the database and the training set; another `split`, other ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from quorumhash.datasets.base import Dataset, stratified_order
from quorumhash.datasets.files import read_arrays
from quorumhash.errors import ParameterError
from quorumhash.views import Views

PHOTO = ("image", "colour_moments", "wavelet_texture", "visual_words")
NAMES = ("image", "caption", *PHOTO[1:])
TRUTH = ("image", "caption")
SOURCES = {"photo": PHOTO, "text": ("caption",)}
N_QUERIES = 1_000
QUERY_SHARE = 4  # of a smaller file at most one row in so many is a query


def load_coco5(views: Sequence[str] = NAMES, split: int = 0) -> Dataset:
    """The photographs, with five views of two sources and 17 labels.

    >>> load_coco5().sources["text"]  # doctest: +SKIP
    ['caption']
    """
    unknown = [name for name in views if name not in NAMES]
    if unknown or not views:
        raise ParameterError(f"views of coco5 must be of {', '.join(NAMES)}, got {views!r}; choose among them.")
    arrays = read_arrays("coco5.npz", (*NAMES, "labels"))
    labels = arrays["labels"].astype(np.int64)
    n_queries = min(N_QUERIES, len(labels) // QUERY_SHARE)
    order = stratified_order(
        np.zeros(len(labels), dtype=np.int64), seed=split
    )  # several labels each: nothing to cut by
    return Dataset(
        name="coco5",
        views=Views({name: arrays[name] for name in views}),
        labels=labels,
        train_rows=order[n_queries:],
        database_rows=order[n_queries:],
        query_rows=order[:n_queries],
        description=f"{len(labels):,} photographs of everyday objects (COCO) with {labels.shape[1]} labels: embeddings "
        "of image and caption, colour moments, wavelet texture, visual words. True neighbours: image and caption.",
        truth_views=TRUTH if set(TRUTH) <= set(views) else (),
        sources={source: kept for source, names in SOURCES.items() if (kept := [n for n in names if n in views])},
    )
