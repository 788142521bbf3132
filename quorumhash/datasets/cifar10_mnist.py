"""cifar10_mnist: hash functions learned on CIFAR-10, searches in MNIST; the paper's out-of-sample study.

    gist    512   4 scales x 8 orientations x 4 x 4 cells, of brightness
    words   300   counts of visual words, of a vocabulary learned on the training photographs

The paper does not say how digits come into the space of photographs. Our reading: a digit is framed by two black pixels
on every side, to 32 x 32, and goes through the feature map of the photographs, their vocabulary included; nothing is
learned from digits, not even a mean. Training rows are the 30,000 photographs that cifar10 learns from in the same
split, 1,000 digits are queries, all other digits are the database.
"""

from __future__ import annotations

import numpy as np

from quorumhash.datasets.base import Dataset, stratified_order
from quorumhash.datasets.cifar10 import SIDE, read_cifar10
from quorumhash.datasets.idx import read_idx_pictures
from quorumhash.datasets.picturesets import N_QUERIES, N_TRAIN, N_WORDS, QUERY_SHARE, Images
from quorumhash.features import extract_features, kept_vocabulary
from quorumhash.views import Views

VIEWS = ("gist", "words")


def load_cifar10_mnist(split: int = 0) -> Dataset:
    """Photographs to learn from, digits to search in and to search for; labels of photographs are -1.

    >>> load_cifar10_mnist().views  # doctest: +SKIP
    Views(100000 rows: gist 512, words 300)
    """
    photographs, classes = read_cifar10()
    digits, labels = read_idx_pictures("mnist")
    n_queries = min(N_QUERIES, len(classes) // QUERY_SHARE)
    learned = np.sort(stratified_order(classes, split)[n_queries : n_queries + N_TRAIN])
    vocabulary = kept_vocabulary(photographs[learned], N_WORDS)
    seen = extract_features(photographs, VIEWS, vocabulary=vocabulary, verbose=True)[learned]
    new = extract_features(framed(digits), VIEWS, vocabulary=vocabulary, verbose=True)
    order = len(learned) + stratified_order(labels, split)
    n_asked = min(N_QUERIES, len(labels) // QUERY_SHARE)
    return Dataset(
        name="cifar10_mnist",
        views=Views({name: np.concatenate([seen[name], new[name]]) for name in VIEWS}),
        labels=np.concatenate([np.full(len(learned), -1), labels]),
        train_rows=np.arange(len(learned)),
        database_rows=order[n_asked:],
        query_rows=order[:n_asked],
        description=f"{len(learned):,} photographs (CIFAR-10) to learn from, {len(labels):,} handwritten digits "
        "(MNIST) to search in: gist and visual words as the photographs have them.",
    )


def framed(images: Images) -> Images:
    """Pictures (n, height, width) in the middle of black ones of the photographs' size.

    >>> framed(np.ones((1, 28, 28), dtype=np.uint8)).shape, int(framed(np.ones((1, 28, 28), dtype=np.uint8)).sum())
    ((1, 32, 32), 784)
    """
    n, height, width = images.shape
    top, left = (SIDE - height) // 2, (SIDE - width) // 2
    whole = np.zeros((n, SIDE, SIDE), dtype=np.uint8)
    whole[:, top : top + height, left : left + width] = images
    return whole
