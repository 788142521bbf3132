"""Pictures in blocks: the gate for them, brightness, what is missing, and sums over the cells of a grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.errors import ParameterError, ViewsError

Block = npt.NDArray[Any]  # (n, height, width, channels), 0 to 255; one channel is grey, three are red, green, blue
Missing = npt.NDArray[np.bool_]  # (n, height, width)
Floats = npt.NDArray[np.float32]

SMALLEST_SIDE = 8
LUMA = np.array([0.299, 0.587, 0.114], dtype=np.float32)  # red, green, blue (ITU-R BT.601)
WEAK_WEIGHT = 1e-2  # of the picture's mean, where all pixels around are missing


@dataclass(frozen=True)
class Pictures:
    """Pictures (n, height, width, channels) of one size, and bool (n, height, width) where pixels are missing."""

    values: Block
    missing: Missing | None

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Any) -> Pictures:
        return Pictures(self.values[rows], None if self.missing is None else self.missing[rows])


def as_pictures(images: Any, mask: Any = None) -> Pictures:
    """The gate: pictures as given, NaN pixels marked as missing, or a refusal.

    images : (n, height, width) grey or (n, height, width, 3) colour, 0 to 255, integers or floats; NaN is missing.
    mask : bool (n, height, width), True where a pixel is missing, optional.

    >>> as_pictures(np.zeros((2, 8, 8))).values.shape
    (2, 8, 8, 1)
    """
    values = np.asarray(images)
    if values.dtype.kind not in "uif" or values.ndim not in (3, 4) or values.shape[3:] not in ((), (1,), (3,)):
        raise ViewsError(
            "images must be numbers of shape (n, height, width) or (n, height, width, 3), all of one size, got "
            f"{values.dtype} of shape {values.shape}; resize them and stack them."
        )
    values = values if values.ndim == 4 else values[..., None]
    if not len(values) or min(values.shape[1:3]) < SMALLEST_SIDE:
        raise ViewsError(
            f"images must be at least one and {SMALLEST_SIDE} pixels high and wide, got shape {values.shape}."
        )
    missing = None if mask is None else _as_mask(mask, values.shape[:3])
    if values.dtype.kind == "f":
        absent = np.isnan(values).any(axis=3)
        if absent.any():
            missing = absent if missing is None else missing | absent
        values = np.where(np.isnan(values), 0, values).astype(np.float32)
    if values.min() < 0 or values.max() > 255:
        raise ViewsError(f"images must be from 0 to 255, got {values.min()} to {values.max()}; scale them.")
    return Pictures(values, missing if missing is not None and missing.any() else None)


def _as_mask(mask: Any, shape: tuple[int, ...]) -> Missing:
    given = np.asarray(mask)
    if given.dtype != bool or given.shape != shape:
        raise ParameterError(
            f"mask must be bool of shape {shape}, True where a pixel is missing, got {given.dtype} of {given.shape}."
        )
    return given


def brightness(values: Block) -> Floats:
    """Grey pictures (n, height, width) from 0 to 1."""
    pixels = values.astype(np.float32)
    grey = pixels[..., 0] if pixels.shape[3] == 1 else pixels @ LUMA
    return np.asarray(grey / np.float32(255))


def blurred(grey: Floats, share: float) -> Floats:
    """Pictures (n, height, width) under a Gaussian whose deviation is this share of either side."""
    from scipy.ndimage import gaussian_filter

    deviation = (0.0, share * grey.shape[1], share * grey.shape[2])
    return np.asarray(gaussian_filter(grey, deviation, mode="reflect"))


def filled(grey: Floats, missing: Missing | None) -> Floats:
    """Pictures whose missing pixels run smoothly from what is around them to the mean of what is there: no edges.

    >>> filled(np.ones((1, 8, 8), dtype=np.float32), np.eye(8, dtype=bool)[None]).min()
    np.float32(1.0)
    """
    if missing is None:
        return grey
    there = (~missing).astype(np.float32)
    mean = (grey * there).sum(axis=(1, 2)) / np.maximum(there.sum(axis=(1, 2)), 1)
    offset = (grey - mean[:, None, None]) * there
    around = blurred(offset, 1 / 16) / (blurred(there, 1 / 16) + WEAK_WEIGHT)
    return np.where(missing, mean[:, None, None] + around, grey).astype(np.float32)


def cell_sums(values: npt.NDArray[Any], n_cells: int) -> npt.NDArray[Any]:
    """Sums over a grid of n_cells x n_cells cells as equal as may be; values (n, height, width, ...).

    >>> cell_sums(np.ones((1, 8, 9)), 2)
    array([[[16., 20.],
            [16., 20.]]])
    """
    starts = [np.arange(n_cells) * side // n_cells for side in values.shape[1:3]]
    return np.asarray(np.add.reduceat(np.add.reduceat(values, starts[0], axis=1), starts[1], axis=2))


def cell_counts(shape: tuple[int, ...], n_cells: int) -> npt.NDArray[np.int64]:
    """How many pixels of pictures (n, height, width, ...) every cell has, (n_cells, n_cells)."""
    rows, columns = (np.diff(np.arange(n_cells + 1) * side // n_cells) for side in shape[1:3])
    return np.multiply.outer(rows, columns)
