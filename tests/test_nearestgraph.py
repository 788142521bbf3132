"""Graphs of nearest items and the target step on their dense Laplacians, against textbook forms; what mfh and chms make
of them."""

import numpy as np
import pytest
from dense import five_groups
from scipy.spatial.distance import cdist
from sklearn.base import clone

import quorumhash as qh
from quorumhash.codes import hamming_distances
from quorumhash.datasets import thinned
from quorumhash.engines.threads import ThreadsEngine
from quorumhash.evaluation import chance_precision, shared_labels
from quorumhash.hashers.chms import nearest_step
from quorumhash.scaling import learn_scalings, scaled
from quorumhash.steps import nearestgraph
from quorumhash.steps.nearestgraph import agreed_roughness, fitted_targets, laplacian, nearest_graphs

N, P, K = 150, 5, 5
BOTH = ["mfh", "chms"]


@pytest.fixture(scope="module")
def engine():
    with ThreadsEngine(2, block_rows=40) as engine:
        yield engine


@pytest.fixture(scope="module")
def toy():
    return five_groups(N)


@pytest.fixture(scope="module")
def scalings(toy, engine):
    return learn_scalings(toy, engine)


def points_of(toy, scalings):
    return [scaled(toy[name], scaling).astype(np.float64) for name, scaling in scalings.items()]


def textbook_similarity(points, k):
    """Row by row: sort the distances, link with the first k, heat kernel with the median as bandwidth, symmetrise."""
    squares = cdist(points, points) ** 2
    A, median = np.zeros_like(squares), np.median(squares)
    for i, row in enumerate(squares):
        for j in [j for j in np.argsort(row) if j != i][:k]:
            A[i, j] = np.exp(-row[j] / median)
    return (A + A.T) / 2


def textbook_laplacian(S):
    return np.diag(S.sum(axis=1)) - S


def fit_cost(X, ridge):
    """H - X (X^T X + ridge I)^(-1) X^T of centred X: what the best hash functions leave of a target."""
    return np.eye(len(X)) - 1.0 / len(X) - X @ np.linalg.solve(X.T @ X + ridge * np.eye(X.shape[1]), X.T)


# --- graphs


@pytest.mark.parametrize("k", [1, 5, 500])
def test_graphs_link_the_nearest_items(toy, scalings, engine, k):
    graphs = nearest_graphs(toy, scalings, engine, 0, k)
    for found, points in zip(graphs.similarities, points_of(toy, scalings), strict=True):
        expected = textbook_similarity(points, k)
        np.testing.assert_allclose(found.toarray(), expected, atol=1e-5)
        np.testing.assert_allclose(laplacian(found), textbook_laplacian(expected), atol=1e-4)


def test_graphs_do_not_depend_on_how_the_rows_are_cut(toy, scalings, engine, monkeypatch):
    whole = nearest_graphs(toy, scalings, engine, 0, K)
    monkeypatch.setattr(nearestgraph, "CHUNK", 64)
    cut = nearest_graphs(toy, scalings, engine, 0, K)
    for one, other in zip(whole.similarities, cut.similarities, strict=True):
        np.testing.assert_allclose(one.toarray(), other.toarray(), atol=1e-5)


def test_absent_views_have_no_edges(toy, scalings, engine):
    holed = {name: toy[name].copy() for name in toy}
    holed["b"][::3] = np.nan
    graphs = nearest_graphs(qh.Views(holed), scalings, engine, 0, K)
    degrees = np.asarray(graphs.similarities[1].sum(axis=1))
    assert (degrees[::3] == 0).all()
    assert (np.delete(degrees, np.s_[::3]) > 0).all()
    here = np.delete(np.arange(N), np.s_[::3])
    expected = textbook_similarity(points_of(toy, scalings)[1][here], K)
    np.testing.assert_allclose(graphs.similarities[1].toarray()[np.ix_(here, here)], expected, atol=1e-5)


def test_of_many_rows_a_centred_sample_is_taken(toy, scalings, engine, monkeypatch):
    monkeypatch.setattr(nearestgraph, "MOST_ROWS", 100)
    graphs = nearest_graphs(toy, scalings, engine, 0, K)
    assert graphs.joined.shape == (100, 13)
    np.testing.assert_allclose(graphs.joined.mean(axis=0), 0.0, atol=1e-12)
    assert [S.shape for S in graphs.similarities] == [(100, 100)] * 3
    for name in BOTH:
        first, again, other = (
            qh.HASHERS[name](P, graph="nearest", random_state=s).fit(toy).fingerprint() for s in (0, 0, 1)
        )
        assert first == again != other


# --- the target step


@pytest.mark.parametrize(("gamma", "alpha", "beta"), [(1e-3, 1.0, 1e-2), (1.0, 1.0, 1.0), (10.0, 0.5, 3.0)])
def test_mfh_is_the_published_form(toy, gamma, alpha, beta):
    hasher = qh.MFHHasher(P, gamma=gamma, alpha=alpha, beta=beta, graph="nearest").fit(toy)
    points = points_of(toy, hasher.scalings_)
    X = np.hstack(points)
    X -= X.mean(axis=0)  # float32 is centred but for rounding
    D = alpha * fit_cost(X, beta)
    for view in points:
        L = textbook_laplacian(textbook_similarity(view, K))
        D += gamma * np.eye(N) - gamma**2 * np.linalg.inv(L + gamma * np.eye(N))
    np.testing.assert_allclose(D @ np.ones(N), 0.0, atol=1e-9)  # the constant vector comes first, and is left out
    Y = np.sqrt(N) * np.linalg.eigh(D)[1][:, 1 : P + 1]
    W = np.linalg.solve(X.T @ X + beta * np.eye(13), X.T @ Y)
    np.testing.assert_allclose(np.abs(hasher.projection_), np.abs(W), atol=1e-4 * np.abs(W).max())


@pytest.mark.parametrize(("graph_weight", "fit_weight"), [(1.0, 1.0), (100.0, 1.0), (1.0, 100.0)])
def test_a_target_step_of_chms_is_the_dense_one(toy, scalings, engine, graph_weight, fit_weight):
    a = np.repeat([0.5, 0.3, 0.2], [4, 6, 3])
    graphs = nearest_graphs(toy, scalings, engine, 0, K)
    found = nearest_step(graphs, P, graph_weight, fit_weight, engine)(a)
    points = points_of(toy, scalings)
    X = np.hstack(points)
    X -= X.mean(axis=0)  # float32 is centred but for rounding
    L = textbook_laplacian(np.mean([textbook_similarity(view, K) for view in points], axis=0))
    Y = np.sqrt(N) * np.linalg.eigh(graph_weight * L + fit_weight * fit_cost(X * a, 1 / fit_weight))[1][:, 1 : P + 1]
    W = np.linalg.solve((X * a).T @ (X * a) + np.eye(13) / fit_weight, (X * a).T @ Y)
    np.testing.assert_allclose(np.abs(found.projection), np.abs(W), atol=1e-4 * np.abs(W).max())
    np.testing.assert_allclose(np.abs(found.features_by_targets), np.abs(X.T @ Y), atol=1e-4 * np.abs(X.T @ Y).max())
    objective = graph_weight * np.trace(Y.T @ L @ Y) + fit_weight * ((Y - X * a @ W) ** 2).sum() + (W**2).sum()
    assert found.objective == pytest.approx(objective, rel=1e-5)
    assert found.kept.all()


@pytest.mark.parametrize(("graph_weight", "fit_weight"), [(1.0, 1.0), (100.0, 1.0), (1.0, 100.0)])
def test_chms_never_rises_on_graphs_of_nearest_items(toy, graph_weight, fit_weight):
    options = {"graph_weight": graph_weight, "fit_weight": fit_weight, "tol": 1e-12}
    hasher = qh.CHMSHasher(P, graph="nearest", **options).fit(toy)
    objectives = np.array([r["objective"] for r in hasher.history_])
    assert len(objectives) == hasher.n_iter_ > 2
    assert (np.diff(objectives) <= 1e-9 * objectives[0]).all()
    assert hasher.view_weights_.sum() == pytest.approx(1.0)
    assert np.ptp(hasher.view_weights_) > 1e-3


@pytest.mark.parametrize("roughness", [0.0, 1.0])
def test_targets_are_of_length_n_without_the_constant_even_where_it_is_no_dearer_than_others(engine, roughness):
    """Two parts without an edge between them, and features that foretell everything: many vectors cost nothing."""
    part = np.full((4, 4), 0.25)
    S = roughness * (np.eye(8) - np.kron(np.eye(2), part))
    features = np.random.default_rng(0).standard_normal((8, 20))
    found = fitted_targets(S, features - features.mean(axis=0), 3, beta=1.0, delta=1e-9, engine=engine)
    np.testing.assert_allclose(found.targets.T @ found.targets, 8 * np.eye(3), atol=1e-8)
    np.testing.assert_allclose(found.targets.sum(axis=0), 0.0, atol=1e-8)
    if roughness:
        np.testing.assert_allclose(np.abs(found.targets[:, 0]), 1.0, atol=1e-6)  # which part an item is in


def test_targets_that_no_feature_foretells_make_no_bits(engine):
    features = np.zeros((6, 2))
    features[:2, 0] = 1.0, -1.0
    found = fitted_targets(np.zeros((6, 6)), features, 60, beta=1.0, delta=1e-3, engine=engine)
    assert found.is_foretold.tolist() == [True, False, False, False, False]


@pytest.mark.parametrize("gamma", [1e-300, 1e-17, 1e-12, 1e100])
def test_any_weight_of_the_agreement_is_survived(toy, scalings, engine, gamma):
    """A view's part lies between nothing and gamma |Y|^2, also where rounding makes L + gamma I indefinite."""
    graphs = nearest_graphs(toy, scalings, engine, 0, K)
    values = np.linalg.eigvalsh(agreed_roughness(graphs, gamma) / gamma)
    assert values[0] > -1e-6
    assert values[-1] < 3 + 1e-6
    hasher = qh.MFHHasher(P, gamma=gamma, graph="nearest").fit(toy)
    assert (hasher.transform(toy, packed=False).std(axis=0) > 0).all()


# --- the hashers


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_one_bit_separates_two_clean_clusters(name, seed):
    rng = np.random.default_rng(seed)
    groups = np.tile([0, 1], 40)
    views = {v: 5 * np.outer(groups, rng.standard_normal(d)) + 0.1 * rng.standard_normal((80, d)) for v, d in
             {"a": 4, "b": 7, "c": 2}.items()}  # fmt: skip
    hasher = qh.HASHERS[name](n_bits=1, graph="nearest").fit({v: x[:60] for v, x in views.items()})
    bits = hasher.transform({v: x[60:] for v, x in views.items()}, packed=False)[:, 0]
    assert np.array_equal(bits, groups[60:]) or np.array_equal(bits, 1 - groups[60:])


@pytest.mark.parametrize("name", BOTH)
def test_digits_are_found_as_well_as_with_landmark_graphs(name):
    digits = thinned(qh.load_dataset("digits"), 900)
    relevance = shared_labels(digits.labels[digits.query_rows], digits.labels[digits.database_rows])
    found = {}
    for graph in nearestgraph.GRAPHS:
        hasher = qh.HASHERS[name](n_bits=32, graph=graph).fit(digits.views[digits.train_rows])
        codes = [hasher.transform(digits.views[rows]) for rows in (digits.query_rows, digits.database_rows)]
        found[graph] = qh.mean_average_precision(relevance, hamming_distances(*codes)) / chance_precision(relevance)
    assert found["nearest"] > max(3.1, 0.95 * found["landmarks"])


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("rotate", [False, True])
@pytest.mark.parametrize("n_rows", [2, 3, 40])
def test_few_rows_and_views_that_say_nothing_are_survived(name, rotate, n_rows):
    few = np.random.default_rng(0).standard_normal((n_rows, 3))
    hasher = qh.HASHERS[name](n_bits=60, graph="nearest", rotate=rotate)
    assert hasher.fit(few).transform(few).shape == (n_rows, 8)
    hasher.fit({"a": few, "silent": np.ones((n_rows, 2)), "alike": np.repeat([[1.0], [3.0]], [1, n_rows - 1], axis=0)})
    assert np.isfinite(hasher.decision_function({"a": few})).all()
    hasher.fit(np.ones((n_rows, 2)))
    assert len(np.unique(hasher.transform(np.ones((5, 2))), axis=0)) == 1


@pytest.mark.parametrize("name", BOTH)
def test_bad_graphs(name, toy):
    hasher = qh.HASHERS[name](graph="anchors")
    sentence = f"graph of {type(hasher).__name__} must be one of landmarks, nearest, got 'anchors'"
    with pytest.raises(qh.ParameterError, match=sentence):
        hasher.fit(toy)


@pytest.mark.parametrize("name", BOTH)
def test_a_budget_counts_the_matrices(name, toy):
    hasher = qh.HASHERS[name](P, graph="nearest")
    with pytest.raises(qh.RefusedError, match="bytes of state for 150 rows, memory_budget is 800,000"):
        hasher.fit(toy, memory_budget=800_000)
    hasher.set_params(graph="landmarks").fit(toy, memory_budget=800_000)


@pytest.mark.parametrize("name", BOTH)
def test_models_are_kept_and_cloned(name, toy, tmp_path):
    hasher = qh.HASHERS[name](P, graph="nearest").fit(toy)
    assert clone(hasher).get_params() == hasher.get_params()
    hasher.save(tmp_path / "model.qh")
    loaded = qh.load(tmp_path / "model.qh")
    assert loaded.graph == "nearest"
    assert loaded.fingerprint() == hasher.fingerprint()
    np.testing.assert_array_equal(loaded.transform(toy), hasher.transform(toy))
    assert qh.HASHERS[name](P).fit(toy).fingerprint() != hasher.fingerprint()
