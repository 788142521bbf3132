"""One setting, one outcome: where damage falls, the oracle, float search, rescoring, and which settings are one run."""

from dataclasses import replace

import numpy as np
import pytest

from quorumhash.bench.settings import Setting, damage_key, run_key, simplest
from quorumhash.bench.weighting import row_normalised_views
from quorumhash.bench.workbench import Workbench
from quorumhash.datasets import load_dataset, thinned, validation_cut
from quorumhash.experiment import damaged_data, run_setting, undamaged_neighbours, without_damage
from quorumhash.hashers import HASHERS, ITQHasher


@pytest.fixture(scope="module")
def digits():
    return thinned(load_dataset("digits"), 360)


def changed_rows(dataset, damaged):
    return np.any([(damaged.views[n] != dataset.views[n]).any(axis=1) for n in dataset.views], axis=0)


def test_damage_falls_where_the_setting_says(digits):
    both = damaged_data(digits, Setting("itq", 8, "swap", 0.5))
    is_query = np.isin(np.arange(len(digits.views)), digits.query_rows)
    for where, rows in (("queries", is_query), ("database", ~is_query)):
        part = damaged_data(digits, Setting("itq", 8, "swap", 0.5, where=where))
        assert not changed_rows(digits, part)[~rows].any()
        assert np.array_equal(part.views["pixels"][rows], both.views["pixels"][rows])
        assert np.array_equal(part.mask, both.mask & rows[:, None])


def test_views_of_a_source_are_swapped_together(digits):
    sourced = replace(digits, sources={"one": ["pixels", "profiles"], "two": ["gradients", "frequencies"]})
    mask = damaged_data(sourced, Setting("itq", 8, "swap_source", 0.4)).mask
    assert np.array_equal(mask[:, 0], mask[:, 3])
    assert not np.array_equal(mask[:, 0], mask[:, 1])
    alone = damaged_data(digits, Setting("itq", 8, "swap_source", 0.4)).mask
    assert np.array_equal(alone, damaged_data(digits, Setting("itq", 8, "swap", 0.4)).mask)


def test_the_oracle_sees_no_damaged_pair_and_every_other(digits):
    damaged = damaged_data(digits, Setting("itq", 8, "noise", 0.5))
    views = without_damage(damaged)
    spared = damaged.mask.all(axis=1)
    assert spared.any()
    for name, hit in zip(views, damaged.mask.T, strict=True):
        assert np.array_equal(np.isnan(views[name]).all(axis=1), hit & ~spared)
        assert np.array_equal(views[name][~hit], digits.views[name][~hit])


def test_the_oracle_is_the_method_on_those_views(digits):
    setting = Setting("itq", 16, "noise", 0.4, role="oracle")
    views = without_damage(damaged_data(digits, setting))
    expected = ITQHasher(16).fit(views[digits.train_rows]).transform(views[digits.query_rows])
    assert np.array_equal(run_setting(setting, digits).query_codes, expected)


def test_float_search_has_measures_and_no_codes(digits):
    clean, damaged = (run_setting(Setting("", 0, kind, role="float"), digits) for kind in ("clean", "swap"))
    assert len(clean.query_codes) == 0
    assert clean.measures["recall_10"] == pytest.approx(1.0)
    assert clean.measures["map"] > damaged.measures["map"]


def test_truth_is_sought_in_the_views_that_define_it(digits):
    alone = replace(digits, views=type(digits.views)({"pixels": digits.views["pixels"]}))
    limited = undamaged_neighbours(replace(digits, truth_views=("pixels",)))
    assert np.array_equal(limited, undamaged_neighbours(alone))
    assert not np.array_equal(limited, undamaged_neighbours(digits))


class Embedding(ITQHasher):
    """itq with what a quorum model can do besides: floats to rescore with, and reliabilities."""

    def __init__(self, n_bits=64, *, sources=None, random_state=0):
        super().__init__(n_bits, random_state=random_state)
        self.sources = sources

    def embed(self, X):
        return np.asarray(X["pixels"], dtype=np.float32)

    def reliability(self, X):
        return np.stack([X["pixels"][:, 20] / 32, *[np.ones(len(X))] * 3], axis=1)


def test_rescoring_takes_the_nearest_embeddings_of_the_candidates(digits, monkeypatch):
    monkeypatch.setitem(HASHERS, "embedding", Embedding)
    outcome = run_setting(Setting("embedding", 16, "swap", 0.2, where="database"), digits)
    pixels = damaged_data(digits, outcome.setting).views["pixels"].astype(np.float32)
    distances = np.bitwise_count(outcome.query_codes[:, None] ^ outcome.database_codes).sum(axis=2)
    for query in range(5):
        candidates = np.argsort(distances[query], kind="stable")[:100]
        gaps = ((pixels[digits.database_rows[candidates]] - pixels[digits.query_rows[query]]) ** 2).sum(axis=1)
        gap_of = dict(zip(candidates.tolist(), gaps.tolist(), strict=True))
        assert [gap_of[found] for found in outcome.rescored[query]] == pytest.approx(np.sort(gaps)[:10])
    assert outcome.rescored.dtype == np.int32
    assert outcome.reliability.shape == outcome.damaged_queries.shape == (60, 4)
    assert not outcome.damaged_queries.any()  # only the database is damaged


def test_a_hasher_is_told_the_sources_only_where_the_setting_says(digits, monkeypatch):
    seen = []
    monkeypatch.setitem(HASHERS, "embedding", Embedding)
    monkeypatch.setattr(Embedding, "handles", lambda self, views: (bool(seen.append(self.sources)), "seen"))
    sourced = replace(digits, sources={"one": ["pixels"]})
    for is_told in (False, True):
        run_setting(Setting("embedding", 16, is_told_sources=is_told), sourced)
    assert seen == [None, {"one": ["pixels"]}]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Setting("itq", 64, "zero", 0.0, where="queries"), Setting("itq", 64, label="ours")),
        (Setting("itq", 64, role="oracle"), Setting("itq", 64)),
        (Setting("itq", 64, "swap", role="chance"), Setting("", 64, role="chance")),
        (Setting("itq", 64, "swap", role="float"), Setting("", 16, "swap", role="float", weights="auto")),
        (Setting("", 8, role="float", random_state=3), Setting("", 8, role="float")),
    ],
)
def test_equal_runs_have_one_key(one, other):
    assert run_key(one) == run_key(other)
    assert simplest(simplest(one)) == simplest(one)


@pytest.mark.parametrize(
    "change",
    [{"n_bits": 32}, {"rate": 0.3}, {"random_state": 1}, {"parameters": {"n_steps": 3}}, {"where": "queries"},
     {"weights": "auto"}, {"role": "oracle"}, {"max_rows": 300}, {"dataset": "mfeat"}, {"is_told_sources": True},
     {"is_row_normalised": True}, {"is_validation": True}],
)  # fmt: skip
def test_different_runs_have_different_keys(change):
    setting = Setting("itq", 64, "swap", 0.2, dataset="digits")
    assert run_key(setting) != run_key(replace(setting, **change))
    is_same_data = set(change) <= {"n_bits", "parameters", "weights", "role", "is_told_sources", "is_row_normalised"}
    assert (damage_key(setting) == damage_key(replace(setting, **change))) == is_same_data


def test_keys_of_runs_that_are_stored_since_long_stay():
    key = run_key(Setting("itq", 64, "swap", 0.2, dataset="digits"))
    assert key == "0179360baa42da513c56e46669a91a06ecf47897d145e83c719e422a172475fb"


def test_row_normalised_views_reach_the_method(digits):
    setting = Setting("itq", 16, "noise", 0.4, is_row_normalised=True)
    views = row_normalised_views(damaged_data(digits, setting).views, digits.train_rows)
    expected = ITQHasher(16).fit(views[digits.train_rows]).transform(views[digits.query_rows])
    outcome = run_setting(setting, digits)
    assert np.array_equal(outcome.query_codes, expected)
    assert not np.array_equal(
        outcome.query_codes, run_setting(replace(setting, is_row_normalised=False), digits).query_codes
    )


def test_a_validation_run_asks_for_training_rows(digits):
    setting = Setting("itq", 16, dataset="digits", max_rows=360, is_validation=True)
    outcome = Workbench()(setting)
    cut = thinned(validation_cut(load_dataset("digits")), 360)
    assert not outcome.error
    assert len(outcome.query_codes) == len(cut.query_rows) == 60
    hasher = ITQHasher(16).fit(cut.views[cut.train_rows])
    assert np.array_equal(outcome.query_codes, hasher.transform(cut.views[cut.query_rows]))
