"""Which views are right, by sets: against sums over all sets, and where the vote cannot tell."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

import quorumhash as qh
from quorumhash.engines import open_engine
from quorumhash.evidence import PairTest
from quorumhash.inspection import find_facts, inspect_views, joint_trust, learn_inspector
from quorumhash.rightsets import right_views
from quorumhash.trust import count_votes


def model_of(n_views, log_odds, slopes, shares):
    nothing = np.empty(0)
    pairs = [
        PairTest(a, b, nothing, nothing, nothing, nothing, nothing, nothing, 0.0, shares[a, b])
        for a in range(n_views)
        for b in range(a)
    ]
    return SimpleNamespace(
        pairs=tuple(pairs), kin=(), sources=tuple(range(n_views)), log_odds=log_odds, slopes=slopes
    )  # what the two functions look at


def test_the_posterior_is_the_sum_over_all_sets():
    rng = np.random.default_rng(0)
    log_odds, slopes, shares = rng.normal(1, 1, 4), rng.uniform(0.1, 1, 4), rng.uniform(0.2, 1, (4, 4, 2))
    model = model_of(4, log_odds, slopes, shares)
    doubts, usable = -rng.exponential(1, (7, 4)), rng.random((7, 4)) < 0.8
    evidence = [rng.normal(0, 3, 7) for _ in model.pairs]
    found = right_views(model, usable, doubts, evidence)
    for i in range(7):
        total, having = 0.0, np.zeros(4)
        for z in itertools.product((0, 1), repeat=4):
            if any(z[m] and not usable[i, m] for m in range(4)):
                continue
            score = sum(z[m] * (log_odds[m] + doubts[i, m]) for m in range(4))
            for pair, odds in zip(model.pairs, evidence, strict=True):
                slope = min(pair.shares[0] * slopes[pair.first], pair.shares[1] * slopes[pair.second])
                score += z[pair.first] * z[pair.second] * slope * odds[i]
            total += np.exp(score)
            having += np.exp(score) * np.array(z)
        assert np.allclose(found[i], having / total)


def test_two_right_of_four_are_told_from_two_wrong_where_the_vote_cannot():
    model = model_of(4, np.full(4, 1.4), np.full(4, 0.3), np.ones((4, 4, 2)))
    evidence = [np.array([9.0 if (pair.first, pair.second) == (1, 0) else -20.0]) for pair in model.pairs]
    usable, doubts = np.ones((1, 4), dtype=bool), np.zeros((1, 4))
    by_vote = count_votes(model, ~usable, doubts, evidence)[0][0]
    assert np.ptp(by_vote) < 0.2, by_vote
    by_sets = right_views(model, usable, doubts, evidence)[0]
    assert by_sets[:2].min() > 0.9, by_sets
    assert by_sets[2:].max() < 0.1


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
    assert log_loss(found, mask) < 0.9 * log_loss(seen.trust, mask)


def test_views_of_one_source_keep_the_trust_of_the_vote():
    given, _, _ = swapped_views()
    views, inspector, seen = inspected(given, [0, 0, 1, 2])
    assert np.array_equal(joint_trust(views, inspector, seen), np.where(seen.usable, seen.trust, 0.0))
