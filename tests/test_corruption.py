"""Every kind of damage: how much, where, with what, and that nothing else is touched."""

import doctest

import numpy as np
import pytest
from scipy.sparse import csr_array

from quorumhash import corruption
from quorumhash.corruption import KINDS, Damaged, damage, damage_with_mask
from quorumhash.datasets import load_dataset
from quorumhash.errors import ParameterError
from quorumhash.views import Views

N_ITEMS = 400
OPTIONS = {
    "swap_source": {"sources": {"photo": ["gist", "words"]}},
    "patch": {"image_shape": {"gist": (4, 5)}},
}
BY_PAIR = ["swap", "noise", "zero", "placeholder", "drop_view"]


def make_views(n_items=N_ITEMS, widths=(20, 7, 3), seed=0):
    rng = np.random.default_rng(seed)
    parts = zip(("gist", "words", "colour"), widths, (1, 2, 3), strict=True)
    return Views({name: 5 * scale + scale * rng.standard_normal((n_items, width)) for name, width, scale in parts})


@pytest.fixture
def views():
    return make_views()


def damaged_by(views, kind, **options):
    return damage_with_mask(views, kind, **{**OPTIONS.get(kind, {}), **options})


def same(a, b):
    """Bit for bit, NaN included."""
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def rows_in(rows, matrix):
    """For every row, the positions in the matrix that hold the same row."""
    return [np.flatnonzero((matrix == row).all(axis=1)).tolist() for row in rows]


# ---------------------------------------------------------------- what holds for every kind


@pytest.mark.parametrize("kind", KINDS)
def test_input_is_never_changed(kind, views):
    before = {name: matrix.copy() for name, matrix in views.items()}
    result = damaged_by(views, kind, rate=0.5)
    assert isinstance(result, Damaged)
    assert isinstance(result.views, Views)
    assert all(same(views[name], before[name]) for name in before)
    assert any(not same(result.views[name], before[name]) for name in before)


@pytest.mark.parametrize("kind", KINDS)
def test_same_seed_same_damage_other_seed_other_damage(kind, views):
    first, again, other = (damaged_by(views, kind, random_state=seed) for seed in (5, 5, 6))
    assert all(same(first.views[name], again.views[name]) for name in views)
    assert np.array_equal(first.mask, again.mask)
    assert any(not same(first.views[name], other.views[name]) for name in views)


@pytest.mark.parametrize("kind", KINDS)
def test_generators_in_the_same_state_give_the_same(kind, views):
    first, second = (damaged_by(views, kind, random_state=np.random.default_rng(5)) for _ in range(2))
    assert all(same(first.views[name], second.views[name]) for name in views)


@pytest.mark.parametrize("kind", KINDS)
def test_damage_gives_the_views_of_damage_with_mask(kind, views):
    options = OPTIONS.get(kind, {})
    plain = damage(views, kind, rate=0.3, random_state=1, names=["gist"], fill="mean", **options)
    both = damage_with_mask(views, kind, rate=0.3, random_state=1, names=["gist"], fill="mean", **options)
    assert all(same(plain[name], both.views[name]) for name in views)


@pytest.mark.parametrize("kind", KINDS)
def test_pairs_outside_the_mask_are_identical_and_inside_differ(kind, views):
    result = damaged_by(views, kind)
    assert result.mask.shape == (N_ITEMS, 3)
    assert result.mask.dtype == bool
    for column, name in enumerate(views):
        hit = result.mask[:, column]
        assert same(result.views[name][~hit], views[name][~hit])
        for row in np.flatnonzero(hit):
            assert not same(result.views[name][row], views[name][row])


@pytest.mark.parametrize("kind", KINDS)
def test_rate_zero_is_no_damage(kind, views):
    result = damaged_by(views, kind, rate=0)
    assert not result.mask.any()
    assert all(same(result.views[name], views[name]) for name in views)


@pytest.mark.parametrize("kind", BY_PAIR)
@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_pairs_are_hit_at_the_rate_in_every_view_independently(kind, rate):
    result = damaged_by(make_views(4_000), kind, rate=rate)
    error = np.sqrt(rate * (1 - rate) / 4_000)
    spared = rate**3 if kind == "drop_view" else 0  # an item that would lose all three keeps one
    assert np.all(np.abs(result.mask.mean(axis=0) - rate + spared / 3) < 4 * error)
    if kind != "drop_view":
        assert abs((result.mask[:, 0] & result.mask[:, 1]).mean() - rate**2) < 4 * error


@pytest.mark.parametrize("kind", [*BY_PAIR, "swap_source", "shift"])
def test_which_pairs_are_hit_does_not_depend_on_widths(kind):
    narrow, wide = make_views(widths=(2, 2, 2)), make_views(widths=(9, 4, 30), seed=1)
    assert np.array_equal(damaged_by(narrow, kind).mask, damaged_by(wide, kind).mask)


@pytest.mark.parametrize("kind", ["swap", "noise", "zero", "placeholder", "gauss", "drop_view", "drop_values", "shift"])
def test_only_named_views_are_damaged(kind, views):
    result = damaged_by(views, kind, names=["colour", "gist"])
    assert result.views["words"] is views["words"]
    assert result.mask.any(axis=0).tolist() == [True, False, True]


def test_naming_a_view_does_not_change_where_it_is_hit(views):
    whole, part = damaged_by(views, "zero"), damaged_by(views, "zero", names="words")
    assert np.array_equal(part.mask[:, 1], whole.mask[:, 1])


def with_gaps(views):
    """The same views with missing values and rows; every item keeps "words"."""
    rng = np.random.default_rng(9)
    gist, colour = views["gist"].copy(), views["colour"].copy()
    gist[rng.random(gist.shape) < 0.1] = np.nan
    gist[rng.random(N_ITEMS) < 0.3] = np.nan
    colour[rng.random(N_ITEMS) < 0.3] = np.nan
    return Views({"gist": gist, "words": views["words"], "colour": colour, "absent": None})


@pytest.mark.parametrize("kind", KINDS)
def test_missing_stays_missing(kind, views):
    gappy = with_gaps(views)
    result = damaged_by(gappy, kind, rate=0.6)
    for name in ("gist", "colour"):
        missing = np.isnan(gappy[name])
        assert np.isnan(result.views[name][missing]).all()
        absent = missing.all(axis=1)
        assert not result.mask[absent, gappy.names.index(name)].any()
    assert result.views.matrix("absent") is None
    assert not result.mask[:, 3].any()


@pytest.mark.parametrize("kind", ["gauss", "swap", "noise", "zero", "placeholder", "shift"])
def test_present_views_stay_present(kind, views):
    gappy = with_gaps(views)
    result = damaged_by(gappy, kind, names=["colour"], rate=0.6)
    if kind == "shift":  # a row after an absent one receives nothing
        assert (result.views.present("colour") <= gappy.present("colour")).all()
    else:
        assert np.array_equal(result.views.present("colour"), gappy.present("colour"))


@pytest.mark.parametrize("kind", ["swap", "shift", "swap_source"])
def test_item_that_would_be_left_with_nothing_is_left_as_it_was(kind):
    halves = np.full((60, 2), np.nan)
    halves[::2, 0], halves[1::2, 1] = np.arange(30) + 1.0, np.arange(30) - 50.0
    result = damage_with_mask({"gist": halves}, kind, rate=1.0, sources={"all": ["gist"]})
    assert result.views.present("gist").all()
    spared = ~result.mask[:, 0]
    assert spared.any()
    assert same(result.views["gist"][spared], halves[spared])


@pytest.mark.parametrize(
    ("kind", "is_float"), [(k, k not in ("swap", "zero", "placeholder", "shift", "swap_source")) for k in KINDS]
)
def test_integers_become_float_only_where_they_must(kind, is_float):
    rng = np.random.default_rng(0)
    counts = {"gist": rng.integers(1, 100, (50, 20), dtype=np.uint8), "words": rng.integers(1, 9, (50, 4))}
    result = damaged_by(counts, kind, rate=0.5, names=["gist"], fill="missing")
    assert result.views["gist"].dtype == (np.float64 if is_float else np.uint8)
    assert np.array_equal(result.views["gist"][~result.mask[:, 0]], counts["gist"][~result.mask[:, 0]])


@pytest.mark.parametrize("kind", KINDS)
def test_float32_stays_float32(kind):
    views = {name: matrix.astype(np.float32) for name, matrix in make_views(50).items()}
    result = damaged_by(views, kind, fill="mean")
    assert {result.views[name].dtype for name in views} == {np.dtype(np.float32)}


def test_sparse_views_become_dense_where_they_are_damaged():
    dense = np.eye(30)
    result = damage_with_mask({"a": csr_array(dense), "b": csr_array(dense)}, "swap", rate=0.5, names=["a"])
    expected = damage_with_mask({"a": dense, "b": dense}, "swap", rate=0.5, names=["a"])
    assert isinstance(result.views.matrix("a"), np.ndarray)
    assert np.array_equal(result.views["a"], expected.views["a"])
    assert hasattr(result.views.matrix("b"), "tocsr")


def test_memory_maps_are_not_written_to(tmp_path):
    np.save(tmp_path / "view.npy", np.ones((20, 3)))
    mapped = np.load(tmp_path / "view.npy", mmap_mode="r+")
    assert damage_with_mask({"a": mapped}, "zero", rate=1.0).mask.all()
    assert np.load(tmp_path / "view.npy").min() == 1


# ---------------------------------------------------------------- one by one


def test_gauss_adds_unit_noise_in_standard_deviations_to_the_share_of_values():
    views = make_views(3_000)
    result = damage(views, "gauss", rate=0.25)
    for name, matrix in views.items():
        change = (result[name] - matrix) / matrix.std(axis=0)
        hit = result[name] != matrix
        assert hit.mean() == pytest.approx(0.25, abs=0.02)
        assert change[hit].mean() == pytest.approx(0, abs=0.06)
        assert change[hit].std() == pytest.approx(1, abs=0.06)


@pytest.mark.parametrize(("kind", "spread"), [("gauss", 1), ("noise", 2)])
def test_spread_is_that_of_the_values_that_are_there(kind, spread):
    rng = np.random.default_rng(0)
    matrix = 10 + 3 * rng.standard_normal((4_000, 2))
    matrix[rng.random(matrix.shape) < 0.5] = np.nan
    damaged = damage({"gappy": matrix, "whole": np.ones((4_000, 1))}, kind, rate=1.0)["gappy"]
    change = damaged - (matrix if kind == "gauss" else 10)
    assert np.nanmean(change) == pytest.approx(0, abs=0.4)
    assert np.nanstd(change) == pytest.approx(3 * spread, rel=0.05)


def test_gauss_leaves_a_constant_feature_alone():
    result = damage_with_mask(np.full((20, 2), 3.0), "gauss", rate=1.0)
    assert not result.mask.any()


def test_swap_takes_that_view_of_another_item(views):
    result = damaged_by(views, "swap")
    for column, name in enumerate(views):
        hit = np.flatnonzero(result.mask[:, column])
        partners = rows_in(result.views[name][hit], views[name])
        assert all(len(places) == 1 for places in partners)
        assert all(places[0] != row for row, places in zip(hit, partners, strict=True))
        steps = [(places[0] - row) % N_ITEMS for row, places in zip(hit, partners, strict=True)]
        assert np.mean(steps) == pytest.approx(N_ITEMS / 2, abs=60)  # anyone, not only those who follow


def test_swap_reaches_every_other_item_alike():
    items = np.arange(5.0)[:, None]
    partners = np.stack([damage(items, "swap", rate=1.0, random_state=seed)["view0"][:, 0] for seed in range(2_000)])
    counts = np.stack([np.bincount(partners[:, item].astype(int), minlength=5) for item in range(5)])
    assert (np.diag(counts) == 0).all()
    assert np.abs(counts[~np.eye(5, dtype=bool)] - 500).max() < 100


def test_swap_takes_no_absent_row_and_leaves_the_only_present_one(views):
    gappy = with_gaps(views)
    result = damaged_by(gappy, "swap", rate=1.0)
    assert np.array_equal(result.views.present("colour"), gappy.present("colour"))
    lonely = np.full((10, 2), np.nan)
    lonely[4] = 1.0
    assert not damage_with_mask({"a": np.ones((10, 1)), "b": lonely}, "swap", rate=1.0).mask[:, 1].any()


def test_swapped_views_have_partners_of_their_own(views):
    result = damaged_by(views, "swap", rate=1.0)
    gist, words = (rows_in(result.views[name], views[name]) for name in ("gist", "words"))
    assert sum(a == b for a, b in zip(gist, words, strict=True)) < 20


def test_noise_is_twice_as_wide_as_the_feature_and_around_its_mean():
    views = make_views(3_000)
    result = damaged_by(views, "noise", rate=0.5)
    for column, (name, matrix) in enumerate(views.items()):
        noise = (result.views[name][result.mask[:, column]] - matrix.mean(axis=0)) / matrix.std(axis=0)
        assert np.abs(noise.mean(axis=0)).max() < 0.25
        assert noise.std(axis=0) == pytest.approx(2, abs=0.2)


def test_zero_is_zero(views):
    result = damaged_by(views, "zero")
    for column, name in enumerate(views):
        assert (result.views[name][result.mask[:, column]] == 0).all()


def test_placeholder_is_one_real_row_per_view(views):
    result = damaged_by(views, "placeholder")
    donors = []
    for column, name in enumerate(views):
        rows = np.unique(result.views[name][result.mask[:, column]], axis=0)
        assert len(rows) == 1
        donors.append(rows_in(rows, views[name])[0][0])
    assert len(set(donors)) > 1
    assert np.isfinite(damaged_by(with_gaps(views), "placeholder", names=["colour"]).views["words"]).all()


def test_swap_source_swaps_all_views_of_a_source_with_one_partner():
    views = make_views(2_000)
    sources = {"photo": ["words", "gist"], "hand": ["colour"]}
    result = damage_with_mask(views, "swap_source", rate=0.3, sources=sources)
    assert np.array_equal(result.mask[:, 0], result.mask[:, 1])
    assert (result.mask[:, 0] & result.mask[:, 2]).mean() == pytest.approx(0.09, abs=0.03)
    assert result.mask.mean(axis=0) == pytest.approx(0.3, abs=0.04)
    hit = np.flatnonzero(result.mask[:, 0])
    gist, words = (rows_in(result.views[name][hit], views[name]) for name in ("gist", "words"))
    assert gist == words
    assert all(places != [row] for row, places in zip(hit, gist, strict=True))


def test_views_of_no_source_are_not_swapped(views):
    assert damaged_by(views, "swap_source").mask.any(axis=0).tolist() == [True, True, False]


@pytest.mark.parametrize("seed", range(10))
def test_shift_is_one_block_of_one_view_off_by_one(seed, views):
    result = damaged_by(views, "shift", rate=0.3, random_state=seed)
    assert result.mask.any(axis=0).sum() == 1
    column = int(result.mask.any(axis=0).argmax())
    rows = np.flatnonzero(result.mask[:, column])
    name = views.names[column]
    assert len(rows) == 120
    assert np.array_equal(rows, np.arange(rows[0], rows[0] + 120))
    assert rows[0] >= 1
    assert same(result.views[name][rows], views[name][rows - 1])


def test_shift_chooses_any_view_and_any_block(views):
    masks = [damaged_by(views, "shift", random_state=seed).mask for seed in range(30)]
    assert {int(mask.any(axis=0).argmax()) for mask in masks} == {0, 1, 2}
    assert len({int(mask.any(axis=1).argmax()) for mask in masks}) > 20


def test_shift_of_named_views_is_in_the_same_rows(views):
    result = damaged_by(views, "shift", names=["gist", "colour"])
    assert np.array_equal(result.mask[:, 0], result.mask[:, 2])
    assert result.mask.sum(axis=0).tolist() == [80, 0, 80]


@pytest.mark.parametrize(("rate", "expected"), [(1.0, [4, 0, 1, 2, 3]), (0.8, [0, 0, 1, 2, 3])])
def test_shift_of_all_rows_goes_round(rate, expected):
    assert damage(np.arange(5.0)[:, None], "shift", rate=rate)["view0"][:, 0].tolist() == expected


@pytest.mark.parametrize("rate", [0.5, 0.9, 1.0])
def test_drop_view_never_takes_the_last_view(rate, views):
    gappy = with_gaps(views)
    for given in (views, gappy):
        result = damaged_by(given, "drop_view", rate=rate)
        present = np.stack([result.views.present(name) for name in given], axis=1)
        assert present.any(axis=1).all()
        for name in ("gist", "words", "colour"):
            kept = result.views.present(name)
            assert same(result.views[name][kept], given[name][kept])
        if rate == 1.0:
            assert (present.sum(axis=1) == 1).all()


def test_drop_view_keeps_any_view_and_may_drop_all_that_are_named(views):
    kept = [int((~damaged_by(views, "drop_view", rate=1.0).mask[:, column]).sum()) for column in range(3)]
    assert min(kept) > N_ITEMS / 5
    named = damaged_by(views, "drop_view", rate=1.0, names=["gist", "words"])
    assert named.mask[:, :2].all()


def test_drop_values_takes_the_share_and_leaves_one_value():
    views = make_views(3_000)
    result = damage(views, "drop_values", rate=0.25)
    for name, matrix in views.items():
        gone = np.isnan(result[name])
        assert gone.mean() == pytest.approx(0.25, abs=0.02)
        assert same(result[name][~gone], matrix[~gone])
    bare = damage(views, "drop_values", rate=1.0)
    left = np.hstack([~np.isnan(bare[name]) for name in views])
    assert (left.sum(axis=1) == 1).all()
    assert left.any(axis=0).all()
    assert np.isnan(damage(views, "drop_values", rate=1.0, names=["gist"])["gist"]).all()


def covered_pixels(shape, rate, **options):
    pictures = np.random.default_rng(0).uniform(1, 2, (200, int(np.prod(shape))))
    damaged = damage({"pixels": pictures}, "patch", rate=rate, image_shape={"pixels": shape}, **options)["pixels"]
    changed = (damaged != pictures).reshape(200, *shape)
    return pictures, damaged, changed


@pytest.mark.parametrize(
    ("shape", "rate", "size"),
    [
        ((8, 8), 0.25, (4, 4)),
        ((6, 10), 0.15, (3, 3)),
        ((4, 16), 0.75, (4, 12)),
        ((16, 4), 0.75, (12, 4)),
        ((3, 7), 1.0, (3, 7)),
    ],
)
def test_patch_is_a_square_at_a_random_place(shape, rate, size):
    changed = covered_pixels(shape, rate)[2]
    corners = set()
    for picture in changed:
        rows, columns = np.flatnonzero(picture.any(axis=1)), np.flatnonzero(picture.any(axis=0))
        assert (len(rows), len(columns)) == size
        assert picture[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1].all()
        assert picture.sum() == size[0] * size[1]
        corners.add((int(rows[0]), int(columns[0])))
    assert len(corners) == (shape[0] - size[0] + 1) * (shape[1] - size[1] + 1)


def test_patch_fills():
    pictures, zero, changed = covered_pixels((4, 4, 3), 0.25)
    assert (changed.all(axis=3) == changed.any(axis=3)).all()
    changed = changed.reshape(200, -1)
    assert (zero[changed] == 0).all()
    missing = covered_pixels((4, 4, 3), 0.25, fill="missing")[1]
    assert np.array_equal(np.isnan(missing), changed)
    mean = covered_pixels((4, 4, 3), 0.25, fill="mean")[1]
    channel_means = np.broadcast_to(pictures.reshape(200, 16, 3).mean(axis=1, keepdims=True), (200, 16, 3)).reshape(
        200, -1
    )
    assert mean[changed] == pytest.approx(channel_means[changed], rel=1e-12)
    assert same(mean[~changed], pictures[~changed])


def test_patch_takes_one_shape_for_one_view(views):
    by_name = damage(views, "patch", image_shape={"gist": (4, 5)})["gist"]
    assert same(damage(views, "patch", image_shape=(4, 5), names=["gist"])["gist"], by_name)


# ---------------------------------------------------------------- refusals


REFUSED = {
    "kind": ("melt", {}, r"one of gauss, swap, .*patch, got 'melt'"),
    "rate above": ("swap", {"rate": 1.1}, "rate must be a number from 0 to 1, got 1.1"),
    "rate below": ("swap", {"rate": -0.1}, "got -0.1"),
    "rate NaN": ("swap", {"rate": float("nan")}, "got nan"),
    "rate text": ("swap", {"rate": "0.2"}, "got '0.2'"),
    "unknown view": ("swap", {"names": ["gist", "sound"]}, r"among 'gist', 'words', 'colour' .*'sound'"),
    "no view": ("swap", {"names": []}, r"got \[\]"),
    "no sources": ("swap_source", {}, "sources must name the views of each source, got None"),
    "sources a list": ("swap_source", {"sources": ["gist"]}, "sources must name"),
    "unknown view of a source": ("swap_source", {"sources": {"photo": ["sound"]}}, "'sound'"),
    "no shape": ("patch", {}, r"image_shape must be .*got None"),
    "one shape for many": ("patch", {"image_shape": (4, 5)}, "view 'words' with its 7 features"),
    "wrong shape": ("patch", {"image_shape": {"gist": (4, 4)}}, r"20 features, got \(4, 4\)"),
    "flat shape": ("patch", {"image_shape": {"gist": (20,)}}, r"got \(20,\)"),
    "unknown view of pictures": ("patch", {"image_shape": {"sound": (4, 5)}}, "'sound'"),
    "fill": ("patch", {"image_shape": {"gist": (4, 5)}, "fill": "grey"}, "zero, mean, missing, got 'grey'"),
}


@pytest.mark.parametrize(("kind", "options", "sentence"), REFUSED.values(), ids=REFUSED)
def test_bad_arguments_are_refused_in_one_sentence(kind, options, sentence, views):
    with pytest.raises(ParameterError, match=sentence) as caught:
        damage(views, kind, **options)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["swap", "swap_source"])
def test_swap_of_one_item_is_refused(kind):
    with pytest.raises(ParameterError, match="at least 2 rows, got 1"):
        damage([[1.0, 2.0]], kind, sources={"all": ["view0"]})


def test_examples_in_the_docstrings_run():
    result = doctest.testmod(corruption)
    assert result.attempted >= 3
    assert result.failed == 0


@pytest.mark.parametrize("seed", range(5))
def test_damage_does_not_follow_other_draws_of_the_same_seed(seed):
    """The digits' split is drawn with seed 0: damage with seed 0 must hit queries and training rows alike."""
    digits = load_dataset("digits")
    mask = damage_with_mask(digits.views, "zero", rate=0.2, random_state=seed).mask
    for rows in (digits.query_rows, digits.train_rows):
        assert (np.abs(mask[rows].mean(axis=0) - 0.2) < 0.08).all()


def test_image_arrays_need_no_shape():
    pictures = np.random.default_rng(0).random((20, 6, 6))
    damaged = damage({"photo": pictures}, "patch", rate=0.25, random_state=0)
    flat = damage(
        {"photo": pictures.reshape(20, 36)}, "patch", rate=0.25, random_state=0, image_shape={"photo": (6, 6)}
    )
    np.testing.assert_array_equal(damaged["photo"], flat["photo"])


@pytest.mark.parametrize("shape", [8, "8x8", (-6, -6), (6.0, 6.0), {}, (6, 5)])
def test_odd_image_shapes_are_refused(shape):
    with pytest.raises(ParameterError, match="image_shape must be"):
        damage({"photo": np.ones((4, 36))}, "patch", image_shape=shape)


def test_a_placeholder_needs_no_present_row():
    views = {"a": np.full((5, 2), np.nan), "b": np.ones((5, 2))}
    assert np.isnan(damage(views, "placeholder", rate=1.0)["a"]).all()
