"""Noise in columns of counts holds values of its own; odd items do not."""

import numpy as np
import pytest

from quorumhash.ownvalues import holds_known_values

RNG = np.random.default_rng(0)
COUNTS = RNG.poisson(4.0, (400, 6)).clip(0, 7).astype(float)
ODD = np.full((3, 6), 7.0)
NOISE = 4.0 + 8.0 * RNG.standard_normal((8, 6))


def test_odd_items_among_noise_are_those_with_values_that_other_rows_have():
    found = holds_known_values(np.concatenate([NOISE, ODD]), COUNTS)
    assert found.tolist() == [False] * len(NOISE) + [True] * len(ODD)


def test_noise_in_whole_numbers_stays_noise():
    whole = RNG.integers(0, 8, (8, 6)).astype(float)
    assert not holds_known_values(whole, COUNTS).any()
    assert not holds_known_values(np.concatenate([whole, NOISE[:2]]), COUNTS).any()  # most of the noise is of that kind


def test_measured_columns_say_nothing():
    measured = RNG.standard_normal((400, 6))
    assert not holds_known_values(np.concatenate([NOISE, measured[:3]]), measured).any()
    few = np.concatenate([COUNTS[:, :2], measured], axis=1)  # two columns of counts are not enough
    rows = np.concatenate([np.concatenate([NOISE[:, :2], NOISE], axis=1), few[:3]])
    assert not holds_known_values(rows, few).any()


def test_columns_of_one_value_do_not_count_for_noise_keeps_to_them():
    flat = np.concatenate([COUNTS[:, :3], np.ones((400, 20))], axis=1)
    rows = np.concatenate([np.concatenate([NOISE[:, :3], np.ones((8, 20))], axis=1), flat[:2]])
    assert holds_known_values(rows, flat).tolist() == [False] * 8 + [True] * 2


@pytest.mark.parametrize("n_missing", [0, 1, 3])
def test_missing_values_are_neither_known_nor_own(n_missing):
    others, noise, odd = COUNTS.copy(), NOISE.copy(), ODD.copy()
    others[RNG.random(COUNTS.shape) < n_missing / 6] = np.nan
    noise[:, :n_missing], odd[:, :n_missing] = np.nan, np.nan
    found = holds_known_values(np.concatenate([noise, odd]), others)
    assert found.tolist() == [False] * len(noise) + [True] * len(odd)


def test_rows_that_are_hardly_seen_say_nothing_of_themselves_or_of_noise():
    unseen = np.full((20, 6), np.nan)
    unseen[:, :2] = 7.0
    found = holds_known_values(np.concatenate([NOISE, ODD, unseen]), COUNTS)
    assert found.tolist() == [False] * len(NOISE) + [True] * len(ODD) + [False] * len(unseen)
    flat = np.concatenate([COUNTS[:, :3], np.where(RNG.random((400, 3)) < 0.5, np.nan, 1.0)], axis=1)
    rows = np.concatenate([np.concatenate([NOISE[:, :3], np.ones((8, 3))], axis=1), flat[:2]])
    assert holds_known_values(rows, flat).tolist() == [False] * 8 + [True] * 2  # a constant column with gaps is one
