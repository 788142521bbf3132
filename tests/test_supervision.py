"""Labels and pairs: classes of rows, pairs from them, and the views that tell like from unlike."""

import numpy as np

from quorumhash.supervision import labelled_pairs, memberships, supervised_weights, unlike_pairs


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
    weights = supervised_weights(np.stack([misleading, telling]), 300, np.ones(2))
    np.testing.assert_array_equal(weights, [0.0, 1.0])


def test_what_says_nothing_changes_nothing():
    rng = np.random.default_rng(0)
    start = np.array([1.0, 0.0, 1.0])
    weights = supervised_weights(rng.chisquare(3, (3, 40)), 0, start)
    np.testing.assert_array_equal(weights, start)
