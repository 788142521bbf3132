"""colour: what colours there are, and where; 5 x 5 blocks x 3 channels (CIE LAB) x 3 moments = 225 features.

The moments of a channel in a block: mean, standard deviation, and the cube root of the third central moment (Stricker
and Orengo, 1995). Features stand by block, row by row, then channel, then moment. Missing pixels are left out; a
block that lacks half of its pixels or more is missing.
"""

from __future__ import annotations

import numpy as np

from quorumhash.features.pictures import Block, Floats, Missing, cell_counts, cell_sums

N_BLOCKS = 5
N_FEATURES = N_BLOCKS**2 * 3 * 3

# linear red, green, blue (sRGB) to X, Y, Z over those of white (D65); every row sums to 1
TO_XYZ = np.array([[0.412456, 0.357576, 0.180437], [0.212673, 0.715152, 0.072175], [0.019334, 0.119192, 0.950304]])
SMALL = 6 / 29  # where the cube root of LAB gives way to a straight line


def colour_moments(values: Block, missing: Missing | None = None) -> Floats:
    """Features (n, 225) of pictures (n, height, width, channels), NaN in blocks that lack half of their pixels.

    >>> moments = colour_moments(np.full((1, 10, 10, 3), 255)).reshape(25, 3, 3)
    >>> moments[0].round(3).tolist()  # white: L = 100, a = b = 0, and no spread
    [[100.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    lab = to_lab(values)
    whole = cell_counts(lab.shape, N_BLOCKS)[None, :, :, None]
    if missing is None:
        there, n_pixels = np.ones((1, 1, 1, 1)), whole.astype(np.float64)
    else:
        there = (~missing)[..., None].astype(np.float64)
        left = cell_sums(there, N_BLOCKS)
        n_pixels = np.where(left > whole / 2, left, np.nan)
    mean = cell_sums(lab * there, N_BLOCKS) / n_pixels  # (n, 5, 5, 3)
    offset = (lab - _spread_out(mean, lab.shape)) * there
    variance = cell_sums(offset**2, N_BLOCKS) / n_pixels
    third = cell_sums(offset**3, N_BLOCKS) / n_pixels
    moments = np.stack([mean, np.sqrt(variance), np.cbrt(third)], axis=-1)
    return moments.reshape(len(lab), N_FEATURES).astype(np.float32)


def to_lab(values: Block) -> Block:
    """CIE LAB (n, height, width, 3), white point D65, of sRGB or grey pictures from 0 to 255.

    >>> to_lab(np.array([[[[255, 0, 0]]]])).round(1).ravel().tolist()
    [53.2, 80.1, 67.2]
    """
    srgb = np.broadcast_to(values, (*values.shape[:3], 3)) / 255.0
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    relative = linear @ (TO_XYZ / TO_XYZ.sum(axis=1, keepdims=True)).T
    root = np.where(relative > SMALL**3, np.cbrt(relative), relative / (3 * SMALL**2) + 4 / 29)
    x, y, z = np.moveaxis(root, -1, 0)
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)


def _spread_out(cells: Block, shape: tuple[int, ...]) -> Block:
    """The value of its block for every pixel, (n, height, width, 3); 0 where the block is missing."""
    rows, columns = (
        np.repeat(np.arange(N_BLOCKS), np.diff(np.arange(N_BLOCKS + 1) * s // N_BLOCKS)) for s in shape[1:3]
    )
    return np.asarray(np.nan_to_num(cells)[:, rows][:, :, columns])
