"""texture: how rough a picture is, at which scale, in which direction; 64 sub-bands x mean and spread = 128 features.

The picture is split three times into four by the Haar wavelet, every part again (a wavelet packet), which gives 64
sub-bands. A coefficient depends on one block of 8 x 8 pixels and no others. Of every sub-band: the mean of the absolute
coefficients and the standard deviation of the coefficients. Brightness is from 0 to 1; sides that are no multiple of
8 are mirrored at the end. Coefficients of blocks with a missing pixel are left out; a picture without any other is
missing.

Features stand by sub-band, mean before spread; a sub-band is three letters a (average), h, v, d (changes from top to
bottom, from left to right, both), one per split, in the order a, h, v, d.
"""

from __future__ import annotations

import numpy as np

from quorumhash.features.pictures import Block, Floats, Missing, brightness

N_LEVELS = 3
BLOCK_SIDE = 2**N_LEVELS
N_FEATURES = 2 * 4**N_LEVELS


def wavelet_texture(values: Block, missing: Missing | None = None) -> Floats:
    """Features (n, 128) of pictures (n, height, width, channels).

    >>> wavelet_texture(np.full((1, 8, 8, 1), 51.0))[0, :4]  # grey throughout: only the average, 0.2 x 8
    array([1.6, 0. , 0. , 0. ], dtype=float32)
    """
    bands = sub_bands(_framed(brightness(values)))  # (n, 64, n_blocks)
    if missing is None:
        there, count = np.ones((1, 1, 1), dtype=np.float32), np.full((1, 1), bands.shape[2], dtype=np.float32)
    else:
        whole = ~_in_blocks(_framed(missing)).any(axis=(2, 4)).reshape(len(bands), 1, -1)
        there, n_whole = whole.astype(np.float32), whole.sum(axis=2).astype(np.float32)
        count = np.where(n_whole > 0, n_whole, np.float32(np.nan))
    size = (np.abs(bands) * there).sum(axis=2) / count
    mean = np.nan_to_num((bands * there).sum(axis=2) / count)
    spread = np.sqrt((((bands - mean[..., None]) * there) ** 2).sum(axis=2) / count)
    return np.stack([size, spread], axis=2).reshape(len(bands), N_FEATURES).astype(np.float32)


def sub_bands(grey: Floats) -> Floats:
    """Coefficients (n, 64, n_blocks) of pictures whose sides are multiples of 8."""
    bands = grey[:, None]
    for _ in range(N_LEVELS):
        top, bottom = bands[:, :, ::2], bands[:, :, 1::2]
        across, down = (top + bottom) / 2, (top - bottom) / 2
        parts = [
            across[..., ::2] + across[..., 1::2],
            down[..., ::2] + down[..., 1::2],
            across[..., ::2] - across[..., 1::2],
            down[..., ::2] - down[..., 1::2],
        ]
        bands = np.stack(parts, axis=2).reshape(len(grey), -1, *parts[0].shape[2:]).astype(np.float32, copy=False)
    return bands.reshape(len(grey), 4**N_LEVELS, -1)


def _framed(pictures: Block) -> Block:
    return np.pad(pictures, [(0, 0), *((0, -side % BLOCK_SIDE) for side in pictures.shape[1:])], mode="symmetric")


def _in_blocks(pictures: Missing) -> Missing:
    n, height, width = pictures.shape
    return pictures.reshape(n, height // BLOCK_SIDE, BLOCK_SIDE, width // BLOCK_SIDE, BLOCK_SIDE)
