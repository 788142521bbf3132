"""How the kernels want codes to lie: byte-sliced tiles of 64, or 64-bit words.

tiles (n_tiles, n_bytes, 64)   plane j of a tile holds byte j of each of its codes; rows past the last are zero
words (n, n_words) uint64      the first bit of a code is the highest of word 0; missing last bits are zero
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]

TILE = 64


class Part(NamedTuple):
    """Distinct codes in lexicographic order, each with the ids of its items in rising order, as hamming.h has it.

    Or, where ids run on without a gap, all codes in the order of their ids.
    """

    n_rows: int
    n_items: int
    tiles: Bytes
    offsets: npt.NDArray[np.uint32] | None  # (n_rows + 1) into ids; None: one item a row
    ids: npt.NDArray[np.int64] | None  # None: item i has the id first_id + i
    allowed: Bytes | None  # (n_items) 0 where an item does not count; None: all do
    bands: tuple[int, list[tuple[Any, ...]]] | None  # words a code, and the bands of multi-index hashing
    first_id: int = 0


def to_tiles(codes: Bytes) -> Bytes:
    """Codes (n, n_bytes) in tiles.

    >>> to_tiles(np.array([[1, 2]], dtype=np.uint8))[0, :, 0]
    array([1, 2], dtype=uint8)
    """
    n_rows, n_bytes = codes.shape
    n_tiles = -(-n_rows // TILE)
    tiles = np.zeros((n_tiles, n_bytes, TILE), dtype=np.uint8)
    whole = n_rows // TILE
    tiles[:whole] = codes[: whole * TILE].reshape(whole, TILE, n_bytes).transpose(0, 2, 1)
    if whole < n_tiles:
        tiles[whole, :, : n_rows - whole * TILE] = codes[whole * TILE :].T
    return tiles


def from_tiles(tiles: Bytes, n_rows: int) -> Bytes:
    """Undo `to_tiles`: (n_rows, n_bytes)."""
    return tiles.transpose(0, 2, 1).reshape(-1, tiles.shape[1])[:n_rows]


def to_words(codes: Bytes) -> Words:
    """Codes (n, n_bytes) as words; comparing words compares codes in lexicographic order.

    >>> to_words(np.array([[1]], dtype=np.uint8)) == 1 << 56
    array([[ True]])
    """
    n_rows, n_bytes = codes.shape
    padded = np.zeros((n_rows, 8 * -(-n_bytes // 8)), dtype=np.uint8)
    padded[:, :n_bytes] = codes
    return padded.view(">u8").astype(np.uint64)
