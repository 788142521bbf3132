"""Repair against the textbook: conditional means of a Gaussian, for any set of doubted views."""

import numpy as np
import pytest

from quorumhash import repair
from quorumhash.repair import learn_repair, linked_views, repair_rows, rows_alike, shares_kept

WIDTHS = (3, 2, 4)


def views_of_one_thing(n_rows):
    rng = np.random.default_rng(0)
    shared = rng.standard_normal((n_rows, 4))
    return [
        shared @ rng.standard_normal((4, w)) + 0.3 * rng.standard_normal((n_rows, w)) + m for m, w in enumerate(WIDTHS)
    ]


@pytest.fixture(scope="module")
def sample():
    return views_of_one_thing(3000)


@pytest.fixture(scope="module")
def model(sample):
    return learn_repair(sample, np.ones((3000, 3)))


def joined(model, sample):
    return repair_rows(model, np.ones((len(sample[0]), 3)), *sample)


def test_believed_rows_are_only_centred_and_scaled(model, sample):
    rows = joined(model, sample)
    for m, part in enumerate(sample):
        view = slice(model.edges[m], model.edges[m + 1])
        np.testing.assert_array_equal(rows[:, view], (part - model.mean[view]) * float(model.factors[m]))
        assert (rows[:, view] ** 2).sum(axis=1).mean() == pytest.approx(1.0)
    some = np.ones((3000, 3))
    some[7, 0] = 0.0
    repaired = repair_rows(model, some, *sample)
    np.testing.assert_array_equal(np.delete(repaired, 7, 0), np.delete(rows, 7, 0))


@pytest.mark.parametrize("doubted", [(0,), (2,), (0, 1), (1, 2)])
def test_a_doubted_view_becomes_its_conditional_mean(model, sample, doubted):
    shares = np.ones((3000, 3))
    shares[:, doubted] = 0.0
    before, after = joined(model, sample), repair_rows(model, shares, *sample)
    covariance = np.linalg.inv(model.precision)
    hidden = np.isin(np.repeat(np.arange(3), WIDTHS), doubted)
    regression = covariance[np.ix_(hidden, ~hidden)] @ np.linalg.inv(covariance[np.ix_(~hidden, ~hidden)])
    np.testing.assert_allclose(after[:, hidden], before[:, ~hidden] @ regression.T, atol=1e-8)
    np.testing.assert_array_equal(after[:, ~hidden], before[:, ~hidden])
    error = ((after - before)[:, hidden] ** 2).sum() / (before[:, hidden] ** 2).sum()
    assert error < 0.5  # the views share most of what they show


def test_a_share_between_mixes_in_proportion(model, sample):
    ends = [repair_rows(model, np.column_stack([np.full(3000, s), np.ones((3000, 2))]), *sample) for s in (0.0, 1.0)]
    middle = repair_rows(model, np.column_stack([np.full(3000, 0.25), np.ones((3000, 2))]), *sample)
    np.testing.assert_allclose(middle, 0.75 * ends[0] + 0.25 * ends[1], atol=1e-12)


def test_wrong_rows_do_not_teach_when_they_are_not_trusted(sample):
    rng = np.random.default_rng(1)
    wrong = rng.random(3000) < 0.3
    damaged = [np.where(wrong[:, None], 50.0 * rng.standard_normal(sample[0].shape), sample[0]), *sample[1:]]
    trust = np.column_stack([np.where(wrong, 0.0, 1.0), np.ones((3000, 2))])
    clean, learned = learn_repair(sample, np.ones((3000, 3))), learn_repair(damaged, trust)
    np.testing.assert_allclose(learned.factors, clean.factors, rtol=0.1)
    np.testing.assert_allclose(learned.precision, clean.precision, atol=0.2 * np.abs(clean.precision).max())


def test_the_best_view_keeps_all_of_its_own():
    trust = np.array([[0.9, 0.6, 0.5], [0.9, 0.25, 0.0], [0.1, 0.1, 0.1], [0.1, 0.08, 1e-6]])
    shares = shares_kept(trust)
    np.testing.assert_allclose(shares[0], 1.0)
    np.testing.assert_allclose(shares[1], [1.0, 0.5, 0.0])
    np.testing.assert_allclose(shares[2], 1.0)  # equal doubts say nothing
    assert shares[3, 0] == pytest.approx(1.0)
    assert shares[3, 1] > 0.9
    assert shares[3, 2] < 1e-3
    np.testing.assert_array_equal(shares_kept(np.zeros((1, 3))), 0.0)
    np.testing.assert_allclose(shares_kept(trust[:1], np.array([1.0, 0.5, 0.0])), [[1.0, 0.5, 0.0]])


def test_where_nothing_is_believed_views_stay_as_they_are_or_give_way():
    """A view that is known for another item's gives way to one that lost its trust by the contradiction alone."""
    shares = shares_kept(np.array([[0.3, 0.2], [0.3, 0.15], [0.35, 0.05], [0.4, 0.01], [0.44, 0.1]]))
    np.testing.assert_allclose(shares, [[1.0, 1.0], [1.0, 1.0], [1.0, 0.1], [1.0, 0.02], [1.0, 0.2]])
    rising = shares_kept(np.column_stack([np.full(50, 0.4), np.linspace(0.0, 0.4, 50)]))[:, 1]
    assert (np.diff(rising) >= 0).all()
    assert np.diff(rising).max() < 0.1  # no step
    across = shares_kept(np.column_stack([np.linspace(0.4, 0.6, 200), np.full(200, 0.26)]))
    assert np.abs(np.diff(across, axis=0)).max() < 0.02  # nor where the best view becomes believed
    assert across[-1, 1] == pytest.approx(0.52)


def test_limits_are_shares_of_the_best_view_that_is_left():
    """They say what a view may keep, not how far it is believed."""
    believed = np.array([[0.0, 1.0, 1.0]])
    np.testing.assert_allclose(shares_kept(believed, np.array([1.0, 0.9, 0.45])), [[0.0, 1.0, 0.5]])
    np.testing.assert_allclose(shares_kept(believed, np.array([1.0, 0.4, 0.1])), [[0.0, 1.0, 0.25]])
    np.testing.assert_allclose(shares_kept(np.ones((1, 3)), np.array([1.0, 0.0, 0.3])), [[1.0, 0.0, 0.3]])


def test_repaired_rows_are_as_long_as_whole_ones(model, sample):
    """E |x|^2 over the views that count, whatever was hidden; whole rows stay to the bit."""
    worth = np.array([1.0, 2.0, 0.0])
    counted = (worth**2).repeat(np.diff(model.edges))
    whole = repair_rows(model, np.ones((3000, 3)), *sample)
    np.testing.assert_array_equal(repair_rows(model, np.ones((3000, 3)), *sample, worth=worth), whole)
    expected = ((whole**2) @ counted).mean()
    for hidden in ([0], [1], [2], [0, 1], [1, 2]):
        shares = np.ones((3000, 3))
        shares[:, hidden] = 0.0
        short, drawn_out = repair_rows(model, shares, *sample), repair_rows(model, shares, *sample, worth=worth)
        assert ((drawn_out**2) @ counted).mean() == pytest.approx(expected, rel=0.05)
        factors = drawn_out[:, :1] / short[:, :1]
        np.testing.assert_allclose(drawn_out, short * factors)  # one factor for a row
        if hidden == [2]:  # nothing that counts is missing
            np.testing.assert_allclose(factors, 1.0)
        else:
            assert ((short**2) @ counted).mean() < 0.97 * expected
    nothing = repair_rows(model, np.zeros((3000, 3)), *sample, worth=worth)
    assert np.isfinite(nothing).all()


def test_near_copies_are_linked_and_independent_views_are_not():
    rng = np.random.default_rng(2)
    shared = rng.standard_normal((2000, 3))
    views = [shared @ rng.standard_normal((3, 6)) + rng.standard_normal((2000, 6)) for _ in range(4)]
    assert linked_views(learn_repair(views, np.ones((2000, 4)))) == []
    views.append(views[1] @ rng.standard_normal((6, 6)) + 0.05 * rng.standard_normal((2000, 6)))
    assert linked_views(learn_repair(views, np.ones((2000, 5)))) == [[1, 4]]


@pytest.mark.parametrize("n_views", [1, 3, 52, 53, 90])
def test_rows_are_sorted_by_their_flags(n_views):
    rng = np.random.default_rng(n_views)
    sets = rng.random((6, n_views)) < 0.4
    sets[0] = False
    doubted = sets[rng.integers(0, 6, 500)]
    seen = np.zeros(500, dtype=int)
    found = list(rows_alike(doubted))
    for rows, views in found:
        assert (doubted[rows] == views).all()
        assert (np.diff(rows) > 0).all()
        seen[rows] += 1
    assert (seen == 1).all()
    assert len(found) == len(np.unique(doubted, axis=0))


def pairs_alone(sample, trust):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(repair, "ROUNDS", 0)
        return learn_repair(sample, trust)


def some_missing(n_rows, seed=1):
    """Views of which a good third is missing, and a row with none left."""
    trust = (np.random.default_rng(seed).random((n_rows, len(WIDTHS))) > 0.35).astype(float)
    trust[0] = 0.0
    return views_of_one_thing(n_rows), trust


def textbook_round(rows, seen, mean, precision):
    """One round of expectation and maximisation, row by row."""
    total, sums, n_rows = np.zeros_like(precision), np.zeros(len(precision)), 0
    covariance = np.linalg.inv(precision)
    for row, views in zip(rows, seen, strict=True):
        o = np.repeat(views, WIDTHS)
        if not o.any():
            continue
        regression = covariance[np.ix_(~o, o)] @ np.linalg.inv(covariance[np.ix_(o, o)])
        filled = np.where(o, row, 0.0)
        filled[~o] = mean[~o] + regression @ (row[o] - mean[o])
        sums += filled
        total += np.outer(filled, filled)
        total[np.ix_(~o, ~o)] += covariance[np.ix_(~o, ~o)] - regression @ covariance[np.ix_(o, ~o)]
        n_rows += 1
    mean = sums / n_rows
    found = total / n_rows - np.outer(mean, mean)
    return mean, np.linalg.inv(found + repair.RIDGE * np.trace(found) / len(found) * np.eye(len(found)))


def textbook(start, rows, seen):
    found = np.zeros(len(start.mean)), start.precision
    for _ in range(repair.ROUNDS):
        found = textbook_round(rows, seen, *found)
    mean, precision = found
    return start.mean + mean / np.repeat(start.factors, WIDTHS), precision


def test_what_is_missing_is_expected_and_the_rest_fitted_by_the_textbook():
    sample, trust = some_missing(120)
    model, start = learn_repair(sample, trust), pairs_alone(sample, trust)
    mean, precision = textbook(start, joined(start, sample), trust > 0)
    np.testing.assert_allclose(model.precision, precision, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(model.mean, mean, rtol=1e-10)


def test_what_pairs_say_is_brought_together():
    """Of few rows with gaps the rounds predict what is missing better than the pairs of views do."""
    errors = []
    for learn in (learn_repair, pairs_alone):
        sample, trust = some_missing(60)
        model = learn(sample, trust)
        truth = joined(model, sample)
        shares = np.where(trust.any(axis=1, keepdims=True), trust, 1.0)
        errors.append(((repair_rows(model, shares, *sample) - truth) ** 2).sum())
    assert errors[0] < 0.95 * errors[1]


def test_rows_of_rare_sets_are_left_out_and_of_many_rare_sets_the_pairs_are_left(monkeypatch):
    sample, trust = some_missing(120)
    found, counts = np.unique(trust[1:], axis=0, return_counts=True)
    common = found[[c for c in np.argsort(-counts) if not found[c].all()][:2]]
    usual = [i for i in range(120) if trust[i].all() or (trust[i] == common).all(axis=1).any()]
    monkeypatch.setattr(repair, "MOST_SETS", 2)
    model, start = learn_repair(sample, trust), pairs_alone(sample, trust)
    mean, precision = textbook(start, joined(start, sample)[usual], trust[usual] > 0)
    np.testing.assert_allclose(model.precision, precision, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(model.mean, mean, rtol=1e-10)

    few = np.argsort(trust.all(axis=1), kind="stable")[:70]  # rows with gaps first
    sample, trust = [part[few] for part in sample], trust[few]
    monkeypatch.setattr(repair, "MOST_SETS", 1)
    np.testing.assert_array_equal(learn_repair(sample, trust).precision, pairs_alone(sample, trust).precision)


def test_where_all_is_believed_pairs_have_said_it_all(sample, model):
    np.testing.assert_array_equal(model.precision, pairs_alone(sample, np.ones((3000, 3))).precision)
