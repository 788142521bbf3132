"""What a search gives back, taken apart."""

import numpy as np
import pytest

from quorumhash import Matches, Neighbourhoods


def test_matches_of_one_query_are_a_table_of_one_row():
    found = Matches(
        np.arange(6).reshape(3, 2), np.arange(6, dtype=np.uint16).reshape(3, 2), np.arange(6.0).reshape(3, 2)
    )
    assert len(found) == 3
    for query in (1, -2):
        assert found[query].ids.tolist() == [[2, 3]]
        assert found[query].distances.tolist() == [[2, 3]]
        assert found[query].scores.tolist() == [[2.0, 3.0]]
    assert found[-1].ids.tolist() == [[4, 5]]
    assert Matches(found.ids, found.distances)[0].scores is None
    with pytest.raises(IndexError, match="query must be one of the 3 asked, got 3"):
        found[3]
    assert [row.ids.tolist() for row in found] == [[[0, 1]], [[2, 3]], [[4, 5]]]


def test_neighbourhoods_are_lists_of_each_query():
    found = Neighbourhoods(np.array([0, 2, 2, 3]), np.array([7, 3, 9]), np.array([0, 2, 1], dtype=np.uint16))
    assert len(found) == 3
    assert found.counts().tolist() == [2, 0, 1]
    assert [(ids.tolist(), distances.tolist()) for ids, distances in found] == [([7, 3], [0, 2]), ([], []), ([9], [1])]
    assert found[-1][0].tolist() == [9]
    for query in (3, -4):
        with pytest.raises(IndexError, match="query must be one of the 3 asked"):
            found[query]
