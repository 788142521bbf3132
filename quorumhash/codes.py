"""Real projections -> packed bits and back, and the distances between packed codes.

A code of `n_bits` bits is a row of `n_bytes(n_bits)` bytes, the first bit highest in the first byte
(np.packbits order); the unused last bits of the last byte are zero.
"""

from __future__ import annotations

import operator
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace, device, is_numpy_array

from quorumhash.errors import ParameterError

Bytes = npt.NDArray[np.uint8]

MOST_BITS = 1024  # of a code: what an index holds

_QUERY_ROWS, _DATABASE_ROWS = 64, 4096  # a block of 64-bit differences is 2 MB; padded rows are at most 33 MB
_MAX_BYTES = 8191  # a distance of 65,536 bits would not fit uint16


def n_bytes(n_bits: SupportsIndex) -> int:
    """Width in bytes of a packed code of `n_bits` bits.

    >>> n_bytes(64), n_bytes(9)
    (8, 2)
    """
    try:
        count = operator.index(n_bits)
    except TypeError:
        count = 0
    if count < 1:
        raise ParameterError(f"n_bits must be an integer of at least 1, got {n_bits!r}; give the length of the codes.")
    return -(-count // 8)


def scores_to_bits(scores: npt.ArrayLike) -> Bytes:
    """Sign of each score as a bit, 1 for a score of zero: (n, n_bits) real -> (n, n_bits) of 0 and 1.

    >>> scores_to_bits([[-0.5, 0.0, 2.0]])
    array([[0, 1, 1]], dtype=uint8)
    """
    values = _checked_matrix(scores, "scores")
    missing = np.isnan(values)
    if missing.any():
        row, bit = np.argwhere(missing)[0]
        raise ParameterError(
            f"scores must be numbers, got NaN at row {row}, bit {bit}; repair or drop such rows first."
        )
    return (values >= 0).view(np.uint8)


def pack_bits(bits: npt.ArrayLike) -> Bytes:
    """Pack bits eight to a byte: (n, n_bits) bool or 0/1 -> (n, n_bytes(n_bits)).

    >>> pack_bits([[1, 0, 0, 0, 0, 0, 0, 1, 1]])
    array([[129, 128]], dtype=uint8)
    """
    values = _checked_matrix(bits, "bits")
    wrong = (values != 0) & (values != 1)
    if wrong.any():
        row, bit = np.argwhere(wrong)[0]
        raise ParameterError(
            f"bits must be 0 or 1, got {values[row, bit]} at row {row}, bit {bit}; use scores_to_bits for real scores."
        )
    return np.packbits(values.astype(bool), axis=1)


def code_rows(scores: Any, packed: bool) -> Any:
    """Codes of one block of scores (n, n_bits), NumPy or torch, and (1,) how many of the scores are no numbers.

    Packed as `pack_bits` does, or one byte a bit.
    """
    xp = array_namespace(scores)
    bits = xp.astype(scores >= 0, xp.uint8)
    n_missing = xp.sum(xp.astype(xp.isnan(scores), xp.int64))[None]
    if not packed:
        return bits, n_missing
    if is_numpy_array(bits):
        return np.packbits(bits, axis=1), n_missing
    n_rows, n_bits = bits.shape
    padding = xp.zeros((n_rows, -n_bits % 8), dtype=xp.uint8, device=device(bits))
    octets = xp.reshape(xp.concat([bits, padding], axis=1), (n_rows, -1, 8))
    total = octets[:, :, 0]
    for place in range(1, 8):
        total = total * 2 + octets[:, :, place]
    return total, n_missing


def unpack_bits(codes: npt.ArrayLike, n_bits: SupportsIndex) -> Bytes:
    """Undo `pack_bits`: (n, n_bytes(n_bits)) -> (n, n_bits) of 0 and 1.

    >>> unpack_bits(np.array([[129, 128]], dtype=np.uint8), n_bits=9)
    array([[1, 0, 0, 0, 0, 0, 0, 1, 1]], dtype=uint8)
    """
    values, width, count = _checked_codes(codes, "codes"), n_bytes(n_bits), operator.index(n_bits)
    if values.shape[1] != width:
        raise ParameterError(
            f"codes of {count} bits must be {width} bytes wide, got {values.shape[1]}; "
            "give the n_bits they were made with."
        )
    unused = values[:, -1] & ((1 << (8 * width - count)) - 1)
    if unused.any():
        raise ParameterError(
            f"codes of {count} bits must end in zero bits, got set ones in row {np.flatnonzero(unused)[0]}; "
            "give the n_bits they were made with."
        )
    return np.unpackbits(values, axis=1, count=count)


def hamming_distances(query_codes: npt.ArrayLike, database_codes: npt.ArrayLike) -> npt.NDArray[np.uint16]:
    """Exact number of differing bits of every pair: (q, width) and (n, width) uint8 -> (q, n) uint16.

    >>> hamming_distances(np.array([[0b11]], dtype=np.uint8), np.array([[0b11], [0b100]], dtype=np.uint8))
    array([[0, 3]], dtype=uint16)
    """
    queries, database = _checked_codes(query_codes, "query_codes"), _checked_codes(database_codes, "database_codes")
    if queries.shape[1] != database.shape[1]:
        raise ParameterError(
            f"query_codes must be as wide as database_codes, {database.shape[1]} bytes, got {queries.shape[1]}; "
            "encode both with the same hasher."
        )
    if queries.shape[1] > _MAX_BYTES:
        raise ParameterError(
            f"query_codes must be at most {_MAX_BYTES} bytes wide, got {queries.shape[1]}; use shorter codes."
        )
    distances = np.zeros((len(queries), len(database)), dtype=np.uint16)
    for top in range(0, len(queries), _QUERY_ROWS):
        rows = slice(top, top + _QUERY_ROWS)
        query_words = _as_words(queries[rows])
        for left in range(0, len(database), _DATABASE_ROWS):
            columns = slice(left, left + _DATABASE_ROWS)
            _add_differing_bits(distances[rows, columns], query_words, _as_words(database[columns]))
    return distances


def _add_differing_bits(
    totals: npt.NDArray[np.uint16], left: npt.NDArray[np.uint64], right: npt.NDArray[np.uint64]
) -> None:
    """Add to totals (q, n) the differing bits of left (q, n_words) and right (n, n_words)."""
    for word in range(left.shape[1]):
        totals += np.bitwise_count(left[:, word, None] ^ np.ascontiguousarray(right[:, word]))


def _as_words(codes: Bytes) -> npt.NDArray[np.uint64]:
    """The rows as 64-bit words, padded with zero bits: (n, width) -> (n, n_words)."""
    n_rows, width = codes.shape
    if width % 8:
        padded = np.zeros((n_rows, 8 * -(-width // 8)), dtype=np.uint8)
        padded[:, :width] = codes
        codes = padded
    return np.ascontiguousarray(codes).view(np.uint64)


def _checked_codes(codes: npt.ArrayLike, name: str) -> Bytes:
    values: Bytes = np.asarray(codes)
    if values.dtype != np.uint8 or values.ndim != 2 or values.shape[1] == 0:
        raise ParameterError(
            f"{name} must be packed codes, uint8 of shape (n, n_bytes), got {values.dtype} of shape {values.shape}; "
            "use pack_bits, one row per item."
        )
    return values


def _checked_matrix(values: npt.ArrayLike, name: str) -> npt.NDArray[Any]:
    array = np.asarray(values)
    if array.dtype.kind not in "biuf" or array.ndim != 2 or array.shape[1] == 0:
        raise ParameterError(
            f"{name} must be real numbers of shape (n, n_bits), got {array.dtype} of shape {array.shape}; "
            "give one row per item."
        )
    return array
