"""The six simple defences: textbook references of their parts, and that they defend."""

import numpy as np
import pytest
import scipy.linalg
from sklearn.linear_model import Ridge

import quorumhash as qh
from quorumhash.codes import hamming_distances
from quorumhash.engines.threads import ThreadsEngine
from quorumhash.hashers.gcca import max_var
from quorumhash.hashers.view_select import best_prefix
from quorumhash.overlap import neighbourhood_lift, view_worth
from quorumhash.scaling import LARGEST_SCALED
from quorumhash.steps.agreement import agreement_weights, mended_rows
from quorumhash.steps.bounds import learn_bounds, shortened
from quorumhash.steps.components import learn_bit_projection
from quorumhash.steps.crossview import learn_cross_view, mended_by_views
from quorumhash.steps.directions import principal_pairs
from quorumhash.steps.kernelridge import RELATIVE_RIDGE, kernel_rows, learn_kernels, learn_predictor, predict
from quorumhash.steps.neighbourhood import learn_neighbourhood, masked_median, mended_by_neighbours
from quorumhash.steps.subspace import Subspace, implied_views, learn_subspace, mended_by_subspace

DEFENCES = ["vote", "repair_itq", "knn_repair_itq", "gcca_itq", "rpca_itq", "view_select"]
MENDING = ["repair_itq", "knn_repair_itq", "rpca_itq"]  # ITQ of rows that were mended first


@pytest.fixture
def engine():
    with ThreadsEngine(1, block_rows=50) as opened:
        yield opened


@pytest.fixture(params=DEFENCES)
def name(request):
    return request.param


def clusters(n_rows=300, n_clusters=6, widths=(8, 6, 10), noise=0.35, seed=0):
    """Views of the same clusters, and the cluster of every item."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(n_clusters, size=n_rows)
    views = {}
    for m, width in enumerate(widths):
        centres = rng.standard_normal((n_clusters, width))
        views[f"v{m}"] = centres[labels] + noise * rng.standard_normal((n_rows, width))
    return views, labels


def with_swapped_rows(views, view, rate, seed=1):
    """A share of one view's rows exchanged among each other, and which."""
    rng = np.random.default_rng(seed)
    rows = rng.choice(len(views[view]), size=round(rate * len(views[view])), replace=False)
    damaged = {name: matrix.copy() for name, matrix in views.items()}
    damaged[view][rows] = views[view][np.roll(rows, 1)]
    return damaged, rows


def mean_precision(hasher, views, labels):
    codes = hasher.fit(views).transform(views)
    return qh.mean_average_precision(qh.shared_labels(labels, labels), hamming_distances(codes, codes))


# what they are for


@pytest.mark.parametrize("name", ["vote", "repair_itq", "knn_repair_itq", "gcca_itq", "rpca_itq"])
def test_a_view_swapped_for_a_third_of_the_rows_hurts_less_than_plain_itq(name):
    views, labels = clusters()
    damaged, _ = with_swapped_rows(views, "v0", 0.3)
    plain = mean_precision(qh.ITQHasher(16), damaged, labels)
    assert mean_precision(qh.HASHERS[name](16), damaged, labels) > plain + 0.02


def test_view_selection_leaves_a_view_of_noise_out():
    views, labels = clusters()
    views["noise"] = 5 * np.random.default_rng(5).standard_normal((300, 12))
    hasher = qh.ViewSelectHasher(16).fit(views)
    assert sorted(hasher.chosen_views_) == ["v0", "v1", "v2"]
    assert np.argmin(hasher.view_worth_) == 3
    assert mean_precision(qh.ViewSelectHasher(16), views, labels) > mean_precision(qh.ITQHasher(16), views, labels)


def test_an_item_with_none_of_the_chosen_views_is_encoded_by_the_others():
    views, labels = clusters()
    weak = 0.3 * views["v0"] + np.random.default_rng(5).standard_normal(views["v0"].shape)
    hasher = qh.ViewSelectHasher(16).fit(views | {"weak": weak})
    assert "weak" not in hasher.chosen_views_
    distances = hamming_distances(hasher.transform({"weak": weak}), hasher.transform(views))
    assert qh.mean_average_precision(qh.shared_labels(labels, labels), distances) > 0.25  # chance is 1 / 6


def test_two_clean_clusters_are_told_apart(name):
    views, labels = clusters(n_rows=60, n_clusters=2, noise=0.05)
    codes = qh.HASHERS[name](8).fit(views).transform(views)
    distances = hamming_distances(codes, codes)
    same = labels[:, None] == labels[None, :]
    assert distances[~same].mean() > 3 * distances[same].mean()
    assert qh.mean_average_precision(same, distances) > 0.97


def test_a_query_that_lacks_a_view_finds_its_cluster(name):
    views, labels = clusters()
    hasher = qh.HASHERS[name](16).fit(views)
    codes = hasher.transform(views)
    for query in ({"v0": views["v0"], "v2": views["v2"]}, views | {"v1": None}):
        distances = hamming_distances(hasher.transform(query), codes)
        assert qh.mean_average_precision(qh.shared_labels(labels, labels), distances) > 0.7


# edges


@pytest.mark.parametrize("name", MENDING)
def test_with_one_view_there_is_nothing_to_mend_and_itq_is_left(name):
    views, _ = clusters(widths=(12,))
    plain = qh.ITQHasher(8).fit(views).transform(views)
    np.testing.assert_array_equal(qh.HASHERS[name](8).fit(views).transform(views), plain)


@pytest.mark.parametrize("name", ["vote", "gcca_itq", "view_select"])
def test_with_one_view_the_others_are_as_good_as_itq(name):
    views, labels = clusters(widths=(12,))
    plain = mean_precision(qh.ITQHasher(8), views, labels)
    assert mean_precision(qh.HASHERS[name](8), views, labels) > plain - 0.05


@pytest.mark.parametrize("n_bits", [1, 40])
def test_more_bits_than_features_or_few_rows(name, n_bits):
    views, _ = clusters(n_rows=30, widths=(3, 2))
    scores = qh.HASHERS[name](n_bits).fit(views).decision_function(views)
    assert scores.shape == (30, n_bits)
    assert np.isfinite(scores).all()
    if n_bits == 40:
        assert (np.ptp(scores, axis=0) > 0).all()  # the rotation gives every bit a share of the few components


def test_without_a_rotation_surplus_bits_are_constant():
    views, _ = clusters(n_rows=30, widths=(3, 2))
    scores = qh.RobustPCAHasher(9, rotate=False).fit(views).decision_function(views)
    assert (np.ptp(scores[:, :5], axis=0) > 0).all()
    np.testing.assert_array_equal(scores[:, 5:], 0)


def test_constant_features_and_views(name):
    views, _ = clusters(n_rows=40)
    views["v0"][:, 0] = 7.0
    views["flat"] = np.full((40, 3), 2.0)
    assert np.isfinite(qh.HASHERS[name](6).fit(views).decision_function(views)).all()


def test_equal_rows_get_equal_codes(name):
    views, _ = clusters(n_rows=20)
    twice = {view: np.vstack([matrix, matrix, matrix]) for view, matrix in views.items()}
    codes = qh.HASHERS[name](8).fit(twice).transform(twice)
    np.testing.assert_array_equal(codes[:20], codes[20:40])


def test_all_rows_alike(name):
    views = {"a": np.ones((30, 3)), "b": np.zeros((30, 2))}
    assert np.isfinite(qh.HASHERS[name](4).fit(views).decision_function(views)).all()


def test_views_that_hardly_any_row_has_are_refused(name):
    views, _ = clusters(n_rows=30)
    views["v1"][1:] = np.nan
    with pytest.raises(qh.RefusedError, match="view 'v1' is there in 1 of 30 rows"):
        qh.HASHERS[name](4).fit(views)


@pytest.mark.parametrize(
    ("hasher", "sentence"),
    [
        (qh.VoteHasher(rotate=1), "rotate of VoteHasher must be True or False, got 1"),
        (qh.VoteHasher(n_landmarks=0), "n_landmarks of VoteHasher must be a whole number from 1 up, got 0"),
        (qh.RepairITQHasher(n_components=0), "n_components of RepairITQHasher"),
        (qh.RepairITQHasher(n_landmarks=2.5), "n_landmarks of RepairITQHasher"),
        (qh.KnnRepairITQHasher(n_neighbors=0), "n_neighbors of KnnRepairITQHasher"),
        (qh.GCCAHasher(ridge=0.0), "ridge of GCCAHasher must be a finite number above 0, got 0.0"),
        (qh.GCCAHasher(ridge=True), "ridge of GCCAHasher must be a finite number above 0, got True"),
        (qh.RobustPCAHasher(rank=0), "rank of RobustPCAHasher"),
        (qh.ViewSelectHasher(n_landmarks=-1), "n_landmarks of ViewSelectHasher"),
    ],
)
def test_parameters_out_of_range_are_refused(hasher, sentence):
    with pytest.raises(qh.ParameterError, match=sentence):
        hasher.fit(np.eye(5))


def test_a_budget_below_the_state_is_refused(name):
    views, _ = clusters()
    with pytest.raises(qh.RefusedError, match="bytes of state for 300 rows"):
        qh.HASHERS[name](16).fit(views, memory_budget=1000)


# bounds


def test_rows_are_shortened_to_the_median_length_and_no_further(engine):
    views, _ = clusters()
    views["v0"][3] *= 1e6
    bounds, sample = learn_bounds(qh.Views(views), engine, 0, times=1.5)
    scaling, rows = bounds["v0"].scaling, (views["v0"] - views["v0"].mean(0))
    lengths = np.linalg.norm(rows * scaling.factor, axis=1)
    assert bounds["v0"].longest == pytest.approx(1.5 * np.median(lengths), rel=1e-5)
    found = np.linalg.norm(sample.rows["v0"], axis=1)
    np.testing.assert_allclose(found, np.minimum(lengths, bounds["v0"].longest), rtol=1e-4)
    assert learn_bounds(qh.Views(views["v0"]), engine, 0)[0]["view0"].longest == LARGEST_SCALED


def test_shortened_rows_keep_their_direction():
    rows = np.array([[3.0, 4.0], [0.1, 0.0], [0.0, 0.0]])
    np.testing.assert_allclose(shortened(rows, 2.0), [[1.2, 1.6], [0.1, 0.0], [0.0, 0.0]])


# principal components


def test_principal_pairs_leave_rounding_out():
    rows = np.random.default_rng(0).standard_normal((50, 2)) @ np.random.default_rng(1).standard_normal((2, 6))
    values, directions = principal_pairs(rows.T @ rows, 5)
    assert directions.shape == (6, 2)
    np.testing.assert_allclose(rows.T @ rows @ directions, directions * values, atol=1e-9)


def test_the_code_of_plain_rows_is_that_of_itq(engine):
    views, _ = clusters(widths=(12,))
    itq = qh.ITQHasher(8).fit(views)
    scaling = itq.scalings_["v0"]
    rows = (views["v0"] - scaling.mean) * scaling.factor
    code = learn_bit_projection(engine.put(rows), 8, engine, 0)
    np.testing.assert_allclose((rows - code.mean) @ code.directions, itq.decision_function(views), atol=1e-9)


# kernel ridge


def test_a_predictor_is_the_weighted_ridge_regression_of_scikit_learn(engine):
    views, _ = clusters()
    given = qh.Views(views)
    _, sample = learn_bounds(given, engine, 0)
    kernel = learn_kernels(sample, len(given), 20, 0)[1]
    rows = np.asarray(sample.rows["v1"], dtype=np.float64)
    rng = np.random.default_rng(0)
    targets, weights = rng.standard_normal((300, 4)), rng.random((300, 3))
    features = kernel_rows(kernel, rows)
    put = [engine.put(matrix) for matrix in (features, targets, weights)]
    predictor = learn_predictor(kernel, 1, *put, engine)
    wide = features.astype(np.float64)
    mean = np.average(wide, axis=0, weights=weights[:, 1])
    trace = (weights[:, 1, None] * (wide - mean) ** 2).sum()
    ridge = Ridge(alpha=RELATIVE_RIDGE * trace / wide.shape[1]).fit(wide, targets, sample_weight=weights[:, 1])
    np.testing.assert_allclose(predict(predictor, rows), ridge.predict(wide), atol=1e-6)


# generalised canonical correlation


def scatters(parts, present):
    joined = np.hstack([part * present[:, [m]] for m, part in enumerate(parts)])
    return joined, joined.T @ joined, joined.T @ (joined / present.sum(1, keepdims=True))


@pytest.mark.parametrize("holes", [False, True])
def test_max_var_solves_the_generalised_eigenproblem(holes):
    rng = np.random.default_rng(0)
    common, widths = rng.standard_normal((80, 3)), [5, 4, 6]
    parts = [common @ rng.standard_normal((3, w)) + 0.5 * rng.standard_normal((80, w)) for w in widths]
    present = np.ones((80, 3), dtype=bool)
    if holes:
        present[rng.random((80, 3)) < 0.2] = False
        present[:, 0] |= ~present.any(axis=1)
    joined, scatter, mean_scatter = scatters(parts, present)
    found = max_var(scatter, mean_scatter, widths, 4, ridge=0.1)
    blocks, projections = [], np.zeros((80, 80))
    start = 0
    for width in widths:
        own = scatter[start : start + width, start : start + width]
        blocks.append(own + 0.1 * np.trace(own) / width * np.eye(width))
        X = joined[:, start : start + width]
        projections += X @ np.linalg.solve(blocks[-1], X.T)
        start += width
    values, vectors = scipy.linalg.eigh(mean_scatter, scipy.linalg.block_diag(*blocks))
    wanted = vectors[:, ::-1][:, :4]
    cosines = np.abs(np.sum(wanted * found, axis=0)) / np.linalg.norm(wanted, axis=0) / np.linalg.norm(found, axis=0)
    np.testing.assert_allclose(cosines, 1, atol=1e-9)
    # and the textbook form with one row per item: G the leading eigenvectors of sum_m P_m against D
    shares, G = scipy.linalg.eigh(projections, np.diag(present.sum(1).astype(float)))
    np.testing.assert_allclose(shares[::-1][:4], values[::-1][:4], atol=1e-9)
    variates = joined @ found / present.sum(1, keepdims=True)
    np.testing.assert_allclose(np.abs(variates), np.abs(G[:, ::-1][:, :4] * shares[::-1][:4]), atol=1e-9)


def test_gcca_scores_are_the_mean_variates_of_the_views_an_item_has(engine):
    views, _ = clusters(n_rows=80)
    views["v1"][:20] = np.nan
    hasher = qh.GCCAHasher(4, ridge=0.1, rotate=False).fit(views)
    present = np.stack([~np.isnan(views[name][:, 0]) for name in views], axis=1)
    parts = []
    for bound, rows in zip(hasher.bounds_, views.values(), strict=True):
        scaled = np.nan_to_num((rows - bound.scaling.mean) * bound.scaling.factor)
        parts.append(shortened(scaled, bound.longest))
    joined, scatter, mean_scatter = scatters(parts, present)
    found = max_var(scatter, mean_scatter, [8, 6, 10], 4, ridge=0.1)
    variates = joined @ found / present.sum(1, keepdims=True)
    np.testing.assert_allclose(hasher.variates_, found, atol=1e-9)
    code = learn_bit_projection(engine.put(variates), 4, engine, 0, rotate=False)
    expected = (variates - variates.mean(0)) @ code.directions
    np.testing.assert_allclose(hasher.decision_function(views), expected, atol=1e-9)


# votes


def test_only_the_views_an_item_has_vote():
    views, _ = clusters()
    hasher = qh.VoteHasher(8).fit(views)
    votes = [hasher.decision_function({name: views[name]}) for name in views]  # one view: its own vote
    holed = views | {"v1": np.where(np.arange(300)[:, None] < 50, np.nan, views["v1"])}
    scores = hasher.decision_function(holed)
    np.testing.assert_allclose(scores[50:], np.mean(votes, axis=0)[50:], atol=1e-5)
    np.testing.assert_allclose(scores[:50], (votes[0] + votes[2])[:50] / 2, atol=1e-5)
    assert np.abs(scores).max() <= 1


# neighbourhood overlap


def brute_force_lift(a, b, k):
    shared = []
    for i in range(len(a)):
        near = []
        for rows in (a, b):
            distances = np.linalg.norm(rows - rows[i], axis=1)
            distances[i] = np.inf
            near.append(set(np.argsort(distances)[:k]))
        shared.append(len(near[0] & near[1]) / k)
    return np.mean(shared) / (k / (len(a) - 1))


def test_lift_is_that_of_every_row_tried():
    rng = np.random.default_rng(0)
    a = rng.standard_normal((120, 3))
    b, noise = a + 0.5 * rng.standard_normal((120, 3)), rng.standard_normal((120, 4))
    present = np.ones((120, 3), dtype=bool)
    present[:30, 1] = False
    lift = neighbourhood_lift({"a": a, "b": b, "noise": noise}, present, n_neighbors=7)
    np.testing.assert_allclose(lift, lift.T)
    assert lift[0, 1] == pytest.approx(brute_force_lift(a[30:], b[30:], 7))
    assert lift[0, 2] == pytest.approx(brute_force_lift(a, noise, 7))
    assert 0.6 < lift[0, 2] < 1.4
    assert view_worth(lift) @ view_worth(lift) == pytest.approx(1)
    assert sorted(best_prefix(lift)) == [0, 1]


@pytest.mark.parametrize("value", [0.0, 3.3])
def test_copies_of_a_row_bring_no_agreement(value):
    """Different items hold the placeholder in the two views; all else is noise."""
    rng = np.random.default_rng(0)
    views = {name: rng.standard_normal((600, 5)).astype(np.float32) for name in "ab"}
    for matrix in views.values():
        matrix[rng.choice(600, size=200, replace=False)] = value
    lift = neighbourhood_lift(views, np.ones((600, 2), dtype=bool))
    assert lift[0, 1] == pytest.approx(1, abs=0.25)
    flat = neighbourhood_lift({name: np.ones((600, 5)) for name in "ab"}, np.ones((600, 2), dtype=bool))
    assert flat[0, 1] == pytest.approx(1, abs=0.25)


def test_rows_at_equal_distance_bring_no_agreement():
    """Half of the rows, others in each view, stand equally far from a crowd at one point: whom they name is chance."""
    rng = np.random.default_rng(0)
    views = {name: np.zeros((600, 300), dtype=np.float32) for name in "ab"}
    for matrix in views.values():
        matrix[rng.choice(600, size=300, replace=False), np.arange(300)] = 1.0
    lift = neighbourhood_lift(views, np.ones((600, 2), dtype=bool))
    assert lift[0, 1] == pytest.approx(1, abs=0.25)


def test_lift_of_a_sample_is_near_that_of_all_and_seeded():
    views, _ = clusters(n_rows=500)
    present = np.ones((500, 3), dtype=bool)
    whole = neighbourhood_lift(views, present)
    np.testing.assert_array_equal(whole, neighbourhood_lift(views, present))
    assert neighbourhood_lift(views, present, limit=250)[0, 1] > 1.5
    nothing = neighbourhood_lift(views, np.eye(3, dtype=bool)[np.arange(500) % 3])
    np.testing.assert_array_equal(nothing, np.ones((3, 3)))
    np.testing.assert_allclose(view_worth(nothing), 3**-0.5)
    assert best_prefix(nothing) == [0, 1, 2]


# agreement


def test_weights_fall_with_the_residual_and_the_best_view_has_all():
    residuals = np.array([[1.0, 1.3, 10.0], [5.0, 5.0, 5.0], [0.0, 2.0, 9.0]])
    present = np.array([[True, True, True], [True, True, True], [False, False, True]])
    weights = agreement_weights(residuals, np.ones(3), present)
    np.testing.assert_allclose(weights.max(axis=1), 1)
    assert weights[0, 0] > weights[0, 1] > 0.5 > 0.01 > weights[0, 2]
    np.testing.assert_array_equal(weights[2], [0, 0, 1])
    rows, expected = [np.ones((3, 2)), np.ones((3, 1)), np.ones((3, 1))], [np.zeros((3, d)) for d in (2, 1, 1)]
    np.testing.assert_allclose(mended_rows(weights, rows, expected), weights[:, [0, 0, 1, 2]])


def learned_bounds(views, engine):
    given = qh.Views(views)
    bounds, sample = learn_bounds(given, engine, 0, times=3.0)
    return given, tuple(bounds.values()), sample


@pytest.mark.parametrize("way", ["views", "subspace", "neighbours"])
def test_mended_rows_are_nearer_to_the_truth(way, engine):
    views, _ = clusters()
    damaged, rows = with_swapped_rows(views, "v0", 0.3)
    given, bounds, sample = learned_bounds(damaged, engine)
    present = np.ones((300, 3), dtype=bool)
    blocks = [given[name] for name in given]
    if way == "views":
        cross = learn_cross_view(given, bounds, sample, engine, 0, n_components=8, n_landmarks=None)
        mended = mended_by_views(cross, present, *blocks)
    elif way == "subspace":
        mended = mended_by_subspace(learn_subspace(given, bounds, sample, 6, engine)[0], present, *blocks)
    else:
        mended = mended_by_neighbours(learn_neighbourhood(bounds, sample, 10), present, *blocks)
    scaling = bounds[0].scaling
    true, seen = ((v["v0"] - scaling.mean) * scaling.factor for v in (views, damaged))
    before = np.linalg.norm(seen - true, axis=1)[rows]
    after = np.linalg.norm(mended[:, :8] - true, axis=1)[rows]
    assert np.median(after) < 0.6 * np.median(before)


def test_the_place_in_the_subspace_is_the_textbook_one():
    """Posterior mean of probabilistic principal components, every item on its own, with weighted views."""
    rng = np.random.default_rng(0)
    directions, _ = np.linalg.qr(rng.standard_normal((9, 3)))
    variances, rest, mean = np.array([3.0, 2.0, 1.0]), 0.1, rng.standard_normal(9)
    space = Subspace((), mean, directions, variances, rest, np.ones(2))
    rows, weights = rng.standard_normal((5, 9)), rng.random((5, 2))
    found = np.hstack(implied_views(space, weights, (rows[:, :4], rows[:, 4:])))
    for i in range(5):
        w = np.repeat(weights[i], [4, 5])
        precision = directions.T @ (w[:, None] * directions) / rest + np.diag(1 / variances)
        place = np.linalg.solve(precision, directions.T @ (w * (rows[i] - mean)) / rest)
        np.testing.assert_allclose(found[i], mean + directions @ place)


def test_masked_medians_are_those_of_numpy():
    rng = np.random.default_rng(0)
    values, known = rng.standard_normal((20, 7, 3)), rng.random((20, 7, 3)) < 0.6
    known[:, 0] = True
    expected = np.nanmedian(np.where(known, values, np.nan), axis=1)
    np.testing.assert_allclose(masked_median(values, known, 0.0), expected)
    np.testing.assert_array_equal(masked_median(values, np.zeros((20, 7, 1), dtype=bool), 5.0), np.full((20, 3), 5.0))


def test_neighbours_are_those_by_the_median_over_common_views(engine):
    views, _ = clusters(n_rows=40)
    given, bounds, sample = learned_bounds(views, engine)
    hood = learn_neighbourhood(bounds, sample, 5)
    present = np.ones((40, 3), dtype=bool)
    present[:10, 2] = False
    mended = mended_by_neighbours(hood, present, *[given[name] for name in given])
    for i in (0, 20):
        distances = []
        for m, rows in enumerate(sample.rows.values()):
            if present[i, m]:
                distances.append(np.linalg.norm(rows - rows[i], axis=1) / np.sqrt(hood.scales[m]))
        near = np.argsort(np.median(distances, axis=0))[:5]
        expected = np.hstack([np.median(rows[near], axis=0) for rows in sample.rows.values()])
        np.testing.assert_allclose(mended[i], expected, atol=1e-5)
