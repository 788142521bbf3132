"""Multi-index hashing: the bits cut into bands, the rows in the order of each band, so that few codes need be met.

With n rows a band is about log2(n) bits wide: the rows that share its value are then few, and so are the values. Where
there are many rows, and codes of one word, which stand side by side, it is narrower: rows met in a line cost less than
values looked up here and there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from quorumhash._native import kernels
from quorumhash._native.layout import Bytes, from_tiles, to_words

_MAX_WIDTH = 24  # 2 ** 24 offsets of a band are 67 MB
_MANY, _NARROWER = 2_000_000, 5  # rows; bits


@dataclass(frozen=True, eq=False)
class Bands:
    """Bands of one segment, as the extension reads them, and the bytes they take."""

    native: tuple[int, list[tuple[Any, ...]]]
    n_bytes: int


def band_widths(n_bits: int, n_rows: int) -> list[int]:
    """How wide each band is: as equal as can be.

    >>> band_widths(64, 1_000_000), band_widths(64, 10_000_000)
    ([22, 21, 21], [16, 16, 16, 16])
    """
    narrower = _NARROWER if n_bits <= 64 and n_rows >= _MANY else 0
    wanted = min(max(math.log2(max(n_rows, 2)) - narrower, 1.0), float(_MAX_WIDTH))
    n_bands = min(max(round(n_bits / wanted), -(-n_bits // _MAX_WIDTH)), n_bits, 128)
    width, more = divmod(n_bits, n_bands)
    return [width + 1] * more + [width] * (n_bands - more)


def make_bands(tiles: Bytes, n_rows: int, n_bits: int, map_: Callable[..., Iterable[Any]] = map) -> Bands:
    """The bands of a segment; `map_` may work on several at once."""
    words = to_words(from_tiles(tiles, n_rows))
    widths = band_widths(n_bits, n_rows)
    starts = np.cumsum([0, *widths[:-1]]).tolist()
    made = list(map_(lambda band: kernels.fill_band(words, *band), list(zip(starts, widths, strict=True))))
    arrays = {id(array): array.nbytes for band in made for array in band[2:]}  # wide codes are kept once for all bands
    return Bands((words.shape[1], made), sum(arrays.values()))
