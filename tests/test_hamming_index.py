"""The index as its users see it: against brute force, against itself turned round, against a dict."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from quorumhash import HammingIndex, Matches, ParameterError, QuorumHashError, RefusedError
from quorumhash._native import kernels
from quorumhash.codes import hamming_distances, n_bytes, pack_bits
from quorumhash.index import codetable, planning, searching
from quorumhash.index.searching import thread_map


def bits_of(rng, n, n_bits):
    """Bits around few centres: codes repeat and distances tie."""
    centres = rng.integers(0, 2, (4, n_bits))
    flips = rng.random((n, n_bits)) < rng.choice([0.0, 0.02, 0.2], n)[:, None]
    return (centres[rng.integers(0, 4, n)] ^ flips).astype(np.uint8)


def codes_of(n, n_bits, seed=0):
    return pack_bits(bits_of(np.random.default_rng([seed, n_bits]), n, n_bits))


def brute(codes, ids, queries, k):
    """k nearest by sorting everything: distance, then id."""
    ids = np.asarray(ids)
    distances = hamming_distances(queries, codes)
    order = np.lexsort((np.broadcast_to(ids, distances.shape), distances))[:, :k]
    return Matches(ids[order], np.take_along_axis(distances, order, 1))


def filled(codes, ids=None, **options):
    index = HammingIndex(options.pop("n_bits", 8 * codes.shape[1]), **options)
    index.add(codes, ids)
    return index


def same(found, wanted):
    np.testing.assert_array_equal(found.ids, wanted.ids)
    np.testing.assert_array_equal(found.distances, wanted.distances)
    assert found.ids.dtype == np.int64
    assert found.distances.dtype == np.uint16


@pytest.fixture(params=["scan", "multi-index"])
def method(request, monkeypatch):
    """With multi-index, a scan is made to look dear, so that bands answer however few the items are."""
    if request.param == "multi-index":
        monkeypatch.setattr(planning, "SCAN", dict.fromkeys(planning.SCAN, 1e9))
    return request.param


@pytest.mark.parametrize("name", kernels.available())
@pytest.mark.parametrize("n_bits", [1, 8, 9, 13, 63, 64, 65, 127, 128, 256])
def test_search_and_within_are_brute_force(monkeypatch, name, method, n_bits):
    monkeypatch.setenv("QUORUMHASH_KERNEL", name)
    codes, queries = codes_of(300, n_bits), codes_of(8, n_bits, seed=1)
    queries[:4] = codes[:4]
    ids = np.random.default_rng(0).permutation(1000)[:300]
    index = filled(codes, ids, n_bits=n_bits, method=method)
    same(index.search(queries, k=12), brute(codes, ids, queries, 12))
    found, distances = index.within(queries, radius=2), hamming_distances(queries, codes)
    wanted = brute(codes, ids, queries, 300)
    for i, (near_ids, near_distances) in enumerate(found):
        n_near = (distances[i] <= 2).sum()
        np.testing.assert_array_equal(near_ids, wanted.ids[i, :n_near])
        np.testing.assert_array_equal(near_distances, wanted.distances[i, :n_near])
    stats = index.stats()
    assert stats["kernel"] == name
    assert stats["last_search"] == ("scan" if name == "numpy" else method)


def test_fewer_items_than_k_give_fewer_columns():
    index = filled(codes_of(5, 64))
    assert index.search(codes_of(3, 64), k=10).ids.shape == (3, 5)
    assert HammingIndex(64).search(codes_of(3, 64), k=10).ids.shape == (3, 0)
    assert index.search(codes_of(0, 64), k=3).ids.shape == (0, 3)
    assert len(HammingIndex(64).within(codes_of(3, 64))) == 3


def test_one_code_is_a_query():
    codes = codes_of(50, 64)
    same(filled(codes).search(codes[7], k=3), brute(codes, np.arange(50), codes[7:8], 3))


# ---- the same question asked otherwise ----


def test_a_mask_on_all_codes_changes_nothing(method):
    codes, queries = codes_of(400, 64), codes_of(20, 64, seed=1)
    mask = np.random.default_rng(5).integers(0, 256, (1, 8), dtype=np.uint8)
    same(
        filled(codes ^ mask, method=method).search(queries ^ mask, k=9),
        filled(codes, method=method).search(queries, k=9),
    )


def test_the_order_of_adding_changes_nothing(method):
    codes, queries, ids = codes_of(400, 64), codes_of(20, 64, seed=1), np.arange(400)
    order = np.random.default_rng(5).permutation(400)
    turned = HammingIndex(64, method=method)
    for part in np.array_split(order, 7):
        turned.add(codes[part], ids[part])
    same(turned.search(queries, k=9), filled(codes, method=method).search(queries, k=9))


def test_the_order_of_bits_changes_nothing(method):
    rng = np.random.default_rng(5)
    bits, queries = bits_of(rng, 400, 64), bits_of(rng, 20, 64)
    order = rng.permutation(64)
    same(
        filled(pack_bits(bits[:, order]), method=method).search(pack_bits(queries[:, order]), k=9),
        filled(pack_bits(bits), method=method).search(pack_bits(queries), k=9),
    )


def test_other_ids_are_only_other_names(method):
    codes, queries = codes_of(400, 64), codes_of(20, 64, seed=1)
    plain = filled(codes, method=method).search(queries, k=9)
    named = filled(codes, 7 * np.arange(400) - 900, method=method).search(queries, k=9)
    np.testing.assert_array_equal(named.ids, 7 * plain.ids - 900)


def test_a_batch_is_its_queries_one_by_one(method):
    codes, queries = codes_of(400, 64), codes_of(70, 64, seed=1)
    scores = np.random.default_rng(0).standard_normal((70, 64))
    index = filled(codes, method=method)
    batch, ranked, near = index.search(queries, k=9), index.search(scores, k=9), index.within(queries, radius=5)
    for i in range(70):
        same(index.search(queries[i : i + 1], k=9), batch[i])
        same(index.search(scores[i : i + 1], k=9), ranked[i])
        np.testing.assert_array_equal(index.within(queries[i : i + 1], radius=5).ids, near[i][0])


def test_deduplication_changes_nothing(method):
    codes, queries = np.repeat(codes_of(60, 16), 7, axis=0), codes_of(20, 16, seed=1)
    single, every = filled(codes, method=method), filled(codes, method=method, deduplicate=False)
    assert single.stats()["distinct_codes"] <= 60
    assert every.stats()["distinct_codes"] == 420
    same(single.search(queries, k=50), every.search(queries, k=50))
    a, b = single.within(queries, 3), every.within(queries, 3)
    np.testing.assert_array_equal(a.ids, b.ids)
    np.testing.assert_array_equal(a.offsets, b.offsets)
    scores = np.random.default_rng(0).standard_normal((5, 16))
    same(single.search(scores, k=50), every.search(scores, k=50))


@pytest.mark.parametrize("threads", ["1", "2", "5"])
@pytest.mark.parametrize("n_queries", [1, 3, 200])
def test_threads_change_nothing(monkeypatch, threads, n_queries):
    codes, queries = codes_of(60_000, 32), codes_of(n_queries, 32, seed=1)
    monkeypatch.setattr("quorumhash.index.searching._SMALL", 0)
    monkeypatch.setenv("QUORUMHASH_THREADS", threads)
    index = filled(codes)
    same(index.search(queries, k=30), brute(codes, np.arange(60_000), queries, 30))
    scores = np.random.default_rng(0).standard_normal((n_queries, 32))
    found = index.search(scores, k=5)
    sums = scores @ (2.0 * np.unpackbits(codes, axis=1).T - 1)
    np.testing.assert_allclose(found.scores, -np.sort(-sums, axis=1)[:, :5])


def test_searches_from_many_threads_agree():
    codes, queries = codes_of(5000, 64), codes_of(40, 64, seed=1)
    index = filled(codes)
    wanted = index.search(queries, k=5)
    for found in thread_map(lambda _: index.search(queries, k=5), range(16)):
        same(found, wanted)


# ---- filters, prefixes, scores, pairs, vectors ----


def test_where_is_as_if_the_others_were_not_there(method):
    codes, queries = codes_of(400, 64), codes_of(20, 64, seed=1)
    index = filled(codes, method=method)
    allowed = np.random.default_rng(0).permutation(400)[:50]
    wanted = brute(codes[allowed], allowed, queries, 9)
    same(index.search(queries, k=9, where=allowed), wanted)
    same(index.search(queries, k=9, where=np.append(allowed, 10**12)), wanted)
    mask = np.isin(np.arange(500), allowed)
    same(index.search(queries, k=9, where=mask), wanted)
    assert index.search(queries, k=9, where=allowed[:4]).ids.shape == (20, 4)
    assert index.search(queries, k=9, where=[]).ids.shape == (20, 0)
    near = index.within(queries, radius=6, where=mask)
    kept = np.isin(index.within(queries, radius=6).ids, allowed)
    np.testing.assert_array_equal(near.ids, index.within(queries, radius=6).ids[kept])
    scores = np.random.default_rng(0).standard_normal((3, 64))
    same(index.search(scores, k=9, where=allowed), filled(codes[allowed], allowed).search(scores, k=9))
    with pytest.raises(ParameterError, match="an entry for every id as a mask, got 10 entries and the id"):
        index.search(queries, where=mask[:10])


@pytest.mark.parametrize("prefix_bits", [1, 8, 64, 200, 256])
def test_a_prefix_changes_nothing(prefix_bits):
    codes, queries = codes_of(700, 256), codes_of(20, 256, seed=1)
    index = filled(codes)
    same(index.search(queries, k=9, prefix_bits=prefix_bits), brute(codes, np.arange(700), queries, 9))


@pytest.mark.parametrize("n_bits", [1, 13, 64, 130])
def test_scores_rank_by_the_sum_of_score_times_sign(n_bits):
    codes = codes_of(300, n_bits)
    scores = np.random.default_rng(3).standard_normal((6, n_bits)).astype(np.float32)
    found = filled(codes, n_bits=n_bits).search(scores, k=300)
    signs = 2.0 * np.unpackbits(codes, axis=1, count=n_bits) - 1
    sums = scores.astype(float) @ signs.T
    np.testing.assert_allclose(found.scores, np.take_along_axis(sums, found.ids, 1), atol=1e-9)
    assert (np.diff(found.scores, axis=1) <= 1e-9).all()
    assert all(sorted(row) == list(range(300)) for row in found.ids.tolist())
    np.testing.assert_array_equal(
        found.distances, np.take_along_axis(hamming_distances(pack_bits(scores >= 0), codes), found.ids, 1)
    )


def test_pairs_are_all_pairs_once(method):
    codes, ids = codes_of(200, 16), np.random.default_rng(0).permutation(1000)[:200]
    index = filled(codes, ids, method=method)
    found = index.pairs(radius=2)
    first = np.repeat(index.ids, found.counts())
    pairs = set(zip(first.tolist(), found.ids.tolist(), found.distances.tolist(), strict=True))
    distances = hamming_distances(codes, codes)
    wanted = {
        (int(ids[i]), int(ids[j]), int(distances[i, j]))
        for i in range(200)
        for j in range(200)
        if ids[i] < ids[j] and distances[i, j] <= 2
    }
    assert pairs == wanted
    assert len(pairs) == len(found.ids)
    with pytest.raises(RefusedError, match="at most max_pairs=3, got"):
        index.pairs(radius=2, max_pairs=3)
    assert len(HammingIndex(16).pairs()) == 0


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8])
def test_rescoring_reads_vectors_of_matches(tmp_path, dtype):
    rng = np.random.default_rng(0)
    vectors = (rng.standard_normal((100, 12)) * 20).astype(dtype)
    stored = np.lib.format.open_memmap(tmp_path / "vectors.npy", "w+", dtype, vectors.shape)
    stored[:] = vectors
    codes, queries = pack_bits(vectors >= 0), rng.standard_normal((4, 12))
    index = filled(codes, n_bits=12)
    found = index.rescore(stored, index.search(pack_bits(queries >= 0), k=100), queries, k=7)
    exact = vectors.astype(float)
    cosines = queries @ exact.T / np.linalg.norm(exact, axis=1) / np.linalg.norm(queries, axis=1)[:, None]
    np.testing.assert_array_equal(found.ids, np.argsort(-cosines, axis=1, kind="stable")[:, :7])
    np.testing.assert_allclose(found.scores, -np.sort(-cosines, axis=1)[:, :7])
    dots = index.rescore(stored, index.search(pack_bits(queries >= 0), k=100), queries, metric="dot")
    np.testing.assert_allclose(dots.scores, -np.sort(-(queries @ exact.T), axis=1))
    with pytest.raises(ParameterError, match="a row for every id, got 50 rows"):
        index.rescore(vectors[:50], index.search(codes[:4], k=100), queries)
    with pytest.raises(ParameterError, match="metric must be one of cosine, dot, got 'l2'"):
        index.rescore(vectors, index.search(codes[:4], k=9), queries, metric="l2")
    with pytest.raises(ParameterError, match=r"queries \(4, d\), got shapes"):
        index.rescore(vectors, index.search(codes[:4], k=9), queries[:3])


# ---- writing ----


def test_ids_run_on_from_the_largest():
    index = filled(codes_of(3, 64))
    index.add(codes_of(1, 64), ids=[10])
    index.add(codes_of(2, 64))
    assert index.ids.tolist() == [0, 1, 2, 10, 11, 12]
    index.remove([12])
    index.add(codes_of(1, 64))
    assert index.ids.tolist() == [0, 1, 2, 10, 11, 13]


def test_the_largest_id_there_can_be():
    index = filled(codes_of(1, 64), ids=[2**63 - 1])
    assert index.search(codes_of(1, 64), k=1).ids.tolist() == [[2**63 - 1]]
    with pytest.raises(ParameterError, match="running ids must be below"):
        index.add(codes_of(1, 64))


WRONG = [
    ("add", (np.zeros((2, 8)),), "codes must be packed codes of 60 bits, uint8 of shape .n, 8., got float64"),
    ("add", (np.zeros((2, 7), np.uint8),), r"got uint8 of shape \(2, 7\)"),
    ("add", (np.full((2, 8), 1, np.uint8),), "codes of 60 bits must end in zero bits, got set ones in row 0"),
    ("add", (np.zeros((2, 8), np.uint8), [5]), "ids must be as many as codes, 2, got 1"),
    ("add", (np.zeros((2, 8), np.uint8), [5, 5]), "ids must be given once each, got 5 more than once"),
    ("add", (np.zeros((2, 8), np.uint8), [5, 1]), "ids must be new to add, got 1, which is there already"),
    ("add", (np.zeros((2, 8), np.uint8), [5.0, 6.0]), "ids must be whole numbers of 64 bits, got float64"),
    ("add", (np.zeros((1, 8), np.uint8), np.array([2**63], np.uint64)), "ids must be whole numbers of 64 bits"),
    ("update", (np.zeros((1, 8), np.uint8), [77]), "ids must be in the index, got 77, which is not"),
    ("remove", ([0, 78],), "ids must be in the index, got 78, which is not"),
    ("remove", ([[0]],), r"ids must be whole numbers of 64 bits, got int64 of shape \(1, 1\)"),
    ("search", (np.zeros((1, 8), np.uint8), 0), "k must be a whole number from 1 up, got 0"),
    ("search", (np.zeros((1, 8), np.uint8), 2.5), "k must be a whole number from 1 up, got 2.5"),
    ("search", (np.zeros((1, 8), np.uint8), True), "k must be a whole number from 1 up, got True"),
    ("search", (np.zeros((1, 61)),), r"query must be real scores of shape \(n, 60\)"),
    ("search", (np.full((1, 60), np.nan),), "query must be finite scores, got nan at row 0, bit 0"),
    ("search", (np.zeros((1, 60), np.int64),), "query must be packed codes of 60 bits"),
    ("search", (np.zeros((1, 8), np.uint8), 1, ["a"]), "where must be allowed ids"),
    ("within", (np.zeros((1, 8), np.uint8), -1), "radius must be a whole number from 0 up, got -1"),
    ("within", (np.zeros((1, 60)),), "query_codes must be packed codes of 60 bits"),
    ("pairs", (None,), "radius must be a whole number from 0 up, got None"),
]


@pytest.mark.parametrize(("verb", "arguments", "sentence"), WRONG)
def test_wrong_arguments_change_nothing_and_say_so(verb, arguments, sentence):
    index = filled(codes_of(3, 60), n_bits=60)
    with pytest.raises(ValueError, match=sentence) as caught:
        getattr(index, verb)(*arguments)
    assert isinstance(caught.value, QuorumHashError)
    assert index.ids.tolist() == [0, 1, 2]


@pytest.mark.parametrize("n_bits", [0, 1025, 2.0, "64", None, True])
def test_bits_from_1_to_1024(n_bits):
    with pytest.raises(ParameterError, match="n_bits must be a whole number from 1 to 1024, got"):
        HammingIndex(n_bits)


def test_unknown_methods_are_refused():
    with pytest.raises(ParameterError, match="method must be one of auto, scan, multi-index, got 'hnsw'"):
        HammingIndex(method="hnsw")


def test_a_closed_index_says_so():
    with filled(codes_of(3, 64)) as index:
        assert len(index) == 3
    index.close()
    for call in (lambda: index.add(codes_of(1, 64)), lambda: index.search(codes_of(1, 64)), lambda: index.remove([0])):
        with pytest.raises(ParameterError, match="this HammingIndex is closed"):
            call()


class Hasher:
    def __init__(self, text):
        self.text = text

    def fingerprint(self):
        return self.text


def test_codes_of_another_model_are_refused():
    index = HammingIndex(64)
    index.add(codes_of(2, 64), model=Hasher("aaa"))
    index.add(codes_of(2, 64), model="aaa")
    index.add(codes_of(2, 64))
    sentence = "holds codes of the model aaa, got codes of bbb; encode with that model"
    for call in (
        lambda: index.add(codes_of(2, 64), model="bbb"),
        lambda: index.update(codes_of(1, 64), [0], model=Hasher("bbb")),
        lambda: index.search(codes_of(1, 64), model="bbb"),
        lambda: index.within(codes_of(1, 64), model="bbb"),
    ):
        with pytest.raises(ParameterError, match=sentence):
            call()
    assert len(index) == 6
    with pytest.raises(ParameterError, match="model must be a fitted hasher or the text"):
        index.add(codes_of(2, 64), model=3)


class Diary:
    """A journal in memory that notes what it is told, and can fail."""

    def __init__(self, n_bits):
        self.n_bits, self.model, self.items, self.calls, self.is_full = n_bits, "", {}, [], False

    @property
    def n_seen(self):
        return len(self.items)

    def load(self, newest=True):
        codes = np.array(list(self.items.values()), dtype=np.uint8).reshape(-1, n_bytes(self.n_bits))
        return codes, np.array(list(self.items), dtype=np.int64)

    def _note(self, verb):
        if self.is_full:
            raise OSError("no space left")
        self.calls.append(verb)

    def append(self, codes, ids, model=""):
        self._note("append")
        self.items |= dict(zip(ids.tolist(), codes.tolist(), strict=True))
        self.model = model or self.model

    def replace(self, codes, ids, model=""):
        self._note("replace")
        self.items |= dict(zip(ids.tolist(), codes.tolist(), strict=True))

    def remove(self, ids):
        self._note("remove")
        for name in ids.tolist():
            del self.items[name]

    def compact(self):
        self._note("compact")

    def refresh(self):
        return True

    def close(self):
        self.calls.append("close")


def test_the_journal_is_written_before_memory_is_changed():
    diary, codes = Diary(64), codes_of(5, 64)
    index = HammingIndex(64, journal=diary)
    index.add(codes, model="abc")
    index.update(codes[:1] ^ 1, [3])
    index.remove([4])
    index.compact()
    assert diary.calls == ["append", "replace", "remove", "compact"]
    diary.is_full = True
    for call in (
        lambda: index.add(codes),
        lambda: index.update(codes[:1], [3]),
        lambda: index.remove([0]),
    ):
        with pytest.raises(OSError, match="no space left"):
            call()
    again = HammingIndex(64, journal=diary)
    assert again.model == "abc"
    assert again.ids.tolist() == index.ids.tolist() == [0, 1, 2, 3]
    same(again.search(codes, k=4), index.search(codes, k=4))
    del diary.items[0]
    assert index.refresh()
    assert index.ids.tolist() == [1, 2, 3]
    index.close()
    assert diary.calls[-1] == "close"


# ---- memory and plans ----


@pytest.mark.parametrize("name", kernels.available())
@pytest.mark.parametrize("n_bits", [13, 64, 300])
def test_running_ids_take_no_memory_and_change_nothing(monkeypatch, name, method, n_bits):
    monkeypatch.setenv("QUORUMHASH_KERNEL", name)
    monkeypatch.setattr(codetable, "_MAX_RUNNING", 250)  # so that there are several segments
    codes, queries = codes_of(700, n_bits), codes_of(5, n_bits, seed=1)
    index = HammingIndex(n_bits, method=method, deduplicate=False)
    for start in range(0, 700, 100):
        index.add(codes[start : start + 100])
    assert index.stats()["id_bytes"] == 0
    assert 1 < index.stats()["segments"] < 7
    np.testing.assert_array_equal(index.ids, np.arange(700))
    same(index.search(queries, k=40), brute(codes, np.arange(700), queries, 40))
    with monkeypatch.context() as patch:  # the table cut among threads, for one query
        patch.setattr(searching, "_SMALL", 0)
        patch.setenv("QUORUMHASH_THREADS", "3")
        same(index.search(queries[:1], k=40), brute(codes, np.arange(700), queries[:1], 40))
    scores = np.random.default_rng(0).standard_normal((3, n_bits))
    same(index.search(scores, k=9), filled(codes, n_bits=n_bits).search(scores, k=9))
    wanted = np.flatnonzero(np.arange(700) % 3 == 0)
    same(index.search(queries, k=40, where=wanted), brute(codes[wanted], wanted, queries, 40))
    gone = np.array([0, 99, 100, 698, 350])
    index.remove(gone)
    left = np.setdiff1d(np.arange(700), gone)
    same(index.search(queries, k=40), brute(codes[left], left, queries, 40))
    with pytest.raises(ParameterError, match="got 350, which is not"):
        index.remove([350])
    index.remove(np.arange(100, 300)[np.isin(np.arange(100, 300), left)])
    left = np.setdiff1d(left, np.arange(100, 300))
    index.compact()
    assert index.stats()["removed_items"] == 0
    same(index.search(queries, k=40), brute(codes[left], left, queries, 40))
    index.add(codes[100:300], np.arange(100, 300))
    left = np.setdiff1d(np.arange(700), [0, 698, 350])
    same(index.search(queries, k=40), brute(codes[left], left, queries, 40))


def test_memory_is_as_stated():
    """8.5 bytes a distinct 64-bit code, 12 bytes an item for ids and lists."""
    rng = np.random.default_rng(0)
    for n_distinct in (50_000, 20_000, 500):
        codes = rng.integers(0, 256, (n_distinct, 8), dtype=np.uint8)[rng.integers(0, n_distinct, 50_000)]
        stats = filled(codes).stats()
        assert stats["code_bytes"] <= 8.5 * stats["distinct_codes"] + 512
        assert stats["id_bytes"] <= 12 * stats["items"] + 8


def test_there_are_few_segments_and_items_are_dropped():
    index = HammingIndex(64)
    codes = codes_of(3000, 64)
    for i in range(0, 3000, 10):
        index.add(codes[i : i + 10])
    assert index.stats()["segments"] <= 10
    index.remove(np.arange(0, 3000, 2))
    assert index.stats()["removed_items"] <= 750
    index.compact()
    stats = index.stats()
    assert stats["segments"] == 1
    assert stats["removed_items"] == 0
    assert stats["distinct_codes"] == len(np.unique(codes[1::2], axis=0))
    same(index.search(codes[:9], k=5), brute(codes[1::2], np.arange(1, 3000, 2), codes[:9], 5))


@pytest.mark.skipif(kernels.available() == ("numpy",), reason="no compiled kernel")
def test_bands_are_made_once_they_pay(monkeypatch):
    monkeypatch.setattr("quorumhash.index.planning.MAKE", 1e-3)
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 256, (40_000, 8), dtype=np.uint8)
    index, scan = filled(codes), filled(codes, method="scan")
    queries = np.repeat(codes[:50], 40, axis=0)
    for radius in (2, 2):
        near, wanted = index.within(queries, radius), scan.within(queries, radius)
        np.testing.assert_array_equal(near.ids, wanted.ids)
    stats = index.stats()
    assert stats["last_search"] == "multi-index"
    assert stats["band_bytes"] > 0
    assert stats["scans"] == stats["look_ups"] == len(queries)
    assert scan.stats()["band_bytes"] == 0
    index.remove(np.arange(5))
    scan.remove(np.arange(5))
    np.testing.assert_array_equal(index.within(queries, 2).ids, scan.within(queries, 2).ids)


# ---- a dict beside it ----


class DictBeside(RuleBasedStateMachine):
    """Any sequence of calls gives what a dict from ids to codes gives."""

    @initialize(
        n_bits=st.sampled_from([1, 5, 8, 12, 64, 65]),
        method=st.sampled_from(["auto", "scan", "multi-index"]),
        deduplicate=st.booleans(),
        scan_cost=st.sampled_from([0.1, 1e9]),
    )
    def start(self, n_bits, method, deduplicate, scan_cost):
        self.scan_costs, planning.SCAN = planning.SCAN, dict.fromkeys(planning.SCAN, scan_cost)
        self.index = HammingIndex(n_bits, method=method, deduplicate=deduplicate)
        self.items, self.n_bits, self.highest = {}, n_bits, 0

    def codes(self, data, n):
        bits = data.draw(st.lists(st.integers(0, 2 ** min(self.n_bits, 6) - 1), min_size=n, max_size=n))
        spread = np.zeros((n, self.n_bits), dtype=np.uint8)
        for i, value in enumerate(bits):
            spread[i, :6] = [value >> b & 1 for b in range(min(self.n_bits, 6))]
        return pack_bits(spread) if n else np.empty((0, n_bytes(self.n_bits)), dtype=np.uint8)

    def take_over(self, codes, ids):
        self.items |= {int(name): code for name, code in zip(ids, codes, strict=True)}
        self.highest = max([self.highest, *(int(name) + 1 for name in ids)])

    @rule(data=st.data(), n=st.integers(0, 20))
    def add(self, data, n):
        codes = self.codes(data, n)
        self.index.add(codes)
        self.take_over(codes, range(self.highest, self.highest + n))

    @rule(data=st.data(), ids=st.sets(st.integers(-50, 200), max_size=15))
    def add_under_ids(self, data, ids):
        ids = list(ids)
        codes = self.codes(data, len(ids))
        if set(ids) & set(self.items):
            with pytest.raises(ParameterError):
                self.index.add(codes, ids)
        else:
            self.index.add(codes, ids)
            self.take_over(codes, ids)

    @rule(data=st.data())
    def update(self, data):
        ids = data.draw(st.lists(st.sampled_from(sorted(self.items)), unique=True)) if self.items else []
        codes = self.codes(data, len(ids))
        self.index.update(codes, ids)
        self.items |= dict(zip(ids, codes, strict=True))

    @rule(data=st.data())
    def remove(self, data):
        ids = data.draw(st.lists(st.sampled_from(sorted(self.items)), unique=True)) if self.items else []
        self.index.remove(ids)
        for name in ids:
            del self.items[name]

    @rule()
    def compact(self):
        self.index.compact()

    @rule(data=st.data(), k=st.integers(1, 30))
    def search(self, data, k):
        queries = self.codes(data, 3)
        if self.items:
            same(self.index.search(queries, k=k), brute(*self.listed(), queries, k))
        else:
            assert self.index.search(queries, k=k).ids.shape == (3, 0)

    @rule(data=st.data(), radius=st.integers(0, 4))
    def within(self, data, radius):
        queries = self.codes(data, 3)
        found = self.index.within(queries, radius)
        for i in range(3 if self.items else 0):
            wanted = brute(*self.listed(), queries[i : i + 1], len(self.items))
            n_near = (wanted.distances <= radius).sum()
            np.testing.assert_array_equal(found[i][0], wanted.ids[0, :n_near])

    def teardown(self):
        planning.SCAN = getattr(self, "scan_costs", planning.SCAN)

    def listed(self):
        return np.array(list(self.items.values())), np.array(list(self.items))

    @invariant()
    def holds_the_same_ids(self):
        if hasattr(self, "index"):
            assert len(self.index) == len(self.items)
            assert self.index.ids.tolist() == sorted(self.items)

    @invariant()
    def gives_its_codes_back(self):
        if hasattr(self, "index"):
            codes, ids = self.index.items()
            assert ids.tolist() == sorted(self.items)
            assert [code.tolist() for code in codes] == [self.items[i].tolist() for i in sorted(self.items)]


DictBeside.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestDictBeside = DictBeside.TestCase


@given(
    n_bits=st.integers(1, 140),
    n_items=st.integers(1, 200),
    k=st.integers(1, 40),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=60, deadline=None)
def test_any_table_is_searched_exactly(n_bits, n_items, k, seed):
    codes, queries = codes_of(n_items, n_bits, seed), codes_of(5, n_bits, seed + 1)
    same(filled(codes, n_bits=n_bits).search(queries, k=k), brute(codes, np.arange(n_items), queries, k))
