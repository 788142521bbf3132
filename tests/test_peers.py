"""Peers: each against a plain reference, what it takes in bytes, and what it refuses."""

import importlib.util
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr

from quorumhash.bench import peers
from quorumhash.bench.peers import PEERS, PeerData, refusal
from quorumhash.bench.settings import Setting, run_key
from quorumhash.datasets import load_dataset, thinned
from quorumhash.experiment import joined_features, run_setting
from quorumhash.hashers import PCAHasher
from quorumhash.views import Views


def data_of(views, n_bits, n_train=None):
    views = Views(views)
    rows = np.arange(len(views))
    queries, others = rows[:12], rows[12:]
    train_rows = others[:n_train]
    return PeerData(views, joined_features(views, train_rows), train_rows, others, queries, n_bits, seed=3)


@pytest.fixture
def random_data():
    rng = np.random.default_rng(0)
    mixing = rng.standard_normal((20, 40))
    rows = rng.standard_normal((412, 20)) @ mixing
    return data_of({"a": rows[:, :25] + 3, "b": 9 * rows[:, 25:]}, 16)


def exact_squares(data):
    queries, items = data.joined[data.query_rows], data.joined[data.database_rows]
    return ((queries[:, None] - items) ** 2).sum(axis=2)


@pytest.mark.extra
@pytest.mark.parametrize("peer", ["pq", "opq"])
def test_product_quantization_is_exact_where_rows_are_few_points(peer):
    """With 30 distinct rows every part has a centroid for each of them; queries stay floats."""
    rng = np.random.default_rng(1)
    points = rng.standard_normal((30, 10))
    rows = np.concatenate([rng.standard_normal((12, 10)), points[rng.integers(0, 30, 400)]])
    data = data_of({"a": rows}, 32)
    ranking = PEERS[peer](data)
    assert ranking.bytes_per_item == 4
    assert ranking.distances == pytest.approx(
        exact_squares(data), rel=1e-2
    )  # faiss moves unused centroids by a thousandth


@pytest.mark.extra
@pytest.mark.parametrize(("peer", "n_bytes"), [("pq", 2), ("opq", 2), ("rabitq", 10)])
def test_faiss_peers_rank_nearly_as_floats_do(random_data, peer, n_bytes):
    ranking = PEERS[peer](random_data)
    assert ranking.bytes_per_item == n_bytes
    assert spearmanr(ranking.distances, exact_squares(random_data), axis=None).statistic > 0.6
    assert np.array_equal(ranking.distances, PEERS[peer](random_data).distances)


def test_rank_fusion_is_the_sum_of_reciprocal_ranks():
    rng = np.random.default_rng(2)
    views = {"a": rng.standard_normal((40, 6)), "b": rng.standard_normal((40, 9)), "c": rng.standard_normal((40, 5))}
    views["b"][[3, 17, 20]] = np.nan
    data = data_of(views, 16)
    expected = np.zeros((12, 28))
    for name, n_bits in (("a", 6), ("b", 5), ("c", 5)):
        present = data.views.present(name)
        train = views[name][data.train_rows[present[data.train_rows]]]
        hasher = PCAHasher(n_bits, rotate=True, random_state=3).fit({name: train})
        kept = [j for j, row in enumerate(data.database_rows) if present[row]]
        bits = hasher.transform({name: views[name][data.database_rows[kept]]}, packed=False)
        for i, query in enumerate(data.query_rows):
            if not present[query]:
                continue
            own = hasher.transform({name: views[name][[query]]}, packed=False)[0]
            distances = np.array([np.sum(own != other) for other in bits])
            for j, distance in zip(kept, distances, strict=True):
                rank = np.sum(distances < distance) + (np.sum(distances == distance) + 1) / 2
                expected[i, j] += 1 / (60 + rank)
    ranking = PEERS["rank_fusion"](data)
    assert ranking.bytes_per_item == 2
    assert -ranking.distances == pytest.approx(expected)


def test_sign_has_one_bit_per_feature(random_data):
    bits = random_data.joined >= 0
    expected = (bits[random_data.query_rows][:, None] != bits[random_data.database_rows]).sum(axis=2)
    ranking = PEERS["sign"](random_data)
    assert np.array_equal(ranking.distances, expected)
    assert ranking.bytes_per_item == 5


def test_rescoring_puts_the_first_hundred_into_exact_order_before_all_others(random_data):
    plain, rescored = PEERS["sign"](random_data).distances, PEERS["sign_rescored"](random_data)
    assert rescored.bytes_per_item == 5 + 4 * 40
    exact = exact_squares(random_data)
    for by_sign, again, squares in zip(plain, rescored.distances, exact, strict=True):
        first = np.argsort(by_sign, kind="stable")[:100]
        order = np.argsort(again, kind="stable")
        assert np.array_equal(order[:100], first[np.argsort(squares[first])])
        assert np.all(np.diff(by_sign[order[100:]]) >= 0)


def test_what_cannot_be_done_is_refused_in_a_sentence(random_data, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    assert refusal("opq", random_data) == ""
    assert "multiple of 8, got 12" in refusal("pq", replace(random_data, n_bits=12))
    assert "at most the number of features (40), got 48" in refusal("rabitq", replace(random_data, n_bits=48))
    assert "has 100 training rows" in refusal("opq", replace(random_data, train_rows=random_data.train_rows[:100]))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert refusal("opq", random_data) == "opq needs faiss: pip install 'quorumhash[bench]'."
    assert refusal("rank_fusion", random_data) == ""


def test_a_peer_is_a_run_with_measures_and_bytes(monkeypatch):
    digits = thinned(load_dataset("digits"), 360)
    clean, damaged = (run_setting(Setting("sign", 64, kind, role="peer"), digits) for kind in ("clean", "swap"))
    assert len(clean.query_codes) == 0
    assert clean.measures["bytes_per_item"] == 24  # 187 features
    assert clean.measures["map"] > damaged.measures["map"] > 0.2
    monkeypatch.setattr(peers.importlib.util, "find_spec", lambda name: None)
    assert "pip install" in run_setting(Setting("pq", 64, role="peer"), digits).refusal


def test_bits_have_no_say_in_a_peer_with_a_bit_per_feature():
    def key(peer, n_bits):
        return run_key(Setting(peer, n_bits, role="peer"))

    assert key("sign", 32) == key("sign", 64) != key("sign_rescored", 64)
    assert key("pq", 32) != key("pq", 64)


def test_a_peer_sees_weighted_views(monkeypatch):
    seen = []
    monkeypatch.setitem(PEERS, "sign", lambda data: seen.append(data) or peers.sign(data))
    digits = thinned(load_dataset("digits"), 300)
    weights = dict.fromkeys(digits.views.names, 0.0) | {"pixels": 1.0}
    run_setting(Setting("sign", 0, role="peer", weights="auto"), digits, weights=weights)
    assert seen[0].views.names == ("pixels",)
    one, other = Setting("sign", 0, role="peer", weights="auto"), Setting("sign", 0, role="peer")
    assert run_key(one) != run_key(other)
