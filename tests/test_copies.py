"""Rows that hold the same view: whose it is."""

import itertools

import numpy as np
import pytest

import quorumhash as qh
from quorumhash.copies import MOST_COPIES, few_copies, right_among_copies, same_rows, twins_among_copies, without_copies


def by_the_textbook(sets, wrong_share, n_steps=200):
    """Every hypothesis about every set of rows written out; the share of twins by the same fixed point."""

    def weights(ratios, twins):
        k = len(ratios)
        found = {(1,) * k: twins * np.exp(sum(ratios)), (0,) * k: (1 - twins) * wrong_share}
        for j in range(k):
            found[tuple(int(i == j) for i in range(k))] = (1 - twins) * (1 - wrong_share) / k * np.exp(ratios[j])
        return found

    twins = 0.5
    for _ in range(n_steps):
        shares = []
        for ratios in sets:
            found = weights(ratios, twins)
            shares.append(found[(1,) * len(ratios)] / sum(found.values()))
        twins = (sum(shares) + 1) / (len(sets) + 2)
    posteriors = []
    for ratios in sets:
        found = weights(ratios, twins)
        total = sum(found.values())
        posteriors.append([sum(w for z, w in found.items() if z[i]) / total for i in range(len(ratios))])
    return posteriors


@pytest.mark.parametrize("seed", range(5))
def test_posteriors_are_those_of_all_hypotheses_written_out(seed):
    rng = np.random.default_rng(seed)
    sets = [rng.normal(0, 3, rng.integers(2, 5)) for _ in range(40)]
    groups = np.concatenate([[number] * len(part) for number, part in enumerate(sets)] + [[-1] * 600])
    ratios = np.concatenate([*sets, rng.normal(0, 3, 600)])
    order = rng.permutation(len(groups))
    found = np.empty(len(groups))
    found[order] = right_among_copies(groups[order], ratios[order], 0.1)
    expected = list(itertools.chain(*by_the_textbook(sets, 0.1)))
    assert found[:-600] == pytest.approx(expected, abs=1e-4)
    assert np.isnan(found[-600:]).all()


def test_the_row_that_goes_with_the_view_owns_it_unless_twins_are_common():
    thieves, alone = np.tile([4.0, -2.0], 50), np.full(3_000, -1)  # one goes with it, the other rather not
    pairs = np.repeat(np.arange(50), 2)
    right = right_among_copies(np.append(pairs, alone), np.append(thieves, 0.0 * alone), 0.1)[:100]
    assert (right[::2] > 0.95).all()
    assert (right[1::2] < 0.05).all()
    twins = np.concatenate([np.full(400, 4.0), thieves])  # two hundred pairs of which both go with it
    pairs = np.repeat(np.arange(250), 2)
    right = right_among_copies(np.append(pairs, alone), np.append(twins, 0.0 * alone), 0.1)[:500]
    assert (right[:400] > 0.95).all()
    assert (right[401::2] > 0.05).all()


def test_there_are_no_more_thieves_than_wrong_rows():
    """Four of ten prices coincide, and nothing else says anything of a price."""
    groups = np.append(np.repeat(np.arange(200), 2), np.full(600, -1))
    right = right_among_copies(groups, np.zeros(1_000), 0.02)
    assert (right[:400] > 0.9).all()
    assert twins_among_copies(groups, np.zeros(1_000), 0.02) == pytest.approx(0.9)


def test_sets_are_rows_of_one_mark_that_are_here_and_not_too_many():
    marks = np.repeat([12, 34, 56], [2, 1, MOST_COPIES + 1])[:, None]
    here = np.ones(marks.shape, dtype=bool)
    groups = same_rows(marks, here).ravel()
    assert groups[0] == groups[1] >= 0
    assert groups[2] == -1
    assert len(set(groups[3:])) == 1
    assert few_copies(groups).tolist() == [groups[0], groups[1], -1, *[-1] * (MOST_COPIES + 1)]
    here[1] = False
    assert same_rows(marks, here)[0] == -1


def test_sets_of_one_view_have_no_say_in_another():
    marks = np.array([[1, 4], [1, 5], [2, 5]])
    assert same_rows(marks, np.ones((3, 2), dtype=bool)).tolist() == [[0, -1], [0, 1], [-1, 1]]


def test_trust_is_asked_again_without_what_is_surely_a_copy():
    trust = np.array([[0.99, 0.9], [0.01, 0.9], [0.9, 0.9]])
    asked = []

    def judged(usable):
        asked.append(usable)
        return trust

    everywhere, groups = np.ones((3, 2), dtype=bool), np.array([[0, -1], [0, -1], [-1, -1]])
    without_copies(judged, everywhere, groups, np.array([0.1, 0.1]))
    assert [part.tolist() for part in asked] == [everywhere.tolist(), [[True, True], [False, True], [True, True]]]
    without_copies(judged, everywhere, np.full((3, 2), -1), np.array([0.1, 0.1]))
    assert len(asked) == 3


def two_views(n_rows=900, seed=0):
    rng = np.random.default_rng(seed)
    hidden = rng.standard_normal((n_rows, 8))
    return {
        name: hidden @ rng.standard_normal((8, width)) + 0.4 * rng.standard_normal((n_rows, width))
        for name, width in (("image", 14), ("text", 12))
    }


def test_of_two_sources_the_one_that_another_item_owns_is_wrong():
    """Two views that contradict each other say nothing of which is wrong; a copy does."""
    views = two_views()
    stolen, owners = np.split(np.random.default_rng(1).permutation(900)[:80], 2)
    views["image"][stolen] = views["image"][owners]
    report = qh.audit(views)
    assert np.mean(report.kinds[stolen, 0] == "swap") >= 0.95
    assert np.mean(report.kinds[stolen, 1] == "") >= 0.95
    assert np.mean(report.partners[stolen, 0, 0] == owners) >= 0.95
    assert (report.kinds[owners] == "").mean() >= 0.95
    assert report.trust[stolen, 0].mean() < 0.05 < 0.5 < report.trust[stolen, 1].mean()


def test_items_that_are_there_twice_and_views_of_few_values_are_not_damage():
    views = two_views()
    for values in views.values():
        values[500:560] = values[:60]  # sixty items twice
    views["kind"] = np.round(views["text"][:, :2])  # of few values by nature
    report = qh.audit(views)
    assert (report.kinds == "swap").mean() < 0.002
