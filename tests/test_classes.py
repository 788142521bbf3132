"""What labels say about classes: near by landmarks, far by regression, and how far the regression is believed."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import Ridge

from quorumhash.classes import LABEL_SMOOTHING, MOST_LABELLED, RIDGES, class_table, learn_guess, some_labelled


def test_classes_of_landmarks_minimise_what_they_claim():
    rng = np.random.default_rng(0)
    ties = rng.random((6, 6))
    ties = ties + ties.T
    labelled = rng.random((6, 2))
    weight = labelled.sum(1)
    found = class_table(ties, np.column_stack([labelled, weight]))
    prior = labelled.sum(0) / weight.sum()
    degrees = ties.sum(1)
    smoothing = LABEL_SMOOTHING * weight.sum() / degrees.sum()

    def cost(flat):
        p = flat.reshape(6, 2)
        fit = (weight[:, None] * (p - (labelled / weight[:, None] - prior)) ** 2).sum()
        edges = 0.5 * sum(ties[i, j] * ((p[i] - p[j]) ** 2).sum() for i in range(6) for j in range(6))
        return fit + smoothing * (edges + 0.01 * (degrees[:, None] * p**2).sum())

    best = minimize(cost, np.zeros(12), tol=1e-12)
    np.testing.assert_allclose(found, best.x.reshape(6, 2), atol=1e-4)


@pytest.fixture(scope="module")
def labelled():
    rng = np.random.default_rng(3)
    rows = 2.0 + rng.standard_normal((40, 6))
    classes = np.eye(3)[np.argmax(rows[:, :3] + rng.standard_normal((40, 3)), axis=1)]
    return rows, classes


def test_the_regression_foretells_each_label_from_the_others(labelled):
    rows, classes = labelled
    reached = {}
    for ridge in RIDGES:
        guessed, true = np.empty_like(classes), np.empty_like(classes)
        for i in range(len(rows)):
            others = np.arange(len(rows)) != i
            prior = classes[others].mean(axis=0)
            guessed[i] = Ridge(ridge * 5.0).fit(rows[others], classes[others]).predict(rows[[i]])[0] - prior
            true[i] = classes[i] - prior
        reached[ridge] = float((guessed * true).sum() / np.sqrt((guessed**2).sum() * (true**2).sum()))
    best = max(reached, key=reached.__getitem__)
    guess = learn_guess(rows, classes, 5.0)
    assert guess.correlation == pytest.approx(reached[best])
    np.testing.assert_allclose(guess.slopes, Ridge(best * 5.0).fit(rows, classes).coef_.T, atol=1e-10)


def test_labels_without_a_rule_are_not_believed(labelled):
    rows, _ = labelled
    classes = np.eye(20)[np.random.default_rng(1).integers(20, size=40)]
    found = learn_guess(rows, classes, 5.0).correlation
    assert found < 0.15
    assert learn_guess(rows[:2], classes[:2], 5.0).correlation == 0.0
    assert learn_guess(np.ones((40, 6)), classes, 0.0).correlation == 0.0


def test_some_labelled_rows_are_labelled_and_not_too_many():
    classes = np.zeros((3000, 2))
    classes[::2, 1] = 1.0
    chosen = some_labelled(classes, 0)
    assert len(chosen) == MOST_LABELLED
    assert (chosen % 2 == 0).all()
    np.testing.assert_array_equal(some_labelled(classes[:6], 0), [0, 2, 4])
