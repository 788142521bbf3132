"""What bits are cut from: kernel components against the textbook form, and what they are for."""

import numpy as np
import pytest

from quorumhash.evaluation import nearest_rows, neighbour_recall, true_neighbours
from quorumhash.nearness import LEVELLING, kernel_rows, learn_nearness, near_rows


@pytest.fixture(scope="module")
def rows():
    """Ten wide clusters in few dimensions, fine structure in many."""
    rng = np.random.default_rng(0)
    centres = 4.0 * rng.standard_normal((10, 5)) @ rng.standard_normal((5, 40))
    return centres[rng.integers(10, size=600)] + rng.standard_normal((600, 40))


def test_few_rows_give_the_textbook_kernel_components():
    """With every distinct row a landmark, components are those of the double-centred kernel matrix, levelled."""
    rows = np.random.default_rng(0).standard_normal((3, 8)).repeat(4, axis=0)
    rows[:, :2] += 1e-3 * np.arange(12)[:, None]  # twelve distinct rows, four landmarks
    nearness = learn_nearness(rows, 0.0, seed=0)
    found = near_rows(nearness, rows)
    to_marks = kernel_rows(nearness.landmarks, nearness.bandwidth, rows)
    among = kernel_rows(nearness.landmarks, nearness.bandwidth, nearness.landmarks)
    approximate = to_marks @ np.linalg.pinv(among, rcond=1e-6) @ to_marks.T  # Nystrom
    centring = np.eye(12) - 1 / 12
    values, vectors = np.linalg.eigh(centring @ approximate @ centring / 12)
    values, vectors = values[::-1][:4].clip(0), vectors[:, ::-1][:, :4]
    expected = vectors * np.sqrt(12 * values / (values + LEVELLING * values.mean()))
    np.testing.assert_allclose(np.abs(found[:, :2]), np.abs(expected[:, :2]), atol=1e-3)


def test_kernel_is_one_at_a_landmark_and_falls_slowly():
    marks = np.zeros((1, 2), dtype=np.float32)
    kernel = kernel_rows(marks, 2.0, np.array([[0.0, 0.0], [2.0, 2.0], [0.0, 200.0]]))
    np.testing.assert_allclose(kernel[:, 0], [1.0, 0.5, 1 / 5001])


def test_columns_fall_in_variance_and_have_mean_zero(rows):
    for smoothing in (0.0, 0.5):
        found = near_rows(learn_nearness(rows, smoothing, seed=0), rows)
        np.testing.assert_allclose(found.mean(axis=0), 0.0, atol=1e-8)
        assert (np.diff(found.var(axis=0)) <= 1e-9).all()


def test_for_groups_bits_are_cut_from_the_dimensions_themselves(rows):
    assert learn_nearness(rows, 1.0, seed=0) is None
    np.testing.assert_array_equal(near_rows(None, rows), rows)


def test_the_dial_goes_from_one_to_the_other(rows):
    """Near the ends the columns explain nearly all of what stands at that end."""

    def explained(target, columns):
        centred = target - target.mean(axis=0)
        fit = columns @ np.linalg.lstsq(columns, centred, rcond=None)[0]
        return 1 - ((centred - fit) ** 2).sum() / (centred**2).sum()

    first = {s: near_rows(learn_nearness(rows, s, seed=0), rows)[:, :30] for s in (0.0, 0.01, 0.99)}
    assert explained(first[0.0], first[0.01]) > 0.99
    assert explained(rows, first[0.99]) > explained(rows, first[0.0])


def test_few_bits_find_more_of_the_nearest_rows(rows):
    queries, database = rows[:100], rows[100:]
    truth = true_neighbours(queries, database, 5)

    def recall(learned):
        turn = np.linalg.qr(np.random.default_rng(1).standard_normal((32, 32)))[0]
        signs = [
            np.sign((learned(part) - learned(database).mean(axis=0))[:, :32] @ turn) for part in (queries, database)
        ]
        return neighbour_recall(nearest_rows(32 - signs[0] @ signs[1].T, 10), truth)

    _, _, directions = np.linalg.svd(database - database.mean(axis=0), full_matrices=False)
    nearness = learn_nearness(database @ directions.T, 0.0, seed=0)
    plain = recall(lambda part: part @ directions.T)
    assert recall(lambda part: near_rows(nearness, part @ directions.T)) > 1.1 * plain


def test_equal_rows_give_finite_columns():
    for rows in (np.zeros((5, 3)), np.ones((1, 2)), np.eye(2)):
        found = near_rows(learn_nearness(rows, 0.0, seed=0), rows)
        assert np.isfinite(found).all()
