"""Labels and pairs: classes of rows, pairs from them, and the views that tell like from unlike."""

import numpy as np
import pytest

from quorumhash.supervision import _ranked, labelled_pairs, memberships, supervised_weights, unlike_pairs


def test_memberships_of_every_kind_of_label():
    np.testing.assert_array_equal(memberships(np.array(["b", "a"])), [[0, 1], [1, 0]])
    np.testing.assert_array_equal(memberships(np.array([[1, 1], [0, 0], [0, 1]])), [[0.5, 0.5], [0, 0], [0, 1]])
    np.testing.assert_array_equal(memberships(np.array([-1, 4])), [[0], [1]])


def test_pairs_are_alike_exactly_when_they_share_a_class():
    classes = memberships(np.array([0, 0, 1, 1, -1]))
    alike, unlike = labelled_pairs(classes, 0)
    assert {tuple(pair) for pair in alike} == {(0, 1), (2, 3)}
    assert {tuple(pair) for pair in unlike} == {(0, 2), (0, 3), (1, 2), (1, 3)}


def test_unlike_pairs_are_of_two_rows():
    pairs = unlike_pairs(np.array([[0, 1], [2, 3], [4, 5]]), 0)
    assert len(pairs) > 10
    assert (pairs[:, 0] != pairs[:, 1]).all()


def test_the_view_that_tells_gets_the_weight():
    rng = np.random.default_rng(0)
    telling = np.concatenate([rng.chisquare(3, 300), 3 + rng.chisquare(3, 900)])
    misleading = np.concatenate([3 + rng.chisquare(3, 300), rng.chisquare(3, 900)])
    pairs = np.arange(2400).reshape(-1, 2)
    weights = supervised_weights(np.stack([misleading, telling]), pairs, 300, np.ones(2))
    np.testing.assert_array_equal(weights, [0.0, 1.0])


def test_what_says_nothing_changes_nothing():
    rng = np.random.default_rng(0)
    start = np.array([1.0, 0.0, 1.0])
    weights = supervised_weights(rng.chisquare(3, (3, 40)), np.arange(80).reshape(-1, 2), 0, start)
    np.testing.assert_array_equal(weights, start)


def test_pairs_of_few_items_are_few_witnesses():
    rng = np.random.default_rng(0)
    kinds = np.arange(12) % 2
    alike, unlike = labelled_pairs(memberships(kinds), 0)
    pairs = np.concatenate([alike, unlike])
    dropped = 0
    for _ in range(20):  # two views that say nothing: chance alone speaks for either
        squares = np.stack([((rows[pairs[:, 0]] - rows[pairs[:, 1]]) ** 2) for rows in rng.standard_normal((2, 12))])
        dropped += int(supervised_weights(squares, pairs, len(alike), np.ones(2)).min() < 1.0)
    assert dropped <= 6


def test_parts_of_the_items_give_the_standard_error_of_the_area():
    rng = np.random.default_rng(0)
    areas, errors = [], []
    for _ in range(200):
        kinds = rng.integers(3, size=40)
        rows = kinds + rng.standard_normal(40)
        alike, unlike = labelled_pairs(memberships(kinds), 0)
        pairs = np.concatenate([alike, unlike])
        found = _ranked(np.ones(1), ((rows[pairs[:, 0]] - rows[pairs[:, 1]]) ** 2)[None], pairs, len(alike))
        by_hand = np.subtract.outer(*(((rows[p[:, 0]] - rows[p[:, 1]]) ** 2) for p in (unlike, alike)))
        assert found.area == pytest.approx((by_hand > 0).mean())
        areas.append(found.area)
        errors.append(np.sqrt((found.parts**2).sum()))
    assert np.mean(errors) == pytest.approx(np.std(areas), rel=0.2)
