"""Shards to codes: one file each, whole or not at all, never done twice, done again when anything has changed."""

import json
import os

import numpy as np
import pytest
from typer.testing import CliRunner

import quorumhash as qh
from quorumhash import shardcodes
from quorumhash.cli import app
from quorumhash.index.adapters.base import Store

X = np.random.default_rng(0).standard_normal((90, 12))


@pytest.fixture
def hasher():
    return qh.LSHHasher(n_bits=16).fit({"a": X, "b": X[:, :4]})


@pytest.fixture
def parts(tmp_path):
    """Three shards: two archives and a folder."""
    np.savez(tmp_path / "p0.npz", a=X[:40], b=X[:40, :4])
    np.savez(tmp_path / "p1.npz", a=X[40:50], b=X[40:50, :4])
    (tmp_path / "p2").mkdir()
    np.save(tmp_path / "p2" / "a.npy", X[50:])
    np.save(tmp_path / "p2" / "b.npy", X[50:, :4])
    return [tmp_path / name for name in ("p0.npz", "p1.npz", "p2")]


class ListStore(Store):
    """Codes in a dict; the search half of the contract is not needed here."""

    def __init__(self):
        self.name, self.n_bits, self.rows, self.n_added = "list", 16, {}, 0

    def __len__(self):
        return len(self.rows)

    def close(self):
        pass

    def _has(self, ids):
        return np.array([int(i) in self.rows for i in ids])

    def _add(self, codes, ids):
        self.n_added += len(ids)
        self.rows.update(zip(ids.tolist(), codes.tolist(), strict=True))

    def _remove(self, ids):
        for i in ids.tolist():
            del self.rows[i]

    def _nearest(self, queries, k):
        raise NotImplementedError

    def _ball(self, queries, radius):
        raise NotImplementedError

    def _failures(self):
        return ()


def test_codes_of_shards_are_those_of_the_rows(hasher, parts, tmp_path):
    encoded = qh.encode_shards(hasher, parts, tmp_path / "codes")
    np.testing.assert_array_equal(shardcodes.read_codes(encoded), hasher.transform({"a": X, "b": X[:, :4]}))
    assert [(shard.n_rows, shard.first_id, shard.is_new) for shard in encoded] == [
        (40, 0, True),
        (10, 40, True),
        (40, 50, True),
    ]
    assert sorted(os.listdir(tmp_path / "codes")) == sorted(
        f"p{i}.codes.{suffix}" for i in range(3) for suffix in ("npy", "json")
    )


def new_ones(hasher, parts, out, **options):
    return [shard.is_new for shard in qh.encode_shards(hasher, parts, out, **options)]


def test_finished_shards_are_passed_over_and_changed_ones_are_not(hasher, parts, tmp_path):
    out = tmp_path / "codes"
    assert new_ones(hasher, parts[:2], out) == [True, True]
    before = (out / "p0.codes.npy").stat().st_mtime_ns
    assert new_ones(hasher, parts, out) == [False, False, True]
    os.utime(parts[0])  # touched, with the same content
    assert new_ones(hasher, parts, out) == [False] * 3
    assert (out / "p0.codes.npy").stat().st_mtime_ns == before
    np.savez(parts[1], a=-X[40:50], b=X[40:50, :4])
    assert new_ones(hasher, parts, out) == [False, True, False]
    other = qh.LSHHasher(n_bits=16, random_state=1).fit({"a": X, "b": X[:, :4]})
    assert new_ones(other, parts, out) == [True] * 3


@pytest.mark.parametrize("harm", ["no note", "half a note", "other codes", "no codes", "a note of strange fields"])
def test_what_a_killed_run_left_is_done_again(hasher, parts, tmp_path, harm):
    out = tmp_path / "codes"
    encoded = qh.encode_shards(hasher, parts, out)
    expected, note = np.load(encoded[0].codes), out / "p0.codes.json"
    if harm == "no note":
        note.unlink()
    elif harm == "half a note":
        note.write_text(note.read_text()[:40])
    elif harm == "a note of strange fields":
        note.write_text(json.dumps({"model": 1}))
    elif harm == "no codes":
        os.unlink(encoded[0].codes)
    else:
        np.save(encoded[0].codes, expected[::-1])
    assert new_ones(hasher, parts, out) == [True, False, False]
    np.testing.assert_array_equal(np.load(encoded[0].codes), expected)


def test_a_store_gets_every_code_once(hasher, parts, tmp_path, monkeypatch):
    out, store, expected = tmp_path / "codes", ListStore(), hasher.transform({"a": X, "b": X[:, :4]})
    assert new_ones(hasher, parts[:1], out) == [True]
    monkeypatch.setattr(shardcodes, "replacing", _killed)  # after the store has the codes, before the note is there
    with pytest.raises(KeyboardInterrupt):
        qh.encode_shards(hasher, parts, out, store=store)
    monkeypatch.undo()
    assert len(store) == 40
    assert new_ones(hasher, parts, out, store=store) == [True] * 3
    assert new_ones(hasher, parts, out, store=store) == [False] * 3
    assert store.n_added == 90 + 40
    np.testing.assert_array_equal([store.rows[i] for i in range(90)], expected)
    assert new_ones(hasher, parts[1:], out, store=store, first_id=40) == [False] * 2


def _killed(path):
    raise KeyboardInterrupt


def test_what_cannot_be_encoded_is_one_sentence(hasher, parts, tmp_path):
    for given, sentence in [
        ([], "there are no shards"),
        ([tmp_path / "x" / "p0.npz", parts[0]], "two shards would both"),
        ([tmp_path / "nowhere.npz"], "there is no shard"),
    ]:
        with pytest.raises(qh.ParameterError, match=sentence):
            qh.encode_shards(hasher, given, tmp_path / "codes")
    with pytest.raises(qh.ParameterError, match="must be a folder"):
        qh.encode_shards(hasher, parts[1:], parts[0])


def test_the_command_goes_on_where_it_was_stopped(hasher, parts, tmp_path):
    hasher.save(tmp_path / "items.qh")
    words = ["encode", str(tmp_path / "items.qh"), *map(str, parts), "--json", "-o"]
    for n_new in (3, 0):
        done = CliRunner().invoke(app, [*words, f"{tmp_path}/codes/"], catch_exceptions=False)
        facts = json.loads(done.stdout)
        assert (facts["shards"], facts["new"], facts["rows"]) == (3, n_new, 90)
    with pytest.raises(qh.ParameterError, match="for shards"):
        CliRunner().invoke(app, [*words[:3], "--store", "faiss://flat"], catch_exceptions=False)


@pytest.mark.extra
def test_parquet_shards_into_a_real_store(hasher, tmp_path):
    pa = pytest.importorskip("pyarrow")
    pytest.importorskip("faiss")
    from pyarrow import parquet

    for i in range(3):
        rows = X[30 * i : 30 * i + 30]
        table = pa.table({"a": pa.array(list(rows)), **{f"b__{j}": rows[:, j] for j in range(4)}})
        parquet.write_table(table, tmp_path / f"p{i}.parquet")
    expected = hasher.transform({"a": X, "b": X[:, :4]})
    with qh.open_store("faiss://flat", 16) as store:
        qh.encode_shards(hasher, [tmp_path / f"p{i}.parquet" for i in range(3)], tmp_path / "codes", store=store)
        found = store.search(expected[:5], k=3)
    wanted = qh.HammingIndex(16)
    wanted.add(expected)
    np.testing.assert_array_equal(found.ids, wanted.search(expected[:5], k=3).ids)
