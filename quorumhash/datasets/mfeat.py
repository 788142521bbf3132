"""mfeat: UCI Multiple Features, 2,000 handwritten digits in six views; read from mfeat.npz in QUORUMHASH_DATA.

    fac 216   profile correlations          mor   6   morphological features
    fou  76   Fourier coefficients          pix 240   averages of 2 x 3 pixels
    kar  64   Karhunen-Loeve coefficients   zer  47   Zernike moments

A quarter, 500, are queries; the other 1,500 are the database and the training set. Rows are drawn once, in proportion
to the labels.
"""

from __future__ import annotations

import numpy as np

from quorumhash.datasets.base import Dataset, stratified_order
from quorumhash.datasets.files import read_arrays
from quorumhash.views import Views

NAMES = ("fac", "fou", "kar", "mor", "pix", "zer")
QUERY_SHARE = 4


def load_mfeat() -> Dataset:
    """The digits of UCI Multiple Features, with six views and labels 0 to 9.

    >>> load_mfeat().views  # doctest: +SKIP
    Views(2000 rows: fac 216, fou 76, kar 64, mor 6, pix 240, zer 47)
    """
    arrays = read_arrays("mfeat.npz", (*NAMES, "labels"))
    labels = arrays["labels"].astype(np.int64)
    order, n_queries = stratified_order(labels, seed=0), len(labels) // QUERY_SHARE
    return Dataset(
        name="mfeat",
        views=Views({name: arrays[name] for name in NAMES}),
        labels=labels,
        train_rows=order[n_queries:],
        database_rows=order[n_queries:],
        query_rows=order[:n_queries],
        description=f"{len(labels):,} handwritten digits of the UCI Multiple Features data: profile correlations, "
        "Fourier and Karhunen-Loeve coefficients, morphological features, pixel averages, Zernike moments.",
    )
