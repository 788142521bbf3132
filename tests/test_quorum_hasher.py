"""QuorumHasher as its users meet it: real digits, damaged; and data that break other methods."""

from functools import cache

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import quorumhash as qh
from quorumhash import quorum
from quorumhash.codes import hamming_distances
from quorumhash.corruption import damage_with_mask
from quorumhash.evaluation import shared_labels, true_neighbours
from quorumhash.experiment import joined_features
from quorumhash.landmarks import rows_for_landmarks
from quorumhash.nearness import near_rows

RATES = {"swap": 0.2, "noise": 0.3, "zero": 0.3, "placeholder": 0.3}


@pytest.fixture(scope="module")
def digits():
    return qh.load_dataset("digits")


@pytest.fixture(scope="module")
def truth(digits):
    joined = joined_features(digits.views, digits.train_rows)
    return true_neighbours(joined[digits.query_rows], joined[digits.database_rows], 10)


def quality(hasher, views, digits, truth):
    """MAP by labels, and the share of true neighbours among the first ten."""
    distances = hamming_distances(*(hasher.transform(views[r]) for r in (digits.query_rows, digits.database_rows)))
    relevance = shared_labels(digits.labels[digits.query_rows], digits.labels[digits.database_rows])
    return qh.mean_average_precision(relevance, distances), qh.neighbour_recall(qh.nearest_rows(distances, 10), truth)


@pytest.mark.parametrize("kind", RATES)
def test_damaged_digits(digits, truth, kind):
    damaged = damage_with_mask(digits.views, kind, rate=RATES[kind], random_state=0)
    views, mask = damaged.views, damaged.mask[digits.query_rows]
    train = views[digits.train_rows]
    plain = quality(qh.ITQHasher(32).fit(train), views, digits, truth)
    groups = quality(qh.QuorumHasher(32, objective="groups").fit(train), views, digits, truth)
    neighbours = qh.QuorumHasher(32).fit(train)
    assert groups[0] > 1.3 * plain[0]
    assert quality(neighbours, views, digits, truth)[1] > 1.3 * plain[1]
    reliability = neighbours.reliability(views[digits.query_rows])
    assert roc_auc_score(mask.ravel(), -reliability.ravel()) > 0.95
    assert (reliability < 0.01)[~mask].mean() < 0.03


def test_zeros_that_fit_never_saw_are_not_believed(digits, truth):
    """Learned from undamaged rows; then an embedding fails for some queries. It is as if the view were missing."""
    hasher = qh.QuorumHasher(32).fit(digits.views[digits.train_rows])
    damaged = damage_with_mask(digits.views[digits.query_rows], "zero", rate=0.3, random_state=0)
    assert (hasher.reliability(damaged.views)[damaged.mask] == 0).all()
    some = ~damaged.mask.all(axis=1)
    absent = {n: np.where(damaged.mask[:, [m]], np.nan, damaged.views[n]) for m, n in enumerate(damaged.views)}
    database = hasher.transform(digits.views[digits.database_rows])
    found = []
    for queries in (damaged.views[some], {name: values[some] for name, values in absent.items()}):
        nearest = qh.nearest_rows(hamming_distances(hasher.transform(queries), database), 10)
        found.append(qh.neighbour_recall(nearest, truth[some]))
    assert found[0] > found[1] - 0.01


def test_rows_that_hold_one_value_all_over_are_not_believed(digits, truth):
    """Each another value, so that no two are alike; they are no more than missing views."""
    draw = np.random.default_rng(0)
    views, absent, hit = {}, {}, draw.random((len(digits.views), 4)) < 0.2
    hit[:, 0] &= ~hit.all(axis=1)  # every item has a view
    for m, name in enumerate(digits.views):
        values = np.array(digits.views[name], dtype=np.float64)
        spread = draw.uniform(values.min(), values.max(), (len(values), 1))
        views[name] = np.where(hit[:, [m]], spread, values)
        absent[name] = np.where(hit[:, [m]], np.nan, values)
    found = []
    for given in (qh.Views(views), qh.Views(absent)):
        hasher = qh.QuorumHasher(32).fit(given[digits.train_rows])
        found.append(quality(hasher, given, digits, truth)[1])
        if len(found) == 1:
            assert (hasher.reliability(given[digits.query_rows])[hit[digits.query_rows]] == 0).all()
    assert found[0] > 0.95 * found[1]


def test_nothing_of_zeros_enters_a_code(digits):
    """Not even where the other views contradict each other, and are believed no more than zeros are."""
    hasher = qh.QuorumHasher(32).fit(digits.views[digits.train_rows])
    queries = digits.views[digits.query_rows]
    given = {name: np.array(queries[name], dtype=np.float64) for name in queries}
    given["gradients"] = given["gradients"][::-1].copy()
    given["profiles"] = given["profiles"][::-1] * 3.0
    given["pixels"][:] = 0.0
    absent = {name: values for name, values in given.items() if name != "pixels"}
    np.testing.assert_allclose(hasher.embed(given), hasher.embed(absent), atol=1e-5)


def test_an_item_whose_only_view_may_not_speak_keeps_it(digits, fitted):
    only = {"pixels": digits.views[digits.query_rows]["pixels"]}
    hasher = fitted("neighbours")
    silenced = hasher.embed(only, view_weights={"pixels": 0.0})
    np.testing.assert_array_equal(silenced, hasher.embed(only))


def test_clean_digits_lose_nothing_to_the_tests(digits, truth):
    plain = quality(qh.ITQHasher(32).fit(digits.views[digits.train_rows]), digits.views, digits, truth)
    ours = quality(qh.QuorumHasher(32).fit(digits.views[digits.train_rows]), digits.views, digits, truth)
    assert ours[1] > 0.95 * plain[1]


@pytest.fixture(scope="module")
def fitted(digits):
    """From an objective to one model of 100 bits, for all tests that only look at it."""
    return cache(lambda objective: qh.QuorumHasher(100, objective=objective).fit(digits.views[digits.train_rows]))


@pytest.mark.parametrize("objective", ["neighbours", "groups"])
def test_a_query_may_bring_any_views(digits, fitted, objective):
    hasher = fitted(objective)
    views = digits.views[digits.query_rows[:100]]
    one = hasher.transform({"pixels": views["pixels"]})
    others_off = {name: 0 for name in views if name != "pixels"}
    np.testing.assert_array_equal(hasher.transform(views, view_weights=others_off), one)
    distances = hamming_distances(one, hasher.transform(views))
    assert np.diag(distances).mean() < 0.5 * distances.mean()  # the shared code is a bridge between views
    missing = hasher.reliability({"pixels": views["pixels"], "profiles": None})
    np.testing.assert_array_equal(np.isnan(missing), [[False, True, True, True]] * 100)


def test_everything_believed_is_the_path_without_masks(digits, fitted):
    """Rows that need no repair have the same dimensions whether or not others in their block do."""
    hasher = fitted("neighbours")
    views = digits.views[digits.query_rows[:80]]
    holed = {name: np.array(views[name]) for name in views}
    holed["pixels"][::2] = np.nan
    np.testing.assert_allclose(hasher.embed(holed)[1::2], hasher.embed(views)[1::2], atol=1e-6)


@pytest.mark.parametrize("objective", ["neighbours", 0.5, "groups"])
def test_embed_falls_in_variance_and_codes_are_cut_from_it(digits, fitted, objective):
    hasher = fitted(objective)
    dense = hasher.embed(digits.views[digits.train_rows])
    assert dense.dtype == np.float32
    assert (np.diff(dense.var(axis=0)) <= 1e-6).all()
    scores = hasher.decision_function(digits.views[digits.train_rows])
    cut_from = near_rows(hasher.nearness_, dense.astype(np.float64))
    assert (hasher.nearness_ is None) == (objective == "groups")
    np.testing.assert_allclose(cut_from @ hasher.rotation_, scores, atol=1e-3)


def test_labels_help(digits, truth):
    views = qh.damage(digits.views, "swap", rate=0.2)
    reached = []
    for n_labelled in (0, 50, 1500):
        labels = digits.labels[digits.train_rows].copy()
        labels[n_labelled:] = -1
        told = qh.QuorumHasher(32, objective="groups").fit(views[digits.train_rows], labels if n_labelled else None)
        reached.append(quality(told, views, digits, truth)[0])
    assert reached[0] + 0.01 < reached[1] < reached[2]


@pytest.mark.parametrize("n_labelled", [50, 300])
def test_labels_are_numbers_or_columns(digits, n_labelled):
    train, labels = digits.views[digits.train_rows[:300]], digits.labels[digits.train_rows[:300]].copy()
    labels[n_labelled:] = -1
    columns = np.eye(10, dtype=int)[labels] * (labels >= 0)[:, None]
    told, same = (qh.QuorumHasher(16, objective="groups").fit(train, y) for y in (labels, columns))
    assert told.fingerprint() == same.fingerprint()


def test_pairs_find_the_view_that_matters():
    rng = np.random.default_rng(0)
    kind = rng.integers(20, size=400)
    views = {
        "telling": np.eye(20)[kind] + 0.3 * rng.standard_normal((400, 20)),
        "other": rng.standard_normal((400, 20)),
        "more": rng.standard_normal((400, 20)),
    }
    rows = np.argsort(kind, kind="stable")
    pairs = np.stack([rows[:-1], rows[1:]], axis=1)
    pairs = pairs[kind[pairs[:, 0]] == kind[pairs[:, 1]]][:200]
    weights = qh.QuorumHasher(16).fit(views, similar_pairs=pairs).view_weights_
    assert weights["telling"] == 1.0
    assert max(weights["other"], weights["more"]) <= 0.5
    with pytest.raises(qh.ParameterError, match="similar_pairs must name rows from 0 to 399"):
        qh.QuorumHasher(16).fit(views, similar_pairs=[[0, 400]])


def latent(n_rows, widths, seed=0):
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal((n_rows, 6))
    return {
        f"v{m}": shared @ rng.standard_normal((6, d)) + 0.3 * rng.standard_normal((n_rows, d))
        for m, d in enumerate(widths)
    }


def scaled_apart():
    return {name: view * 1e6**m for m, (name, view) in enumerate(latent(200, [5, 6, 7]).items())}


def heavy_tails():
    rng = np.random.default_rng(1)
    return {name: view + rng.standard_t(1.5, view.shape) for name, view in latent(300, [5, 6, 7]).items()}


def with_gaps():
    views = latent(300, [5, 6, 7])
    views["v0"][:270] = np.nan  # missing in nine of ten
    views["v1"][np.random.default_rng(0).random((300, 6)) < 0.3] = np.nan
    return views


HARD = {
    "two rows": lambda: latent(2, [3, 4]),
    "three rows": lambda: latent(3, [3, 4]),
    "thirty rows": lambda: latent(30, [20, 30]),
    "more landmarks than rows": lambda: latent(12, [5, 5]),
    "one view": lambda: latent(100, [8]),
    "twelve views": lambda: latent(120, [4] * 12),
    "one feature each": lambda: latent(100, [1, 1, 1]),
    "wide": lambda: latent(40, [300, 200]),
    "copies": lambda: {name: np.repeat(view, 20, axis=0) for name, view in latent(15, [5, 6]).items()},
    "constant features": lambda: {n: np.hstack([v, np.ones((100, 2))]) for n, v in latent(100, [5, 6]).items()},
    "a constant view": lambda: {**latent(100, [5]), "still": np.ones((100, 4))},
    "all constant": lambda: {"a": np.ones((50, 3)), "b": np.zeros((50, 2))},
    "scales apart": scaled_apart,
    "heavy tails": heavy_tails,
    "gaps": with_gaps,
}


@pytest.mark.parametrize("objective", ["neighbours", 0.5, "groups"])
@pytest.mark.parametrize("name", HARD)
def test_nothing_breaks(name, objective):
    views = HARD[name]()
    hasher = qh.QuorumHasher(70, objective=objective, n_steps=5).fit(views)
    n_rows = len(next(iter(views.values())))
    assert hasher.transform(views).shape == (n_rows, 9)
    assert np.isfinite(hasher.embed(views)).all()
    reliability = hasher.reliability(views)
    absent = np.stack([np.isnan(view).all(axis=1) for view in views.values()], axis=1)
    np.testing.assert_array_equal(np.isnan(reliability), absent)
    assert ((reliability >= 0) & (reliability <= 1) | absent).all()
    if name != "all constant":
        assert len(np.unique(hasher.transform(views), axis=0)) > 1


def test_a_view_that_hardly_any_row_has_is_refused():
    views = latent(50, [3, 4])
    views["v1"][1:] = np.nan
    with pytest.raises(qh.RefusedError, match="'v1' is there in 1 of 50 rows"):
        qh.QuorumHasher(8).fit(views)


def test_saved_models_judge_and_embed_alike(digits, tmp_path):
    train, queries = digits.views[digits.train_rows[:300]], digits.views[digits.query_rows[:50]]
    hasher = qh.QuorumHasher(24, objective="groups", sources={"ink": ["pixels", "profiles"]}).fit(train)
    hasher.save(tmp_path / "items.qh")
    loaded = qh.load(tmp_path / "items.qh")
    np.testing.assert_array_equal(loaded.embed(queries), hasher.embed(queries))
    np.testing.assert_array_equal(loaded.reliability(queries), hasher.reliability(queries))
    assert loaded.view_weights_ == hasher.view_weights_
    assert loaded.suggested_sources_ == hasher.suggested_sources_


def test_weights_may_drop_a_view_entirely(digits):
    train = digits.views[digits.train_rows[:400]]
    dropped = qh.QuorumHasher(32, view_weights={"pixels": 0}).fit(train)
    assert dropped.view_weights_ == {"pixels": 0.0, "gradients": 1.0, "frequencies": 1.0, "profiles": 1.0}
    assert len(dropped.encoder_.weighting.views) == 3
    assert dropped.reliability(train).shape == (400, 4)  # it still serves as a witness


def test_an_option_of_another_method_is_refused_with_a_sentence(digits):
    hasher = qh.HASHERS["itq"](8).fit(digits.views[digits.train_rows[:50]])
    with pytest.raises(qh.ParameterError, match=r"view_weights is no option of .* at this call: it knows engine"):
        hasher.transform(digits.views[digits.query_rows[:5]], view_weights={"pixels": 0})


def test_landmarks_of_a_view_are_placed_among_items_that_have_it(digits, monkeypatch):
    views = qh.damage(digits.views, "drop_view", rate=0.3, random_state=0)[digits.train_rows]
    counting = ["pixels", "gradients"]
    asked = []

    def watched(rows, whole, n_landmarks):
        asked.append((rows, whole))
        return rows_for_landmarks(rows, whole, n_landmarks)

    monkeypatch.setattr(quorum, "rows_for_landmarks", watched)
    weights = {name: float(name in counting) for name in views}
    qh.QuorumHasher(16, objective="groups", view_weights=weights, n_landmarks=20).fit(views)
    assert len(asked) == 3
    for name, (rows, whole) in zip(counting, asked, strict=False):
        present = views.present(name)
        assert not whole[~present].any()
        assert whole[present].mean() > 0.95
        lengths = (rows**2).sum(axis=1)
        assert lengths[whole].mean() > 1.01 * lengths.mean()  # what is predicted lies nearer to the middle
    assert asked[2][1].all()  # of all views together: else kinds of items that lack a view would have no landmark


@pytest.mark.parametrize("kind", ["flag", "constant", "few values", "one of three"])
@pytest.mark.parametrize("n_rows", [300, 1500])
def test_views_of_few_values(kind, n_rows):
    rng = np.random.default_rng(0)
    shared = rng.standard_normal((n_rows, 6))
    views = {"picture": shared @ rng.standard_normal((6, 20)), "text": shared @ rng.standard_normal((6, 10))}
    for seed in range(3):
        rng = np.random.default_rng(seed)
        views["last"] = {
            "flag": (rng.random((n_rows, 1)) < 0.7).astype(float),
            "constant": np.tile(rng.standard_normal(12), (n_rows, 1)),
            "few values": rng.standard_normal((4, 24))[rng.integers(0, 4, n_rows)],
            "one of three": np.eye(3)[rng.choice(3, n_rows, p=[0.9, 0.05, 0.05])],
        }[kind]
        hasher = qh.QuorumHasher(16, n_steps=2).fit(views)
        reliability = hasher.reliability(views)
        assert (reliability[:, :2] < 0.01).mean() < 0.03  # such a view has nothing to say against the others
        assert (qh.audit(views).kinds[:, :2] == "").mean() > 0.98


@pytest.mark.parametrize("kind", ["drop_view", "noise"])
def test_embedded_items_are_as_long_with_a_view_predicted_as_without(digits, kind):
    """Else they lie near the middle, near to everything, and items that lack the same view near each other."""
    damaged = damage_with_mask(digits.views, kind, rate=0.4, random_state=1)
    hasher = qh.QuorumHasher(32).fit(digits.views[digits.train_rows])
    n_hit = damaged.mask[digits.database_rows].sum(axis=1)
    rows = digits.database_rows[(n_hit > 0) & (n_hit < 4)]
    whole, mended = (hasher.embed(views[rows]).astype(float) for views in (digits.views, damaged.views))
    lengths, away = zip(
        *(((x**2).sum(axis=1).mean(), ((x[:, None] - x[:200]) ** 2).sum(axis=2).mean()) for x in (whole, mended)),
        strict=True,
    )
    assert lengths[1] == pytest.approx(lengths[0], rel=0.03)
    assert away[1] == pytest.approx(away[0], rel=0.05)
