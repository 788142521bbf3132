"""Repair by what is expected: against sums over sets, on rows whose truth is known."""

import itertools

import numpy as np
import pytest

import quorumhash as qh
from quorumhash.correction import _expected
from quorumhash.expectation import MOST_UNSURE, likely_sets
from quorumhash.judging import described_rows
from quorumhash.repair import SURE, repair_rows


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


def test_sets_have_the_chances_of_their_views_and_are_not_empty():
    belief = np.array([[0.7, 0.4, 1.0, 0.0], [0.6, 0.0, 0.3, 0.2]])
    rows, sets, weights = likely_sets(belief)
    for i in range(2):
        found = {tuple(z): w for z, w in zip(sets[rows == i].tolist(), weights[rows == i], strict=True)}
        expected = {}
        for z in itertools.product((False, True), repeat=4):
            chance = np.prod([b if right else 1 - b for b, right in zip(belief[i], z, strict=True)])
            if chance > 0 and any(z):
                expected[z] = chance
        total = sum(expected.values())
        assert found == pytest.approx({z: chance / total for z, chance in expected.items()})


def test_of_two_views_that_contradict_each_other_each_is_kept_by_half():
    _, sets, weights = likely_sets(np.array([[0.002, 0.002]]))
    assert weights @ sets == pytest.approx([0.5, 0.5], abs=0.01)


def test_many_unsure_views_are_settled_but_for_the_nearest_to_a_half():
    belief = np.linspace(0.05, 0.9, 12)[None, :]
    rows, sets, weights = likely_sets(belief)
    assert len(rows) <= 2**MOST_UNSURE
    assert weights.sum() == pytest.approx(1)
    assert sets[:, belief[0] > 0.8].all()
    assert not sets[:, belief[0] < 0.2].any()
    assert len(np.unique(sets, axis=0)) == len(sets)


@pytest.fixture(scope="module", params=[2, 4])
def case(request):
    given, truth, mask = swapped_views(n_views=request.param)
    given["view0"][5, 2] = np.nan
    return qh.audit(given), given, truth, mask


def test_what_is_expected_is_the_sum_over_sets(case):
    report, given, _, _ = case
    n_views = len(given)
    judge, model = report.judge, report.judge.repair
    belief = np.full((1, n_views), 0.6)
    belief[0, :2] = 0.3, 0.8
    blocks = [values[20:21] for values in given.values()]
    coordinates = described_rows(judge, belief > 0, *blocks)[0]
    total, kept, told = 0.0, np.zeros(n_views), np.zeros(model.edges[-1])
    for z in itertools.product((0.0, 1.0), repeat=n_views):
        if any(z):
            chance = np.prod(np.where(z, belief[0], 1 - belief[0]))
            wrong = np.repeat(1 - np.array(z), np.diff(model.edges))
            told += chance * wrong * repair_rows(model, np.array([z]), *coordinates)[0]
            kept, total = kept + chance * np.array(z), total + chance
    for m, (share, values) in enumerate(_expected(judge, belief, blocks)):
        span = slice(model.edges[m], model.edges[m + 1])
        own = told[span] / (total - kept[m]) / model.factors[m] + model.mean[span]
        components = judge.components[m]
        assert share == pytest.approx(kept[m] / total, abs=0.01)
        assert np.allclose(
            values, own @ components.directions.T / components.scaling.factor + components.scaling.mean, atol=0.02
        )


def test_views_that_are_surely_right_stay_bit_by_bit(case):
    report, given, _, _ = case
    repaired = report.apply("repair")
    for m, (name, values) in enumerate(given.items()):
        sure = (report.trust[:, m] >= SURE) & (report.kinds[:, m] == "")
        assert sure.mean() > 0.4
        assert np.array_equal(repaired[name][sure], values[sure], equal_nan=True)


def test_doubted_views_are_nearer_to_the_truth_than_before(case):
    """Those that are surely wrong, by their verdict or not, and those that are doubted."""
    report, given, truth, _ = case
    for how in ("repair", "swap") if len(given) > 2 else ("repair",):
        corrected = report.apply(how)
        before, after = np.zeros(2), np.zeros(2)
        for m, name in enumerate(given):
            is_wrong = (report.kinds[:, m] != "") | (report.trust[:, m] <= 1.0 - SURE)
            for i, rows in enumerate((~is_wrong, is_wrong)):
                rows &= report.trust[:, m] < SURE
                rows[5] = False
                before[i] += np.sum((given[name][rows] - truth[name][rows]) ** 2)
                after[i] += np.sum((corrected[name][rows] - truth[name][rows]) ** 2)
        if len(given) == 2:  # nothing says which is wrong, and nearly all of what is looks surely so
            before, after = before.sum(), after.sum()
        most = 0.9 if len(given) == 2 else 0.7  # of what is doubted hardly anything is known
        assert np.all(after < most * before), (how, before, after)
        assert len(given) == 2 or after.sum() < 0.2 * before.sum(), (how, before, after)


def test_gaps_of_a_view_that_is_right_stay_and_those_of_a_doubted_one_are_filled():
    given, truth, _ = swapped_views()
    given["view1"][:, 3] += 50.0
    truth["view1"][:, 3] += 50.0
    given["view1"][:200, 3] = np.nan
    report = qh.audit(given)
    repaired = report.apply("repair")["view1"]
    sure = report.trust[:, 1] >= SURE
    assert np.array_equal(np.isnan(repaired).any(axis=1), np.isnan(given["view1"]).any(axis=1) & sure)
    filled = np.isnan(given["view1"][:, 3]) & ~sure
    error = np.mean((repaired[filled, 3] - truth["view1"][filled, 3]) ** 2)
    assert filled.sum() > 25
    assert error < 0.6 * np.var(truth["view1"][:, 3])


def test_a_row_in_which_nothing_is_left_to_believe_stays(case):
    _, given, _, _ = case
    given = {name: values.copy() for name, values in given.items()}
    for values in given.values():
        values[:2] = 0.0
    repaired = qh.audit(given).apply("repair")
    assert all((repaired[name][:2] == 0).all() for name in given)


@pytest.mark.parametrize("sources", [None, {"photo": ["view0", "view1"]}])
def test_odd_items_are_left_as_they_are(sources):
    """Far out in every view alike: neither noise nor doubted."""
    rng = np.random.default_rng(3)
    hidden = rng.standard_normal((500, 6))
    hidden[:10] *= 4.0
    views = {f"view{m}": hidden @ rng.standard_normal((6, 10)) + 0.1 * rng.standard_normal((500, 10)) for m in range(3)}
    report = qh.audit(views, sources=sources)
    repaired = report.apply("repair")
    assert (report.kinds[:10] == "").all()
    assert all(np.array_equal(repaired[name][:10], views[name][:10]) for name in views)
