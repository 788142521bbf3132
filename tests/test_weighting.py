"""Weighted views: scale, what is missing, what is left out, and that weights last where views are joined."""

import numpy as np
import pytest

import quorumhash.bench.weighting as weighting
from quorumhash.bench.weighting import automatic_weights, row_normalised_views, weighted_views
from quorumhash.errors import ParameterError
from quorumhash.hashers import HASHERS, ITQHasher
from quorumhash.views import Views

ROWS = np.arange(40)


@pytest.fixture
def views():
    rng = np.random.default_rng(0)
    return Views({"a": rng.normal(3, 5, (50, 4)), "b": rng.normal(-1, 0.1, (50, 3)), "c": rng.random((50, 2))})


def test_views_are_centred_scaled_and_weighted_by_the_training_rows(views):
    weighted = weighted_views(views, ROWS, {"a": 2.0, "b": 0.5, "c": 0.0})
    assert weighted.names == ("a", "b")
    for name, weight in (("a", 2.0), ("b", 0.5)):
        training = weighted[name][ROWS]
        assert training.mean(axis=0) == pytest.approx(0, abs=1e-9)
        assert (training**2).sum(axis=1).mean() == pytest.approx(weight**2)


def test_joined_views_are_the_weighted_ones_side_by_side(views):
    weights = {"a": 2.0, "b": 0.5, "c": 1.0}
    apart, joined = weighted_views(views, ROWS, weights), weighted_views(views, ROWS, weights, is_joined=True)
    assert np.array_equal(joined["joined"], np.hstack([apart[name] for name in apart]))


def test_weights_change_codes_only_where_views_are_joined(views):
    """A hasher brings every view to one scale, which undoes the weight of a view of its own."""
    weights = {"a": 9.0, "b": 1.0, "c": 1.0}
    equal = ITQHasher(4).fit(views).transform(views)
    for is_joined in (False, True):
        weighted = weighted_views(views, ROWS, weights, is_joined)
        codes = ITQHasher(4).fit(weighted).transform(weighted)
        assert np.array_equal(codes, equal) != is_joined


def test_missing_stays_missing_and_an_item_without_a_weighted_view_counts_as_the_mean():
    views = Views({"a": [[1.0, 2.0], [np.nan, 4.0], [np.nan, np.nan]], "b": [[1.0], [2.0], [3.0]]})
    weighted = weighted_views(views, np.arange(3), {"a": 1.0, "b": 0.0})
    assert np.isnan(weighted["a"][1]).tolist() == [True, False]
    assert weighted["a"][2].tolist() == [0.0, 0.0]
    assert weighted["a"][0, 1] == -weighted["a"][1, 1]  # the third item has no say in the mean


def test_no_weight_at_all_is_refused(views):
    with pytest.raises(ParameterError, match="above 0 for some view"):
        weighted_views(views, ROWS, {"a": 0.0})


def test_automatic_weights_are_those_of_a_quorum_model(views, monkeypatch):
    class Weigher(ITQHasher):
        def __init__(self, n_bits=64, *, view_weights=None, random_state=0):
            super().__init__(n_bits, random_state=random_state)
            self.view_weights = view_weights

        def fit(self, X, y=None, **options):
            self.view_weights_ = dict.fromkeys(X, 1.0) | {"a": 3.0 if self.view_weights == "auto" else 1.0}
            return self

    monkeypatch.delitem(HASHERS, weighting.WEIGHER, raising=False)
    with pytest.raises(ParameterError, match="not in this version"):
        automatic_weights(views, 0)
    monkeypatch.setitem(HASHERS, weighting.WEIGHER, Weigher)
    assert automatic_weights(views, 0) == {"a": 3.0, "b": 1.0, "c": 1.0}


def test_normalised_rows_point_from_the_training_mean_and_have_length_one(views):
    missing = {name: views[name].copy() for name in views}
    missing["a"][3] = np.nan
    missing["b"][5, 1] = np.nan
    normalised = row_normalised_views(Views(missing), ROWS)
    for name in views:
        centred = missing[name] - np.nanmean(missing[name][ROWS], axis=0)
        expected = [row / np.sqrt(np.nansum(row**2)) for row in centred]
        assert normalised[name] == pytest.approx(np.array(expected), nan_ok=True)
    assert not normalised.present("a")[3]


def test_a_row_at_the_mean_stays_there():
    views = row_normalised_views(Views({"a": [[1.0], [3.0], [2.0]]}), np.arange(2))
    assert views["a"].ravel().tolist() == [-1.0, 1.0, 0.0]
