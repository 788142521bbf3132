"""Nested codes: longer codes begin with the shorter ones."""

import numpy as np
import pytest

from quorumhash.engines.threads import ThreadsEngine
from quorumhash.nested import learn_rotation


@pytest.fixture(scope="module")
def placed():
    return np.random.default_rng(0).standard_normal((300, 100)) * np.geomspace(1, 0.05, 100)


def rotation(placed, n_bits):
    with ThreadsEngine() as engine:
        return learn_rotation(placed, n_bits, engine, seed=0, n_steps=5)


def test_the_first_block_is_the_shorter_code(placed):
    short = rotation(placed, 64)
    for n_bits in (65, 128, 200):
        np.testing.assert_array_equal(rotation(placed, n_bits)[:, :64], short)


def test_a_block_rotates_the_dimensions_so_far(placed):
    turned = rotation(placed, 128)
    np.testing.assert_allclose(turned[:64, :64].T @ turned[:64, :64], np.eye(64), atol=1e-9)
    np.testing.assert_array_equal(turned[64:, :64], 0.0)
    assert (np.abs(turned[64:100, 64:]).max(axis=0) > 0).all()  # the next dimensions are heard in the next block


def test_more_bits_than_dimensions_all_cut_the_data(placed):
    few = placed[:, :3]
    bits = few @ rotation(few, 200) >= 0
    balance = bits.mean(axis=0)
    assert ((balance > 0.1) & (balance < 0.9)).all()
    assert len(np.unique(bits, axis=1).T) > 100


def test_rotation_brings_scores_closer_to_their_signs(placed):
    def quantization(turned):
        scores = placed @ turned
        return np.square(scores / np.abs(scores).mean() - np.sign(scores)).mean()

    assert quantization(rotation(placed, 64)) < quantization(np.eye(100, 64))
