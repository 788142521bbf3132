"""Codes in the forms that other programs use: bits in another order, words, booleans, signs, shifted bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from quorumhash.codes import Bytes, n_bytes, pack_bits, unpack_bits
from quorumhash.errors import ParameterError

Form = npt.NDArray[Any]

_TOP_BIT = np.uint8(128)  # subtracting 128 from a byte turns its highest bit


def convert_codes(
    codes: npt.ArrayLike, n_bits: SupportsIndex, *, source: str = "packed", target: str = "packed"
) -> Form:
    """Codes of `n_bits` bits from one form to another; bit j of an item stays bit j.

    | form | type, width | who uses it |
    |---|---|---|
    | `"packed"` | uint8, n_bits / 8 | this library, `np.packbits`, sentence-transformers `ubinary` |
    | `"little"` | uint8, n_bits / 8 | `np.packbits(bitorder="little")`, the codes of faiss's `IndexLSH` |
    | `"shifted"` | int8, n_bits / 8 | sentence-transformers `binary`: packed bytes minus 128 |
    | `"int64"` | int64, n_bits / 64 | a column of whole numbers in a database; the first bit is the highest |
    | `"bool"` | bool, n_bits | masks |
    | `"bits"` | uint8 0 or 1, n_bits | `transform(packed=False)` |
    | `"signs"` | int8 -1 or 1, n_bits | papers, and products of codes: n_bits - 2 * distance |

    Widths are rounded up; what is left over at the end is zero bits, and anything else there is refused. Distances are
    the same in every form, as long as both sides have the same one.

    >>> codes = np.array([[0b10000001, 0b10000000]], dtype=np.uint8)
    >>> convert_codes(codes, 9, target="signs")
    array([[ 1, -1, -1, -1, -1, -1, -1,  1,  1]], dtype=int8)
    >>> convert_codes(codes, 9, target="little")
    array([[129,   1]], dtype=uint8)
    >>> convert_codes([[-1, 1, 1]], 3, source="signs")
    array([[96]], dtype=uint8)
    """
    for name, form in (("source", source), ("target", target)):
        if form not in FORMS:
            raise ParameterError(f"{name} must be one of {', '.join(FORMS)}, got {form!r}; give the name of a form.")
    (read, _), (_, write) = FORMS[source], FORMS[target]
    values = np.asarray(codes)
    width = n_bytes(n_bits)  # says no to an n_bits that is none
    bits = read(_checked(values, source, n_bits, width), n_bits)
    return write(bits)


def _checked(values: Form, form: str, n_bits: SupportsIndex, width: int) -> Form:
    """The values, if they have the width of the form, and its type where the bytes matter."""
    count = int(n_bits)
    dtypes, wanted = {
        "packed": ("uint8", width),
        "little": ("uint8", width),
        "shifted": ("int8", width),
        "int64": ("int64", -(-count // 64)),
    }.get(form, (None, count))
    if values.ndim != 2 or values.shape[1] != wanted or (dtypes is not None and values.dtype != dtypes):
        raise ParameterError(
            f"codes of {count} bits in the form {form!r} must be {dtypes or 'numbers'} of shape (n, {wanted}), "
            f"got {values.dtype} of shape {values.shape}; give the form and the n_bits they were made with."
        )
    return values


def _from_little(values: Form, n_bits: SupportsIndex) -> Bytes:
    return unpack_bits(np.packbits(np.unpackbits(values, axis=1, bitorder="little"), axis=1), n_bits)


def _to_little(bits: Bytes) -> Form:
    return np.packbits(bits, axis=1, bitorder="little")


def _from_words(values: Form, n_bits: SupportsIndex) -> Bytes:
    padded = np.unpackbits(np.ascontiguousarray(values.astype(">i8")).view(np.uint8), axis=1)
    if padded[:, int(n_bits) :].any():
        raise ParameterError(f"words of {int(n_bits)} bits must end in zero bits; give the n_bits they were made with.")
    return np.ascontiguousarray(padded[:, : int(n_bits)])


def _to_words(bits: Bytes) -> Form:
    padded = np.zeros((len(bits), 64 * -(-bits.shape[1] // 64)), dtype=np.uint8)
    padded[:, : bits.shape[1]] = bits
    return np.packbits(padded, axis=1).view(">i8").astype(np.int64)


def _from_bits(values: Form, n_bits: SupportsIndex) -> Bytes:
    return unpack_bits(pack_bits(values), n_bits)  # pack_bits refuses what is neither 0 nor 1


def _from_signs(values: Form, n_bits: SupportsIndex) -> Bytes:
    wrong = np.argwhere((values != 1) & (values != -1))
    if len(wrong):
        row, bit = wrong[0]
        raise ParameterError(
            f"signs must be -1 or 1, got {values[row, bit]} at row {row}, bit {bit}; scores are cut by scores_to_bits."
        )
    return _from_bits(values == 1, n_bits)


FORMS: dict[str, tuple[Callable[[Form, SupportsIndex], Bytes], Callable[[Bytes], Form]]] = {
    "packed": (unpack_bits, pack_bits),
    "little": (_from_little, _to_little),
    "shifted": (
        lambda values, n_bits: unpack_bits(values.view(np.uint8) ^ _TOP_BIT, n_bits),
        lambda bits: (pack_bits(bits) ^ _TOP_BIT).view(np.int8),
    ),
    "int64": (_from_words, _to_words),
    "bool": (_from_bits, lambda bits: bits.astype(bool)),
    "bits": (_from_bits, lambda bits: bits),
    "signs": (_from_signs, lambda bits: 2 * bits.astype(np.int8) - 1),
}
