"""Worth of whole views: the community that agrees most, all of them where there is one."""

import numpy as np
import pytest

from quorumhash.overlap import neighbourhood_lift
from quorumhash.viewworth import overlap_weights


def communities(*sizes, noise=0.3, seed=0):
    """Views in communities, each with a latent space of its own and a faint common one."""
    rng = np.random.default_rng(seed)
    common = rng.standard_normal((800, 3))
    views = []
    for i, size in enumerate(sizes):
        own = rng.standard_normal((800, 4)) * (1.5 if i == 0 else 1.0)
        for _ in range(size):
            mixed = own @ rng.standard_normal((4, 10)) + 0.3 * common @ rng.standard_normal((3, 10))
            views.append(mixed + noise * (1 + i) * rng.standard_normal((800, 10)))
    return {f"v{m}": view for m, view in enumerate(views)}


def weights_of(views):
    return overlap_weights(neighbourhood_lift(views, np.ones((800, len(views)), dtype=bool)))


def test_views_that_agree_all_count():
    np.testing.assert_array_equal(weights_of(communities(5)), 1.0)
    np.testing.assert_array_equal(weights_of(communities(2)), 1.0)


def test_of_two_communities_the_one_that_agrees_most_is_kept():
    np.testing.assert_array_equal(weights_of(communities(2, 3)), [1, 1, 0, 0, 0])


def test_many_views_are_split_along_an_eigenvector():
    np.testing.assert_array_equal(weights_of(communities(8, 6)), [1] * 8 + [0] * 6)


def test_a_view_of_noise_is_dropped():
    views = communities(3)
    views["noise"] = np.random.default_rng(9).standard_normal((800, 10))
    np.testing.assert_array_equal(weights_of(views), [1, 1, 1, 0])


@pytest.mark.parametrize("lift", [np.ones((1, 1)), np.ones((3, 3)), np.ones((5, 5))])
def test_no_agreement_at_all_leaves_equal_views(lift):
    np.testing.assert_array_equal(overlap_weights(lift), 1.0)
