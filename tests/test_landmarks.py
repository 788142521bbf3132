"""Scales, landmarks and what is made of them."""

import numpy as np
import pytest
import scipy.sparse

from quorumhash.engines.threads import ThreadsEngine
from quorumhash.errors import ParameterError, ViewsError
from quorumhash.kernelspace import kernels_and_graphs, learn_kernel_space
from quorumhash.landmarks import (
    all_landmarks,
    default_n_landmarks,
    graph_landmarks,
    k_means,
    rows_for_landmarks,
    sample_scaled,
    shared_landmarks,
)
from quorumhash.scaling import joined_rows, learn_scalings, scaled
from quorumhash.views import Views

rng = np.random.default_rng(0)
A, B = rng.standard_normal((60, 4)) * 5 + 3, rng.standard_normal((60, 7)) * 0.01
VIEWS = Views({"a": A, "b": B})
OPTIONS = {
    "n_kernel_landmarks": 12, "n_graph_landmarks": 10, "n_neighbors": 3, "landmarks": "kmeans", "bandwidth": "seventh",
}  # fmt: skip


@pytest.fixture
def engine():
    with ThreadsEngine(2, block_rows=13) as opened:
        yield opened


def test_scaling_makes_views_comparable(engine):
    for name, scaling in learn_scalings(VIEWS, engine).items():
        block = scaled(VIEWS[name], scaling)
        assert block.dtype == np.float32
        np.testing.assert_allclose(block.mean(0), 0, atol=1e-5)
        assert (block**2).sum(1).mean() == pytest.approx(1, rel=1e-5)


def test_scaling_ignores_what_is_missing(engine):
    holes = A.copy()
    holes[::7, 1] = np.nan
    holes[5] = np.nan
    scaling = learn_scalings(Views({"a": holes, "b": B}), engine)["a"]
    np.testing.assert_allclose(scaling.mean, np.nanmean(holes, axis=0))
    block = scaled(holes, scaling)
    assert (block[5] == 0).all()
    assert (block[::7, 1] == 0).all()


def test_scaling_survives_constant_and_far_away_features(engine):
    scalings = learn_scalings(Views({"constant": np.ones((9, 2)), "far": 1e9 + np.arange(9.0)[:, None]}), engine)
    assert scalings["constant"].factor == 1.0
    far = scaled(1e9 + np.arange(9.0)[:, None], scalings["far"])
    np.testing.assert_allclose(np.diff(far[:, 0]), np.diff(far[:, 0])[0], rtol=1e-5)


def test_a_view_nobody_has_is_refused_in_fit(engine):
    with pytest.raises(ViewsError, match="view 'b' is missing in every row"):
        learn_scalings(Views({"a": A, "b": np.full_like(B, np.nan)}), engine)


def test_joined_rows_put_zeros_for_an_absent_view(engine):
    scalings = tuple(learn_scalings(VIEWS, engine).values())
    joined = joined_rows(scalings, A, None)
    assert joined.shape == (60, 11)
    assert (joined[:, 4:] == 0).all()
    np.testing.assert_allclose(joined_rows(scalings, A, B)[:, :4], joined[:, :4])


def test_landmark_counts_follow_the_rows():
    counts = [default_n_landmarks(n) for n in range(1, 200_000, 997)]
    assert counts == sorted(counts)
    assert all(1 <= count <= n for count, n in zip(counts, range(1, 200_000, 997), strict=True))


@pytest.mark.parametrize("rule", ["kmeans", "rows"])
def test_shared_landmarks_are_aligned_across_views(engine, rule):
    """Views that hold the same numbers get the same landmarks, row by row."""
    twins = Views({"a": A, "b": A})
    sample, present = sample_scaled(twins, learn_scalings(twins, engine), engine, seed=0)
    landmarks = shared_landmarks(sample, present, 12, rule, seed=0)
    np.testing.assert_array_equal(landmarks["a"], landmarks["b"])
    assert landmarks["a"].shape == (12, 4)
    if rule == "rows":
        assert all((np.abs(sample["a"] - row).sum(1) < 1e-6).any() for row in landmarks["a"])


def test_shared_landmarks_pass_over_rows_that_lack_a_view(engine):
    holes = A.copy()
    holes[:30] = np.nan
    views = Views({"a": holes, "b": B})
    sample, present = sample_scaled(views, learn_scalings(views, engine), engine, seed=0)
    landmarks = shared_landmarks(sample, present, 20, "rows", seed=0)
    assert all((np.abs(sample["a"][30:] - row).sum(1) < 1e-6).any() for row in landmarks["a"])


def test_unknown_landmark_rule(engine):
    with pytest.raises(ParameterError, match="landmarks must be one of kmeans, rows, got 'grid'"):
        shared_landmarks({"a": A.astype(np.float32)}, np.ones((60, 1), bool), 5, "grid", 0)


def test_sample_is_seeded_and_bounded(engine):
    scalings = learn_scalings(VIEWS, engine)
    first, _ = sample_scaled(VIEWS, scalings, engine, seed=1, limit=20)
    again, present = sample_scaled(VIEWS, scalings, engine, seed=1, limit=20)
    np.testing.assert_array_equal(first["a"], again["a"])
    assert len(first["a"]) == len(present) == 20


def test_k_means_centres_are_means_of_their_rows():
    centres = np.array([[0, 0], [10, 0], [0, 10]], dtype=np.float32)
    points = (centres[np.arange(90) % 3] + 0.1 * rng.standard_normal((90, 2))).astype(np.float32)
    found = k_means(points, 3, seed=1)
    nearest = np.argmin(((points[:, None] - found[None]) ** 2).sum(-1), axis=1)
    for j, centre in enumerate(found):
        np.testing.assert_allclose(points[nearest == j].mean(0), centre, atol=1e-4)


@pytest.mark.parametrize("n_threads", ["1", "3"])
@pytest.mark.parametrize("rule", ["kmeans", "rows"])
def test_landmarks_found_side_by_side_are_those_found_alone(monkeypatch, n_threads, rule):
    monkeypatch.setenv("QUORUMHASH_THREADS", n_threads)
    sample = {name: rng.standard_normal((200, width)).astype(np.float32) for name, width in (("a", 4), ("b", 7))}
    present = rng.random((200, 2)) < 0.9
    shared, own = all_landmarks(sample, present, (12, 9), rule, seed=3)
    expected = shared_landmarks(sample, present, 12, rule, seed=3)
    for m, name in enumerate(sample):
        np.testing.assert_array_equal(shared[name], expected[name])
        np.testing.assert_array_equal(own[m], graph_landmarks(sample[name], present[:, m], 9, seed=3))


def test_repeated_rows_give_fewer_landmarks_not_a_warning():
    """Thousands of equal placeholder rows must not take more than one landmark."""
    part = np.vstack([np.zeros((50, 2)), rng.standard_normal((4, 2))]).astype(np.float32)
    landmarks = graph_landmarks(part, np.ones(54, bool), 20, seed=0)
    assert len(landmarks) == len(np.unique(landmarks, axis=0)) == 5


def test_kernels_and_graphs_of_all_kinds_of_input_agree(engine):
    space = learn_kernel_space(VIEWS, engine, 0, **OPTIONS)
    kernels, graphs = kernels_and_graphs(VIEWS, space, engine)
    other = Views({"a": scipy.sparse.csr_array(A), "b": np.asfortranarray(B)})
    kernels_too, _ = kernels_and_graphs(other, space, engine)
    for one, two, name in zip(kernels, kernels_too, VIEWS, strict=True):
        kernel = engine.get(one)
        assert kernel.dtype == np.float32
        assert kernel.shape == (60, len(space.kernels[name].landmarks))
        np.testing.assert_allclose(kernel, engine.get(two), atol=1e-6)
    weights, positions = engine.get(graphs[0].weights), engine.get(graphs[0].positions)
    G = np.zeros((60, graphs[0].n_landmarks))
    G[np.arange(60)[:, None], positions] = weights
    np.testing.assert_allclose((G @ G.T).sum(1), 1)  # doubly stochastic


def test_an_absent_view_has_no_voice_and_no_neighbours(engine):
    holes = B.copy()
    holes[7] = np.nan
    views = Views({"a": A, "b": holes})
    space = learn_kernel_space(views, engine, 0, **OPTIONS)
    kernels, graphs = kernels_and_graphs(views, space, engine)
    np.testing.assert_allclose(engine.get(kernels[1])[7], engine.get(kernels[0])[7], atol=1e-6)
    assert (engine.get(graphs[1].weights)[7] == 0).all()
    assert (engine.get(graphs[1].weights)[8] > 0).any()


def test_landmarks_stand_among_whole_rows_where_there_are_ten_for_each():
    rows = np.arange(60.0).reshape(30, 2)
    whole = np.arange(30) < 20
    np.testing.assert_array_equal(rows_for_landmarks(rows, whole, 2), rows[:20])
    assert rows_for_landmarks(rows, whole, 3) is rows
    assert rows_for_landmarks(rows, np.ones(30, dtype=bool), 2) is rows


def test_seeds_count_up_beyond_the_largest():
    points = np.float32(np.random.default_rng(0).standard_normal((40, 3)))
    np.testing.assert_array_equal(k_means(points, 4, 2**32), k_means(points, 4, 0))
