"""Whom to believe: generated views with known damage, judged on rows that were not learned from."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import quorumhash.trust as voting
from quorumhash.judging import described_rows, learn_judge, repaired_rows
from quorumhash.repair import joined_rows, shares_kept
from quorumhash.trust import NO_TRUST, reliability_rows, trust_rows
from quorumhash.trustlearning import learn_trust


def generated(n_rows, n_views, seed, noise=0.4):
    """Views of 12 features each: one latent of 8 numbers seen through each view's own mixing, and noise of its own."""
    rng = np.random.default_rng(seed)
    latent = rng.standard_normal((n_rows, 8))
    mixing = np.random.default_rng(77).standard_normal((n_views, 8, 12))
    return [latent @ mix + noise * np.sqrt(8) * rng.standard_normal((n_rows, 12)) for mix in mixing]


def swapped(views, rate, seed, together=()):
    """Views with a share of rows taken from other items, and where; the views `together` are hit together."""
    rng = np.random.default_rng(seed)
    hit = rng.random((len(views[0]), len(views))) < rate
    others = [rng.permutation(len(views[0])) for _ in views]  # one partner for all would make wrong views agree
    for m in together:
        hit[:, m], others[m] = hit[:, together[0]], others[together[0]]
    return [np.where(hit[:, [m]], part[others[m]], part) for m, part in enumerate(views)], hit


def everyone(views):
    return np.ones((len(views[0]), len(views)), dtype=bool)


def learned(views, sources=None, present=None):
    present = everyone(views) if present is None else present
    return learn_trust(views, [part.shape[1] for part in views], present, sources or list(range(len(views))))


@pytest.mark.parametrize("n_views", [3, 4])
@pytest.mark.parametrize("rate", [0.0, 0.1, 0.2])
def test_swapped_rows_are_found_among_new_rows(n_views, rate):
    model = learned(swapped(generated(2_000, n_views, 0), rate, 1)[0])
    new, hit = swapped(generated(2_000, n_views, 2), 0.15, 3)
    for found in (trust_rows(model, everyone(new), *new), reliability_rows(model, everyone(new), *new)):
        assert roc_auc_score(hit.ravel(), -found.ravel()) > 0.95


@pytest.mark.parametrize("n_views", [3, 4])
def test_one_percent_means_about_one_percent_of_false_alarms(n_views):
    model = learned(generated(4_000, n_views, 0))
    new = generated(10_000, n_views, 5)
    alarms = np.mean(reliability_rows(model, everyone(new), *new) < 0.01, axis=0)
    assert (alarms > 0.003).all()
    assert (alarms < 0.025).all()


@pytest.mark.parametrize("what", ["absent", "noise", "swapped"])
def test_a_view_is_not_suspected_because_others_are_missing_or_wrong(what):
    """Learned from whole, undamaged items; then two views of the new ones are gone, or one is of another item."""
    model, new = learned(generated(4_000, 5, 0)), generated(6_000, 5, 5)
    present, whole = everyone(new), reliability_rows(model, everyone(new), *new)
    for m in (0, 3):
        if what == "absent":
            present[:, m] = False
        elif what == "noise":
            new[m] = 30.0 * np.random.default_rng(m).standard_normal(new[m].shape)
        elif m == 0:
            new[m] = np.roll(new[m], 11, axis=0)
    rest = reliability_rows(model, present, *new)[:, [1, 2, 4]]
    assert np.mean(whole < 0.01) < 0.02
    assert np.mean(rest < 0.01) < 0.05
    assert np.mean(rest > 0.3) > 0.5
    other = [part.copy() for part in new]
    other[1] = np.roll(other[1], 5, axis=0)  # what is wrong is still found
    assert np.mean(reliability_rows(model, present, *other)[:, 1] < 0.01) > 0.8


def test_a_view_alone_is_suspected_by_density_only():
    model, new = learned(generated(2_000, 3, 0)), generated(1_000, 3, 5)
    present = np.zeros((1_000, 3), dtype=bool)
    present[:, 1] = True
    assert np.mean(reliability_rows(model, present, *new)[:, 1] < 0.01) < 0.02
    new[1] = 30.0 * np.random.default_rng(1).standard_normal(new[1].shape)
    assert np.mean(reliability_rows(model, present, *new)[:, 1] < 0.01) > 0.95


def test_few_rows_of_wide_views_raise_no_more_false_alarms():
    """What was fitted to 200 rows of 40 features fits them far better than new ones: held-out rows set the scale."""

    def draw(n_rows, seed):
        rng = np.random.default_rng(seed)
        latent, mixing = rng.standard_normal((n_rows, 8)), np.random.default_rng(77).standard_normal((3, 8, 40))
        return [latent @ mix + 3 * rng.standard_normal((n_rows, 40)) for mix in mixing]

    model, new = learned(draw(200, 0)), draw(4_000, 50)
    reliability = reliability_rows(model, everyone(new), *new)
    assert np.mean(reliability < 0.01) < 0.025
    assert 0.01 < np.mean(reliability < 0.05) < 0.08


@pytest.mark.parametrize("rate", [0.1, 0.2])
def test_right_rows_among_swapped_ones_give_about_one_percent_of_false_alarms(rate):
    """New rows damaged like the learned ones; where they are clean there are fewer: nobody near them is wrong."""
    model = learned(swapped(generated(4_000, 4, 0), rate, 1)[0])
    clean, (new, hit) = generated(5_000, 4, 5), swapped(generated(10_000, 4, 6), rate, 7)
    among = np.mean(reliability_rows(model, everyone(new), *new)[~hit] < 0.01)
    alone = np.mean(reliability_rows(model, everyone(clean), *clean) < 0.01)
    assert 0.003 < among < 0.025
    assert alone < among


def test_the_posterior_is_honest():
    """Of the rows believed with 20 to 80 % about that share is right; hardly one above 99 % is wrong."""
    model = learned(swapped(generated(4_000, 4, 0), 0.2, 1)[0])
    new, hit = swapped(generated(4_000, 4, 2), 0.2, 3)
    trust = trust_rows(model, everyone(new), *new)
    between = (trust > 0.2) & (trust < 0.8)
    assert np.mean(~hit[between]) == pytest.approx(trust[between].mean(), abs=0.2)
    assert np.mean(hit[trust > 0.99]) < 0.02
    assert np.mean(~hit[trust < 0.01]) < 0.1


def test_permuting_the_views_permutes_the_trust():
    views, _ = swapped(generated(800, 4, 0), 0.1, 1)
    order = [2, 0, 3, 1]
    first = trust_rows(learned(views), everyone(views), *views)
    turned = [views[m] for m in order]
    np.testing.assert_allclose(trust_rows(learned(turned), everyone(views), *turned), first[:, order], atol=1e-6)


def test_permuting_the_new_rows_permutes_the_trust():
    model = learned(generated(800, 3, 0))
    new, _ = swapped(generated(100, 3, 2), 0.2, 3)
    order = np.random.default_rng(0).permutation(100)
    first = reliability_rows(model, everyone(new), *new)
    np.testing.assert_allclose(reliability_rows(model, everyone(new), *[v[order] for v in new]), first[order])


def test_views_of_one_source_are_blamed_when_told_so():
    """Three of five views swapped together outvote the other two, unless they share one vote."""
    together, sources = [0, 1, 2], [0, 0, 0, 1, 2]
    train, _ = swapped(generated(2_000, 5, 0), 0.1, 1, together)
    new = generated(2_000, 5, 2)
    hit = np.zeros((2_000, 5), dtype=bool)
    hit[:300, :3] = True
    new = [np.where(hit[:, [m]], np.roll(part, 1, axis=0), part) for m, part in enumerate(new)]
    told, untold = (trust_rows(learned(train, s), everyone(new), *new) for s in (sources, None))
    area = roc_auc_score(hit.ravel(), -told.ravel())
    assert area > 0.95
    assert area > roc_auc_score(hit.ravel(), -untold.ravel()) + 0.02
    assert told[:300, :3].mean() < 0.2
    assert told[:300, 3:].mean() > 0.7


def test_two_views_of_one_source_swapped_together_are_blamed():
    sources = [0, 0, 1, 2]
    train, _ = swapped(generated(2_000, 4, 0), 0.1, 1, [0, 1])
    new, _ = swapped(generated(2_000, 4, 2), 0.0, 3)
    new[0][:300], new[1][:300] = (np.roll(part, 1, axis=0)[:300] for part in new[:2])
    trust = trust_rows(learned(train, sources), everyone(new), *new)
    assert np.median(trust[:300, :2]) < 0.05
    assert trust[:300, 2:].mean() > 0.8


def test_a_vote_in_which_everything_contradicts_everything_comes_to_rest():
    """As many votes again change next to nothing; without half steps all trust is lost and won back by turns."""
    model = learned(swapped(generated(2_000, 3, 0), 0.3, 1)[0])
    new = [np.roll(part, m, axis=0) for m, part in enumerate(generated(500, 3, 2))]
    first = trust_rows(model, everyone(new), *new)
    with pytest.MonkeyPatch.context() as patch:
        for more in (1, 2):
            patch.setattr(voting, "N_VOTES", voting.N_VOTES + more)
            assert np.quantile(abs(trust_rows(model, everyone(new), *new) - first), 0.95) < 0.1


def test_two_sources_that_contradict_each_other_are_both_doubted_and_both_kept():
    model = learned(swapped(generated(2_000, 2, 0, noise=0.3), 0.1, 1)[0])
    new = generated(1_000, 2, 2, noise=0.3)
    new[0][:300] = np.roll(new[0], 1, axis=0)[:300]
    trust = trust_rows(model, everyone(new), *new)
    assert np.median(trust[:300], axis=0).max() < 0.4
    assert np.median(trust[300:], axis=0).min() > 0.9
    doubted = (trust < 0.5).all(axis=1)
    assert doubted[:300].mean() > 0.85
    assert shares_kept(trust)[doubted].mean() > 0.8
    np.testing.assert_allclose(shares_kept(trust).max(axis=1), 1)


def test_repair_leaves_two_sources_that_contradict_each_other_nearly_as_they_are():
    train = dict(zip("ab", swapped(generated(1_500, 2, 0, noise=0.3), 0.1, 1)[0], strict=True))
    here, everything = np.ones((200, 2), dtype=bool), np.ones(2)
    judge, _ = learn_judge(train, np.ones((1_500, 2), dtype=bool), [0, 1])
    new = generated(200, 2, 2, noise=0.3)
    moved = [np.roll(new[0], 1, axis=0), new[1]]
    apart = repaired_rows(judge, everything, here, *moved)
    alone = np.hstack([repaired_rows(judge, np.eye(2)[m], here, *moved)[:, _columns(judge, m)] for m in (0, 1)])
    changes = np.linalg.norm(apart - alone, axis=1) / np.linalg.norm(alone, axis=1)
    assert np.median(changes) < 0.3


def test_of_two_sources_neither_is_taken_for_the_wrong_one_because_it_is_the_weaker():
    rng = np.random.default_rng(0)
    hidden = rng.standard_normal((3_000, 8))
    strong = hidden @ rng.standard_normal((8, 14)) + 0.3 * rng.standard_normal((3_000, 14))
    weak = hidden[:, :5] @ rng.standard_normal((5, 8)) + rng.standard_normal((3_000, 8))
    hit = rng.random(3_000) < 0.2
    weak[hit] = np.roll(weak[hit], 1, axis=0)  # exchanged: no copy says whose they are
    here = np.ones((3_000, 2), dtype=bool)
    judge, _ = learn_judge({"strong": strong, "weak": weak}, here, [0, 1])
    given = joined_rows(judge.repair, *described_rows(judge, here, strong, weak)[0])
    repaired = repaired_rows(judge, np.ones(2), here, strong, weak)
    assert np.isclose(repaired, given, atol=1e-6).all(axis=1)[hit].mean() > 0.95


def _columns(judge, view):
    return slice(judge.repair.edges[view], judge.repair.edges[view + 1])


@pytest.mark.parametrize("n_rows", [2, 10, 29])
def test_too_few_rows_and_everything_is_believed(n_rows):
    views = generated(n_rows, 3, 0)
    model = learned(views)
    new, _ = swapped(generated(50, 3, 2), 0.3, 3)
    assert trust_rows(model, everyone(new), *new).min() > 0.5
    np.testing.assert_array_equal(reliability_rows(model, everyone(new), *new), 1)


def test_absent_views_have_no_trust_and_no_reliability():
    model = learned(generated(800, 3, 0))
    new = generated(60, 3, 2)
    present = everyone(new)
    present[:20, 0], present[10:30, 2] = False, False
    shown = [np.where(present[:, [m]], part, 0.0) for m, part in enumerate(new)]
    reliability, trust = reliability_rows(model, present, *shown), trust_rows(model, present, *shown)
    np.testing.assert_array_equal(np.isnan(reliability), ~present)
    assert (trust[~present] == NO_TRUST).all()
    assert ((reliability[present] >= 0) & (reliability[present] <= 1)).all()


def test_what_an_absent_view_holds_has_no_say():
    model = learned(generated(800, 3, 0))
    new = generated(60, 3, 2)
    present = everyone(new)
    present[:, 1] = False
    first = trust_rows(model, present, *new)
    new[1] = 100 * np.random.default_rng(0).standard_normal(new[1].shape)
    np.testing.assert_allclose(trust_rows(model, present, *new), first)


def test_rows_shared_by_too_many_items_are_not_believed_whatever_the_others_say():
    train = generated(1_000, 3, 0)
    train[0][:100] = 0.0
    model = learned(train)
    new = generated(50, 3, 2)
    new[0][:10] = 0.0
    trust, reliability = trust_rows(model, everyone(new), *new), reliability_rows(model, everyone(new), *new)
    assert (trust[:10, 0] == NO_TRUST).all()
    assert (reliability[:10, 0] == 0).all()
    assert trust[:10, 1:].mean() > 0.9


def test_noise_is_found_in_a_single_view():
    """Nobody to ask: density alone."""
    rng = np.random.default_rng(0)
    (train,), (clean,) = generated(2_000, 1, 0), generated(2_000, 1, 1)
    model = learned([train])
    noise = train.mean(0) + 2 * train.std(0) * rng.standard_normal((500, 12))
    rows = [np.vstack([clean, noise])]
    reliability = reliability_rows(model, everyone(rows), *rows)[:, 0]
    assert roc_auc_score(np.arange(2_500) >= 2_000, -reliability) > 0.9
    assert np.mean(reliability[:2_000] < 0.01) < 0.025


def test_a_view_that_is_mostly_absent_still_is_judged():
    views = generated(3_000, 3, 0)
    present = everyone(views)
    present[300:, 2] = False
    model = learned([np.where(present[:, [m]], part, 0.0) for m, part in enumerate(views)], present=present)
    new, hit = swapped(generated(1_000, 3, 2), 0.2, 3)
    trust = trust_rows(model, everyone(new), *new)
    assert roc_auc_score(hit[:, 2], -trust[:, 2]) > 0.9
    assert roc_auc_score(hit[:, 0], -trust[:, 0]) > 0.9


def test_a_third_of_all_pairs_swapped_are_told_apart_by_a_thousand_wide_rows():
    """With so many columns for so few rows chance outweighs what correlation is left, unless some are left out."""
    rng = np.random.default_rng(0)
    hidden = rng.standard_normal((1_200, 10))
    views = [
        hidden @ rng.standard_normal((10, 120)) + rng.standard_normal((1_200, 120)) * np.linspace(0.5, 1.0, 120)
        for _ in range(5)
    ]
    parts = [part @ np.linalg.svd(part - part.mean(0), full_matrices=False)[2].T for part in views]
    moved, hit = swapped(parts, 0.36, 1)
    trust = trust_rows(learned(moved), everyone(moved), *moved)
    assert trust[~hit].mean() > 0.8
    assert trust[hit].mean() < 0.3
