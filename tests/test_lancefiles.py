"""Views in Lance datasets: the same rows, codes and refusals as from other files."""

import json
import os
import shutil
import sys
from itertools import pairwise

import numpy as np
import pytest
from typer.testing import CliRunner

import quorumhash as qh
from quorumhash import lancefiles, shardcodes, shardfiles
from quorumhash.cli import app
from quorumhash.engines.threads import ThreadsEngine
from quorumhash.errors import MissingExtraError, ViewsError
from quorumhash.lancefiles import read_lance
from quorumhash.viewfiles import read_views

X = np.random.default_rng(0).standard_normal((90, 6)).astype(np.float32)
CUTS = (0, 40, 50, 90)


def written(path, columns, *more):
    """A dataset of these columns; each of `more` is added as a version, and as a fragment of its own."""
    lancedb, pa = pytest.importorskip("lancedb"), pytest.importorskip("pyarrow")
    table = lancedb.connect(str(path.parent)).create_table(path.stem, pa.table(columns), mode="overwrite")
    for part in more:
        table.add(pa.table(part))
    return table


def columns(rows):
    """The views a, a column of lists of one size, and b, columns of numbers."""
    import pyarrow as pa

    lists = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), rows.shape[1])
    return {"a": lists, "b__0": rows[:, 0], "b__1": rows[:, 1].astype(np.float64)}


@pytest.fixture
def parts(tmp_path):
    """Three datasets, the last of two versions."""
    pytest.importorskip("lancedb")
    written(tmp_path / "p0.lance", columns(X[:40]))
    written(tmp_path / "p1.lance", columns(X[40:50]))
    written(tmp_path / "p2.lance", columns(X[50:60]), columns(X[60:]))
    return [tmp_path / f"p{i}.lance" for i in range(3)]


@pytest.fixture
def hasher():
    return qh.LSHHasher(n_bits=16).fit({"a": X, "b": X[:, :2]})


@pytest.mark.extra
def test_rows_are_those_of_all_datasets_one_below_the_other(parts, monkeypatch):
    monkeypatch.setattr(shardfiles, "PIECE", 7)
    for name, expected in {"a": X, "b": X[:, :2]}.items():
        rows = qh.shards(str(parts[0].parent / "*.lance"), view=name)
        assert rows.shape == expected.shape
        for key in (slice(None), slice(38, 65), slice(50, 3), slice(1, 80, 7)):
            np.testing.assert_array_equal(rows[key], expected[key])
        for key in ([89, 0, 41, 41, -1, 8], [], np.random.default_rng(1).integers(0, 90, 200)):
            np.testing.assert_array_equal(rows[np.array(key, dtype=int)], expected[np.array(key, dtype=int)])
        np.testing.assert_array_equal(rows[X[:, 0] > 0], expected[X[:, 0] > 0])


@pytest.mark.extra
def test_only_the_rows_asked_for_are_read(parts, monkeypatch):
    monkeypatch.setattr(shardfiles, "PIECE", 8)
    asked, read = [], lancefiles.views_of_table
    monkeypatch.setattr(
        lancefiles, "views_of_table", lambda table, path: asked.append(table.shape) or read(table, path)
    )
    rows = qh.shards(parts, view="a")
    asked.clear()
    rows[60:70]
    assert asked == [(10, 1)]
    asked.clear()
    rows[np.array([1, 3, 39])]
    assert asked == [(3, 1), (1, 1)]


@pytest.mark.extra
def test_deleted_rows_do_not_count(parts):
    import lancedb

    lancedb.connect(str(parts[2].parent)).open_table("p2").delete(f"b__0 > {np.median(X[50:, 0])}")
    kept = X[50:][X[50:, 0] <= np.median(X[50:, 0])]
    rows = qh.shards(parts[2], view="a")
    assert len(rows) == 20
    np.testing.assert_array_equal(rows[:], kept)
    np.testing.assert_array_equal(rows[7:15], kept[7:15])


@pytest.mark.extra
def test_a_model_of_datasets_is_that_of_the_arrays(parts):
    given = {name: qh.shards(parts, view=name) for name in ("a", "b")}
    engine = ThreadsEngine(1, block_rows=9)
    for kind in (qh.ITQHasher, qh.QuorumHasher):
        one = kind(n_bits=4).fit(given, engine=engine)
        other = kind(n_bits=4).fit({"a": X, "b": X[:, :2]}, engine=engine)
        assert one.fingerprint() == other.fingerprint()
        np.testing.assert_array_equal(one.transform(given), other.transform({"a": X, "b": X[:, :2]}))


@pytest.mark.extra
def test_absent_lists_are_missing_views_wherever_they_stand(tmp_path):
    import pyarrow as pa

    lists = [None if i < 60 or i == 70 else row for i, row in enumerate(X.tolist())]
    kinds = {"fixed": pa.list_(pa.float32(), 6), "free": pa.list_(pa.float32()), "half": pa.list_(pa.float16(), 6)}
    written(tmp_path / "p.lance", {name: pa.array(lists, kind) for name, kind in kinds.items()})
    for name in kinds:
        rows = qh.shards(tmp_path / "p.lance", view=name, engine=ThreadsEngine(1, block_rows=20))
        views = qh.Views({name: rows, "other": X})
        assert np.flatnonzero(~views.present(name)).tolist() == [*range(60), 70]
        expected = X.astype(np.float16) if name == "half" else X
        np.testing.assert_array_equal(rows[71:], expected[71:])
        assert np.isnan(rows[5:20]).all()
    assert read_lance(tmp_path / "p.lance")["fixed"].shape == (90, 6)


@pytest.mark.extra
def test_codes_are_those_of_array_shards_and_nothing_is_done_twice(hasher, parts, tmp_path):
    for i, (start, stop) in enumerate(pairwise(CUTS)):
        np.savez(tmp_path / f"p{i}.npz", a=X[start:stop], b=X[start:stop, :2])
    other = qh.encode_shards(hasher, sorted(tmp_path.glob("*.npz")), tmp_path / "other")
    out = tmp_path / "codes"
    encoded = qh.encode_shards(hasher, parts, out, engine=ThreadsEngine(1, block_rows=7))
    assert [(one.n_rows, one.first_id, one.is_new) for one in encoded] == [
        (40, 0, True),
        (10, 40, True),
        (40, 50, True),
    ]
    np.testing.assert_array_equal(shardcodes.read_codes(encoded), shardcodes.read_codes(other))
    np.testing.assert_array_equal(shardcodes.read_codes(encoded), hasher.transform({"a": X, "b": X[:, :2]}))
    assert _new(hasher, parts, out) == [False] * 3
    moved = tmp_path / "elsewhere" / "p0.lance"  # other times, the same content
    shutil.copytree(parts[0], moved, copy_function=shutil.copyfile)
    assert _new(hasher, [moved, *parts[1:]], out) == [False] * 3
    import lancedb

    table = lancedb.connect(str(tmp_path)).open_table("p1")
    table.delete(f"b__1 = {float(X[40, 1])}")
    assert _new(hasher, parts, out) == [False, True, False]
    np.testing.assert_array_equal(np.load(out / "p1.codes.npy"), hasher.transform({"a": X, "b": X[:, :2]})[41:50])
    table.checkout(1)
    table.restore()
    assert _new(hasher, parts, out) == [False, True, False]
    np.testing.assert_array_equal(shardcodes.read_codes(encoded), shardcodes.read_codes(other))


def _new(hasher, parts, out):
    return [shard.is_new for shard in qh.encode_shards(hasher, parts, out)]


@pytest.mark.extra
def test_a_run_that_was_stopped_goes_on_where_it_was(hasher, parts, tmp_path, monkeypatch):
    out, read = tmp_path / "codes", lancefiles.views_of_table

    def stopped(table, path):
        if path.stem == "p1":
            raise KeyboardInterrupt
        return read(table, path)

    monkeypatch.setattr(lancefiles, "views_of_table", stopped)
    with pytest.raises(KeyboardInterrupt):
        qh.encode_shards(hasher, parts, out)
    monkeypatch.undo()
    assert sorted(os.listdir(out)) == ["p0.codes.json", "p0.codes.npy"]
    encoded = qh.encode_shards(hasher, parts, out)
    assert [one.is_new for one in encoded] == [False, True, True]
    np.testing.assert_array_equal(shardcodes.read_codes(encoded), hasher.transform({"a": X, "b": X[:, :2]}))


@pytest.mark.extra
def test_commands_take_datasets(hasher, parts, tmp_path):
    hasher.save(tmp_path / "items.qh")
    words = ["encode", str(tmp_path / "items.qh"), "--json", "-o"]
    for n_new in (3, 0):
        done = CliRunner().invoke(app, [*words, f"{tmp_path}/codes/", *map(str, parts)], catch_exceptions=False)
        facts = json.loads(done.stdout)
        assert (facts["shards"], facts["new"], facts["rows"]) == (3, n_new, 90)
    CliRunner().invoke(app, [*words, f"{tmp_path}/one.npy", f"{parts[2]}/"], catch_exceptions=False)
    np.testing.assert_array_equal(np.load(tmp_path / "one.npy"), np.load(tmp_path / "codes" / "p2.codes.npy"))


@pytest.mark.extra
def test_bad_datasets_are_refused_in_the_words_for_parquet(hasher, tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    tables = {
        "must have one length, got 1 and 2": {"a": [[1.0], [1.0, 2.0]]},
        "'id' of .* holds no lists": {"a": [[1.0], [2.0]], "id": [1, 2]},
        "must hold numbers, got string": {"a": ["x", "y"]},
    }
    for sentence, bad in tables.items():
        written(tmp_path / "bad.lance", bad)
        parquet.write_table(pa.table(bad), tmp_path / "bad.parquet")
        said = []
        for path in (tmp_path / "bad.lance", tmp_path / "bad.parquet"):
            with pytest.raises(ViewsError, match=sentence) as caught:
                read_views([str(path)])
            said.append(str(caught.value).replace(str(path), ""))
            with pytest.raises(ViewsError, match=sentence):
                qh.encode_shards(hasher, [path], tmp_path / "codes")
        assert said[0] == said[1]
    written(tmp_path / "good.lance", columns(X))
    with pytest.raises(ViewsError, match=r"good\.lance has no view 'sound'; it has 'a', 'b'"):
        qh.shards(tmp_path / "good.lance", view="sound")
    with pytest.raises(ViewsError, match="holds several views"):
        qh.shards(tmp_path / "good.lance")


@pytest.mark.extra
def test_folders_that_are_no_datasets_are_one_sentence(parts, tmp_path):
    pytest.importorskip("lancedb")
    for file in (parts[0] / "data").iterdir():
        os.truncate(file, 100)
    (parts[1] / "data").rename(tmp_path / "gone")
    for file in (parts[2] / "_versions").iterdir():
        os.truncate(file, 2)
    (tmp_path / "empty.lance").mkdir()
    for path in (*parts, tmp_path / "empty.lance"):
        with pytest.raises(ViewsError, match=rf"{path.name} is no readable Lance dataset"):
            read_views([str(path)])
        with pytest.raises(ViewsError, match=rf"{path.name} is no readable Lance dataset"):
            qh.shards(path, view="a")
    (tmp_path / "my rows.lance").mkdir()
    with pytest.raises(ViewsError, match="letters, digits"):
        read_views([str(tmp_path / "my rows.lance")])
    (tmp_path / "none.lance").write_text("")
    for name in ("none.lance", "nowhere.lance"):
        with pytest.raises(ViewsError, match=rf"there is no Lance dataset .*{name}"):
            read_views([str(tmp_path / name)])


def test_without_lancedb_the_words_that_install_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "lancedb", None)
    (tmp_path / "a.lance").mkdir()
    with pytest.raises(MissingExtraError, match=r"lancedb.*: pip install 'quorumhash\[lancedb\]'") as caught:
        read_views([str(tmp_path / "a.lance")])
    assert isinstance(caught.value, ImportError)
