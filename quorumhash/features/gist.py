"""gist: what a picture is like at a glance; 4 scales x 8 orientations x 4 x 4 cells = 512 features.

Contrast is made even, then the picture is filtered, by multiplication in the Fourier domain, with 32 band-pass filters.
A feature is the mean strength of one filter's response in one cell of the grid (Oliva and Torralba, 2001).

    filter (s, o)   exp(-3.5 (f / f_s - 1)^2 - pi (a - a_o)^2)    f, a: length and angle of a frequency
    scales          f_s = 0.3, 0.16, 0.088, 0.047 cycles per pixel
    orientations    a_o = 0, 22.5, ... degrees; one half plane each, so that the response's modulus is its envelope

Features stand by scale, then orientation, then cell, row by row. Missing pixels are filled without edges before the
filters and left out of the means; a cell that lacks half of its pixels or more is missing.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from quorumhash.features.pictures import Block, Floats, Missing, blurred, brightness, cell_counts, cell_sums, filled

N_SCALES = 4
N_ORIENTATIONS = 8
N_CELLS = 4
N_FEATURES = N_SCALES * N_ORIENTATIONS * N_CELLS**2

FINEST_FREQUENCY = 0.3  # cycles per pixel
FREQUENCY_RATIO = 1.85
RADIAL_SHARPNESS = 3.5
ANGULAR_SHARPNESS = np.pi
CONTRAST_SHARE = 1 / 16  # contrast is compared with that around, within this share of the picture's sides
CONTRAST_FLOOR = 0.2  # of the range from black to white: fainter texture stays fainter


def gist(values: Block, missing: Missing | None = None) -> Floats:
    """Features (n, 512) of pictures (n, height, width, channels), NaN in cells that lack half of their pixels.

    >>> gist(np.full((1, 16, 16, 1), 7.0)).max()  # nothing to see
    np.float32(0.0)
    """
    from scipy.fft import fft2, ifft2

    grey = even_contrast(filled(brightness(values), missing))
    top, left = (side // 4 for side in grey.shape[1:])
    height, width = grey.shape[1:]
    spectrum = fft2(np.pad(grey, ((0, 0), (top, top), (left, left)), mode="symmetric"))
    there = None if missing is None else ~missing
    features = np.empty((len(grey), N_SCALES * N_ORIENTATIONS, N_CELLS, N_CELLS), dtype=np.float32)
    for response, one_filter in zip(features.swapaxes(0, 1), filters(*spectrum.shape[1:]), strict=True):
        strength = np.abs(ifft2(spectrum * one_filter, overwrite_x=True))[:, top : top + height, left : left + width]
        response[...] = cell_sums(strength if there is None else strength * there, N_CELLS)
    features /= _weights(grey.shape, there)[:, None]
    return features.reshape(len(grey), N_FEATURES)


def even_contrast(grey: Floats) -> Floats:
    """Brightness less that around, over its deviation around, (n, height, width)."""
    detail = grey - blurred(grey, CONTRAST_SHARE)
    detail[np.abs(detail) < 1e-6] = 0  # rounding is no texture
    return np.asarray(detail / (CONTRAST_FLOOR + np.sqrt(blurred(detail**2, CONTRAST_SHARE))))


def filters(height: int, width: int) -> Floats:
    """Filters (32, height, width) over the frequencies of numpy.fft.fft2, by scale, then orientation."""
    down, right = np.meshgrid(np.fft.fftfreq(height), np.fft.fftfreq(width), indexing="ij")
    length, angle = np.hypot(down, right), np.arctan2(down, right)
    # the mean is no texture, and the highest frequency of an even length has no partner on the other side
    usable = (length > 0) & (np.abs(down) < 0.5) & (np.abs(right) < 0.5)
    bank = []
    for scale in range(N_SCALES):
        radial = -RADIAL_SHARPNESS * (length * FREQUENCY_RATIO**scale / FINEST_FREQUENCY - 1) ** 2
        for orientation in range(N_ORIENTATIONS):
            turn = (angle - np.pi * orientation / N_ORIENTATIONS + np.pi) % (2 * np.pi) - np.pi
            bank.append(usable * np.exp(radial - ANGULAR_SHARPNESS * turn**2))
    return np.array(bank, dtype=np.float32)


def _weights(shape: tuple[int, ...], there: Missing | None) -> npt.NDArray[np.float32]:
    """Pixels per cell, (n or 1, 4, 4); NaN where half of them or more are missing."""
    whole = cell_counts(shape, N_CELLS)[None].astype(np.float32)
    if there is None:
        return whole
    left = cell_sums(there.astype(np.float32), N_CELLS)
    return np.where(left > whole / 2, left, np.float32(np.nan))
