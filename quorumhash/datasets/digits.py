"""digits: the 1,797 handwritten digits that come with scikit-learn, in four views; needs no download.

    pixels       64   the 8 x 8 picture, 0 to 16
    gradients    32   2 x 2 cells x 8 orientations: gradient strength by direction
    frequencies  45   magnitudes of the lowest frequencies, which stay the same when the picture is shifted
    profiles     46   sums over rows, columns and both families of diagonals

297 queries; the other 1,500 are the database and the training set. Rows are drawn once, in proportion to the labels.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from quorumhash.datasets.base import Dataset, stratified_order
from quorumhash.views import Views

N_QUERIES = 297
N_ORIENTATIONS = 8
N_FREQUENCIES = 5

Pictures = npt.NDArray[np.float64]  # (n_items, 8, 8)
Features = npt.NDArray[np.float64]  # (n_items, n_features)


def load_digits() -> Dataset:
    """The digits, with four views of 1,797 items and labels 0 to 9.

    >>> load_digits().views
    Views(1797 rows: pixels 64, gradients 32, frequencies 45, profiles 46)
    """
    from sklearn.datasets import load_digits as load_bundled

    bundled = load_bundled()
    images, labels = np.asarray(bundled.images, dtype=np.float64), np.asarray(bundled.target, dtype=np.int64)
    order = stratified_order(labels, seed=0)
    return Dataset(
        name="digits",
        views=digit_views(images),
        labels=labels,
        train_rows=order[N_QUERIES:],
        database_rows=order[N_QUERIES:],
        query_rows=order[:N_QUERIES],
        description="1,797 handwritten digits of 8 x 8 pixels, bundled with scikit-learn (UCI Optical Recognition of "
        "Handwritten Digits): pixels, gradient orientations, Fourier magnitudes, and sums along lines.",
        images=images,
    )


def digit_views(images: Pictures) -> Views:
    """The four views of pictures (n, 8, 8), ink from 0 to 16.

    >>> digit_views(np.ones((2, 8, 8)))
    Views(2 rows: pixels 64, gradients 32, frequencies 45, profiles 46)
    """
    return Views(
        {
            "pixels": images.reshape(len(images), -1),
            "gradients": _gradients(images),
            "frequencies": _frequencies(images),
            "profiles": _profiles(images),
        }
    )


def _gradients(images: Pictures) -> Features:
    """Histograms of gradient direction, weighted by strength, in the four quarters of the picture."""
    framed = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    down, right = framed[:, 2:, 1:-1] - framed[:, :-2, 1:-1], framed[:, 1:-1, 2:] - framed[:, 1:-1, :-2]
    angle = np.arctan2(down, right)[..., None] * N_ORIENTATIONS / (2 * np.pi) - np.arange(N_ORIENTATIONS)
    away = np.abs((angle + N_ORIENTATIONS / 2) % N_ORIENTATIONS - N_ORIENTATIONS / 2)  # in steps, round the circle
    votes = np.hypot(down, right)[..., None] * np.maximum(1 - away, 0)  # shared by the two nearest directions
    quarters = votes.reshape(len(images), 2, 4, 2, 4, N_ORIENTATIONS)
    return np.asarray(quarters.sum(axis=(2, 4)).reshape(len(images), -1))


def _frequencies(images: Pictures) -> Features:
    """Fourier magnitudes up to four half waves across the picture, framed to twice its size."""
    magnitudes = np.abs(np.fft.rfft2(images, s=(16, 16)))[:, :, :N_FREQUENCIES]
    low = np.concatenate([magnitudes[:, :N_FREQUENCIES], magnitudes[:, 1 - N_FREQUENCIES :]], axis=1)
    return low.reshape(len(images), -1)


def _profiles(images: Pictures) -> Features:
    offsets = range(1 - images.shape[1], images.shape[1])
    diagonals = [np.trace(images, offset, axis1=1, axis2=2) for offset in offsets]
    others = [np.trace(images[:, ::-1], offset, axis1=1, axis2=2) for offset in offsets]
    return np.hstack([images.sum(axis=2), images.sum(axis=1), np.stack([*diagonals, *others], axis=1)])
