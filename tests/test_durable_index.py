"""HammingIndex in a file: the index in memory and what is on disk never differ."""

import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import quorumhash as qh
from quorumhash.errors import IndexFileError, IndexLockedError, ParameterError
from quorumhash.index.store import SegmentFile

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "remove", "update", "compact", "reopen", "read"]),
        st.lists(st.integers(-5, 25), min_size=0, max_size=8, unique=True),
        st.integers(0, 255),
    ),
    max_size=15,
)


@given(steps=STEPS)
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_sequence_of_calls_gives_what_a_dict_gives(tmp_path_factory, steps):
    path, model = tmp_path_factory.mktemp("index") / "items.qhx", {}
    index = qh.HammingIndex.open(path, n_bits=8)
    reader = qh.HammingIndex.open(path, readonly=True)
    for kind, ids, byte in steps:
        codes = np.array([[(byte + place) % 256] for place in range(len(ids))], dtype=np.uint8).reshape(len(ids), 1)
        is_wrong = any((name in model) == (kind == "add") for name in ids)
        if kind == "reopen":
            index.close()
            index = qh.HammingIndex.open(path)
        elif kind == "read":
            reader.refresh()
            assert reader.ids.tolist() == sorted(model)
        elif kind == "compact":
            index.compact()
        elif is_wrong:
            with pytest.raises(ParameterError):
                index.remove(ids) if kind == "remove" else getattr(index, kind)(codes, ids)
        else:
            index.remove(ids) if kind == "remove" else getattr(index, kind)(codes, ids)
            for name, code in zip(ids, codes.ravel().tolist(), strict=True):
                model.pop(name, None)
                model |= {} if kind == "remove" else {name: code}
        ranked = sorted((int(code ^ byte).bit_count(), name) for name, code in model.items())
        found = index.search(np.array([[byte]], dtype=np.uint8), k=5)
        assert list(zip(found.distances[0].tolist(), found.ids[0].tolist(), strict=True)) == ranked[:5]
    index.close()
    reader.close()
    with SegmentFile(path, readonly=True) as file:
        found_codes, found_ids = file.load()
    assert dict(zip(found_ids.tolist(), found_codes.ravel().tolist(), strict=True)) == model


def test_the_model_of_the_codes_is_remembered(tmp_path):
    views = qh.load_dataset("digits").views[:60]
    hasher, other = qh.LSHHasher(16).fit(views), qh.LSHHasher(16, random_state=1).fit(views)
    with qh.HammingIndex.open(tmp_path / "items.qhx", n_bits=16) as index:
        index.add(hasher.transform(views), model=hasher)
    with qh.HammingIndex.open(tmp_path / "items.qhx") as index:
        assert index.model == hasher.fingerprint()
        with pytest.raises(ParameterError, match="holds codes of the model"):
            index.add(other.transform(views), ids=np.arange(100, 160), model=other)
        with pytest.raises(ParameterError, match="holds codes of the model"):
            index.search(other.transform(views), model=other)
        index.search(hasher.transform(views), model=hasher)


def test_a_call_that_the_disk_refuses_changes_nothing_in_memory(tmp_path, monkeypatch):
    with qh.HammingIndex.open(tmp_path / "items.qhx", n_bits=8) as index:
        index.add(np.array([[1], [2]], dtype=np.uint8), ids=[1, 2])

        def full(*_):
            raise IndexFileError("The index file cannot be written.")

        monkeypatch.setattr(SegmentFile, "_put", full)
        for call in (lambda: index.add(np.array([[3]], np.uint8), [3]), lambda: index.remove([1]),
                     lambda: index.update(np.array([[9]], np.uint8), [1])):  # fmt: skip
            with pytest.raises(IndexFileError):
                call()
        monkeypatch.undo()
        assert index.ids.tolist() == [1, 2]
        assert index.search(np.array([[1]], np.uint8), k=1).ids.tolist() == [[1]]
        index.add(np.array([[3]], np.uint8), [3])
    with qh.HammingIndex.open(tmp_path / "items.qhx", readonly=True) as index:
        assert index.ids.tolist() == [1, 2, 3]


def test_one_writer_and_readers_that_refresh(tmp_path):
    path = tmp_path / "items.qhx"
    with qh.HammingIndex.open(path, n_bits=8) as index:
        with pytest.raises(IndexLockedError):
            qh.HammingIndex.open(path)
        with qh.HammingIndex.open(path, readonly=True) as reader:
            index.add(np.array([[7]], np.uint8), ids=[5])
            assert len(reader) == 0
            assert reader.refresh()
            assert reader.ids.tolist() == [5]
            assert not reader.refresh()
            with pytest.raises(IndexFileError, match="open for reading only"):
                reader.add(np.array([[7]], np.uint8), ids=[6])
            assert reader.ids.tolist() == [5]


# ---- read when needed ----

MEMORY = """
import sys
import numpy as np
import quorumhash as qh
from quorumhash.index import hamming, searching, store

def anonymous():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon"))

before = anonymous()
with qh.HammingIndex.open(sys.argv[1], readonly=sys.argv[2] == "True") as index:
    assert len(index) == 500_000 and index.n_bits == 64 and "500,000" in repr(index)
    opened = anonymous() - before
    index.search(np.zeros((1, 8), dtype=np.uint8), k=1)
    print(opened, anonymous() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc to read the memory of a process from")
@pytest.mark.parametrize("readonly", [True, False])
def test_opening_a_large_file_takes_little_memory(tmp_path, readonly):
    path, codes = tmp_path / "items.qhx", np.random.default_rng(0).integers(0, 256, (500_000, 8), dtype=np.uint8)
    with SegmentFile(path, 64) as file:
        file.append(codes, np.arange(500_000))
    command = [sys.executable, "-c", MEMORY, str(path), str(readonly)]
    opened, searched = map(int, subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())
    assert opened < 2_000  # kB; codes and ids take 8,000
    assert searched > 7_000


def numbers(*values):
    return np.array(values, dtype=np.uint8)[:, None]


def test_a_reader_finds_what_was_there_when_it_was_opened(tmp_path):
    path = tmp_path / "items.qhx"
    with qh.HammingIndex.open(path, n_bits=8) as index:
        index.add(numbers(1, 2, 3))
        with qh.HammingIndex.open(path, readonly=True) as reader:
            index.remove([0])
            index.add(numbers(0), ids=[9])
            assert len(reader) == 3
            assert reader.search(numbers(0), k=1).ids.tolist() == [[0]]  # read only now
            assert reader.refresh()
            assert reader.search(numbers(0), k=1).ids.tolist() == [[9]]
        with qh.HammingIndex.open(path, readonly=True) as reader:
            index.add(numbers(0), ids=[4])
            assert reader.refresh()  # though nothing was read before
            assert reader.ids.tolist() == [1, 2, 4, 9]


def test_a_reader_that_a_compaction_overtook_finds_what_is_there(tmp_path):
    path = tmp_path / "items.qhx"
    with qh.HammingIndex.open(path, n_bits=8) as index:
        index.add(numbers(1, 2, 3))
        with qh.HammingIndex.open(path, readonly=True) as reader:
            index.remove([0])
            index.compact()
            assert reader.ids.tolist() == [1, 2]
            assert len(reader) == 2
            assert not reader.refresh()


def test_damage_is_found_when_items_are_read_and_every_time(tmp_path):
    path = tmp_path / "items.qhx"
    with qh.HammingIndex.open(path, n_bits=8) as index:
        index.add(numbers(1, 2, 3))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE segments SET codes = x'010204'")
    with qh.HammingIndex.open(path) as index:
        assert len(index) == 3
        for _ in range(2):
            with pytest.raises(IndexFileError, match="segment 0 was changed"):
                index.search(numbers(1))
            with pytest.raises(IndexFileError, match="segment 0 was changed"):
                index.add(numbers(4))


def test_threads_that_search_first_read_once(tmp_path, monkeypatch):
    path, loads = tmp_path / "items.qhx", []
    with qh.HammingIndex.open(path, n_bits=8) as index:
        index.add(numbers(*range(200)))
    load = SegmentFile.load

    def slow(self, newest=True):
        loads.append(newest)
        time.sleep(0.05)
        return load(self, newest)

    monkeypatch.setattr(SegmentFile, "load", slow)
    with qh.HammingIndex.open(path) as index, ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda value: index.search(numbers(value), k=1).ids.item(), range(8)))
    assert found == list(range(8))
    assert loads == [False]


def test_compacting_an_index_that_was_not_searched_keeps_its_items(tmp_path):
    path = tmp_path / "items.qhx"
    with qh.HammingIndex.open(path, n_bits=8) as index:
        index.add(numbers(1, 2, 3))
        index.remove([1])
    with qh.HammingIndex.open(path) as index:
        index.compact()
        assert index.ids.tolist() == [0, 2]
        index.add(numbers(5))
        assert index.ids.tolist() == [0, 2, 3]
