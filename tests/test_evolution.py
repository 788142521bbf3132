"""Views that come and go after fit, and rows that drift: codes stay, and what is new finds the old."""

import copy

import numpy as np
import pytest

import quorumhash as qh
from quorumhash.codes import hamming_distances
from quorumhash.drift import first_stream
from quorumhash.errors import ParameterError, RefusedError, ViewsError
from quorumhash.repair import RepairModel, extend_repair, repair_rows

NAMES = (("image", 14), ("text", 12), ("sound", 10))


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    hidden = rng.standard_normal((500, 8))
    views = {
        name: hidden @ rng.standard_normal((8, width)) + 0.2 * rng.standard_normal((500, width))
        for name, width in NAMES
    }
    turn = np.linalg.qr(rng.standard_normal((14, 14)))[0]
    return views, 2.0 * views["image"] @ turn + 3.0


def some(views, rows):
    return {name: values[rows] for name, values in views.items()}


@pytest.fixture(scope="module")
def before(data):
    return qh.QuorumHasher(n_bits=32).fit(some(data[0], slice(0, 400)))


@pytest.fixture(scope="module")
def after(data, before):
    return copy.copy(before).add_view("new", data[1][:400], some(data[0], slice(0, 400)))


def test_old_codes_and_fingerprint_stay(data, before, after):
    views = data[0]
    for names in (("image", "text", "sound"), ("text",), ("image", "sound")):
        given = {name: views[name] for name in names}
        assert np.array_equal(before.transform(given), after.transform(given))
    assert before.fingerprint() == after.fingerprint()
    index = qh.HammingIndex(32)
    index.add(before.transform(views), model=before)
    index.add(after.transform({"new": data[1]}), model=after)  # the same space: it is not refused
    assert np.array_equal(before.reliability(views), after.reliability(views)[:, :3])


def test_a_turned_view_gives_nearly_the_codes_of_the_view_it_was_made_from(data, before, after):
    old = before.transform({"image": data[0]["image"][400:]}, packed=False)
    new = after.transform({"new": data[1][400:]}, packed=False)
    assert np.mean(old != new) < 0.06
    stored = before.transform(data[0])
    nearest = hamming_distances(after.transform({"new": data[1][400:]}), stored).argsort(axis=1, kind="stable")[:, :10]
    assert np.mean((nearest == np.arange(400, 500)[:, None]).any(axis=1)) > 0.9


def test_rows_with_and_without_the_new_view_may_be_mixed(data, before, after):
    views = some(data[0], slice(400, 500))
    new = data[1][400:].copy()
    new[:50] = np.nan
    mixed = after.transform({**views, "new": new})
    assert np.array_equal(mixed[:50], before.transform(some(data[0], slice(400, 450))))
    swapped = data[1][400:][::-1]
    told = after.reliability({**views, "new": swapped})
    assert told.shape == (100, 4)
    assert np.mean(told[:, 3] < 0.01) > 0.8


def test_what_came_later_is_saved(data, after, tmp_path):
    after.save(tmp_path / "items.qh")
    loaded = qh.load(tmp_path / "items.qh")
    assert np.array_equal(loaded.transform({"new": data[1]}), after.transform({"new": data[1]}))
    assert loaded.fingerprint() == after.fingerprint()


def test_a_view_is_replaced_or_dropped(data, before, after):
    replaced = copy.copy(before).replace_view("image", data[1][:400], some(data[0], slice(0, 400)))
    assert np.array_equal(replaced.transform({"image": data[1]}), after.transform({"new": data[1]}))
    dropped = copy.copy(before).drop_view("image")
    rest = {name: data[0][name] for name in ("text", "sound")}
    assert np.array_equal(dropped.transform(rest), before.transform(rest))
    assert dropped.reliability(rest).shape == (500, 2)
    with pytest.raises(ViewsError, match="'image' is unknown"):
        dropped.transform(data[0])
    with pytest.raises(RefusedError, match="only one left"):
        dropped.drop_view("text").drop_view("sound")
    again = dropped.fit(some(data[0], slice(0, 60)))
    assert not hasattr(again, "evolution_")


def test_mistakes_are_told(data, before):
    with pytest.raises(ParameterError, match="no view bears yet"):
        before.add_view("image", data[1], data[0])
    with pytest.raises(ViewsError, match="same items"):
        before.add_view("new", data[1][:100], data[0])
    with pytest.raises(RefusedError, match="at least 30"):
        before.add_view("new", data[1][:20], some(data[0], slice(0, 20)))
    with pytest.raises(ParameterError, match="no view 'film'"):
        before.drop_view("film")


def test_an_added_view_does_not_change_what_the_old_ones_predict():
    """With the new view hidden, the conditional mean of the old views is that of the model before."""
    rng = np.random.default_rng(1)
    mixing = rng.standard_normal((6, 6))
    rows = rng.standard_normal((300, 6)) @ mixing
    model = RepairModel(np.zeros(6), np.ones(2), (0, 3, 6), np.linalg.inv(mixing.T @ mixing + 0.1 * np.eye(6)))
    new = rows @ rng.standard_normal((6, 2)) + 0.1 * rng.standard_normal((300, 2))
    wider = extend_repair(model, rows, new, np.ones(300))
    covariance = np.linalg.inv(wider.precision)
    assert np.allclose(covariance[:6, :6], np.linalg.inv(model.precision))
    shares = np.tile([1.0, 0.0], (300, 1))
    old = repair_rows(model, shares, rows[:, :3].copy(), rows[:, 3:].copy())
    same = repair_rows(wider, np.column_stack([shares, np.zeros(300)]), rows[:, :3].copy(), rows[:, 3:].copy(), new)
    assert np.allclose(old, same[:, :6])
    helped = repair_rows(wider, np.column_stack([shares, np.ones(300)]), rows[:, :3].copy(), rows[:, 3:].copy(), new)
    assert np.mean((helped[:, 3:6] - rows[:, 3:]) ** 2) < 0.8 * np.mean((old[:, 3:] - rows[:, 3:]) ** 2)


def test_trust_follows_the_rows_and_codes_do_not(data, before):
    hasher = copy.copy(before)
    later = some(data[0], slice(400, 500))
    moved = {**later, "image": later["image"] + 2.0}
    assert not hasher.drift(later).is_due
    told = hasher.drift(moved)
    assert told.is_due
    assert any("'image'" in reason for reason in told.reasons)
    codes = hasher.transform(later)
    assert np.mean(hasher.reliability(moved)[:, 0] < 0.01) > 0.3
    for _ in range(8):  # five thousand rows at a time, beside the ten thousand remembered
        hasher.partial_fit({name: np.tile(values, (50, 1)) for name, values in moved.items()})
    assert np.mean(hasher.reliability(moved)[:, 0] < 0.01) < 0.1
    assert np.array_equal(hasher.transform(later), codes)


def test_the_stream_begins_where_fit_ended(data, before):
    stream = first_stream(before.judge_)
    assert np.allclose(stream.centres[0], data[0]["image"][:400].mean(axis=0), atol=0.2)
    assert (stream.ranges > 0).all()


def test_partial_fit_of_an_unfitted_model_fits(data):
    hasher = qh.QuorumHasher(n_bits=8).partial_fit(some(data[0], slice(0, 60)))
    assert hasher.transform(some(data[0], slice(0, 5))).shape == (5, 1)


def test_rows_of_one_value_that_fit_saw_are_no_drift():
    draw = np.random.default_rng(8)
    hidden = draw.standard_normal((800, 5))
    views = {f"view{m}": hidden @ draw.standard_normal((5, 20)) for m in range(3)}
    rows = draw.random(800) < 0.25
    views["view0"][rows] = draw.uniform(5, 8, (rows.sum(), 1))
    report = qh.QuorumHasher(16).fit(views).drift(views)
    assert max(map(abs, report.mean)) < 0.01, report
