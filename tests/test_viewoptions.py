"""Options that name views: every mistake names the option, what it must be and what it got."""

import numpy as np
import pytest

import quorumhash as qh
from quorumhash.viewoptions import call_limits, dial_of, given_weights, source_numbers

NAMES = ("image", "caption", "colour")


def test_words_become_numbers():
    assert [dial_of(word) for word in ("neighbours", "groups", 0.25, 1)] == [0.0, 1.0, 0.25, 1.0]
    assert given_weights("auto", NAMES) is None
    np.testing.assert_array_equal(given_weights("equal", NAMES), 1.0)
    np.testing.assert_array_equal(given_weights({"colour": 0, "image": 2}, NAMES), [2.0, 1.0, 0.0])
    np.testing.assert_array_equal(call_limits({"image": 4, "colour": 0}, NAMES), [1.0, 0.25, 0.0])
    np.testing.assert_array_equal(call_limits(None, NAMES), 1.0)
    assert source_numbers(None, NAMES) == [0, 1, 2]
    photo = source_numbers({"photo": ["image", "colour"]}, NAMES)
    assert photo[0] == photo[2] != photo[1]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: dial_of("best"), ("objective", "'neighbours', 'groups' or a number from 0 to 1", "'best'")),
        (lambda: dial_of(1.5), ("objective", "1.5")),
        (lambda: dial_of(True), ("objective", "True")),
        (lambda: given_weights("most", NAMES), ("view_weights", "'auto', 'equal' or a dict", "'most'")),
        (lambda: given_weights({"photo": 1}, NAMES), ("view_weights", "'photo'", "image, caption, colour")),
        (lambda: given_weights({"image": -1}, NAMES), ("view_weights", "from 0 up", "-1", "'image'")),
        (lambda: given_weights({"image": float("nan")}, NAMES), ("view_weights", "from 0 up", "nan")),
        (lambda: given_weights(dict.fromkeys(NAMES, 0), NAMES), ("view_weights", "at least one view")),
        (lambda: call_limits([1, 2], NAMES), ("view_weights of a call", "dict", "[1, 2]")),
        (lambda: call_limits(dict.fromkeys(NAMES, 0), NAMES), ("view_weights of a call", "at least one view")),
        (lambda: source_numbers(["image"], NAMES), ("sources", "dict of source to list of views", "['image']")),
        (lambda: source_numbers({"photo": "image"}, NAMES), ("sources", "list of views")),
        (lambda: source_numbers({"photo": ["img"]}, NAMES), ("sources", "'img'", "image, caption, colour")),
        (lambda: source_numbers({"a": ["image"], "b": ["image"]}, NAMES), ("sources", "'image'", "twice")),
    ],
)
def test_mistakes_get_one_sentence(make, words):
    with pytest.raises(qh.ParameterError) as caught:
        make()
    for word in words:
        assert word in str(caught.value)
