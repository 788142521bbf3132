"""The solver against dense mathematics: one pass of sums gives what N x N smoothing and PCA of all rows would give."""

import numpy as np
import pytest
from sklearn.decomposition import PCA

import quorumhash as qh
from quorumhash.classes import Guess, Told, learn_guess
from quorumhash.engines.threads import ThreadsEngine
from quorumhash.judging import learn_judge, repaired_rows
from quorumhash.kernelspace import put_presence
from quorumhash.quorum import (
    Dial,
    Moments,
    label_rows,
    learn_encoder,
    moment_rows,
    placed_rows,
    smoothed_table,
    tie_rows,
)
from quorumhash.scaling import put_views
from quorumhash.supervision import memberships
from quorumhash.teachers import Items, Labels, Teachers
from quorumhash.weighting import graph_spans, learn_weighting, weighted_rows, worth_of_views

N_ROWS = 250


@pytest.fixture(scope="module")
def views():
    digits = qh.load_dataset("digits")
    return qh.damage(digits.views[digits.train_rows[:N_ROWS]], "swap", rate=0.2)


@pytest.fixture(scope="module")
def judge(views):
    return learn_judge({name: views[name] for name in views}, np.ones((N_ROWS, 4), dtype=bool), [0, 1, 2, 3])[0]


@pytest.fixture(scope="module")
def weighting(judge):
    return learn_weighting(judge, np.array([1.0, 0.5, 0.0, 2.0]))


@pytest.fixture(scope="module")
def repaired(views, judge, weighting):
    present, worth = np.ones((N_ROWS, 4), dtype=bool), worth_of_views(judge, weighting)
    return repaired_rows(judge, np.ones(4), present, *(views[name] for name in views), worth=worth)


def encode(
    views,
    judge,
    weighting,
    repaired,
    smoothing,
    n_steps=2,
    labels=None,
    n_dimensions=1000,
    block_rows=64,
    from_items=False,
):
    dial = Dial(smoothing, n_steps, 20, 3)
    with ThreadsEngine(2, block_rows) as engine:
        items, given = Items(judge, put_presence(views, engine), put_views(views, engine)), None
        if labels is not None:
            told = Told(repaired[labels >= 0], memberships(labels)[labels >= 0])
            given = Labels(items, engine.put(memberships(labels)), told)
        believed = np.ones((len(repaired), len(weighting.views)), dtype=bool)
        teachers = Teachers(repaired, believed, items if from_items else None, given)
        return learn_encoder(weighting, teachers, dial, engine, 0, n_dimensions)


def dense_ties(encoder, rows):
    """F of every graph, dense."""
    found = []
    for graph, (positions, weights) in zip(
        encoder.graphs, tie_rows(encoder.graphs, encoder.weighting, rows), strict=True
    ):
        ties = np.zeros((len(rows), len(graph.landmarks)))
        np.put_along_axis(ties, positions, weights, axis=1)
        found.append(ties)
    return found


def smoothed(ties, shares, rows, n_steps):
    """The N x N smoother sum_g v_g F_g diag(F_g^T 1)^-1 F_g^T, n_steps times."""
    smoother = sum(v * f @ np.diag(1 / np.maximum(f.sum(0), 1e-12)) @ f.T for f, v in zip(ties, shares, strict=True))
    return np.linalg.matrix_power(smoother, n_steps) @ rows


SHARES = np.array([1, 1, 1, 3]) / 6  # three views that count, and all together with half of the weight


def test_weighted_rows_are_the_counting_views_side_by_side(judge, weighting, repaired):
    rows, edges = weighted_rows(weighting, repaired), judge.repair.edges
    parts = [w * repaired[:, edges[m] : edges[m + 1]] for m, w in ((0, 1.0), (1, 0.5), (3, 2.0))]
    np.testing.assert_array_equal(rows, np.hstack(parts))
    assert [span.stop - span.start for span in graph_spans(weighting)] == [p.shape[1] for p in parts] + [rows.shape[1]]


def test_sums_over_blocks_are_the_dense_products(views, judge, weighting, repaired):
    encoder = encode(views, judge, weighting, repaired, 1.0)
    rows = weighted_rows(weighting, repaired)
    everything = np.hstack([rows, *dense_ties(encoder, rows)])
    with ThreadsEngine(2, 40) as engine:
        sums, gram = engine.sum_rows(moment_rows, weighting, encoder.graphs, engine.put(rows))
    np.testing.assert_allclose(sums, everything.sum(0), atol=1e-5)  # distances are float32
    np.testing.assert_allclose(gram, everything.T @ everything, atol=1e-5)


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
def test_items_repaired_block_by_block_teach_what_repaired_rows_teach(views, judge, weighting, repaired, smoothing):
    first, second = (encode(views, judge, weighting, repaired, smoothing, from_items=is_so) for is_so in (False, True))
    np.testing.assert_allclose(first.linear, second.linear, atol=1e-8)
    for one, other in zip(first.tables, second.tables, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-8)


@pytest.mark.parametrize("n_classes", [1, 3])
def test_labels_collected_at_landmarks_are_the_dense_product(views, judge, weighting, repaired, n_classes):
    """Rows without a label have no say, and blocks without a labelled row bring nothing."""
    encoder, rng = encode(views, judge, weighting, repaired, 1.0), np.random.default_rng(0)
    classes = np.zeros((N_ROWS, n_classes))
    classes[rng.permutation(100)[:30], rng.integers(n_classes, size=30)] = 1.0
    with ThreadsEngine(2, 40) as engine:
        at_landmarks = engine.sum_rows(
            label_rows, weighting, encoder.graphs, engine.put(classes), judge, np.ones(4), put_presence(views, engine),
            *put_views(views, engine),
        )  # fmt: skip
    ties = np.hstack(dense_ties(encoder, weighted_rows(weighting, repaired)))
    wanted = ties.T @ np.hstack([classes, classes.any(axis=1, keepdims=True)])
    np.testing.assert_allclose(at_landmarks, wanted, atol=1e-5)


@pytest.mark.parametrize("n_steps", [1, 2, 4])
def test_tables_smooth_as_the_dense_graph_does(views, judge, weighting, repaired, n_steps):
    encoder = encode(views, judge, weighting, repaired, 1.0)
    rows = weighted_rows(weighting, repaired)
    ties = dense_ties(encoder, rows)
    everything = np.hstack([rows, *ties])
    shares = np.repeat(SHARES, [f.shape[1] for f in ties])
    table = smoothed_table(everything.T @ everything, np.hstack(ties).sum(0), rows.shape[1], shares, n_steps)
    np.testing.assert_allclose(np.hstack(ties) @ table, smoothed(ties, SHARES, rows, n_steps), atol=1e-9)


@pytest.mark.parametrize("smoothing", [0.0, 0.4, 1.0])
def test_dimensions_are_principal_components_of_what_is_smoothed(views, judge, weighting, repaired, smoothing):
    encoder = encode(views, judge, weighting, repaired, smoothing, n_dimensions=8)
    rows = weighted_rows(weighting, repaired)
    ties = dense_ties(encoder, rows) if smoothing else []
    target = (1 - smoothing) * rows + (smoothing * smoothed(ties, SHARES, rows, 2) if ties else 0)
    expected = PCA(8, svd_solver="full").fit_transform(target)
    np.testing.assert_allclose(np.abs(placed_rows(encoder, repaired)), np.abs(expected), atol=1e-6)


def test_the_dial_at_neighbours_keeps_distances(views, judge, weighting, repaired):
    encoder = encode(views, judge, weighting, repaired, 0.0)
    assert encoder.graphs == ()
    rows, placed = weighted_rows(weighting, repaired), placed_rows(encoder, repaired)
    wanted = np.linalg.norm(rows[:50, None] - rows[None, 50:100], axis=2)
    np.testing.assert_allclose(np.linalg.norm(placed[:50, None] - placed[None, 50:100], axis=2), wanted, rtol=1e-4)


def test_labels_add_dimensions_that_tell_classes_apart(views, judge, weighting, repaired):
    digits = qh.load_dataset("digits")
    labels = digits.labels[digits.train_rows[:N_ROWS]]
    plain = placed_rows(encode(views, judge, weighting, repaired, 1.0, n_dimensions=10), repaired)
    told = placed_rows(encode(views, judge, weighting, repaired, 1.0, labels=labels, n_dimensions=10), repaired)

    def between(rows):
        means = np.stack([rows[labels == c].mean(0) for c in np.unique(labels)])
        return np.square(means - rows.mean(0)).sum() / np.square(rows - rows.mean(0)).sum()

    assert between(told) > between(plain)


def test_labels_that_foretell_nothing_change_nothing(views, judge, weighting, repaired, monkeypatch):
    def guess_nothing(rows, classes, variance):  # labels drawn at random foretell each other a little, by chance
        return Guess(learn_guess(rows, classes, variance).slopes, 0.0)

    monkeypatch.setattr("quorumhash.quorum.learn_guess", guess_nothing)
    labels = np.where(np.arange(N_ROWS) < 40, np.random.default_rng(1).integers(20, size=N_ROWS), -1)
    plain = placed_rows(encode(views, judge, weighting, repaired, 1.0, n_dimensions=20), repaired)
    told = placed_rows(encode(views, judge, weighting, repaired, 1.0, labels=labels, n_dimensions=20), repaired)
    np.testing.assert_allclose(told, plain, atol=1e-8)


def test_variance_is_that_of_the_mapped_rows():
    rng = np.random.default_rng(0)
    everything, maps = 1.0 + rng.standard_normal((30, 5)), rng.standard_normal((5, 3))
    moments = Moments(30, 5, everything.sum(axis=0), everything.T @ everything)
    assert moments.variance(maps) == pytest.approx((everything @ maps).var(axis=0).sum())
