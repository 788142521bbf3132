"""HammingIndex in a file: the index in memory and what is on disk never differ."""

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
