"""Packed codes against plain loops over bits."""

import doctest
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from quorumhash import codes
from quorumhash.codes import hamming_distances, n_bytes, pack_bits, scores_to_bits, unpack_bits
from quorumhash.errors import ParameterError

LENGTHS = [*range(1, 71), 127, 128, 1024]


def random_bits(n_rows: int, n_bits: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2, (n_rows, n_bits), dtype=np.uint8)


def pack_by_loop(bits: np.ndarray) -> list[list[int]]:
    rows = []
    for row in bits.tolist():
        row_bytes = [0] * ((len(row) + 7) // 8)
        for position, bit in enumerate(row):
            row_bytes[position // 8] += bit * 2 ** (7 - position % 8)
        rows.append(row_bytes)
    return rows


def distances_by_loop(queries: np.ndarray, database: np.ndarray) -> list[list[int]]:
    return [[sum(a != b for a, b in zip(q, d, strict=True)) for d in database.tolist()] for q in queries.tolist()]


def test_the_examples_in_the_docstrings_run():
    assert doctest.testmod(codes).failed == 0


@pytest.mark.parametrize("n_bits", LENGTHS)
def test_packing_agrees_with_a_plain_loop_and_unpacking_undoes_it(n_bits):
    bits = random_bits(5, n_bits, seed=n_bits)
    packed = pack_bits(bits)
    assert packed.dtype == np.uint8
    assert packed.shape == (5, n_bytes(n_bits))
    assert packed.tolist() == pack_by_loop(bits)
    unpacked = unpack_bits(packed, n_bits)
    assert unpacked.dtype == np.uint8
    np.testing.assert_array_equal(unpacked, bits)


@pytest.mark.parametrize("dtype", [bool, np.int64, np.float32, np.uint8])
def test_bits_may_come_in_any_numeric_dtype(dtype):
    bits = random_bits(3, 13)
    np.testing.assert_array_equal(pack_bits(bits.astype(dtype)), pack_bits(bits))


def test_no_rows_stay_no_rows():
    packed = pack_bits(np.zeros((0, 9)))
    assert packed.shape == (0, 2)
    assert unpack_bits(packed, 9).shape == (0, 9)
    assert hamming_distances(packed, np.zeros((3, 2), np.uint8)).shape == (0, 3)
    assert hamming_distances(np.zeros((3, 2), np.uint8), packed).shape == (3, 0)


def test_a_shorter_code_is_the_beginning_of_a_longer_one():
    bits = random_bits(4, 256)
    np.testing.assert_array_equal(pack_bits(bits)[:, :8], pack_bits(bits[:, :64]))


@given(hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=2), elements=st.floats(allow_nan=False)))
@settings(deadline=None, derandomize=True)
def test_a_bit_is_set_where_the_score_is_not_negative(scores):
    bits = scores_to_bits(scores)
    assert bits.dtype == np.uint8
    assert bits.tolist() == [[1 if score >= 0 else 0 for score in row] for row in scores.tolist()]


def test_a_score_of_either_zero_gives_one():
    assert scores_to_bits([[0.0, -0.0]]).tolist() == [[1, 1]]


@given(n_bits=st.integers(1, 140), n_queries=st.integers(1, 4), n_items=st.integers(1, 6), seed=st.integers(0, 2**32))
@settings(deadline=None, derandomize=True)
def test_distances_agree_with_a_plain_loop(n_bits, n_queries, n_items, seed):
    queries, database = random_bits(n_queries, n_bits, seed), random_bits(n_items, n_bits, seed + 1)
    distances = hamming_distances(pack_bits(queries), pack_bits(database))
    assert distances.dtype == np.uint16
    assert distances.tolist() == distances_by_loop(queries, database)


@pytest.mark.parametrize("n_bits", [9, 64, 200])
def test_distances_do_not_depend_on_the_blocks(monkeypatch, n_bits):
    queries, database = random_bits(11, n_bits, 1), random_bits(23, n_bits, 2)
    expected = distances_by_loop(queries, database)
    for query_rows, database_rows in [(1, 1), (3, 7), (11, 23), (100, 5)]:
        monkeypatch.setattr(codes, "_QUERY_ROWS", query_rows)
        monkeypatch.setattr(codes, "_DATABASE_ROWS", database_rows)
        assert hamming_distances(pack_bits(queries), pack_bits(database)).tolist() == expected


@pytest.mark.parametrize("width", [2, 8, 19])
def test_distances_of_rows_and_columns_that_are_not_adjacent_in_memory(width):
    wide = np.random.default_rng(0).integers(0, 256, (12, 2 * width), dtype=np.uint8)
    for view in (wide[::2, ::2], wide[:, width:], np.asfortranarray(wide[:, :width])):
        np.testing.assert_array_equal(hamming_distances(view, view), hamming_distances(view.copy("C"), view.copy("C")))


def test_the_longest_codes_do_not_overflow():
    ends = np.array([[0], [255]], np.uint8).repeat(8191, axis=1)
    assert hamming_distances(ends, ends).tolist() == [[0, 65_528], [65_528, 0]]


@pytest.mark.parametrize(("n_queries", "n_items", "width"), [(2000, 5000, 8), (2, 500_000, 3), (70, 5000, 8191)])
def test_temporary_memory_stays_small(n_queries, n_items, width):
    queries, database = np.zeros((n_queries, width), np.uint8), np.zeros((n_items, width), np.uint8)
    tracemalloc.start()
    try:
        distances = hamming_distances(queries, database)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak - distances.nbytes < 64e6


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: n_bytes(0), "n_bits must be an integer of at least 1, got 0"),
        (lambda: n_bytes(8.0), "n_bits must be an integer"),
        (lambda: pack_bits([[0, 2]]), r"bits must be 0 or 1, got 2 at row 0, bit 1"),
        (lambda: pack_bits([[0.0, np.nan]]), r"bits must be 0 or 1, got nan"),
        (lambda: pack_bits([0, 1]), r"shape \(n, n_bits\), got int64 of shape \(2,\)"),
        (lambda: pack_bits(np.zeros((3, 0))), r"shape \(n, n_bits\)"),
        (lambda: pack_bits([["a"]]), "bits must be real numbers"),
        (lambda: scores_to_bits([[1.0, 0.0], [np.nan, 1.0]]), "got NaN at row 1, bit 0"),
        (lambda: scores_to_bits([[1j]]), "scores must be real numbers"),
        (lambda: unpack_bits(np.zeros((2, 2), np.uint8), 8), "codes of 8 bits must be 1 bytes wide, got 2"),
        (lambda: unpack_bits(np.zeros((2, 1), np.uint8), 9), "codes of 9 bits must be 2 bytes wide, got 1"),
        (
            lambda: unpack_bits(np.array([[0, 128], [0, 64]], np.uint8), 9),
            "must end in zero bits, got set ones in row 1",
        ),
        (lambda: unpack_bits(np.zeros((2, 1)), 8), "got float64"),
        (
            lambda: hamming_distances(np.zeros((2, 1), np.int8), np.zeros((2, 1), np.uint8)),
            "query_codes must be packed",
        ),
        (lambda: hamming_distances(np.zeros((2, 1), np.uint8), np.zeros(2, np.uint8)), "database_codes must be packed"),
        (
            lambda: hamming_distances(np.zeros((2, 0), np.uint8), np.zeros((2, 0), np.uint8)),
            r"got uint8 of shape \(2, 0\)",
        ),
        (lambda: hamming_distances(np.zeros((1, 4), np.uint8), np.zeros((1, 8), np.uint8)), "8 bytes, got 4"),
        (lambda: hamming_distances(*np.zeros((2, 1, 8192), np.uint8)), "at most 8191 bytes wide, got 8192"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_sentence(call, message):
    with pytest.raises(ParameterError, match=message) as caught:
        call()
    assert str(caught.value).endswith(".")
    assert ";" in str(caught.value)
