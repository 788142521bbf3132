"""Views whose rows lie in many files: the same codes, the same refusals as from one array."""

from itertools import pairwise

import numpy as np
import pytest

import quorumhash as qh
from quorumhash.engines.threads import ThreadsEngine

X = np.random.default_rng(0).standard_normal((60, 5)).astype(np.float32)
CUTS = (0, 7, 8, 40, 60)


@pytest.fixture
def folder(tmp_path):
    for i, (start, stop) in enumerate(pairwise(CUTS)):
        np.save(tmp_path / f"colour-{i}.npy", X[start:stop])
        np.savez(tmp_path / f"all-{i}.npz", colour=X[start:stop], shape=X[start:stop, :2])
    return tmp_path


def test_rows_are_those_of_all_files_one_below_the_other(folder):
    for rows in (qh.shards(str(folder / "colour-*.npy")), qh.shards(str(folder / "all-*.npz"), view="colour")):
        assert rows.shape == X.shape
        np.testing.assert_array_equal(rows[:], X)
        np.testing.assert_array_equal(rows[6:41], X[6:41])
        np.testing.assert_array_equal(rows[50:3], X[50:3])
        np.testing.assert_array_equal(rows[1:50:7], X[1:50:7])
        np.testing.assert_array_equal(rows[np.array([59, 0, 8, 8, -1])], X[[59, 0, 8, 8, -1]])
        np.testing.assert_array_equal(rows[X[:, 0] > 0], X[X[:, 0] > 0])


def test_a_model_of_shards_is_that_of_the_rows(folder):
    given = {"colour": qh.shards(str(folder / "colour-*.npy"))}
    engine = ThreadsEngine(1, block_rows=9)
    one = qh.ITQHasher(n_bits=4).fit(given, engine=engine)
    other = qh.ITQHasher(n_bits=4).fit({"colour": X}, engine=engine)
    assert one.fingerprint() == other.fingerprint()
    np.testing.assert_array_equal(one.transform(given), other.transform({"colour": X}))
    np.testing.assert_array_equal(one.transform(qh.Views(given)[3:30]), other.transform({"colour": X[3:30]}))


def test_missing_rows_and_values_are_found_in_every_file(folder):
    holed = np.array(X[8:40])
    holed[3], holed[5, 1] = np.nan, np.nan
    np.save(folder / "colour-2.npy", holed)
    rows = qh.shards(str(folder / "colour-*.npy"), engine=ThreadsEngine(1, block_rows=4))
    views = qh.Views({"colour": rows, "shape": X})
    assert np.flatnonzero(~views.present("colour")).tolist() == [11]
    assert not qh.Views({"colour": qh.shards(str(folder / "colour-1.npy"))})._incomplete["colour"]
    assert views._incomplete["colour"]


def test_infinity_is_refused_with_its_place(folder):
    wrong = np.array(X[40:60])
    wrong[4, 2] = np.inf
    np.save(folder / "colour-3.npy", wrong)
    with pytest.raises(qh.ViewsError, match=r"view 'colour', row 44, column 2: .* got inf"):
        qh.Views({"colour": qh.shards(str(folder / "colour-*.npy"), engine=ThreadsEngine(1, block_rows=4))})


def test_files_that_do_not_fit_each_other_are_refused(folder):
    np.save(folder / "colour-9.npy", X[:, :4])
    with pytest.raises(qh.ViewsError, match=r"colour-9\.npy has 4 features"):
        qh.shards(str(folder / "colour-*.npy"))
    with pytest.raises(qh.ViewsError, match="there is no file"):
        qh.shards(str(folder / "nothing-*.npy"))
    with pytest.raises(qh.ViewsError, match="several views"):
        qh.shards(str(folder / "all-*.npz"))
    with pytest.raises(qh.ViewsError, match="has no view 'sound'; it has 'colour', 'shape'"):
        qh.shards(str(folder / "all-*.npz"), view="sound")


@pytest.mark.extra
def test_parquet_files_hold_lists_or_columns(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pa.table(
        {
            "fixed": pa.array(list(X), type=pa.list_(pa.float32(), 5)),
            "lists": pa.array(
                [None if i == 3 else row for i, row in enumerate(X.tolist())], type=pa.list_(pa.float32())
            ),
            "cells__0": X[:, 0],
            "cells__1": X[:, 1],
        }
    )
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=16)
    parquet.write_table(table, tmp_path / "b.parquet", row_group_size=60)
    both = np.concatenate([X, X])
    for name, expected in {"fixed": both, "cells": both[:, :2]}.items():
        rows = qh.shards(str(tmp_path / "*.parquet"), view=name)
        np.testing.assert_array_equal(rows[:], expected)
        np.testing.assert_array_equal(rows[30:70], expected[30:70])
        np.testing.assert_array_equal(rows[np.array([100, 2])], expected[[100, 2]])
    views = qh.Views({"a": qh.shards(str(tmp_path / "*.parquet"), view="lists"), "b": both})
    assert np.flatnonzero(~views.present("a")).tolist() == [3, 63]
    with pytest.raises(qh.ViewsError, match="has no view 'sound'"):
        qh.shards(str(tmp_path / "*.parquet"), view="sound")


@pytest.mark.extra
def test_lists_that_are_absent_from_a_whole_group_of_rows_are_missing(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    lists = [None if i < 32 or i >= 48 else row for i, row in enumerate(X.tolist())]
    for name, kind in {"fixed": pa.list_(pa.float32(), 5), "free": pa.list_(pa.float32())}.items():
        parquet.write_table(pa.table({"a": pa.array(lists, kind)}), tmp_path / f"{name}.parquet", row_group_size=16)
        rows = qh.shards(tmp_path / f"{name}.parquet", view="a", engine=ThreadsEngine(1, block_rows=16))
        views = qh.Views({"a": rows, "b": X})
        assert np.flatnonzero(views.present("a")).tolist() == list(range(32, 48))
        np.testing.assert_array_equal(rows[32:48], X[32:48])
