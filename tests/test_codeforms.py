"""Every form of a code against plain loops and whole numbers, there and back."""

import numpy as np
import pytest

import quorumhash as qh
from quorumhash.codeforms import FORMS
from quorumhash.codes import pack_bits

LENGTHS = (1, 8, 9, 63, 64, 65, 128, 200)


def random_bits(n_bits):
    return np.random.default_rng(n_bits).integers(0, 2, (7, n_bits), dtype=np.uint8)


def by_loop(row, form):
    """One item's bits in a form, by the definition."""
    if form == "signs":
        return [1 if bit else -1 for bit in row]
    if form in ("bits", "bool"):
        return row
    size = 64 if form == "int64" else 8
    values = []
    for start in range(0, len(row), size):
        part = [*row[start : start + size], *[0] * (start + size - len(row))]
        values.append(int("".join(map(str, reversed(part) if form == "little" else part)), 2))
    if form == "int64":
        return [value - 2**64 if value >= 2**63 else value for value in values]
    return [value - 128 for value in values] if form == "shifted" else values


@pytest.mark.parametrize("n_bits", LENGTHS)
@pytest.mark.parametrize("form", FORMS)
def test_forms_are_what_they_say_and_go_back(form, n_bits):
    bits = random_bits(n_bits)
    packed = pack_bits(bits)
    found = qh.convert_codes(packed, n_bits, target=form)
    assert found.tolist() == [by_loop(row, form) for row in bits.tolist()]
    back = qh.convert_codes(found, n_bits, source=form)
    assert back.dtype == np.uint8
    np.testing.assert_array_equal(back, packed)


def test_shifted_is_the_binary_precision_of_sentence_transformers():
    """Their rule, as documented: threshold at zero, pack, subtract 128, keep as int8."""
    embeddings = np.random.default_rng(0).standard_normal((5, 64))
    unsigned = np.packbits(embeddings > 0, axis=1)
    signed = (unsigned.astype(int) - 128).astype(np.int8)
    np.testing.assert_array_equal(qh.convert_codes(signed, 64, source="shifted"), unsigned)


def test_distances_do_not_depend_on_the_form():
    packed = pack_bits(random_bits(100))
    signs = qh.convert_codes(packed, 100, target="signs").astype(int)
    little = qh.convert_codes(packed, 100, target="little")
    distances = qh.hamming_distances(packed, packed)
    np.testing.assert_array_equal((100 - signs @ signs.T) // 2, distances)
    np.testing.assert_array_equal(qh.hamming_distances(little, little), distances)


@pytest.mark.parametrize(
    ("codes", "form", "words"),
    [
        (np.zeros((2, 1), np.int8), "packed", "must be uint8"),
        (np.zeros((2, 1), np.uint8), "shifted", "must be int8"),
        (np.zeros((2, 2), np.uint8), "packed", r"\(n, 1\)"),
        (np.zeros(3, np.uint8), "packed", "shape"),
        (np.full((2, 3), 2), "bits", "0 or 1"),
        (np.zeros((2, 3)), "signs", "-1 or 1"),
        (np.array([[1]], np.uint8), "packed", "zero bits"),
        (np.array([[0b1000]], np.uint8), "little", "zero bits"),
        (np.array([[1]]), "int64", "zero bits"),
        (np.array([[-127]], np.int8), "shifted", "zero bits"),
    ],
)
def test_what_is_not_the_form_is_refused(codes, form, words):
    with pytest.raises(qh.ParameterError, match=words):
        qh.convert_codes(codes, 3, source=form)


def test_an_unknown_form_is_refused_with_the_known_ones():
    with pytest.raises(qh.ParameterError, match=r"target must be one of packed, little.*got 'hex'"):
        qh.convert_codes(np.zeros((1, 1), np.uint8), 8, target="hex")
    with pytest.raises(qh.ParameterError, match="n_bits"):
        qh.convert_codes(np.zeros((1, 1), np.uint8), 0)
