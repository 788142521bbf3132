"""fashion_mnist: 70,000 pictures of clothes, 28 x 28 pixels, in ten classes (Xiao, Rasul and Vollgraf, 2017).

    gist    512   4 scales x 8 orientations x 4 x 4 cells
    words   300   counts of visual words
    pixels  784   the picture itself

Read from its four idx files in a folder `fashion_mnist`, or from where the Debian package dataset-fashion-mnist puts
them; `quorumhash datasets get fashion_mnist` fetches them. picturesets.py says how rows are cut and pictures damaged.
"""

from __future__ import annotations

from typing import Any

from quorumhash.datasets.base import Dataset
from quorumhash.datasets.idx import read_idx_pictures
from quorumhash.datasets.picturesets import PictureSet, picture_dataset, picture_options

VIEWS = ("gist", "words", "pixels")


def load_fashion_mnist(**options: Any) -> Dataset:
    """The pictures, with labels 0 to 9; options are those of PictureOptions.

    >>> load_fashion_mnist(views=["gist", "pixels"]).views  # doctest: +SKIP
    Views(70000 rows: gist 512, pixels 784)
    """
    chosen = picture_options(VIEWS, options)
    images, labels = read_idx_pictures("fashion_mnist")
    description = f"{len(labels):,} pictures of clothes, 28 x 28 pixels, in ten classes (Fashion-MNIST): "
    return picture_dataset(PictureSet("fashion_mnist", images, labels, f"{description}{', '.join(VIEWS)}."), chosen)
