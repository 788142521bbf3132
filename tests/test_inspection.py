"""Rows are judged by tests that have not seen them."""

import numpy as np
import pytest

import quorumhash as qh
from quorumhash.auditing import audit
from quorumhash.engines import open_engine
from quorumhash.inspection import find_facts, inspect_views, learn_inspector
from quorumhash.partners import learn_matching, match_views, own_odds

N_ROWS = 600


def weak_views(seed=0, n_rows=N_ROWS, tail=0.0):
    """Three wide views with little in common; the first, where asked, of a heavy tail."""
    rng = np.random.default_rng(seed)
    hidden = rng.standard_normal((n_rows, 6))
    views = {
        name: hidden @ rng.standard_normal((6, 40)) + 3.0 * rng.standard_normal((n_rows, 40)) @ np.diag(spreads)
        for name, spreads in (
            ("image", np.geomspace(1, 0.01, 40)),
            ("text", np.ones(40)),
            ("sound", np.geomspace(1, 0.1, 40)),
        )
    }
    views["image"] *= np.exp(tail * rng.standard_normal((n_rows, 1)))
    return views


@pytest.fixture(scope="module")
def swapped():
    """Forty rows of one view hold each other's data."""
    views = weak_views()
    rows = np.arange(100, 140)
    views["text"][rows] = views["text"][np.roll(rows, 7)]
    return views, rows


@pytest.fixture(scope="module")
def inspected(swapped):
    views = qh.Views(swapped[0])
    with open_engine("threads") as engine:
        facts = find_facts(views, engine)
        inspector = learn_inspector(views, [0, 1, 2], facts, engine, 0)
        held = inspect_views(views, inspector, facts, engine)
    return inspector, held


def test_every_row_of_the_sample_is_held_out_once(inspected):
    rows = np.concatenate([rows for rows, _ in inspected[0].held_out()])
    assert np.array_equal(np.sort(rows), np.arange(N_ROWS))


def test_tests_that_have_seen_a_row_think_better_of_it(inspected, swapped):
    """Odds of rows as they are, by tests with and without the row."""
    inspector, held = inspected
    views = qh.Views(swapped[0])
    with open_engine("threads") as engine:
        matching = learn_matching(inspector.judge.trust, 1, N_ROWS)
        matches = match_views(views, inspector.judge, matching, held.trust, engine)
        without = own_odds(views, inspector, 1, matches, held.trust, engine)
    right = np.setdiff1d(np.arange(N_ROWS), swapped[1])
    assert np.mean(matches.odds(right, right) - without[right]) > 0.05


def test_right_rows_have_honest_p_values(inspected, swapped):
    right = np.delete(inspected[1].p_values, swapped[1], axis=0)
    assert 0.003 < np.mean(right < 0.01) < 0.02


def test_rows_in_another_order_get_p_values_of_the_same_kind(swapped, inspected):
    """Folds go by the order of rows; who is suspicious must not."""
    order = np.random.default_rng(5).permutation(N_ROWS)
    views = qh.Views({name: values[order] for name, values in swapped[0].items()})
    with open_engine("threads") as engine:
        facts = find_facts(views, engine)
        again = inspect_views(views, learn_inspector(views, [0, 1, 2], facts, engine, 0), facts, engine)
    first = inspected[1].p_values[order]
    assert np.corrcoef(np.argsort(np.argsort(first[:, 1])), np.argsort(np.argsort(again.p_values[:, 1])))[0, 1] > 0.9


def test_a_shift_is_found_among_few_rows_of_wide_views():
    """Tests that have seen the shifted rows take them for right: there are as many features as they can be bent by."""
    rng = np.random.default_rng(3)
    hidden = rng.standard_normal((400, 6))
    views = {
        name: hidden @ rng.standard_normal((6, 120)) + 4.0 * rng.standard_normal((400, 120))
        for name in ("image", "text", "sound")
    }
    rows = np.arange(150, 200)
    views["sound"][rows] = views["sound"][rows - 1]
    found = [finding for finding in audit(views).findings if finding.kind == "shift"]
    assert [(finding.view, finding.offset) for finding in found] == [("sound", -1)]
    assert len(np.intersect1d(found[0].rows, rows)) > 0.6 * len(np.union1d(found[0].rows, rows))


def test_noise_does_not_hide_behind_the_spreads_it_has_widened():
    views = weak_views(seed=4, tail=0.5)
    rng = np.random.default_rng(6)
    rows = rng.permutation(N_ROWS)[:30]
    spread = views["image"].std(axis=0)
    views["image"][rows] = views["image"].mean(axis=0) + 2 * spread * rng.standard_normal((30, 40))
    found = audit(views)
    assert np.mean(found.kinds[rows, 0] == "noise") > 0.9
    assert np.sum(found.kinds == "noise") < 36
