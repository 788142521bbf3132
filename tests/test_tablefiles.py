"""Views in .csv and .parquet tables."""

import sys

import numpy as np
import pytest

from quorumhash.errors import MissingExtraError, ViewsError
from quorumhash.tablefiles import read_csv, read_parquet
from quorumhash.viewfiles import read_views


def written(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_columns_are_views_and_empty_cells_are_missing(tmp_path):
    path = written(tmp_path / "a.csv", "\ufeffgist__0,gist__1,words__x\n1,2.5,-3\n,1e3,nan\n\n4,5,6\n")
    found = read_csv(path)
    assert list(found) == ["gist", "words"]
    np.testing.assert_array_equal(found["gist"], [[1, 2.5], [np.nan, 1000], [4, 5]])
    np.testing.assert_array_equal(found["words"], [[-3], [np.nan], [6]])


def test_a_table_is_the_same_views_as_arrays(tmp_path):
    rng = np.random.default_rng(0)
    views = {"gist": rng.standard_normal((5, 3)), "words": rng.standard_normal((5, 2))}
    views["words"][3] = np.nan
    np.savez(tmp_path / "a.npz", **views)
    header = ",".join(f"{name}__{i}" for name, values in views.items() for i in range(values.shape[1]))
    np.savetxt(tmp_path / "a.csv", np.hstack(list(views.values())), "%.17g", ",", header=header, comments="")
    for name, values in read_views([str(tmp_path / "a.csv")]).items():
        np.testing.assert_array_equal(values, read_views([str(tmp_path / "a.npz")])[name])


def test_a_table_without_groups_is_one_view_of_the_files_name(tmp_path):
    written(tmp_path / "colour.csv", '"a, b",c\n1,2\n3,4\n')
    written(tmp_path / "counted.csv", "0,1\n1,2\n3,4\n")
    assert read_views([str(tmp_path / "colour.csv")]).widths == {"colour": 2}
    named = read_views([f"x={tmp_path / 'counted.csv'}", f"y={tmp_path / 'colour.csv'}"])
    assert named.widths == {"x": 2, "y": 2}
    assert len(named) == 2


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("0.5,1\n1,2\n", "the first line of .* must hold the names of the columns"),
        ("a,b\n1,2\n1\n", "line 3 of .* has 1 cells, the first line names 2"),
        ("a,b\n1,2\n3,red\n", "line 3 of .*, column 'b', must be a number or empty, got 'red'"),
        ("id,gist__0\n1,2\n", "column 'id' belongs to no view"),
        ("a,a\n1,2\n", "column 'a' stands twice"),
        ("a,b\n", "holds no numbers"),
        ("", "holds no numbers"),
    ],
)
def test_bad_tables_are_refused_in_a_sentence(tmp_path, text, sentence):
    with pytest.raises(ViewsError, match=sentence):
        read_csv(written(tmp_path / "a.csv", text))


def test_a_file_of_several_views_cannot_stand_for_a_name(tmp_path):
    path = written(tmp_path / "a.csv", "gist__0,words__0\n1,2\n3,4\n")
    with pytest.raises(ViewsError, match="must hold one view where it stands for a name, got gist, words"):
        read_views([f"x={path}"])


def test_bytes_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ViewsError, match=r"no readable \.csv"):
        read_csv(tmp_path / "a.csv")


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match="pip install pyarrow"):
        read_parquet(written(tmp_path / "a.parquet", "PAR1"))


@pytest.mark.extra
def test_parquet_columns_of_numbers_and_of_lists(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"g__0": [1, None], "g__1": [2.5, 3.0], "w__0": [4, 5]}), tmp_path / "a.parquet")
    found = read_parquet(tmp_path / "a.parquet")
    np.testing.assert_array_equal(found["g"], [[1, 2.5], [np.nan, 3]])
    np.testing.assert_array_equal(found["w"], [[4], [5]])
    rows = pyarrow.array([[1.0, 2.0], None, [5.0, None]])
    fixed = pyarrow.array([[1.0], [2.0], [3.0]], pyarrow.list_(pyarrow.float32(), 1))
    parquet.write_table(pyarrow.table({"image": rows, "text": fixed}), tmp_path / "b.parquet")
    found = read_parquet(tmp_path / "b.parquet")
    np.testing.assert_array_equal(found["image"], [[1, 2], [np.nan, np.nan], [5, np.nan]])
    np.testing.assert_array_equal(found["text"], [[1], [2], [3]])
    nowhere = pyarrow.array([None, None, None], pyarrow.list_(pyarrow.float32(), 4))
    parquet.write_table(pyarrow.table({"text": fixed, "sound": nowhere}), tmp_path / "c.parquet")
    assert read_views([str(tmp_path / "c.parquet")]).widths == {"text": 1, "sound": 4}


@pytest.mark.extra
def test_bad_parquet_is_refused_in_a_sentence(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    tables = {
        "must have one length, got 1 and 2": {"a": [[1.0], [1.0, 2.0]]},
        "'id' of .* holds no lists": {"a": [[1.0], [2.0]], "id": [1, 2]},
        "must hold numbers, got string": {"a": ["x", "y"]},
    }
    for sentence, columns in tables.items():
        parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
        with pytest.raises(ViewsError, match=sentence):
            read_parquet(tmp_path / "a.parquet")
    with pytest.raises(ViewsError, match=r"no readable \.parquet"):
        read_parquet(written(tmp_path / "b.parquet", "not one"))
