"""Views that items of fit hold: what it tells when another item comes with the same."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quorumhash as qh
from quorumhash.copies import MOST_COPIES, twins_among_copies
from quorumhash.engines.threads import ThreadsEngine
from quorumhash.errors import ModelFileError
from quorumhash.judging import knowing_all
from quorumhash.knownrows import MOST_STEPS, check_known, known_doubts, learn_known, row_marks

EVERYWHERE = np.ones((6, 3), dtype=bool)
SHARES = np.array([0.1, 0.1, 0.1])
CELLS = st.tuples(*[st.integers(-MOST_STEPS, MOST_STEPS)] * 3)


@given(CELLS, CELLS)
def test_marks_tell_cells_apart(one, other):
    marks = row_marks(np.array([one, other, one], dtype=np.float64))
    assert marks[0] == marks[2]
    assert (marks[0] == marks[1]) == (one == other)


def test_a_mark_of_a_row_that_lies_anywhere_is_a_number():
    marks = row_marks(np.array([[1e300, -1e300, 0.0], [MOST_STEPS, -MOST_STEPS, 0.0]]))
    assert marks[0] == marks[1]


def items(n_items=6):
    """Marks of items that share nothing."""
    return np.arange(3 * n_items).reshape(n_items, 3) * 1000


def known(trust=0.99):
    return learn_known(items(), EVERYWHERE, np.full((6, 3), trust), SHARES)


def doubts(row, usable=(True, True, True), sources=(0, 1, 2), trust=0.99):
    return known_doubts(known(trust), sources, np.array([usable]), np.array([row]))[0]


@pytest.mark.parametrize("a", [-4.0, 0.0, 3.0])
@pytest.mark.parametrize("owner", [-3.0, 0.5, 5.0])
def test_the_doubt_is_that_of_all_hypotheses_written_out(owner, a):
    """Twins, this one alone right, the owner alone, none: whatever the vote `a` on this item is."""
    e, r = 0.1, 0.5  # no two rows of fit hold the same view: as many twins as not
    trust = 1 / (1 + np.exp(-(owner + np.log((1 - e) / e))))
    twins, this = r * np.exp(a + owner), (1 - r) * (1 - e) / 2 * np.exp(a)
    other, none = (1 - r) * (1 - e) / 2 * np.exp(owner), (1 - r) * e
    alone = np.exp(a) * (1 - e) / e
    expected = min(0.0, np.log((twins + this) / (other + none)) - np.log(alone))
    thief = items()[0].copy()
    thief[0] = items()[3, 0]
    row = np.array([thief[0], 1, 2])
    assert doubts(row, trust=trust)[0] == pytest.approx(expected)


def test_another_item_with_a_known_view_is_doubted_and_the_owner_is_not():
    own, other = items()[2], np.array([items()[2, 0], 1, 2])
    assert doubts(own).tolist() == [0.0, 0.0, 0.0]
    assert doubts(other)[0] < -1
    assert doubts(other)[1:].tolist() == [0.0, 0.0]
    assert doubts(np.array([1, 2, 3])).tolist() == [0.0, 0.0, 0.0]  # nobody's


def test_the_owner_is_known_again_by_one_more_view_of_another_source():
    met_again = np.array([items()[2, 0], items()[2, 1], 5])  # its third view is new
    assert doubts(met_again).tolist() == [0.0, 0.0, 0.0]
    assert doubts(met_again, sources=(0, 0, 1))[0] < -1  # both of one photo: copied together


def test_a_view_with_nothing_beside_it_is_not_doubted():
    row = np.array([items()[2, 0], 1, 2])
    assert doubts(row, usable=(True, False, False)).tolist() == [0.0, 0.0, 0.0]
    assert doubts(row, usable=(True, True, False), sources=(0, 0, 1)).tolist() == [0.0, 0.0, 0.0]


def test_an_owner_that_cannot_be_compared_may_be_the_item_itself():
    """The item of fit had no second view; or the one that comes has another second view."""
    usable = EVERYWHERE.copy()
    usable[2, 1:] = False
    learned = learn_known(items(), usable, np.full((6, 3), 0.99), SHARES)
    assert known_doubts(learned, (0, 1, 2), EVERYWHERE[:1], np.array([[items()[2, 0], 1, 2]])).tolist() == [[0, 0, 0]]
    usable[2, 1] = True
    learned = learn_known(items(), usable, np.full((6, 3), 0.99), SHARES)
    here, row = np.array([[True, False, True]]), np.array([[items()[2, 0], 1, 2]])
    assert known_doubts(learned, (0, 1, 2), here, row).tolist() == [[0, 0, 0]]
    assert known_doubts(learned, (0, 1, 2), EVERYWHERE[:1], row)[0, 0] < -1


def test_of_several_holders_the_one_that_goes_with_it_best_is_the_owner():
    marks, trust = items(), np.full((6, 3), 0.9)
    marks[4, 0] = marks[1, 0]
    trust[1, 0], trust[4, 0] = 0.2, 0.99
    view = learn_known(marks, EVERYWHERE, trust, SHARES).views[0]
    assert view.owners[view.marks == marks[1, 0]].tolist() == [4]
    assert len(view.marks) == 5


def test_what_many_items_hold_is_nobodys_own():
    n_items = MOST_COPIES + 4
    marks = items(n_items)
    marks[: MOST_COPIES + 1, 0] = 7
    learned = learn_known(marks, np.ones((n_items, 3), dtype=bool), np.full((n_items, 3), 0.9), SHARES)
    assert 7 not in learned.views[0].marks
    assert len(learned.views[0].marks) == 3


def test_where_twins_are_common_they_are_not_doubted():
    n_items = 400
    marks = items(n_items)
    marks[::2, 0] = marks[1::2, 0]
    trust = np.full((n_items, 3), 0.999)
    learned = learn_known(marks, np.ones((n_items, 3), dtype=bool), trust, SHARES)
    assert twins_among_copies(np.repeat(np.arange(200), 2), np.full(400, 5.0), 0.1) > 0.9
    assert learned.views[0].doubts.max() == learned.views[0].doubts.min() == 0.0


@pytest.mark.parametrize("break_it", [
    lambda k: replace(k, views=k.views[:2]),
    lambda k: replace(k, items=k.items[:, :2]),
    lambda k: replace(k, views=(replace(k.views[0], owners=k.views[0].owners + 100), *k.views[1:])),
    lambda k: replace(k, views=(replace(k.views[0], marks=k.views[0].marks[::-1]), *k.views[1:])),
    lambda k: replace(k, views=(replace(k.views[0], doubts=k.views[0].doubts[1:]), *k.views[1:])),
])  # fmt: skip
def test_parts_that_do_not_fit_are_refused(break_it):
    check_known(known(), 3)
    with pytest.raises(ModelFileError):
        check_known(break_it(known()), 3)


def shop(n_rows, seed=0, widths=(14, 12)):
    """Products with a picture and a text, which go together well but not surely."""
    rng = np.random.default_rng(seed)
    hidden, makers = rng.standard_normal((n_rows, 8)), np.random.default_rng(99)
    return {
        name: hidden @ makers.standard_normal((8, width)) + 0.4 * rng.standard_normal((n_rows, width))
        for name, width in zip(("picture", "text"), widths, strict=True)
    }


@pytest.fixture(scope="module")
def thieves():
    """A model of two sources, and new products, the first hundred with pictures of products it was fitted on."""
    stored, new = shop(1_500), shop(400, seed=1)
    new["picture"][:100] = stored["picture"][:100]
    return qh.QuorumHasher(32).fit(stored), stored, new


def test_of_two_sources_the_view_that_a_stored_item_owns_is_the_wrong_one(thieves):
    hasher, _, new = thieves
    trust = hasher.reliability(new)
    assert np.mean(trust[:100, 0] < 0.01) > 0.9
    assert np.mean(trust[100:, 0] < 0.01) < 0.03
    assert (trust[:100, 0] < trust[:100, 1]).mean() > 0.9


def test_codes_follow_the_text_where_the_picture_is_a_stored_items(thieves):
    hasher, stored, new = thieves
    honest = {"picture": shop(400, seed=1)["picture"][:100], "text": new["text"][:100]}
    stolen = {name: values[:100] for name, values in new.items()}
    wanted, found = (hasher.transform(views, packed=False) for views in (honest, stolen))
    owners = hasher.transform({name: values[:100] for name, values in stored.items()}, packed=False)
    unaware = qh.QuorumHasher(32).fit(stored)
    unaware.judge_ = replace(unaware.judge_, trust=replace(unaware.judge_.trust, known=None))
    misled = unaware.transform(stolen, packed=False)
    assert np.mean(found != wanted) < 0.85 * np.mean(misled != wanted)
    assert np.mean(found != owners) > np.mean(misled != owners)


def test_items_of_fit_are_themselves(thieves):
    """Met again whole, with one view, or beside copies of their own: as if nothing were known."""
    hasher, stored, _ = thieves
    unaware = qh.QuorumHasher(32).fit(stored)
    unaware.judge_ = replace(unaware.judge_, trust=replace(unaware.judge_.trust, known=None))
    for views in (stored, {"picture": stored["picture"]}):
        assert np.array_equal(hasher.transform(views), unaware.transform(views))
        np.testing.assert_array_equal(hasher.reliability(views), unaware.reliability(views))


def test_copies_among_the_rows_of_fit_are_found_out():
    views = shop(1_200)
    views["picture"][:200] = views["picture"][200:400]
    trust = qh.QuorumHasher(32).fit(views).reliability(views)
    assert np.mean(trust[:200, 0] < 0.01) > 0.8
    assert np.mean(trust[200:, 0] < 0.01) < 0.03
    assert np.mean(trust[:, 1] < 0.01) < 0.05


def test_all_rows_of_a_larger_fit_are_known(tmp_path):
    stored, new = shop(11_000, widths=(6, 5)), shop(200, seed=1, widths=(6, 5))
    new["picture"][:] = stored["picture"][-200:]
    hasher = qh.QuorumHasher(16).fit(stored)
    assert len(hasher.judge_.trust.known.items) == 11_000
    assert np.mean(hasher.reliability(new)[:, 0] < 0.01) > 0.5
    hasher.save(tmp_path / "items.qh")
    np.testing.assert_array_equal(qh.load(tmp_path / "items.qh").reliability(new), hasher.reliability(new))


def test_an_added_view_is_known_again_too():
    stored, new = shop(1_500), shop(300, seed=1)
    hasher = qh.QuorumHasher(32).fit(stored)
    turned = np.linalg.qr(np.random.default_rng(5).standard_normal((14, 14)))[0]
    hasher.add_view("new", stored["picture"] @ turned, stored)
    asked = {"text": new["text"], "new": stored["picture"][:300] @ turned}
    assert np.mean(hasher.reliability(asked)[:, 2] < 0.01) > 0.8


def alarms(hasher, views):
    return np.mean(hasher.reliability(views) < 0.01, axis=0)


@pytest.mark.parametrize("change", [1e-4, 1e-3, 1e-2])
def test_an_item_of_fit_whose_text_was_renewed_is_not_suspected(thieves, change):
    hasher, stored, _ = thieves
    rng = np.random.default_rng(0)
    renewed = stored | {"text": stored["text"] * (1 + change * rng.standard_normal(stored["text"].shape))}
    assert (alarms(hasher, renewed) < 0.03).all()
    gaps = {name: values.copy() for name, values in stored.items()}
    gaps["text"][np.arange(1_500), rng.integers(12, size=1_500)] = np.nan
    unaware = qh.QuorumHasher(32).fit(stored)
    unaware.judge_ = replace(unaware.judge_, trust=replace(unaware.judge_.trust, known=None))
    assert (alarms(hasher, gaps) <= alarms(unaware, gaps) + 0.02).all()


def test_rounding_to_float32_raises_no_alarms(thieves):
    hasher, stored, _ = thieves
    assert (alarms(hasher, {name: values.astype(np.float32) for name, values in stored.items()}) < 0.03).all()


@pytest.mark.parametrize("is_tied", [False, True])
def test_equal_prices_are_no_theft(is_tied):
    """A view of one number, in which rows coincide by chance, whether other views know anything of it or not."""
    rng = np.random.default_rng(0)
    views = shop(6_000)
    prices = views["picture"][:, 0] if is_tied else rng.standard_normal(6_000)
    views["price"] = np.round(500 * prices[:, None]) / 500  # two or three rows have the same
    half = {name: values[:3_000] for name, values in views.items()}
    others = {name: values[3_000:] for name, values in views.items()}
    hasher = qh.QuorumHasher(16).fit(half)
    assert alarms(hasher, others)[2] < 0.03
    assert alarms(hasher, half)[2] < 0.03


def test_following_a_stream_leaves_items_of_fit_in_peace(thieves):
    _, stored, _ = thieves
    hasher = qh.QuorumHasher(32).fit(stored)
    more = shop(500, seed=3)
    hasher.partial_fit({"text": more["text"] + 0.5})
    assert (alarms(hasher, stored) < 0.03).all()
    followed = hasher.reliability(stored)
    hasher.judge_ = replace(hasher.judge_, trust=replace(hasher.judge_.trust, known=None))
    np.testing.assert_array_equal(hasher.reliability(stored), followed)  # marks are of views where they lay in fit


def test_what_all_rows_hold_is_learned_without_what_the_sample_says_of_its_own():
    """Else twins of rows of the sample would be doubted before it is learned how common twins are."""
    rng, views = np.random.default_rng(0), shop(2_000)
    views["picture"][1_000:1_100] = views["picture"][:100]
    views["text"][1_000:1_100] = views["text"][:100] + 0.4 * rng.standard_normal((100, 12))
    judge = qh.QuorumHasher(16).fit({name: values[:1_000] for name, values in views.items()}).judge_
    unknowing = replace(judge, trust=replace(judge.trust, known=None))
    with ThreadsEngine(1, 512) as engine:
        rows = engine.put(np.ones((2_000, 2), dtype=bool)), [engine.put(values) for values in views.values()]
        first, second = (knowing_all(one, *rows, engine).trust.known for one in (judge, unknowing))
    for one, other in zip(first.views, second.views, strict=True):
        np.testing.assert_array_equal(one.doubts, other.doubts)


def test_one_view_has_nothing_to_be_known_by():
    assert qh.QuorumHasher(8).fit({"text": shop(11_000)["text"]}).judge_.trust.known is None
