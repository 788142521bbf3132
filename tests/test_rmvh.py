"""The paper's method: its settings, its encodings, and what it is worth on damaged digits."""

import numpy as np
import pytest

import quorumhash as qh
from quorumhash.codes import hamming_distances
from quorumhash.consensus import solve_consensus
from quorumhash.engines.threads import ThreadsEngine
from quorumhash.errors import RankWarning
from quorumhash.evaluation import shared_labels
from quorumhash.hashers.rmvh import SETTINGS, _weights
from quorumhash.kernelspace import kernels_and_graphs, learn_kernel_space


@pytest.fixture(scope="module")
def digits():
    return qh.load_dataset("digits")


@pytest.fixture(scope="module")
def few(digits):
    return digits.views[digits.train_rows[:300]]


def quality(hasher, digits, views):
    relevance = shared_labels(digits.labels[digits.query_rows], digits.labels[digits.database_rows])
    codes = [hasher.transform(views[rows]) for rows in (digits.query_rows, digits.database_rows)]
    return qh.mean_average_precision(relevance, hamming_distances(*codes))


@pytest.mark.parametrize("kind", ["noise", "swap"])
def test_tuned_setting_is_at_least_as_good_as_itq_on_damaged_digits(digits, kind):
    views = qh.damage(digits.views, kind, rate=0.2, random_state=0)
    train = views[digits.train_rows]
    assert quality(qh.ConsensusHasher(32).fit(train), digits, views) >= quality(
        qh.ITQHasher(32).fit(train), digits, views
    )


def test_published_setting_collapses_and_says_so(digits):
    with pytest.warns(RankWarning, match="rank .*fewer than the 32 bits"):
        hasher = qh.ConsensusHasher(32, setting="published").fit(digits.views[digits.train_rows])
    assert hasher.rank_ < 32


def test_published_setting_is_the_papers():
    assert SETTINGS["published"] == {
        "alpha": 0.1, "lambda_": 1e-3, "gamma": 1e-4, "beta": 1.0, "delta": 1e-6, "coupling": False, "rotation": False,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, "robust"),
        ({"setting": "published"}, "mean"),
        ({"setting": "published", "query_kernel": "project"}, "project"),
    ],
)
@pytest.mark.filterwarnings("ignore::quorumhash.errors.RankWarning")
def test_query_kernel_follows_the_setting(digits, more, expected):
    hasher = qh.ConsensusHasher(8, max_iter=2, **more).fit(digits.views[digits.train_rows[:300]])
    assert hasher.encoder_.query_kernel == expected


def test_tuned_setting_keeps_enough_dimensions(digits):
    """RankWarning is an error in the tests."""
    hasher = qh.ConsensusHasher(32).fit(digits.views[digits.train_rows])
    assert hasher.rank_ >= 32


def test_relative_weights(few):
    """alpha = alpha_rel lambda M sqrt(N); delta = delta_rel tr(K_c^T K_c) / R."""
    with ThreadsEngine(2, block_rows=50) as engine:
        space = learn_kernel_space(
            few,
            engine,
            0,
            n_kernel_landmarks=20,
            n_graph_landmarks=10,
            n_neighbors=3,
            landmarks="rows",
            bandwidth="median",
        )
        kernels, _ = kernels_and_graphs(few, space, engine)
        weights = _weights(SETTINGS["tuned"], "l21", kernels, engine)
        mean = np.mean([engine.get(kernel).astype(float) for kernel in kernels], axis=0)
    assert weights.alpha == pytest.approx(0.005 * 100 * 4 * np.sqrt(300))
    centred = mean - mean.mean(0)
    assert weights.delta == pytest.approx(np.trace(centred.T @ centred) / 20)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"setting": "best"}, "setting of ConsensusHasher must be one of tuned, published, got 'best'"),
        ({"error_norm": "l2"}, "error_norm of ConsensusHasher must be one of l21, l1"),
        ({"query_kernel": "median"}, "query_kernel of ConsensusHasher must be one of mean, project, robust"),
        ({"out_of_sample": "nystrom"}, "out_of_sample of ConsensusHasher must be one of kernel, prototypes"),
        ({"alpha": 1.0, "alpha_rel": 0.1}, "alpha and alpha_rel say the same thing twice"),
        ({"delta": 1.0, "delta_rel": 0.1}, "delta and delta_rel say the same thing twice"),
        ({"gamma": 0.0}, "gamma of ConsensusHasher must be a finite number above 0, got 0.0"),
        ({"alpha_rel": -1.0}, "alpha_rel of ConsensusHasher must be a finite number above 0"),
        ({"alpha": np.inf}, "alpha of ConsensusHasher must be a finite number above 0, got inf"),
        ({"beta": "x"}, "beta of ConsensusHasher must be a finite number above 0, got 'x'"),
        ({"coupling": 0}, "coupling of ConsensusHasher must be True or False, got 0"),
        ({"tol": -1.0}, "tol of ConsensusHasher must be a number from 0 up, got -1.0"),
        ({"max_iter": -1}, "max_iter of ConsensusHasher must be a whole number from 0 up, got -1"),
        ({"n_neighbors": 0}, "n_neighbors of ConsensusHasher must be a whole number from 1 up, got 0"),
        ({"n_landmarks": 0}, "n_landmarks of ConsensusHasher must be a whole number from 1 up, got 0"),
        (
            {"n_kernel_landmarks": 2.5},
            "n_kernel_landmarks of ConsensusHasher must be a whole number from 1 up, got 2.5",
        ),
        ({"landmarks": "grid"}, "landmarks of ConsensusHasher must be one of kmeans, rows"),
        ({"bandwidth": "wide"}, "bandwidth of ConsensusHasher must be one of seventh, median"),
    ],
)
def test_bad_options(few, options, sentence):
    with pytest.raises(qh.ParameterError, match=sentence):
        qh.ConsensusHasher(8, **{"max_iter": 1, **options}).fit(few)


def test_absolute_weights_override_relative_ones(few):
    relative = qh.ConsensusHasher(8, max_iter=3).fit(few)
    alpha = 0.005 * 100.0 * 4 * np.sqrt(300)
    absolute = qh.ConsensusHasher(8, max_iter=3, alpha=alpha).fit(few)
    np.testing.assert_allclose(absolute.decision_function(few), relative.decision_function(few), atol=1e-8)


def test_history_has_one_row_per_sweep_and_the_objective_falls(few):
    hasher = qh.ConsensusHasher(8, max_iter=12).fit(few)
    assert hasher.n_iter_ == len(hasher.history_) == 12
    assert hasher.history_[-1]["objective"] < hasher.history_[0]["objective"]
    assert hasher.history_[-1]["residual"] < hasher.history_[0]["residual"]
    assert all(0 <= a["seconds"] <= b["seconds"] for a, b in zip(hasher.history_, hasher.history_[1:], strict=False))


def test_tolerance_ends_the_sweeps_early(few):
    assert qh.ConsensusHasher(8, max_iter=200, tol=1e-2, coupling=False).fit(few).n_iter_ < 200


def test_rotation_changes_bits_but_not_the_span_of_the_scores(few):
    plain = qh.ConsensusHasher(8, max_iter=3, rotation=False).fit(few).decision_function(few)
    rotated = qh.ConsensusHasher(8, max_iter=3).fit(few).decision_function(few)
    assert ((plain >= 0) != (rotated >= 0)).any()
    np.testing.assert_allclose(plain @ plain.T, rotated @ rotated.T, atol=1e-6)


def test_t19_agreement_of_codes_with_the_consensus_is_reported(few, record_testsuite_property):
    """How often encoding a training row gives the bits sign(W^T Khat + b) of the consensus itself.

    Reported, not asserted (SPEC 8): hash functions are fitted to Khat, items are encoded by the mean of their kernels.
    """
    with ThreadsEngine(2) as engine:
        space = learn_kernel_space(
            few,
            engine,
            0,
            n_kernel_landmarks=40,
            n_graph_landmarks=30,
            n_neighbors=3,
            landmarks="kmeans",
            bandwidth="seventh",
        )
        kernels, graphs = kernels_and_graphs(few, space, engine)
        weights = _weights(SETTINGS["tuned"], "l21", kernels, engine)
        solution = solve_consensus(kernels, graphs, 16, weights, engine, max_iter=20)
        mean = np.mean([engine.get(kernel).astype(float) for kernel in kernels], axis=0)
        consensus = engine.get(solution.kernel) @ solution.projection + solution.bias >= 0
    encoded = mean @ solution.projection + solution.bias >= 0
    record_testsuite_property("agreement of encoded bits with the consensus", float((encoded == consensus).mean()))
    assert encoded.shape == consensus.shape == (300, 16)


@pytest.mark.filterwarnings("ignore::quorumhash.errors.RankWarning")
def test_prototypes_are_weighted_means_of_landmark_scores(few):
    """Against the paper's formula written out over the joined, scaled views."""
    hasher = qh.ConsensusHasher(8, max_iter=2, out_of_sample="prototypes", n_neighbors=3).fit(few)
    encoder = hasher.encoder_
    joined = np.hstack(
        [(few[n] - k.scaling.mean) * k.scaling.factor for n, k in zip(few, encoder.kernels, strict=True)]
    ).astype(np.float32)
    centres = np.hstack([kernel.landmarks for kernel in encoder.kernels])
    squares = ((joined[:, None] - centres[None]) ** 2).sum(-1)
    expected = []
    for row in squares:
        near = np.argsort(row)[:3]
        weight = np.exp(-(row[near] - row[near].min()) / encoder.prototype_bandwidth)
        expected.append(weight @ encoder.prototype_scores[near] / weight.sum())
    np.testing.assert_allclose(hasher.decision_function(few), expected, atol=1e-3)


def test_a_view_in_too_few_rows_is_refused(few):
    rare = np.full((300, 2), np.nan)
    rare[7] = 1.0
    with pytest.raises(qh.RefusedError, match="view 'rare' is there in 1 of 300 rows"):
        qh.ConsensusHasher(8, max_iter=1).fit({"pixels": few["pixels"], "rare": rare})


@pytest.mark.filterwarnings("ignore::quorumhash.errors.RankWarning")
def test_memory_budget_refuses_before_starting(few):
    hasher = qh.ConsensusHasher(8, n_kernel_landmarks=20)
    needed = 300 * (20 * (4 * 4 + 8 * 6) + 8 * 8)
    with pytest.raises(qh.RefusedError, match=f"needs {needed:,} bytes of state for 300 rows, memory_budget is 1,000"):
        hasher.fit(few, memory_budget=1_000)
    hasher.set_params(max_iter=1).fit(few, memory_budget=needed)


def test_rows_that_repeat_too_much_are_refused_with_the_reason():
    with pytest.raises(
        qh.RefusedError, match=r"30 bits cannot be learned from 3 landmarks .* the rows repeat too much"
    ):
        qh.ConsensusHasher(30, max_iter=1).fit(np.repeat([[0.0, 0.0], [1.0, 1.0]], 20, axis=0))


def test_one_view_and_two_rows_are_enough():
    codes = qh.ConsensusHasher(1, max_iter=2).fit([[0.0, 1.0], [5.0, -1.0]]).transform([[0.0, 1.0], [5.0, -1.0]])
    assert codes.shape == (2, 1)


@pytest.mark.filterwarnings("ignore::quorumhash.errors.RankWarning")
def test_views_that_say_nothing_are_survived(few):
    for silent in (np.ones((300, 4)), np.zeros((300, 1)), np.repeat([[1.0, 2.0], [3.0, 4.0]], 150, axis=0)):
        scores = (
            qh.ConsensusHasher(4, max_iter=3)
            .fit({"pixels": few["pixels"], "silent": silent})
            .decision_function({"pixels": few["pixels"]})
        )
        assert np.isfinite(scores).all()
