"""The durable file of an index: what it holds, whom it lets in, what it refuses."""

import multiprocessing
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from quorumhash.errors import IndexFileError, IndexLockedError, ParameterError, QuorumHashError
from quorumhash.index import segments
from quorumhash.index.store import SegmentFile

GOLDEN = Path(__file__).parent / "golden" / "items_v1.qhx"


def codes_of(ids, n_bits=64):
    """Codes that follow from the ids."""
    bits = np.random.default_rng(1).integers(0, 2, (997, n_bits), dtype=np.uint8)
    return np.packbits(bits[np.asarray(ids, dtype=np.int64) % 997], axis=1)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "items.qhx"


def contents(path, **options):
    with SegmentFile(path, readonly=True, **options) as file:
        codes, ids = file.load()
        assert file.check() == []
    return {name: code.tobytes() for name, code in zip(ids.tolist(), codes, strict=True)}


@pytest.mark.parametrize("n_bits", [1, 8, 9, 13, 63, 64, 65, 127, 256, 1024])
def test_what_is_written_is_read(path, n_bits):
    ids = np.array([7, -(2**63), 2**63 - 1, 0])
    with SegmentFile(path, n_bits) as file:
        file.append(codes_of(ids, n_bits), ids)
        codes, found = file.load()
        assert (codes.dtype, found.dtype, codes.shape) == (np.uint8, np.int64, (4, -(-n_bits // 8)))
    with SegmentFile(path) as file:
        assert file.n_bits == n_bits
        np.testing.assert_array_equal(file.load()[0], codes_of(ids, n_bits))
        np.testing.assert_array_equal(file.load()[1], ids)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["append", "remove", "replace", "compact", "reopen"]),
        st.lists(st.integers(-5, 25), min_size=0, max_size=8, unique=True),
        st.integers(0, 255),
    ),
    max_size=15,
)


@given(steps=STEPS, segment_bytes=st.sampled_from([1, 30, 1 << 24]), checks_ids=st.booleans())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_sequence_of_calls_gives_what_a_dict_gives(tmp_path_factory, steps, segment_bytes, checks_ids):
    path, model = tmp_path_factory.mktemp("store") / "items.qhx", {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segments, "SEGMENT_BYTES", segment_bytes)
        file = SegmentFile(path, 8, checks_ids=checks_ids)
        for kind, ids, byte in steps:
            codes = np.full((len(ids), 1), byte, dtype=np.uint8)
            is_wrong = any((name in model) == (kind == "append") for name in ids)
            if kind == "reopen":
                file.close()
                file = SegmentFile(path, checks_ids=checks_ids)
            elif kind == "compact":
                file.compact()
                assert file.info()["removed"] == 0
            elif is_wrong and checks_ids:
                with pytest.raises(ParameterError, match=r"id -?[0-9]+ is (already|not) in the index file"):
                    file.remove(ids) if kind == "remove" else getattr(file, kind)(codes, ids)
            elif not is_wrong:
                file.remove(ids) if kind == "remove" else getattr(file, kind)(codes, ids)
                for name in ids:
                    model.pop(name, None)
                model |= {} if kind == "remove" else dict.fromkeys(ids, bytes([byte]))
            found_codes, found_ids = file.load()
            assert dict(zip(found_ids.tolist(), map(bytes, found_codes), strict=True)) == model
            assert len(file) == len(model)
        file.close()


def test_a_batch_that_fails_leaves_nothing(path, monkeypatch):
    with SegmentFile(path, 64) as file:
        file.append(codes_of([1, 2]), [1, 2])
        monkeypatch.setattr(segments, "SEGMENT_BYTES", 16)  # every item is a segment of its own
        rows = segments.Segment.row
        monkeypatch.setattr(
            segments.Segment, "row", lambda self, n, chain: rows(self, n, chain) if 5 not in self.ids else 1 / 0
        )
        with pytest.raises(ZeroDivisionError):
            file.append(codes_of([3, 4, 5, 6]), [3, 4, 5, 6])
        assert sorted(file.load()[1]) == [1, 2]
        file.append(codes_of([3]), [3])
        assert file.check() == []
    assert sorted(contents(path)) == [1, 2, 3]


def test_compact_forgets_what_was_removed_and_shrinks_the_file(path):
    with SegmentFile(path, 64) as file:
        for start in range(0, 50_000, 1_000):
            file.append(codes_of(ids := np.arange(start, start + 1_000)), ids)
        file.remove(np.arange(1_000, 50_000))
        before = file.info()
        assert (before["items"], before["removed"], before["segments"]) == (1_000, 49_000, 51)
        file.compact()
        after = file.info()
        assert (after["items"], after["removed"], after["segments"], after["generation"]) == (1_000, 0, 1, 1)
        assert after["wal_bytes"] == 0
        assert after["file_bytes"] < (before["file_bytes"] + before["wal_bytes"]) / 20
    assert sorted(contents(path)) == list(range(1_000))


def test_commits_are_on_disk_before_the_call_returns(path):
    with SegmentFile(path, 64) as file:
        assert file._sql("PRAGMA synchronous").fetchone() == (2,)
        assert file._sql("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_second_writer_is_refused_with_a_sentence(path):
    with SegmentFile(path, 64) as file:
        sentence = rf"items.qhx is already open for writing \(process {os.getpid()}\).*readonly=True"
        with pytest.raises(IndexLockedError, match=sentence):
            SegmentFile(path)
        link = path.with_name("link.qhx")
        link.symlink_to(path)
        with pytest.raises(IndexLockedError):
            SegmentFile(link)
        with SegmentFile(path, readonly=True) as reader:
            file.append(codes_of([1]), [1])
            assert reader.load()[1].tolist() == [1]
    SegmentFile(path).close()


def test_the_lock_dies_with_the_process(path):
    code = (
        "import os, sys; from quorumhash.index.store import SegmentFile; f = SegmentFile(sys.argv[1], 64); "
        "print('open', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        with pytest.raises(IndexLockedError, match=f"process {other.pid}"):
            SegmentFile(path)
        other.kill()
        other.wait()
    SegmentFile(path).close()


def test_readers_see_committed_batches_only(path):
    with SegmentFile(path, 64) as file, SegmentFile(path, readonly=True) as reader:
        assert len(reader.load()[1]) == 0
        assert not reader.refresh()
        with file._writing():
            file._put([segments.Segment(segments.ADDED, np.array([1]), codes_of([1]))], file._head())
            assert not reader.refresh()
            assert len(reader.load()[1]) == 0
        assert reader.check() == []
        assert reader.refresh()
        assert not file.refresh()
        assert reader.load()[1].tolist() == [1]
        assert not reader.refresh()


def test_a_reader_writes_nothing(path):
    with SegmentFile(path, 64) as file:
        file.append(codes_of([1]), [1])
    with SegmentFile(path, readonly=True) as reader:
        for call in (lambda: reader.append(codes_of([2]), [2]), lambda: reader.remove([1]), reader.compact):
            with pytest.raises(IndexFileError, match="open for reading only"):
                call()
    with pytest.raises(IndexFileError, match="does not exist"):
        SegmentFile(path.with_name("other.qhx"), readonly=True)


def test_several_threads_may_call(path):
    with SegmentFile(path, 64) as file:
        ranges = [np.arange(start, start + 10) for start in range(0, 400, 10)]
        threads = [
            threading.Thread(target=lambda ids=ids: (file.append(codes_of(ids), ids), file.load())) for ids in ranges
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(file.load()[1]) == list(range(400))


def _use_after_fork(file, told):
    try:
        file.append(codes_of([2]), [2])
    except IndexFileError as error:
        told.send(str(error))
    file.close()


def test_a_fork_neither_writes_nor_takes_the_lock(path):
    context = multiprocessing.get_context("fork")
    with SegmentFile(path, 64) as file:
        file.append(codes_of([1]), [1])
        reading, told = context.Pipe(duplex=False)
        child = context.Process(target=_use_after_fork, args=(file, told))
        child.start()
        assert "opened by another process" in reading.recv()
        child.join()
        with pytest.raises(IndexLockedError):
            SegmentFile(path)
        file.append(codes_of([3]), [3])
    assert sorted(contents(path)) == [1, 3]


def test_the_model_is_remembered_and_another_refused(path):
    with SegmentFile(path, 64) as file:
        assert file.model == ""
        file.append(codes_of([1]), [1], model="a" * 64)
        file.append(codes_of([2]), [2])
        with pytest.raises(ParameterError, match="codes of the model aaaaaaaaaaaa, got codes of bbbbbbbbbbbb"):
            file.append(codes_of([3]), [3], model="b" * 64)
        file.compact()
    with SegmentFile(path) as file:
        assert file.model == "a" * 64
        assert sorted(file.load()[1]) == [1, 2]


@pytest.mark.parametrize(
    ("codes", "ids", "sentence"),
    [
        (np.zeros((2, 8)), [1, 2], "must be packed codes"),
        (np.zeros((2, 7), np.uint8), [1, 2], r"uint8 of shape \(n, 8\), got uint8 of shape \(2, 7\)"),
        (np.zeros((2, 8), np.uint8), [1], "ids must be as many as codes, 2, got 1"),
        (np.zeros((2, 8), np.uint8), [1, 1], "ids must be given once each, got 1"),
        (np.zeros((2, 8), np.uint8), [1.5, 2.5], "ids must be whole numbers"),
        (np.zeros((1, 8), np.uint8), [2**63], "ids must be whole numbers"),
        (np.zeros((1, 8), np.uint8), [0], "id 0 is already in the index file"),
    ],
)
def test_wrong_batches_are_refused(path, codes, ids, sentence):
    with SegmentFile(path, 64) as file:
        file.append(codes_of([0]), [0])
        with pytest.raises(ParameterError, match=sentence):
            file.append(codes, ids)
        assert file.load()[1].tolist() == [0]


def test_bits_must_be_given_once_and_agree(path):
    with pytest.raises(ParameterError, match="n_bits must be given for a new index file"):
        SegmentFile(path)
    assert not path.exists()
    for wrong in (0, 1_025, 2.5):
        with pytest.raises(ParameterError, match="n_bits must be a whole number from 1 to 1024"):
            SegmentFile(path, wrong)
    assert not path.exists()
    SegmentFile(path, 63).close()
    with pytest.raises(ParameterError, match="holds codes of 63 bits, got n_bits=64"):
        SegmentFile(path, 64)
    SegmentFile(path, 63).close()


def _foreign(path):
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE bookmarks (x)")


def _newer(path):
    SegmentFile(path, 64).close()
    with sqlite3.connect(path) as other:
        other.execute("PRAGMA user_version = 9")


def _with_trigger(path):
    SegmentFile(path, 64).close()
    with sqlite3.connect(path) as other:
        other.execute("CREATE TRIGGER t AFTER INSERT ON segments BEGIN DELETE FROM segments; END")


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda path: path.write_bytes(b""), "is no index file of quorumhash"),
        (lambda path: path.write_bytes(b"PK" * 5_000), "is no index file of quorumhash"),
        (lambda path: path.mkdir(), "is a folder or device"),
        (_foreign, "is no index file of quorumhash"),
        (_newer, "has format version 9, but quorumhash .* reads versions up to 1; upgrade"),
        (_with_trigger, "its tables are not those of an index file"),
    ],
)
@pytest.mark.parametrize("readonly", [True, False])
def test_other_files_are_refused_and_left_alone(path, make, sentence, readonly):
    make(path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(IndexFileError, match=sentence) as caught:
        SegmentFile(path, readonly=readonly)
    assert isinstance(caught.value, OSError)
    assert isinstance(caught.value, QuorumHashError)
    assert (path.read_bytes() if path.is_file() else b"") == before


@pytest.mark.parametrize("table", ["head", "segments"])
def test_rows_that_were_changed_by_hand_are_refused(path, table):
    """Valid SQL, so that SQLite itself finds nothing wrong."""
    changes = {
        "head": ["n_items = n_items - 1", "model = 'x'", "n_bits = 63", "n_segments = n_segments - 1", "chain = x'00'"],
        "segments": [
            "codes = zeroblob(length(codes))", "ids = zeroblob(length(ids))", "kind = 1 - kind", "number = number + 7",
            "ids = 'text'", "chain = zeroblob(32)",
        ],
    }  # fmt: skip
    with SegmentFile(path, 64) as file:
        for start in range(0, 30, 10):
            file.append(codes_of(ids := np.arange(start, start + 10)), ids)
        file.remove([3])
    whole = path.read_bytes()
    for change in [f"UPDATE {table} SET {c}" for c in changes[table]] + [f"DELETE FROM {table}"]:
        path.write_bytes(whole)
        with sqlite3.connect(path) as other:
            assert other.execute(f"{change} WHERE rowid = 1").rowcount == 1
        other.close()
        with pytest.raises(IndexFileError, match="is damaged"), SegmentFile(path, readonly=True) as file:
            file.load()


def test_check_says_what_is_wrong(path):
    with SegmentFile(path, 64) as file:
        file.append(codes_of(ids := np.arange(2_000)), ids)
        file.compact()
    data = bytearray(path.read_bytes())
    data[20_000] ^= 1
    path.write_bytes(data)
    with SegmentFile(path, readonly=True) as file:
        assert [f"The index file {path} is damaged: segment 0 was changed; restore" in s for s in file.check()] == [
            True
        ]
        with pytest.raises(IndexFileError, match="segment 0 was changed"):
            file.load()
    with SegmentFile(path) as file, pytest.raises(IndexFileError, match="segment 0 was changed"):
        file.compact()
    assert path.read_bytes() == bytes(data)


def test_files_of_version_1_stay_readable(tmp_path):
    """Written by the first release: 5 items of 13 bits, one removed, one replaced, a model."""
    shutil.copy(GOLDEN, tmp_path / "old.qhx")
    with SegmentFile(tmp_path / "old.qhx") as file:
        codes, ids = file.load()
        assert (file.n_bits, file.model, ids.tolist()) == (13, "ab" * 32, [-4, 10, 12, 11])
        np.testing.assert_array_equal(codes, [[255, 248], [1, 8], [3, 24], [2, 16]])
        file.append(np.array([[9, 0]], dtype=np.uint8), [99])
        file.compact()
        assert file.check() == []


def test_a_file_in_a_folder_that_cannot_be_written_is_read(path, monkeypatch):
    with SegmentFile(path, 64) as file:
        file.append(codes_of([1]), [1])
    real, asked = sqlite3.connect, []

    def connect(address, **options):
        asked.append(address)
        if "mode=ro" in address:
            raise sqlite3.OperationalError("unable to open database file")
        return real(address, **options)

    monkeypatch.setattr(sqlite3, "connect", connect)
    assert list(contents(path)) == [1]
    assert "immutable=1" in asked[-1]


@pytest.mark.parametrize("name", ["a b.qhx", "100%25.qhx", "what?mode=memory.qhx", "hash#tag", "größe.qhx", ":memory:"])
def test_any_name_of_a_file_will_do(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with SegmentFile(name, 64) as file:
        file.append(codes_of([1]), [1])
    assert {path.name for path in tmp_path.iterdir()} == {name, f"{name}-lock"}
    assert list(contents(name)) == [1]


def test_a_closed_file_says_so(path):
    file = SegmentFile(path, 64)
    file.close()
    file.close()
    with pytest.raises(IndexFileError, match="is closed; open it again"):
        file.load()


def test_a_log_that_cannot_be_true_is_refused(path):
    """Two faults of a caller that hide each other in the counts: an id added twice, one removed that is not there."""
    with SegmentFile(path, 8, checks_ids=False) as file:
        code = np.zeros((1, 1), dtype=np.uint8)
        file.append(code, [1])
        file.append(code, [1])
        file.remove([2])
        with pytest.raises(IndexFileError, match="adds an item that is there, or removes one that is not"):
            file.load()


def test_append_tells_how_far_it_is_and_what_it_raises_undoes_everything(tmp_path, monkeypatch):
    monkeypatch.setattr("quorumhash.index.segments.SEGMENT_BYTES", 90)  # ten items of 8 + 1 bytes
    codes, told = np.arange(25, dtype=np.uint8)[:, None], []
    with SegmentFile(tmp_path / "items.qhx", n_bits=8) as file:
        assert file.next_id() == 0
        file.append(codes, range(25), done=told.append)
        assert told == [10, 10, 5]
        assert file.next_id() == 25
        with pytest.raises(ZeroDivisionError):
            file.append(codes, range(25, 50), done=lambda n: n // (n - 10))
        assert len(file) == 25


def test_reading_and_writing_tell_how_far_they_are(tmp_path):
    codes = np.random.default_rng(0).integers(0, 256, (300, 4), dtype=np.uint8)
    told = []
    with SegmentFile(tmp_path / "items.qhx", 32) as file:
        file.append(codes, np.arange(300), done=told.append)
        assert sum(told) == 300
        file.remove(np.arange(50))
        told.clear()
        assert file.check(done=told.append) == []
        assert sum(told) == 300 + 50
        told.clear()
        file.compact(done=told.append)
        assert sum(told) == 350 + 250
    told.clear()
    with SegmentFile(tmp_path / "items.qhx") as file:
        file.remove(np.arange(50, 60), done=told.append)
    assert sum(told) == 250
