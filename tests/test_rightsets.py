"""Which views are right, by sets: against sums over all sets, and where the vote cannot tell."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

import quorumhash as qh
from quorumhash.engines import open_engine
from quorumhash.inspection import find_facts, inspect_views, joint_trust, learn_inspector
from quorumhash.judging import described_rows, learn_judge, repaired_rows
from quorumhash.pairtests import PairTest
from quorumhash.repair import joined_rows
from quorumhash.rightsets import right_views
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


@pytest.mark.parametrize("sources", [(0, 1, 2, 3), (0, 0, 1, 2)])
def test_the_posterior_is_the_sum_over_all_sets(sources):
    rng = np.random.default_rng(0)
    log_odds, slopes, shares = rng.normal(1, 1, 4), rng.uniform(0.1, 1, 4), rng.uniform(0.2, 1, (4, 4, 2))
    model = model_of(4, log_odds, slopes, shares, sources)
    doubts, usable = -rng.exponential(1, (7, 4)), rng.random((7, 4)) < 0.8
    evidence = [rng.normal(0, 3, 7) for _ in (*model.pairs, *model.kin)]
    found = right_views(model, usable, doubts, evidence)
    for i in range(7):
        total, having = 0.0, np.zeros(4)
        for z in itertools.product((0, 1), repeat=4):
            if any(z[m] and not usable[i, m] for m in range(4)):
                continue
            score = sum(z[m] * (log_odds[m] / sources.count(sources[m]) + doubts[i, m]) for m in range(4))
            for pair, odds in zip((*model.pairs, *model.kin), evidence, strict=True):
                a, b = pair.first, pair.second
                slope = min(pair.shares[0] * slopes[a], pair.shares[1] * slopes[b])
                if sources[a] != sources[b]:
                    score += z[a] * z[b] * slope * odds[i]
                elif usable[i, a] and usable[i, b]:
                    score += (z[a] == z[b]) * slope * odds[i]
            total += np.exp(score)
            having += np.exp(score) * np.array(z)
        assert np.allclose(found[i], having / total)


def test_two_right_of_four_are_told_from_two_wrong():
    """The vote finds them too, by half steps: in whole ones all lose their say together."""
    model = model_of(4, np.full(4, 1.4), np.full(4, 0.3), np.ones((4, 4, 2)))
    evidence = [np.array([9.0 if (pair.first, pair.second) == (1, 0) else -20.0]) for pair in model.pairs]
    usable, doubts = np.ones((1, 4), dtype=bool), np.zeros((1, 4))
    for found in (right_views(model, usable, doubts, evidence)[0], count_votes(model, ~usable, doubts, evidence)[0][0]):
        assert found[:2].min() > 0.9, found
        assert found[2:].max() < 0.1


def swapped_views(seed=0, n_rows=600, n_views=4, rate=0.2):
    """Views of the same six hidden numbers, each swapped among a share of the rows; the truth, and what was hit."""
    rng = np.random.default_rng(seed)
    hidden = rng.standard_normal((n_rows, 6))
    truth = {
        f"view{m}": hidden @ rng.standard_normal((6, 8 + m)) + 0.3 * rng.standard_normal((n_rows, 8 + m))
        for m in range(n_views)
    }
    given, mask = {name: values.copy() for name, values in truth.items()}, np.zeros((n_rows, n_views), dtype=bool)
    for m, name in enumerate(truth):
        rows = rng.permutation(n_rows)[: round(rate * n_rows)]
        given[name][rows], mask[rows, m] = truth[name][np.roll(rows, 1)], True
    return given, truth, mask


def inspected(given, sources):
    views = qh.Views(given)
    with open_engine("threads") as engine:
        facts = find_facts(views, engine)
        inspector = learn_inspector(views, sources, facts, engine, 0)
        return views, inspector, inspect_views(views, inspector, facts, engine)


def log_loss(trust, mask):
    trust = np.clip(trust, 1e-3, 1 - 1e-3)
    return -np.log(np.where(mask, 1 - trust, trust)).mean()


@pytest.mark.parametrize("seed", [0, 1])
def test_sets_know_more_than_the_vote(seed):
    given, _, mask = swapped_views(seed)
    views, inspector, seen = inspected(given, [0, 1, 2, 3])
    found = joint_trust(views, inspector, seen)
    assert log_loss(found, mask) < log_loss(seen.trust, mask)


def test_of_two_sources_with_several_views_the_vote_decides():
    given, _, _ = swapped_views()
    views, inspector, seen = inspected(given, [0, 0, 1, 1])
    assert np.array_equal(joint_trust(views, inspector, seen), np.where(seen.usable, seen.trust, 0.0))


def test_views_of_one_source_that_are_wrong_together_are_not_three_witnesses():
    """Three of five are another item's and agree with each other: they are the majority, unless they are one source."""
    log_odds, slopes = np.full(5, 1.4), np.full(5, 0.5)
    usable, doubts = np.ones((1, 5), dtype=bool), np.zeros((1, 5))
    told, untold = (
        right_views(model, usable, doubts, agreeing(model, [{0, 1, 2}, {3, 4}]))[0]
        for model in (model_of(5, log_odds, slopes, np.ones((5, 5, 2)), of) for of in ((0, 0, 0, 1, 2), range(5)))
    )
    assert untold[:3].min() > 0.9 > 0.1 > untold[3:].max(), untold
    assert told[:3].max() < 0.2, told
    assert told[3:].min() > 0.8


def test_one_view_of_a_source_can_be_wrong_alone():
    model = model_of(5, np.full(5, 1.4), np.full(5, 0.5), np.ones((5, 5, 2)), (0, 0, 0, 1, 2))
    usable, doubts = np.ones((1, 5), dtype=bool), np.zeros((1, 5))
    found = right_views(model, usable, doubts, agreeing(model, [{1, 2, 3, 4}, {0}]))[0]
    assert found[0] < 0.1 < 0.9 < found[1:].min(), found


def agreeing(model, camps):
    """Evidence of one item whose views agree within a camp and contradict each other between camps."""
    pairs = (*model.pairs, *model.kin)
    return [np.array([6.0 if any({p.first, p.second} <= camp for camp in camps) else -6.0]) for p in pairs]


@pytest.mark.parametrize("seed", [0, 1])
def test_a_judge_repairs_by_sets_and_comes_nearer_to_the_truth_than_by_the_vote(seed, monkeypatch):
    given, truth, mask = swapped_views(seed)
    present, everyone = np.ones(mask.shape, dtype=bool), np.ones(mask.shape[1])
    judge = learn_judge(given, present, [0, 1, 2, 3])[0]
    wanted = joined_rows(judge.repair, *described_rows(judge, present, *truth.values())[0])

    def error():
        return np.square(repaired_rows(judge, everyone, present, *given.values()) - wanted)[mask.any(axis=1)].sum()

    by_sets = error()
    monkeypatch.setattr("quorumhash.judging._asks_sets", lambda model: False)
    assert by_sets < 0.9 * error()
