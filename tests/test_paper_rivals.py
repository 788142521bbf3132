"""The paper's five rivals against textbook forms with N x N matrices (SPEC tests T13 to T17), and what they share."""

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
from dense import five_groups

import quorumhash as qh
from quorumhash.codes import hamming_distances
from quorumhash.datasets import thinned
from quorumhash.engines.threads import ThreadsEngine
from quorumhash.evaluation import chance_precision, shared_labels
from quorumhash.hashers.chms import alternate, landmark_step
from quorumhash.kernelspace import landmark_graphs, landmark_matrix, walked_views
from quorumhash.landmarks import joined_sample
from quorumhash.scaling import learn_scalings, put_views, scaled
from quorumhash.steps.averagedgraph import alpha_mean, averaged_edges, learn_averaged_graph
from quorumhash.steps.centredkernels import centred_kernels, learn_centred_kernels
from quorumhash.steps.classgraph import class_neighbours, label_rows, learn_class_graph
from quorumhash.steps.directions import random_frames
from quorumhash.steps.latentbits import latent_projection, solve_latent_bits
from quorumhash.steps.lineartargets import joined_sums
from quorumhash.steps.simplex import minimise_on_simplex
from quorumhash.steps.thresholds import middle_of
from quorumhash.targets import mean_graph_factors

FIVE = ["mfh", "chms", "ckh", "ssh", "mvlh"]
ROTATABLE = ["mfh", "chms", "ckh"]
N, P = 150, 5


@pytest.fixture(scope="module")
def engine():
    with ThreadsEngine(2, block_rows=40) as engine:
        yield engine


@pytest.fixture(scope="module")
def toy():
    return five_groups(N)


@pytest.fixture(scope="module")
def digits():
    return thinned(qh.load_dataset("digits"), 900)


def joined(views, scalings):
    return np.hstack([(views[name] - s.mean) * s.factor for name, s in scalings.items()])


def dense_edges(positions, weights, n_landmarks):
    E = np.zeros((len(positions), n_landmarks))
    for j in range(positions.shape[1]):
        E[np.arange(len(E)), positions[:, j]] += weights[:, j]
    return E


def dense_similarities(views, scalings, engine, n_landmarks, n_neighbors):
    """S_m (N, N) of the graphs that a hasher with seed 0 builds."""
    graphs = landmark_graphs(views, scalings, engine, 0, n_landmarks=n_landmarks, n_neighbors=n_neighbors)
    edges = [dense_edges(engine.get(g.positions), engine.get(g.weights), g.n_landmarks) for g in graphs]
    return graphs, [G @ G.T for G in edges]


def quality(hasher, digits, labels=None):
    hasher.fit(digits.views[digits.train_rows], labels)
    relevance = shared_labels(digits.labels[digits.query_rows], digits.labels[digits.database_rows])
    codes = [hasher.transform(digits.views[rows]) for rows in (digits.query_rows, digits.database_rows)]
    return qh.mean_average_precision(relevance, hamming_distances(*codes)) / chance_precision(relevance)


# --- all five


@pytest.mark.parametrize("name", FIVE)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_one_bit_separates_two_clean_clusters(name, seed):
    rng = np.random.default_rng(seed)
    groups = np.tile([0, 1], 40)  # half of the training rows each: two methods cut at the median
    views = {v: 5 * np.outer(groups, rng.standard_normal(d)) + 0.1 * rng.standard_normal((80, d)) for v, d in
             {"a": 4, "b": 7, "c": 2}.items()}  # fmt: skip
    hasher = qh.HASHERS[name](n_bits=1, random_state=seed).fit({v: x[:60] for v, x in views.items()})
    bits = hasher.transform({v: x[60:] for v, x in views.items()}, packed=False)[:, 0]
    assert np.array_equal(bits, groups[60:]) or np.array_equal(bits, 1 - groups[60:])


@pytest.mark.parametrize("name", FIVE)
def test_digits_at_32_bits_are_far_above_chance(name, digits):
    assert quality(qh.HASHERS[name](n_bits=32), digits) > 3.1


@pytest.mark.parametrize("name", ROTATABLE)
def test_rotation_helps_and_leaves_the_span_of_the_scores(name, digits):
    plain, turned = (qh.HASHERS[name](n_bits=32, rotate=rotate) for rotate in (False, True))
    assert quality(turned, digits) > 1.1 * quality(plain, digits)
    np.testing.assert_allclose(plain.projection_ @ plain.projection_.T, turned.projection_ @ turned.projection_.T)


@pytest.mark.parametrize("name", FIVE)
def test_more_bits_than_there_are_directions(name):
    few = np.random.default_rng(0).standard_normal((40, 3))
    bits = qh.HASHERS[name](n_bits=60).fit(few).transform(few, packed=False)
    assert bits.shape == (40, 60)
    assert (bits.std(axis=0) > 0).mean() > 0.9


@pytest.mark.parametrize("name", FIVE)
@pytest.mark.parametrize("rotate", [False, True])
def test_views_that_say_nothing_are_survived(name, rotate, toy):
    for silent in (np.ones((N, 4)), np.repeat([[1.0], [3.0]], N // 2, axis=0)):
        options = {"rotate": rotate} if name in ROTATABLE else {}
        hasher = qh.HASHERS[name](n_bits=4, **options).fit({"a": toy["a"], "silent": silent})
        assert np.isfinite(hasher.decision_function({"a": toy["a"]})).all()
    constant = qh.HASHERS[name](n_bits=4).fit(np.ones((20, 3)))
    assert len(np.unique(constant.transform(np.ones((5, 3))))) == 1


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("mfh", {"gamma": 0.0}, "gamma of MFHHasher must be a finite number above 0, got 0.0"),
        ("mfh", {"rotate": 1}, "rotate of MFHHasher must be True or False, got 1"),
        ("chms", {"fit_weight": np.inf}, "fit_weight of CHMSHasher must be a finite number above 0, got inf"),
        ("chms", {"max_iter": 0}, "max_iter of CHMSHasher must be a whole number from 1 up, got 0"),
        ("ckh", {"bandwidth": "wide"}, "bandwidth of CKHHasher must be one of seventh, median, got 'wide'"),
        ("ckh", {"supervised": None}, "supervised of CKHHasher must be True or False, got None"),
        ("ssh", {"alpha": 10.0}, "alpha of SSHHasher must be a number from -9 to 9, got 10.0"),
        ("ssh", {"criterion": "variance"}, "criterion of SSHHasher must be one of similarity, distance"),
        ("mvlh", {"power": 1.0}, "power of MVLHHasher must be a finite number above 1, got 1.0"),
        ("mvlh", {"encoding_ridge": -1.0}, "encoding_ridge of MVLHHasher must be a finite number from 0 up, got -1.0"),
        ("mvlh", {"n_landmarks": 0}, "n_landmarks of MVLHHasher must be a whole number from 1 up, got 0"),
    ],
)
def test_bad_options(name, options, sentence, toy):
    with pytest.raises(qh.ParameterError, match=sentence):
        qh.HASHERS[name](n_bits=3, **options).fit(toy)


# --- MFH


@pytest.mark.parametrize(("gamma", "alpha", "beta"), [(1e-3, 1.0, 1e-2), (1.0, 1.0, 1.0), (10.0, 0.5, 3.0)])
def test_t13_mfh_is_the_dense_form(toy, engine, gamma, alpha, beta):
    hasher = qh.MFHHasher(P, gamma=gamma, alpha=alpha, beta=beta, n_landmarks=12).fit(toy)
    _, similarities = dense_similarities(toy, hasher.scalings_, engine, 12, 5)
    X, one = joined(toy, hasher.scalings_), np.eye(N)
    D = alpha * (one - 1.0 / N - X @ np.linalg.solve(X.T @ X + beta * np.eye(X.shape[1]), X.T))
    for S in similarities:
        D += gamma * one - gamma**2 * np.linalg.inv(one - S + gamma * one)
    np.testing.assert_allclose(D @ np.ones(N), 0.0, atol=1e-10)  # the constant vector costs nothing, and is left out
    Y = np.sqrt(N) * np.linalg.eigh(D)[1][:, 1 : P + 1]
    W = np.linalg.solve(X.T @ X + beta * np.eye(X.shape[1]), X.T @ Y)
    np.testing.assert_allclose(np.abs(hasher.projection_), np.abs(W), atol=1e-7)


# --- CHMS


def chms_rounds(toy, engine, fit_weight, n_rounds):
    """The alternation with N x N matrices and a general solver for the weights."""
    scalings = learn_scalings(toy, engine)
    graphs, similarities = dense_similarities(toy, scalings, engine, 12, 5)
    X, L = joined(toy, scalings), np.eye(N) - np.mean(similarities, axis=0)
    owner, a, history = np.repeat([0, 1, 2], [4, 6, 3]), np.full(3, 1 / 3), []
    for _ in range(n_rounds):
        Xa = X * a[owner]
        ridge = np.linalg.inv(Xa.T @ Xa + np.eye(13) / fit_weight)
        A = 2.0 * L + fit_weight * (np.eye(N) - Xa @ ridge @ Xa.T)
        _, vectors = np.linalg.eigh(A + 1e6 * np.ones((N, N)) / N)  # the constant vector made dear
        Y = np.sqrt(N) * vectors[:, :P]
        W = ridge @ Xa.T @ Y
        history.append(2.0 * np.trace(Y.T @ L @ Y) + fit_weight * ((Y - Xa @ W) ** 2).sum() + (W**2).sum())
        Z = [X[:, owner == k] @ W[owner == k] for k in range(3)]
        kept = a

        def misfit(a, Y=Y, Z=Z):
            return ((Y - sum(w * z for w, z in zip(a, Z, strict=True))) ** 2).sum() / N

        a = scipy.optimize.minimize(
            misfit, a, bounds=[(0, 1)] * 3, constraints={"type": "eq", "fun": lambda a: a.sum() - 1}, tol=1e-14
        ).x
    return scalings, graphs, history, kept


@pytest.mark.parametrize("fit_weight", [0.1, 10.0])
def test_chms_is_the_dense_form(toy, engine, fit_weight):
    scalings, graphs, history, weights = chms_rounds(toy, engine, fit_weight, 4)
    factors = mean_graph_factors(graphs, 2.0, engine)
    sums = joined_sums(tuple(scalings.values()), put_views(toy, engine), factors, engine)
    found, _, rounds = alternate(landmark_step(factors, sums, P, fit_weight), sums.gram, [4, 6, 3], 4, 1e-12)
    np.testing.assert_allclose([r["objective"] for r in rounds], history, rtol=1e-6)
    np.testing.assert_allclose(found, weights, atol=1e-3)


@pytest.mark.parametrize(("graph_weight", "fit_weight"), [(1.0, 1.0), (100.0, 1.0), (1.0, 100.0)])
def test_t14_chms_never_rises(toy, graph_weight, fit_weight):
    hasher = qh.CHMSHasher(P, graph_weight=graph_weight, fit_weight=fit_weight, tol=1e-12).fit(toy)
    objectives = np.array([r["objective"] for r in hasher.history_])
    assert len(objectives) == hasher.n_iter_ > 2
    assert (np.diff(objectives) <= 1e-9 * objectives[0]).all()
    assert hasher.view_weights_.sum() == pytest.approx(1.0)
    assert (hasher.view_weights_ >= 0).all()


def test_chms_bits_are_balanced(toy):
    bits = qh.CHMSHasher(P, fit_weight=1.0).fit(toy).transform(toy, packed=False)
    np.testing.assert_array_equal(bits.sum(axis=0), N // 2)


# --- CKH


def ckh_dense(toy, engine, labels=None):
    """Kernels (N, 3, R) of the views, their landmarks' kernels, and S (N, N), as CKH with seed 0 sees them."""
    space = learn_centred_kernels(toy, engine, 0, n_landmarks=12, landmarks="kmeans", bandwidth="seventh")
    K = engine.get(engine.map_rows(centred_kernels, space, *walked_views(toy, engine))).reshape(N, 3, -1)
    scalings = {name: kernel.scaling for name, kernel in zip(toy, space.kernels, strict=True)}
    points, rows = joined_sample(toy, scalings, engine, 0).astype(np.float32), label_rows(labels, N)
    graph = learn_class_graph(points, rows, 15, 3, 0)
    near = class_neighbours(graph, rows, points)
    E = dense_edges(near.positions, near.weights, len(graph.landmarks))
    totals = E.sum(axis=0)
    return K, landmark_matrix(space.kernels), (E / np.where(totals > 0, totals, 1.0)) @ E.T


@pytest.mark.parametrize("supervised", [False, True])
def test_ckh_is_the_dense_form(toy, engine, supervised):
    labels = np.arange(N) % 4
    hasher = qh.CKHHasher(P, n_landmarks=12, supervised=supervised).fit(toy, labels)
    K, J, S = ckh_dense(toy, engine, labels if supervised else None)
    mu = hasher.view_weights_
    mixed, norm = np.einsum("m,nmr->nr", mu, K), sum(w * j for w, j in zip(mu, J, strict=True))
    cost = mixed.T @ (np.eye(N) - S) @ mixed + norm
    values, W = scipy.linalg.eigh(cost, mixed.T @ mixed / N)
    expected, scores = mixed @ W[:, :P], hasher.decision_function(toy)
    np.testing.assert_allclose(np.abs(scores), np.abs(expected), atol=1e-4)
    assert min(r["objective"] for r in hasher.history_) == pytest.approx(values[:P].sum(), rel=1e-6)


def test_ckh_moves_the_weights_as_the_dense_form_does(toy, engine):
    """With a heavy norm the rounds do lower the objective; the kept weights are those of the lowest."""
    hasher = qh.CKHHasher(2, n_landmarks=12, lambda_=10.0).fit(toy)
    K, J, S = ckh_dense(toy, engine)
    roughness, spread = (np.einsum("nir,nk,kjs->irjs", K, A, K) for A in (np.eye(N) - S, np.eye(N) / N))
    mu, objectives, tried = np.full(3, 1 / 3), [], []
    for _ in hasher.history_:
        cost = np.einsum("i,irjs,j->rs", mu, roughness, mu) + 10.0 * np.tensordot(mu, J, 1)
        values, W = scipy.linalg.eigh(cost, np.einsum("i,irjs,j->rs", mu, spread, mu))
        objectives.append(values[:2].sum())
        tried.append(mu)
        E = np.einsum("rp,irjs,sp->ij", W[:, :2], roughness, W[:, :2])
        h = 10.0 * np.array([np.trace(W[:, :2].T @ j @ W[:, :2]) for j in J])
        mu = scipy.optimize.minimize(
            lambda a, E=E, h=h: (a @ E @ a + h @ a) / h.max(), mu, bounds=[(0, 1)] * 3,
            constraints={"type": "eq", "fun": lambda a: a.sum() - 1}, tol=1e-14,
        ).x  # fmt: skip
    np.testing.assert_allclose([r["objective"] for r in hasher.history_], objectives, rtol=1e-3)
    assert len(objectives) > 2
    np.testing.assert_allclose(hasher.view_weights_, tried[int(np.argmin(objectives))], atol=1e-2)


@pytest.mark.parametrize("rotate", [False, True])
def test_t15_ckh_scores_are_white(toy, rotate):
    scores = qh.CKHHasher(P, n_landmarks=12, rotate=rotate).fit(toy).decision_function(toy)
    np.testing.assert_allclose(scores.mean(axis=0), 0.0, atol=1e-6)
    np.testing.assert_allclose(scores.T @ scores / N, np.eye(P), atol=1e-5)


def test_supervised_ckh_needs_labels_and_forgets_them(toy):
    hasher = qh.CKHHasher(P, supervised=True)
    with pytest.raises(qh.RefusedError, match=r"supervised=True learns from labels: call fit\(X, y\)"):
        hasher.fit(toy)
    assert not hasattr(hasher, "_training_labels")
    hasher.fit(toy, np.arange(N) % 3)
    assert not hasattr(hasher, "_training_labels")
    with pytest.raises(qh.RefusedError, match="none of the sampled rows has a label"):
        hasher.fit(toy, np.full(N, -1))


def test_labels_are_used_only_when_asked_for(toy):
    labels = np.random.default_rng(0).integers(0, 3, N)
    free, with_y, supervised = (qh.CKHHasher(P, supervised=s).fit(toy, y) for s, y in
                                ((False, None), (False, labels), (True, labels)))  # fmt: skip
    assert free.fingerprint() == with_y.fingerprint() != supervised.fingerprint()


def test_labels_help_ckh(digits):
    labels = digits.labels[digits.train_rows]
    free, taught = (quality(qh.CKHHasher(32, rotate=True, supervised=s), digits, labels) for s in (False, True))
    assert taught > 1.03 * free


@pytest.mark.parametrize("kind", ["positions", "texts", "memberships"])
def test_class_graphs_link_items_of_one_class(kind):
    rng = np.random.default_rng(0)
    points, classes = rng.standard_normal((60, 3)).astype(np.float32), rng.integers(-1, 4, 60)
    if kind == "texts":
        classes = np.abs(classes)
        rows = label_rows(np.array([f"class {c}" for c in classes]), 60)
    elif kind == "memberships":
        rows = label_rows((classes[:, None] == np.arange(4)).astype(int), 60)
    else:
        rows = label_rows(classes * 10, 60)
    near = class_neighbours(graph := learn_class_graph(points, rows, 12, 3, 0), rows, points)
    E = dense_edges(near.positions, near.weights, len(graph.landmarks))
    assert len(graph.landmarks) == 12
    np.testing.assert_allclose(E.sum(axis=1), classes >= 0)
    linked = (E @ E.T) > 0
    assert not linked[classes[:, None] != classes].any()
    assert linked[(classes >= 0)[:, None] & (classes[:, None] == classes)].mean() > 0.3


# --- SSH


@pytest.mark.parametrize("alpha", [-3.0, -1.0, 0.0, 1.0, 3.0, 5.0])
def test_t17_alpha_mean_has_the_least_divergence(alpha):
    distances, weights = np.array([0.3, 2.0, 5.0]), np.array([0.5, 0.2, 0.3])

    def divergence(q):
        p = distances
        if alpha == -1:
            parts = p * np.log(p / q) - p + q
        elif alpha == 1:
            parts = q * np.log(q / p) - q + p
        else:
            powers = p ** ((1 - alpha) / 2) * q ** ((1 + alpha) / 2)
            parts = 4 / (1 - alpha**2) * ((1 - alpha) / 2 * p + (1 + alpha) / 2 * q - powers)
        return weights @ parts

    best = scipy.optimize.minimize_scalar(divergence, bounds=(0.3, 5.0), method="bounded", options={"xatol": 1e-9}).x
    found = alpha_mean(weights[None], alpha, *[np.array([[d]]) for d in distances])
    assert found[0, 0] == pytest.approx(best, rel=1e-5)


def ssh_dense(toy, engine, alpha, criterion):
    """X, its Laplacian form by N x N matrices, and the matrix of the constraint on w."""
    scalings = learn_scalings(toy, engine)
    graph = learn_averaged_graph(toy, scalings, engine, 0, n_landmarks=12, n_neighbors=5, alpha=alpha)
    features = [scaled(toy[name], scalings[name]) for name in toy]
    E = dense_edges(*averaged_edges(graph, criterion, np.ones((N, 3), dtype=bool), *features), 12)
    laplacian = np.diag(E.sum(axis=1)) - (E / E.sum(axis=0)) @ E.T
    X = joined(toy, scalings)
    ridge = 1e-3 * np.trace(X.T @ X) / 13 * np.eye(13)
    if criterion == "similarity":
        return X, X.T @ laplacian @ X + ridge, X.T @ X + ridge
    return X, -X.T @ laplacian @ X, np.eye(13)


@pytest.mark.parametrize("criterion", ["similarity", "distance"])
@pytest.mark.parametrize("alpha", [-1.0, 1.0, 3.0])
def test_ssh_is_the_dense_form(toy, engine, alpha, criterion):
    hasher = qh.SSHHasher(P, alpha=alpha, criterion=criterion, n_landmarks=12).fit(toy)
    X, cost, metric = ssh_dense(toy, engine, alpha, criterion)
    bits = np.zeros((N, 0))
    for t in range(P):
        free = scipy.linalg.null_space(bits.T @ X) if t else np.eye(13)
        w = free @ scipy.linalg.eigh(free.T @ cost @ free, free.T @ metric @ free)[1][:, 0]
        found = hasher.projection_[:, t]
        assert abs(w @ found) / np.linalg.norm(w) / np.linalg.norm(found) == pytest.approx(1.0, abs=1e-8)
        bits = np.column_stack([bits, np.where(X @ found >= hasher.thresholds_[t], 1.0, -1.0)])
    scores = X @ hasher.projection_
    correlations = np.tril(scores.T @ bits, 0).T / N  # of bit s with the scores of bit t > s
    np.testing.assert_allclose(np.triu(correlations, 1), 0.0, atol=1e-10)
    np.testing.assert_array_equal(bits.sum(axis=0), 0.0)


def test_directions_without_variance_are_not_smooth():
    """A ridge on the constraint alone would choose them first."""
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 2, 200)
    views = np.column_stack([4.0 * groups + rng.standard_normal(200), 1e-4 * rng.standard_normal((200, 3))])
    bits = qh.SSHHasher(1).fit(views).transform(views, packed=False)[:, 0]
    assert abs(np.corrcoef(bits, groups)[0, 1]) > 0.8


# --- MVLH


def mvlh_dense(features, V, ridge, power, n_rounds):
    """The alternation as it is printed, on whole matrices."""
    views = [F * np.sqrt(len(F) / (F**2).sum()) for F in features]
    mu, objectives = np.full(len(views), 1 / len(views)), []
    for _ in range(n_rounds):
        U = [F.T @ V @ np.linalg.inv(V.T @ V + ridge * np.eye(V.shape[1])) for F in views]
        Phi = np.hstack([m ** (power / 2) * F for m, F in zip(mu, views, strict=True)])
        stacked = np.vstack([m ** (power / 2) * u for m, u in zip(mu, U, strict=True)])
        for k in range(V.shape[1]):
            u = stacked[:, k]
            V[:, k] = np.where(Phi @ u - V @ (stacked.T @ u) + (u @ u) * V[:, k] >= 0, 1.0, -1.0)
        h = np.array([((F - V @ u.T) ** 2).sum() + ridge * (u**2).sum() for F, u in zip(views, U, strict=True)])
        mu = h ** (-1 / (power - 1)) / (h ** (-1 / (power - 1))).sum()
        objectives.append((mu**power * h).sum())
    return V, objectives


@pytest.mark.parametrize("power", [1.5, 2.0, 4.0])
def test_mvlh_is_the_dense_form(engine, power):
    rng = np.random.default_rng(0)
    features = [rng.standard_normal((N, 3)) @ rng.standard_normal((3, 8)) * size for size in (1.0, 0.3)]
    start = rng.choice([-1.0, 1.0], (N, P))
    together = np.hstack(features).astype(np.float32)
    found = solve_latent_bits(
        engine.put(together),
        engine.put(start.astype(np.int8)),
        2,
        engine,
        ridge=0.1,
        power=power,
        max_iter=6,
        tol=1e-15,
    )
    halves = np.split(together.astype(float), 2, axis=1)
    V, objectives = mvlh_dense(halves, start.copy(), 0.1, power, len(found.history))
    np.testing.assert_array_equal(engine.get(found.bits), V)
    np.testing.assert_allclose([r["objective"] for r in found.history], objectives, rtol=1e-9)
    Phi, U = together * found.scales, found.factors
    np.testing.assert_allclose(together @ latent_projection(found, 0.0), Phi @ U @ np.linalg.inv(U.T @ U), atol=1e-8)


@pytest.mark.parametrize("power", [1.5, 2.0, 4.0])
def test_t16_mvlh_never_rises(toy, power):
    """With a view of another size and shape, which a wrong weighting does not survive."""
    views = {"a": toy["a"], "b": 0.3 * toy["b"] ** 3, "c": toy["c"]}
    hasher = qh.MVLHHasher(8, power=power, tol=1e-12).fit(views)
    objectives = np.array([r["objective"] for r in hasher.history_])
    assert len(objectives) == hasher.n_iter_ > 3
    assert (np.diff(objectives) <= 1e-9 * objectives[0]).all()


def test_mvlh_gives_a_silent_view_no_weight(toy):
    hasher = qh.MVLHHasher(4).fit({"a": toy["a"], "silent": np.ones((N, 2)), "c": toy["c"]})
    assert hasher.view_weights_[1] == 0.0
    assert hasher.view_weights_[[0, 2]].sum() == pytest.approx(1.0)


def test_published_encoding_of_mvlh_loses_most_of_its_bits(digits):
    """Why there is a ridge: without it new items do not get the bits that were learned."""
    assert quality(qh.MVLHHasher(32), digits) > 1.5 * quality(qh.MVLHHasher(32, encoding_ridge=0.0), digits)


@pytest.mark.parametrize(
    ("hasher", "bytes_per_row"),
    [
        (qh.MFHHasher(8), 16 * 3 * 5),
        (qh.CHMSHasher(8, max_iter=1, rotate=True), 16 * 3 * 5 + 8 * 8),
        (qh.CKHHasher(8, rotate=True), 8 * 8),
        (qh.MVLHHasher(8, n_landmarks=20, max_iter=1), 4 * 3 * 20 + 8),
    ],
)
def test_memory_that_grows_with_the_rows_is_stated(hasher, bytes_per_row, toy):
    needed = N * bytes_per_row
    with pytest.raises(qh.RefusedError, match=f"needs {needed:,} bytes of state"):
        hasher.fit(toy, memory_budget=needed - 1)
    hasher.fit(toy, memory_budget=needed)


# --- what they share


def test_weights_on_the_simplex_are_the_best():
    rng = np.random.default_rng(0)
    grid = np.array([(i, j, 20 - i - j) for i in range(21) for j in range(21 - i)]) / 20
    for _ in range(50):
        root, h = rng.standard_normal((rng.integers(1, 4), 3)), rng.standard_normal(3)
        Q, start = root.T @ root, rng.dirichlet(np.ones(3))
        start[rng.integers(3)] = 0.0
        a = minimise_on_simplex(Q, h, start / start.sum())
        assert a.sum() == pytest.approx(1.0)
        assert (a >= 0).all()
        gradient = 2 * Q @ a + h
        np.testing.assert_allclose(gradient[a > 1e-9], gradient.min(), atol=1e-6)
        assert a @ Q @ a + h @ a <= (np.einsum("ni,ij,nj->n", grid, Q, grid) + grid @ h).min() + 1e-9


def test_surplus_bits_are_rotations_of_the_learned_ones():
    learned = np.random.default_rng(0).standard_normal((7, 3))
    filled = learned @ random_frames(3, 9, np.random.default_rng(1))
    np.testing.assert_array_equal(filled[:, :3], learned)
    for frame in (filled[:, 3:6], filled[:, 6:]):
        np.testing.assert_allclose(frame @ frame.T, learned @ learned.T)
    assert np.abs(filled[:, 3:6] - filled[:, 6:]).max() > 0.1
    np.testing.assert_array_equal(learned @ random_frames(3, 2, np.random.default_rng(1)), learned[:, :2])
    assert random_frames(0, 2, np.random.default_rng(1)).shape == (0, 2)


@pytest.mark.parametrize("n", [2, 5, 8, 9])
def test_no_training_score_lies_on_its_threshold(n):
    scores = np.random.default_rng(n).standard_normal((n, 4))
    above = (scores > middle_of(scores)).sum(axis=0)
    np.testing.assert_array_equal(above, n // 2)
    assert (np.abs(scores - middle_of(scores)) > 0).all()


def test_an_absent_view_has_no_part_in_kernel_scores(toy, engine):
    space = learn_centred_kernels(toy, engine, 0, n_landmarks=12, landmarks="rows", bandwidth="median")
    holed = {name: toy[name].copy() for name in toy}
    holed["b"][7] = np.nan
    rows = engine.get(engine.map_rows(centred_kernels, space, *walked_views(qh.Views(holed), engine)))
    np.testing.assert_array_equal(rows[7, 12:24], 0.0)
    np.testing.assert_allclose(rows[7, :12], engine.get(
        engine.map_rows(centred_kernels, space, *walked_views(toy, engine)))[7, :12], atol=1e-6)  # fmt: skip
