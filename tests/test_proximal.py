"""SPEC tests T8 and T9, and the rotation towards bits."""

import numpy as np
import pytest

from quorumhash.engines.threads import ThreadsEngine
from quorumhash.proximal import (
    decomposed,
    fix_signs,
    rotate_to_bits,
    shrink_entries,
    shrink_rows,
    shrink_singular_values,
)


@pytest.mark.parametrize("threshold", [0.0, 0.5, 3.0, 1e3])
def test_t8_shrinking_by_the_gram_matrix_equals_the_svd(threshold):
    X = np.random.default_rng(0).standard_normal((200, 12)) @ np.diag(np.linspace(0.1, 2, 12))
    U, values, Vt = np.linalg.svd(X, full_matrices=False)
    left = np.maximum(values - threshold, 0.0)
    shrinkage = shrink_singular_values(X.T @ X, threshold)
    np.testing.assert_allclose(X @ shrinkage.operator, (U * left) @ Vt, atol=1e-10)
    assert shrinkage.nuclear_norm == pytest.approx(left.sum())
    assert shrinkage.rank == (left > 0).sum()
    np.testing.assert_allclose(shrinkage.basis.T @ shrinkage.basis, np.eye(shrinkage.rank), atol=1e-12)


@pytest.mark.parametrize(
    ("shrink", "norm"),
    [(shrink_rows, lambda E: np.linalg.norm(E, axis=1).sum()), (shrink_entries, lambda E: np.abs(E).sum())],
)
def test_t9_shrinking_minimises_its_proximal_problem(shrink, norm):
    rng = np.random.default_rng(0)
    V, threshold = rng.standard_normal((30, 5)), 1.7
    V[0] = 0.0

    def objective(E):
        return threshold * norm(E) + 0.5 * ((E - V) ** 2).sum()

    best = shrink(V, threshold)
    assert np.isfinite(best).all()
    assert (best == 0).any()
    for scale in (1e-4, 1e-2, 1.0):
        for _ in range(50):
            assert objective(best + scale * rng.standard_normal(V.shape)) >= objective(best)


def test_shrunk_rows_keep_their_direction():
    row = np.array([[3.0, 4.0]])
    np.testing.assert_allclose(shrink_rows(row, 2.0), row * 3 / 5)


def test_rotation_is_orthogonal_and_brings_scores_closer_to_bits():
    rng = np.random.default_rng(0)
    turn, _ = np.linalg.qr(rng.standard_normal((6, 6)))
    bits = np.where(rng.random((500, 6)) < 0.5, -1.0, 1.0)
    scores = (bits + 0.1 * rng.standard_normal(bits.shape)) @ turn
    with ThreadsEngine(n_threads=2, block_rows=100) as engine:
        rotation = rotate_to_bits(engine.put(scores), 6, engine, seed=0)
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(6), atol=1e-12)

    def loss(projected):
        return ((projected - np.where(projected >= 0, 1.0, -1.0)) ** 2).sum()

    assert loss(scores @ rotation) < 0.2 * loss(scores)


def test_rotation_never_raises_the_quantization_loss():
    rng = np.random.default_rng(1)
    scores = rng.standard_normal((300, 5)) * np.array([3, 2, 1, 0.5, 0.2])
    losses = []
    with ThreadsEngine(n_threads=1, block_rows=64) as engine:
        rows = engine.put(scores)
        for n_steps in range(1, 12):
            turned = scores @ rotate_to_bits(rows, 5, engine, seed=0, n_steps=n_steps)
            losses.append(((turned - np.where(turned >= 0, 1.0, -1.0)) ** 2).sum())
    assert (np.diff(losses) <= 1e-9).all()


def test_signs_are_fixed_whatever_came():
    vectors = np.random.default_rng(0).standard_normal((7, 4))
    flipped = vectors * np.array([1, -1, -1, 1])
    np.testing.assert_array_equal(fix_signs(vectors), fix_signs(flipped))


def test_a_decomposition_that_does_not_converge_is_made_the_slower_way(monkeypatch):
    matrix = np.random.default_rng(0).standard_normal((9, 9))
    wanted = np.linalg.svd(matrix, compute_uv=False)

    def refuse(*_, **__):
        raise np.linalg.LinAlgError("SVD did not converge")

    monkeypatch.setattr(np.linalg, "svd", refuse)
    left, values, right = decomposed(matrix)
    np.testing.assert_allclose(values, wanted, rtol=1e-12)
    np.testing.assert_allclose((left * values) @ right, matrix, atol=1e-12)


def test_a_rotation_of_many_rows_looks_at_some_of_them_evenly_spread(monkeypatch):
    """Rows between those looked at may be anything."""
    monkeypatch.setattr("quorumhash.proximal.MOST_TURNED", 100)
    rows = np.random.default_rng(0).standard_normal((300, 4)) * [3.0, 2.0, 1.0, 0.5]
    spoiled = np.where(np.arange(300)[:, None] % 3 == 0, rows, 1e6)
    with ThreadsEngine() as engine:
        found = [rotate_to_bits(engine.put(given), 4, engine, 0) for given in (rows[::3], rows, spoiled)]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
