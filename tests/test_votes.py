"""The vote by which views are judged: of camps of views, which is right; what views of one source count for."""

from types import SimpleNamespace

import numpy as np

from quorumhash.pairtests import PairTest
from quorumhash.trust import count_votes


def model_of(n_views, log_odds, slopes, shares, sources=None):
    """What the functions look at."""
    nothing, sources = np.empty(0), tuple(sources or range(n_views))
    pairs = [
        PairTest(a, b, nothing, nothing, nothing, nothing, nothing, nothing, 0.0, shares[a, b])
        for a in range(n_views)
        for b in range(a)
    ]
    strangers, kin = (
        tuple(pair for pair in pairs if (sources[pair.first] == sources[pair.second]) is alike)
        for alike in (False, True)
    )
    return SimpleNamespace(pairs=strangers, kin=kin, sources=sources, log_odds=log_odds, slopes=slopes)


def agreeing(model, camps):
    """Evidence of one item whose views agree within a camp and contradict each other between camps."""
    pairs = (*model.pairs, *model.kin)
    return [np.array([6.0 if any({p.first, p.second} <= camp for camp in camps) else -6.0]) for p in pairs]


def trust_of(model, camps):
    """Trust (M,) in the views of one item that falls into such camps."""
    usable, doubts = np.ones((1, len(model.sources)), dtype=bool), np.zeros((1, len(model.sources)))
    return count_votes(model, ~usable, doubts, agreeing(model, camps))[0][0]


def test_two_right_of_four_are_told_from_two_that_go_with_nothing():
    """By half steps: in whole ones all lose their say together."""
    found = trust_of(model_of(4, np.full(4, 1.4), np.full(4, 0.6), np.ones((4, 4, 2))), [{0, 1}, {2}, {3}])
    assert found[:2].min() > 0.9, found
    assert found[2:].max() < 0.1


def test_views_of_one_source_that_are_wrong_together_are_not_three_witnesses():
    """Three of five are another item's and agree with each other: they are the majority, unless they are one source."""
    shares = np.ones((5, 5, 2))
    told, untold = (
        trust_of(model_of(5, np.full(5, 1.4), np.full(5, 0.5), shares, of), [{0, 1, 2}, {3, 4}])
        for of in ((0, 0, 0, 1, 2), range(5))
    )
    assert untold[:3].min() > 0.9 > 0.1 > untold[3:].max(), untold
    assert told[:3].max() < 0.2, told
    assert told[3:].min() > 0.8


def test_one_view_of_a_source_can_be_wrong_alone():
    model = model_of(5, np.full(5, 1.4), np.full(5, 0.5), np.ones((5, 5, 2)), (0, 0, 0, 1, 2))
    found = trust_of(model, [{1, 2, 3, 4}, {0}])
    assert found[0] < 0.1 < 0.9 < found[1:].min(), found
