"""The classic rivals against their textbook forms, with N x N matrices and slow loops."""

import numpy as np
import pytest
import scipy.linalg
from sklearn.decomposition import PCA, KernelPCA

import quorumhash as qh
from quorumhash.datasets.base import thinned
from quorumhash.engines.threads import ThreadsEngine
from quorumhash.evaluation import chance_precision, shared_labels
from quorumhash.hashers.agh import ROUNDING, second_thresholds
from quorumhash.hashers.epamh import turns_to_common_code
from quorumhash.hashers.imh import laplacian_places
from quorumhash.hashers.sh import slowest_waves
from quorumhash.scaling import joined_rows
from quorumhash.steps.directions import graph_vectors, principal_directions, random_frames
from quorumhash.steps.joinedgraph import put_neighbours
from quorumhash.views import Views

CLASSICS = ("klsh", "sh", "pcah", "agh", "imh", "kitq", "epamh")
VARIANTS = [
    *((name, {}) for name in CLASSICS),
    ("agh", {"n_layers": 1}),
    ("agh", {"rotate": True}),
    ("imh", {"embedding": "tsne"}),
    ("imh", {"rotate": True}),
    ("kitq", {"bandwidth": "median"}),
    ("klsh", {"bandwidth": "seventh"}),
    ("pcah", {"rotate": True}),
]


def named(variant):
    return " ".join([variant[0], *(f"{key}={value}" for key, value in variant[1].items())])


@pytest.fixture
def engine():
    return ThreadsEngine(2, block_rows=37)


@pytest.fixture(scope="module")
def toy():
    """120 items in five overlapping groups, two views; 20 more of them, never fitted."""
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 5, 140)
    return {
        name: rng.standard_normal((5, width))[groups] + 1.2 * rng.standard_normal((140, width))
        for name, width in (("colour", 6), ("shape", 4))
    }


@pytest.fixture(scope="module")
def old(toy):
    return {name: part[:120] for name, part in toy.items()}


@pytest.fixture(scope="module")
def new(toy):
    return {name: part[120:] for name, part in toy.items()}


def two_clusters():
    rng = np.random.default_rng(0)
    labels = np.arange(200) % 2
    centres = {"colour": rng.standard_normal((2, 6)) * 10, "shape": rng.standard_normal((2, 4)) * 10}
    views = {name: part[labels] + 0.3 * rng.standard_normal((200, part.shape[1])) for name, part in centres.items()}
    return views, labels


def joined(hasher, views):
    return joined_rows(tuple(hasher.scalings_.values()), *views.values())


def dense_graph(hasher, views, engine):
    """F (N, L) as a dense matrix."""
    positions, weights = (
        engine.get(part) for part in put_neighbours(Views(views), hasher.scalings_, hasher.graph_, engine)
    )
    graph = np.zeros((len(positions), len(hasher.graph_.landmarks)))
    graph[np.arange(len(positions))[:, None], positions] = weights
    return graph


def same_up_to_sign(scores, expected, atol):
    signs = np.sign(np.sum(scores * expected, axis=0))
    np.testing.assert_allclose(scores, expected * signs, atol=atol)


# every method


@pytest.mark.parametrize("variant", VARIANTS, ids=named)
def test_two_clean_clusters_are_told_apart(variant):
    views, labels = two_clusters()
    codes = qh.HASHERS[variant[0]](n_bits=32, **variant[1]).fit(views).transform(views)
    distances = qh.hamming_distances(codes, codes)
    same = labels[:, None] == labels
    assert distances[~same].mean() > distances[same].mean() + 1
    assert distances[~same].min() > 0


@pytest.mark.parametrize("variant", [v for v in VARIANTS if v[0] != "klsh" and "embedding" not in v[1]], ids=named)
def test_one_bit_tells_two_clean_clusters_apart(variant):
    """Not asked of random hyperplanes, nor of t-SNE into one dimension."""
    views, labels = two_clusters()
    bits = qh.HASHERS[variant[0]](n_bits=1, **variant[1]).fit(views).transform(views, packed=False)[:, 0]
    assert abs((bits == labels).mean() - 0.5) == 0.5


@pytest.mark.parametrize("variant", VARIANTS, ids=named)
def test_digits_beat_chance_widely(variant):
    digits = thinned(qh.load_dataset("digits"), 600)
    hasher = qh.HASHERS[variant[0]](n_bits=32, **variant[1]).fit(digits.views[digits.train_rows])
    relevance = shared_labels(digits.labels[digits.query_rows], digits.labels[digits.database_rows])
    distances = qh.hamming_distances(
        hasher.transform(digits.views[digits.query_rows]), hasher.transform(digits.views[digits.database_rows])
    )
    assert qh.mean_average_precision(relevance, distances) > 3 * chance_precision(relevance)


@pytest.mark.parametrize("variant", VARIANTS, ids=named)
def test_more_bits_than_dimensions_are_of_use(variant, old):
    """Ten features in all, at most 12 landmarks: every one of 24 bits still cuts the items, few in the same way."""
    more = {**variant[1], **({"n_landmarks": 12} if "n_landmarks" in qh.HASHERS[variant[0]]().get_params() else {})}
    bits = qh.HASHERS[variant[0]](n_bits=24, **more).fit(old).transform(old, packed=False)
    assert ((bits.mean(axis=0) > 0.02) & (bits.mean(axis=0) < 0.98)).all()
    cuts = np.where(bits[0], 1 - bits, bits)  # a bit and its opposite cut alike
    assert np.unique(cuts, axis=1).shape[1] >= 20


@pytest.mark.parametrize("name", CLASSICS)
@pytest.mark.parametrize("rows", [np.zeros((5, 3)), np.arange(6.0).reshape(3, 2), np.tile([1.0, 2.0], (4, 1))])
def test_data_with_next_to_nothing_in_them_get_codes(name, rows):
    assert qh.HASHERS[name](n_bits=9).fit(rows).transform(rows).shape == (len(rows), 2)


@pytest.mark.parametrize("variant", VARIANTS, ids=named)
def test_a_budget_below_the_rows_that_are_kept_is_refused(variant, old):
    keeps_rows = variant[0] in ("agh", "epamh", "kitq") or variant[1].get("rotate", False)
    hasher = qh.HASHERS[variant[0]](n_bits=8, **variant[1])
    if keeps_rows:
        with pytest.raises(qh.RefusedError, match="bytes of state for 120 rows, memory_budget is 1,000"):
            hasher.fit(old, memory_budget=1_000)
    assert hasher.fit(old, memory_budget=100_000 if keeps_rows else 0).transform(old).shape == (120, 1)


@pytest.mark.parametrize(
    ("name", "more", "sentence"),
    [
        ("agh", {"n_layers": 3}, "n_layers of AnchorGraphHasher must be 1 or 2, got 3"),
        ("agh", {"n_layers": True}, "n_layers of AnchorGraphHasher must be 1 or 2, got True"),
        ("agh", {"n_landmarks": 0}, "n_landmarks of AnchorGraphHasher must be a whole number from 1 up, got 0"),
        ("agh", {"rotate": 1}, "rotate of AnchorGraphHasher must be True or False, got 1"),
        ("imh", {"n_neighbors": 0}, "n_neighbors of InductiveManifoldHasher must be a whole number from 1 up"),
        ("imh", {"rotate": None}, "rotate of InductiveManifoldHasher must be True or False, got None"),
        ("imh", {"embedding": "umap"}, "embedding of InductiveManifoldHasher must be one of laplacian, tsne"),
        ("klsh", {"n_landmarks": 1}, "n_landmarks of KLSHHasher must be a whole number from 2 up, got 1"),
        ("klsh", {"n_summed": 0}, "n_summed of KLSHHasher must be a whole number from 1 up, got 0"),
        ("klsh", {"bandwidth": "wide"}, "bandwidth of KLSHHasher must be one of seventh, median, got 'wide'"),
        ("kitq", {"bandwidth": "wide"}, "bandwidth of KernelITQHasher must be one of seventh, median, got 'wide'"),
        ("kitq", {"n_landmarks": 2.5}, "n_landmarks of KernelITQHasher must be a whole number from 1 up, got 2.5"),
        ("kitq", {"rotate": "yes"}, "rotate of KernelITQHasher must be True or False, got 'yes'"),
        ("pcah", {"rotate": 0}, "rotate of PCAHasher must be True or False, got 0"),
        ("epamh", {"n_steps": 0}, "n_steps of EPAMHHasher must be a whole number from 1 up, got 0"),
    ],
)
def test_bad_parameters(name, more, sentence, old):
    with pytest.raises(qh.ParameterError, match=sentence):
        qh.HASHERS[name](n_bits=4, **more).fit(old)


# pcah


def test_pcah_is_pca(old, new):
    hasher = qh.PCAHasher(n_bits=5).fit(old)
    exact = PCA(5, svd_solver="full").fit(joined(hasher, old))
    same_up_to_sign(hasher.decision_function(new), exact.transform(joined(hasher, new)), 1e-10)


def test_pcah_rotated_is_itq(old, new):
    rotated, itq = qh.PCAHasher(n_bits=6, rotate=True).fit(old), qh.ITQHasher(n_bits=6).fit(old)
    np.testing.assert_allclose(rotated.decision_function(new), itq.decision_function(new))


def test_pcah_starts_with_the_components_however_many_bits(old, new):
    few, many = (qh.PCAHasher(n_bits=n).fit(old).decision_function(new) for n in (10, 33))
    np.testing.assert_allclose(many[:, :10], few)


def test_random_frames_are_rotations():
    frames = random_frames(4, 11, np.random.default_rng(0))
    for start in (0, 4):
        np.testing.assert_allclose(frames[:, start : start + 4].T @ frames[:, start : start + 4], np.eye(4), atol=1e-12)
    np.testing.assert_allclose(frames[:, 8:].T @ frames[:, 8:], np.eye(3), atol=1e-12)


def test_directions_that_are_rounding_are_left_out():
    rows = np.random.default_rng(0).standard_normal((50, 3)) @ np.random.default_rng(1).standard_normal((3, 8))
    assert principal_directions(rows.T @ rows, 6).shape == (8, 3)


# sh


def slow_waves(extents, n_waves):
    """Every half wave of every axis up to a number beyond any need, the slowest first, one by one."""
    candidates = sorted((k / r, j, k) for j, r in enumerate(extents) for k in range(1, 5 * n_waves))
    return [(j, k) for _, j, k in candidates[:n_waves]]


@pytest.mark.parametrize("extents", [[1.0], [3.0, 2.9, 0.1], [1.0, 1.0], [5.0, 1.0, 2.3, 4.4]])
@pytest.mark.parametrize("n_waves", [1, 2, 7, 40])
def test_sh_takes_the_slowest_waves(extents, n_waves):
    axes, counts = slowest_waves(np.array(extents), n_waves)
    assert [(int(j), int(k)) for j, k in zip(axes, counts, strict=True)] == slow_waves(extents, n_waves)


def test_sh_against_a_slow_loop(old, new):
    hasher = qh.SpectralHasher(n_bits=14).fit(old, engine=ThreadsEngine(1, block_rows=37))
    exact = PCA(10, svd_solver="full").fit(joined(hasher, old))
    # the sign of a component has no say in the wave of an even number; in that of an odd number it turns the bit
    components, items = exact.transform(joined(hasher, old)), exact.transform(joined(hasher, new))
    low, high = components.min(axis=0), components.max(axis=0)
    expected = np.empty((len(items), 14))
    for bit, (j, k) in enumerate(slow_waves(high - low, 14)):
        for i, item in enumerate(items):
            inside = min(max(item[j], low[j]), high[j])
            expected[i, bit] = np.sin(np.pi / 2 + k * np.pi * (inside - low[j]) / (high[j] - low[j]))
    same_up_to_sign(hasher.decision_function(new), expected, 1e-9)


def test_sh_counts_items_outside_the_box_as_on_its_edge(old):
    hasher = qh.SpectralHasher(n_bits=14).fit(old)
    far = {name: 1e6 * part for name, part in old.items()}
    np.testing.assert_allclose(np.abs(hasher.decision_function(far)), 1.0)


# klsh


def dense_mean_kernel(hasher, views):
    """Mean over views of exp(-|x - z|^2 / (2 s^2)) to the landmarks, float64."""
    total = 0.0
    for name, kernel in hasher.kernels_.items():
        scaled = (views[name] - kernel.scaling.mean) * kernel.scaling.factor
        squares = ((scaled[:, None, :] - kernel.landmarks[None, :, :].astype(float)) ** 2).sum(axis=2)
        total = total + np.exp(-squares / (2 * kernel.bandwidth**2))
    return total / len(hasher.kernels_)


def test_klsh_against_its_dense_formula(old, new):
    n_landmarks, n_summed, n_bits = 40, 7, 9
    hasher = qh.KLSHHasher(n_bits, n_landmarks=n_landmarks, n_summed=n_summed, random_state=3).fit(old)
    landmarks = {
        name: kernel.landmarks / kernel.scaling.factor + kernel.scaling.mean for name, kernel in hasher.kernels_.items()
    }
    K, k = dense_mean_kernel(hasher, landmarks), dense_mean_kernel(hasher, new)
    rows = {tuple(row) for row in np.round(np.hstack(list(old.values())), 4)}
    assert {tuple(row) for row in np.round(np.hstack(list(landmarks.values())), 4)} <= rows

    # centred in feature space: <f(x) - mean f, f(z_r) - mean f>, the mean over the landmarks
    query = k - k.mean(axis=1, keepdims=True) - K.mean(axis=0) + K.mean()
    centred = K - K.mean(axis=0) - K.mean(axis=1, keepdims=True) + K.mean()
    root = scipy.linalg.sqrtm(np.linalg.pinv(centred, rcond=1e-6, hermitian=True)).real
    generator = np.random.default_rng(3)
    expected = np.empty((len(k), n_bits))
    for bit in range(n_bits):
        e_s = np.zeros(n_landmarks)
        e_s[generator.choice(n_landmarks, n_summed, replace=False)] = 1.0
        expected[:, bit] = query @ (np.sqrt((n_landmarks - 1) / n_summed) * root @ e_s)
    np.testing.assert_allclose(hasher.decision_function(new), expected, atol=1e-4 * expected.std())


# kitq


def test_kernel_components_are_those_of_kernel_pca_when_every_row_is_a_landmark(old, new):
    hasher = qh.KernelITQHasher(n_bits=8, n_landmarks=120, rotate=False).fit(old)
    exact = KernelPCA(8, kernel="precomputed").fit(dense_mean_kernel(hasher, old))
    same_up_to_sign(hasher.decision_function(old), exact.transform(dense_mean_kernel(hasher, old)), 1e-4)
    same_up_to_sign(hasher.decision_function(new), exact.transform(dense_mean_kernel(hasher, new)), 1e-4)


def test_few_landmarks_come_near_kernel_pca(old):
    hasher = qh.KernelITQHasher(n_bits=4, n_landmarks=60, rotate=False, bandwidth="median").fit(old)
    every = qh.KernelITQHasher(n_bits=4, n_landmarks=120, rotate=False, bandwidth="median").fit(old)
    exact = every.decision_function(old)
    angles = scipy.linalg.subspace_angles(hasher.decision_function(old), exact)
    assert np.cos(angles).min() > 0.95


def test_rotation_is_a_rotation_of_the_components(old):
    plain, turned = (
        qh.KernelITQHasher(n_bits=8, rotate=rotate).fit(old).decision_function(old) for rotate in (False, True)
    )
    rotation = np.linalg.lstsq(plain, turned, rcond=None)[0]
    np.testing.assert_allclose(rotation.T @ rotation, np.eye(8), atol=1e-6)
    np.testing.assert_allclose(plain @ rotation, turned, atol=1e-6)

    def misfit(scores):
        return np.linalg.norm(np.sign(scores) - scores)

    assert misfit(turned) < misfit(plain)


# agh


def test_agh_targets_are_the_slowest_eigenvectors_of_the_dense_laplacian(old, engine):
    hasher = qh.AnchorGraphHasher(n_bits=6, n_layers=1, n_landmarks=25).fit(old, engine=engine)
    F = dense_graph(hasher, old, engine)
    S = F @ np.diag(1 / F.sum(axis=0)) @ F.T
    np.testing.assert_allclose(S.sum(axis=1), 1.0)
    values, vectors = np.linalg.eigh(np.eye(120) - S)
    assert values[1] > 1e-3  # one part: only the first vector is trivial
    scores = hasher.decision_function(old)
    same_up_to_sign(scores, np.sqrt(120) * vectors[:, 1:7], 1e-5)
    np.testing.assert_allclose(scores.T @ scores / 120, np.eye(6), atol=1e-8)
    np.testing.assert_allclose(scores.mean(axis=0), 0, atol=1e-8)


def test_agh_places_new_items_by_their_own_landmarks(old, new, engine):
    hasher = qh.AnchorGraphHasher(n_bits=6, n_layers=1, n_landmarks=25).fit(old)
    expected = dense_graph(hasher, new, engine) @ hasher.table_
    np.testing.assert_allclose(hasher.decision_function(new), expected, atol=1e-12)


@pytest.mark.parametrize("rotate", [False, True])
def test_second_layer_thresholds_minimise_the_dense_objective(old, engine, rotate):
    hasher = qh.AnchorGraphHasher(n_bits=8, n_layers=2, n_landmarks=25, rotate=rotate).fit(old, engine=engine)
    F = dense_graph(hasher, old, engine)
    laplacian = np.eye(120) - F @ np.diag(1 / F.sum(axis=0)) @ F.T
    targets = F @ hasher.table_
    for y, (t_up, t_down) in zip(targets.T, hasher.thresholds_.T, strict=True):
        up = (y > 0).astype(float)
        # z = |y| - t_up [y > 0] + t_down [y <= 0], minimise z^T L z with 1^T z = 0, by its KKT system
        basis = np.stack([-up, 1 - up], axis=1)
        quadratic, linear, sums = basis.T @ laplacian @ basis, basis.T @ laplacian @ np.abs(y), basis.sum(axis=0)
        system = np.block([[2 * quadratic, sums[:, None]], [sums[None, :], np.zeros((1, 1))]])
        solution = np.linalg.solve(system, np.concatenate([-2 * linear, [-np.abs(y).sum()]]))
        np.testing.assert_allclose([t_up, t_down], solution[:2], atol=1e-6)


def test_second_layer_bits_are_those_of_the_rule(old, new):
    hasher = qh.AnchorGraphHasher(n_bits=7, n_layers=2, n_landmarks=25).fit(old)
    bits, scores = hasher.transform(new, packed=False), hasher.decision_function(new)
    assert hasher.table_.shape[1] == 4
    for i in range(len(bits)):
        for p in range(3):
            y, (t_up, t_down) = scores[i, p], hasher.thresholds_[:, p]
            assert bits[i, 4 + p] == (y >= t_up if y > 0 else -y + t_down >= 0)
    trained = qh.AnchorGraphHasher(n_bits=20, n_layers=2, n_landmarks=40).fit(old)
    second = trained.decision_function(old)[:, 10:]
    np.testing.assert_allclose(second.mean(axis=0), 0, atol=1e-6)  # 1^T z = 0


def test_a_graph_in_two_parts_has_clean_codes():
    """Vectors of one part say nothing of the other: its items share the bit, whatever rounding does."""
    views, labels = two_clusters()
    hasher = qh.AnchorGraphHasher(n_bits=2, n_layers=2, n_landmarks=12).fit(views)
    bits = hasher.transform(views, packed=False)
    assert all(len(np.unique(bits[labels == label], axis=0)) == 1 for label in (0, 1))
    many = qh.AnchorGraphHasher(n_bits=12, n_layers=1, n_landmarks=24).fit(views).decision_function(views)
    local = np.stack([np.abs(many[labels == label]).max(axis=0) for label in (0, 1)])
    assert ((local[:, 1:] == 0).sum(axis=0) == 1).all()


def test_thresholds_where_the_vector_is_constant_on_parts(engine):
    positions = engine.put(np.repeat([[0], [1]], 10, axis=0))
    weights = engine.put(np.ones((20, 1)))
    thresholds = second_thresholds((positions, weights), np.array([10.0, 10.0]), np.array([[1.0], [-1.0]]), engine)
    np.testing.assert_allclose(thresholds, [[1.0 - ROUNDING], [-1.0 + ROUNDING]])


def test_equal_eigenvalues_have_one_basis():
    """Four parts, so three equal eigenvalues: rounding in the matrix must not turn the vectors."""
    block = np.full((3, 3), 1 / 3)
    matrix = scipy.linalg.block_diag(block, block, block, block)
    _, expected = graph_vectors(matrix, np.ones(12), 3)
    noise = np.random.default_rng(0).standard_normal((12, 12)) * 1e-15
    _, vectors = graph_vectors(matrix + noise + noise.T, np.ones(12), 3)
    np.testing.assert_allclose(vectors, expected, atol=1e-4)
    np.testing.assert_allclose(expected.sum(axis=0), 0, atol=1e-4)


# imh


def test_imh_landmarks_are_laplacian_eigenmaps():
    landmarks = np.random.default_rng(0).standard_normal((30, 4)).astype(np.float32)
    places = laplacian_places(landmarks, 5, 6)
    squares = ((landmarks[:, None, :] - landmarks[None, :, :]).astype(float) ** 2).sum(axis=2)
    order = np.argsort(squares, axis=1)[:, 1:7]
    bandwidth = np.sqrt(np.take_along_axis(squares, order[:, -1:], axis=1)).mean() ** 2
    A = np.zeros((30, 30))
    for i in range(30):
        for j in order[i]:
            A[i, j] = A[j, i] = np.exp(-squares[i, j] / bandwidth)
    D = np.diag(A.sum(axis=1))
    values, vectors = scipy.linalg.eigh(D - A, D)
    assert values[1] > 1e-3
    same_up_to_sign(places, vectors[:, 1:6], 1e-4)


def test_imh_items_lie_between_their_nearest_landmarks(old, new):
    hasher = qh.InductiveManifoldHasher(n_bits=5, n_landmarks=20, n_neighbors=3).fit(old)
    expected = np.empty((20, 5))
    for i, item in enumerate(joined(hasher, new)):
        squares = ((hasher.graph_.landmarks - item) ** 2).sum(axis=1)
        nearest = np.argsort(squares)[:3]
        weights = np.exp(-squares[nearest] / hasher.graph_.bandwidth)
        expected[i] = weights @ hasher.table_[nearest] / weights.sum()
    np.testing.assert_allclose(hasher.decision_function(new), expected, atol=1e-5)
    np.testing.assert_allclose(hasher.table_.mean(axis=0), 0, atol=1e-10)


# epamh


def slow_epamh(scores, n_steps, seed):
    """B, R_m and mu_m written out; the objective after every step, and R_m / mu_m."""
    generator = np.random.default_rng(seed)
    turns = [np.linalg.qr(generator.standard_normal((V.shape[1],) * 2))[0] for V in scores]
    history = []
    for _ in range(n_steps):
        B = np.where(sum(V @ turn for V, turn in zip(scores, turns, strict=True)) >= 0, 1.0, -1.0)
        rotations = [scipy.linalg.orthogonal_procrustes(V, B)[0] for V in scores]
        mu = [np.linalg.norm(B - V @ R) for V, R in zip(scores, rotations, strict=True)]
        turns = [R / m for R, m in zip(rotations, mu, strict=True)]
        history.append(sum(mu))
    return turns, history


def test_epamh_against_a_slow_loop(engine):
    rng = np.random.default_rng(0)
    scores = [rng.standard_normal((90, 5)) * size for size in (1.0, 0.4, 2.0)]
    turns, history = turns_to_common_code(tuple(engine.put(V) for V in scores), 5, 12, engine, seed=4)
    slow_turns, slow_history = slow_epamh(scores, 12, seed=4)
    np.testing.assert_allclose(history, slow_history)
    for turn, slow in zip(turns, slow_turns, strict=True):
        np.testing.assert_allclose(turn, slow, atol=1e-10)


@pytest.mark.parametrize("n_bits", [3, 4, 6, 24])
def test_epamh_objective_never_rises(old, n_bits):
    history = np.array(qh.EPAMHHasher(n_bits=n_bits).fit(old).history_)
    assert len(history) == 50
    assert (np.diff(history) <= 1e-9 * history[0]).all()
    assert history[-1] < history[0]


def test_epamh_components_have_the_size_of_bits(old):
    """The projection undone: what is left of every view is a rotation of scores with mean square 1, over mu."""
    hasher = qh.EPAMHHasher(n_bits=3).fit(old)
    parts, start = [], 0
    for name, scaling in hasher.scalings_.items():
        width = old[name].shape[1]
        scores = (old[name] - scaling.mean) * scaling.factor @ hasher.projection_[start : start + width]
        parts.append(np.sqrt((scores**2).mean()))
        start += width
    assert hasher.history_[-1] == pytest.approx(sum(1 / part for part in parts))


def test_epamh_leaves_an_absent_view_out(old, new):
    hasher = qh.EPAMHHasher(n_bits=4).fit(old)
    whole = hasher.decision_function(new)
    parts = [hasher.decision_function({name: new[name]}) for name in new]
    np.testing.assert_allclose(sum(parts), whole, atol=1e-12)
