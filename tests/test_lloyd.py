"""k-means: the steps of scikit-learn's, the same centres whatever the number of threads."""

import warnings

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from quorumhash import lloyd as module
from quorumhash.lloyd import lloyd


def clustered(n, d, n_groups, seed=0):
    rng = np.random.default_rng(seed)
    groups = rng.standard_normal((n_groups, d)) * 3
    return (groups[rng.integers(0, n_groups, n)] + rng.standard_normal((n, d))).astype(np.float32)


def of_scikit_learn(points, n_centres, seed, max_iter):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        solver = KMeans(n_centres, init="random", n_init=1, max_iter=max_iter, random_state=seed, algorithm="lloyd")
        return solver.fit(points).cluster_centers_


@pytest.mark.parametrize("max_iter", [1, 10, 300])
@pytest.mark.parametrize(("n", "d", "n_centres", "n_groups"), [(2_000, 40, 30, 12), (1_100, 3, 100, 5), (60, 7, 59, 6)])
def test_centres_are_those_of_scikit_learn(n, d, n_centres, n_groups, max_iter):
    points = clustered(n, d, n_groups) + 5
    found = lloyd([(points, n_centres, 4)], max_iter)[0]
    np.testing.assert_allclose(found, of_scikit_learn(points, n_centres, 4, max_iter), atol=2e-4)
    assert found.dtype == np.float32


def test_a_centre_that_no_row_is_nearest_to_goes_to_the_farthest_row():
    """Rows that are equal but for rounding: all centres but one are left alone in the first step."""
    points = np.repeat(np.float32([[0.0, 0.0]]), 20, axis=0)
    points[17:] = [[1.0, 0.0], [0.0, 5.0], [9.0, 9.0]]
    first = np.random.RandomState(2).choice(20, 3, replace=False, p=np.full(20, 1 / 20))
    assert (first < 17).all()  # the seed was chosen so: three equal centres
    for max_iter in (1, 300):  # after one step the row must have left the mean of its first centre
        found = lloyd([(points, 3, 2)], max_iter)[0]
        np.testing.assert_allclose(found, of_scikit_learn(points, 3, 2, max_iter), atol=1e-6)
    assert len(np.unique(found, axis=0)) == 3


def test_one_thread_and_many_give_the_same_bits(monkeypatch):
    monkeypatch.setattr(module, "WORTH_A_THREAD", 1)
    points, found = clustered(3_000, 20, 9), []
    for n_threads in ("1", "2", "5"):
        monkeypatch.setenv("QUORUMHASH_THREADS", n_threads)
        found.append(lloyd([(points, 40, 0)], 10)[0])
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


def test_several_jobs_at_once_are_each_as_if_alone():
    jobs = [(clustered(900, 5, 4, seed), 20 + seed, seed) for seed in range(3)]
    for job, together in zip(jobs, lloyd(jobs, 10), strict=True):
        assert np.array_equal(lloyd([job], 10)[0], together)
    assert lloyd([], 10) == []
