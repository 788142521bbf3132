"""Pictures in rows: their shapes, and the pixels that a removed patch covers."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.errors import ParameterError

ImageShape = tuple[int, ...]  # (height, width) or (height, width, channels)


def flattened_pictures(pictures: Any) -> tuple[Any, dict[str, ImageShape] | None]:
    """Image arrays (n_items, height, width[, channels]) as rows of pixels, and the shapes to read them by.

    >>> rows, shapes = flattened_pictures({"photo": np.zeros((5, 8, 8))})
    >>> rows["photo"].shape, shapes
    ((5, 64), {'photo': (8, 8)})
    """
    named = pictures if isinstance(pictures, Mapping) else {"view0": pictures}
    shapes = {name: tuple(part.shape[1:]) for name, part in named.items() if getattr(part, "ndim", 0) in (3, 4)}
    if not shapes:
        return pictures, None
    return {name: np.reshape(part, (len(part), -1)) if name in shapes else part for name, part in named.items()}, shapes


def checked_shape(name: str, shape: Any, width: int) -> ImageShape:
    """The shape as given, or a refusal where a row of this width is no such picture."""
    is_shape = isinstance(shape, tuple | list) and len(shape) in (2, 3)
    if is_shape and all(isinstance(n, Integral) and int(n) > 0 for n in shape) and np.prod(shape) == width:
        return tuple(int(n) for n in shape)
    raise ParameterError(
        f"image_shape must be the (height, width) or (height, width, channels) of view {name!r} with its {width} "
        f'features, got {shape!r}; give such as image_shape={{"pixels": (8, 8)}}.'
    )


def patch_pixels(n_items: int, rate: float, shape: ImageShape, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """The pixels under a random square per item, (n_items, height * width); a rectangle where a square has no room."""
    height, width = shape[:2]
    side = round((rate * height * width) ** 0.5)
    n_rows = round(rate * height) if side > width else min(side, height)
    n_columns = round(rate * width) if side > height else min(side, width)
    y = np.arange(height) - rng.integers(0, height - n_rows + 1, (n_items, 1))
    x = np.arange(width) - rng.integers(0, width - n_columns + 1, (n_items, 1))
    covered = ((y >= 0) & (y < n_rows))[:, :, None] & ((x >= 0) & (x < n_columns))[:, None, :]
    return covered.reshape(-1, height * width)
