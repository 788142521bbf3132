"""The gate: what Views accepts, what it refuses and how it says so, and what scikit-learn may do with it."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.model_selection import train_test_split

from quorumhash.errors import QuorumHashError, ViewsError, ViewsTypeError
from quorumhash.views import Views

SQUARE = np.arange(12.0).reshape(4, 3)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64", "uint8", "bool"])
def test_any_number_type_is_kept_as_it_came(dtype):
    matrix = (SQUARE % 2).astype(dtype)
    assert Views({"a": matrix})["a"].dtype == dtype
    np.testing.assert_array_equal(Views({"a": matrix})["a"], matrix)


@pytest.mark.parametrize(
    ("data", "names"),
    [
        ({"b": SQUARE, "a": SQUARE}, ("b", "a")),
        ([SQUARE, SQUARE], ("view0", "view1")),
        ((SQUARE, SQUARE.tolist()), ("view0", "view1")),
        (SQUARE, ("view0",)),
        (SQUARE.tolist(), ("view0",)),
        (list(SQUARE), ("view0",)),
        (scipy.sparse.csr_array(SQUARE), ("view0",)),
        (scipy.sparse.dok_matrix(SQUARE), ("view0",)),
        (pd.DataFrame(SQUARE, columns=["x", "y", "z"]), ("view0",)),
        (pd.DataFrame(SQUARE, columns=["b__x", "a__y", "b__z"]), ("b", "a")),
        (Views({"a": SQUARE}), ("a",)),
        ([None, SQUARE], ("view0", "view1")),
    ],
)
def test_accepted_containers(data, names):
    views = Views(data)
    assert views.names == names
    assert tuple(views) == names
    assert len(views) == views.shape[0] == 4
    assert views.ndim == 2


def test_a_frames_column_groups_keep_their_columns():
    views = Views(pd.DataFrame(SQUARE, columns=["b__x", "a__y", "b__z"]))
    np.testing.assert_array_equal(views["b"], SQUARE[:, [0, 2]])
    np.testing.assert_array_equal(views["a"], SQUARE[:, [1]])


def test_nothing_is_copied(tmp_path):
    fortran = np.asfortranarray(SQUARE)
    np.save(tmp_path / "a.npy", SQUARE)
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    views = Views({"a": SQUARE, "f": fortran, "m": mapped})
    assert views["a"] is SQUARE
    assert views["f"] is fortran
    assert isinstance(views["m"], np.memmap)
    assert isinstance(views[1:3]["m"], np.memmap)


def test_sparse_stays_sparse_until_asked_for():
    views = Views({"s": scipy.sparse.coo_array(SQUARE)})
    assert scipy.sparse.issparse(views.matrix("s"))
    np.testing.assert_array_equal(views["s"], SQUARE)
    np.testing.assert_array_equal(views[[2, 0]]["s"], SQUARE[[2, 0]])


def test_missing_values_and_views_are_marked():
    holes = SQUARE.copy()
    holes[0, 1] = np.nan
    holes[2] = np.nan
    views = Views({"holes": holes, "whole": SQUARE, "none": None})
    np.testing.assert_array_equal(views.present("holes"), [True, True, False, True])
    assert views.present("whole").all()
    assert not views.present("none").any()
    assert views.is_incomplete("holes")
    assert not views.is_incomplete("whole")
    assert views.widths == {"holes": 3, "whole": 3, "none": 0}
    np.testing.assert_array_equal(views[[2, 3]].present("holes"), [False, True])


def test_a_sparse_row_of_nan_is_a_missing_view():
    holes = SQUARE.copy()
    holes[1], holes[2, 0] = np.nan, np.nan
    views = Views({"s": scipy.sparse.csr_array(holes), "whole": SQUARE})
    np.testing.assert_array_equal(views.present("s"), [True, False, True, True])
    assert views.is_incomplete("s")


def test_sparse_entries_given_twice_are_added_first():
    twice = scipy.sparse.csr_matrix(([np.nan, np.nan, 1.0], ([0, 0, 0], [0, 0, 1])), shape=(2, 2))
    assert Views({"s": twice, "b": np.ones((2, 2))}).present("s")[0]


def test_repeated_column_names_are_columns_all_the_same():
    frame = pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], columns=["x", "x"])
    np.testing.assert_array_equal(Views({"a": frame})["a"], [[1, 2], [3, 4]])


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_matrices_of_numpys_old_kind_become_arrays():
    assert type(Views({"a": np.asmatrix(SQUARE)})["a"]) is np.ndarray


def test_masked_arrays_mark_missing_values():
    masked = np.ma.masked_array(SQUARE.astype(int), mask=SQUARE == 4)
    assert np.isnan(Views({"a": masked})["a"][1, 1])


@pytest.mark.parametrize(
    "rows", [[1, 3], np.array([1, 3]), slice(1, 4, 2), np.array([False, True, False, True]), pd.Series([1, 3])]
)
def test_rows_by_position_slice_or_mask(rows):
    part = Views({"a": SQUARE, "b": None})[rows]
    assert isinstance(part, Views)
    np.testing.assert_array_equal(part["a"], SQUARE[[1, 3]])
    assert len(part) == 2


def test_one_row_is_views_too():
    assert len(Views(SQUARE)[2]) == 1


@pytest.mark.parametrize("key", [np.array([0.5]), np.array([[1]]), np.array([True, False]), (0, 1)])
def test_odd_row_keys_are_refused(key):
    with pytest.raises(ViewsError, match="row"):
        Views(SQUARE)[key]


def test_train_test_split_works():
    first, second, labels, _ = train_test_split(Views({"a": SQUARE, "b": SQUARE[:, :1]}), np.arange(4), random_state=0)
    assert (len(first), len(second)) == (3, 1)
    np.testing.assert_array_equal(first["a"], SQUARE[labels])


INF, HUGE, TEXT = SQUARE.copy(), SQUARE.copy(), SQUARE.astype(object)
INF[2, 1] = np.inf
HUGE[3, 0] = -1e200
TEXT[1, 2] = "red"
NOWHERE = SQUARE.copy()
NOWHERE[1] = np.nan
SPARSE_INF = scipy.sparse.csr_array(np.where(INF == 0, 0, INF))


@pytest.mark.parametrize(
    ("data", "error", "sentence"),
    [
        ({"a": SQUARE, "b": SQUARE[:3]}, ViewsError, r"view 'b' has 3 rows but view 'a' has 4"),
        ({"a": INF}, ViewsError, r"view 'a', row 2, column 1: .* got inf"),
        ({"a": INF.astype(np.float16)}, ViewsError, r"view 'a', row 2, column 1: .* got inf"),
        ({"a": SPARSE_INF}, ViewsError, r"view 'a', row 2, column 1: .* got inf"),
        ({"a": HUGE}, ViewsError, r"view 'a', row 3, column 0: .* too large"),
        ({"a": SQUARE[:, :0]}, ViewsError, r"view 'a' is empty"),
        ({"a": SQUARE[:0]}, ViewsError, r"view 'a' has no rows"),
        ({"a": NOWHERE, "b": NOWHERE}, ViewsError, r"row 1 has no view at all \(1 such row\(s\)\).*'a', 'b'"),
        ({"a": TEXT}, ViewsTypeError, r"view 'a', row 1, column 2: .*got 'red'"),
        ({"a": np.array([["x", "y"]])}, ViewsTypeError, r"view 'a', row 0, column 0"),
        (pd.DataFrame({"a__x": ["red"], "a__y": [1]}), ViewsTypeError, r"view 'a', column 'a__x'"),
        (pd.DataFrame({"a__x": [1], "y": [1]}), ViewsError, r"column 'y' belongs to no view"),
        ({"a": SQUARE * 1j}, ViewsError, r"view 'a': Complex data not supported"),
        ({"a": SQUARE[0]}, ViewsError, r"view 'a' must be 2-D .* got 1-D"),
        ({"a": SQUARE[None]}, ViewsError, r"view 'a' must be 2-D .* got 3-D"),
        ([[1, 2], [3]], ViewsError, r"ragged"),
        ({}, ViewsError, r"no views"),
        ([], ViewsError, r"view 'view0'"),
        ({"a": None}, ViewsError, r"every view is None"),
        ({1: SQUARE}, ViewsError, r"name must be a non-empty text, got 1"),
        ("views.npz", ViewsError, r"must be 2-D"),
        ({"a": np.array([["1", "2"]], dtype=object)}, ViewsTypeError, r"view 'a', row 0, column 0"),
        ({"a": [[10**400, 2]]}, ViewsTypeError, r"view 'a', row 0, column 0"),
        ({"a": np.ma.masked_array([["x"]], mask=[[False]])}, ViewsTypeError, r"view 'a', row 0, column 0"),
        (pd.DataFrame([[1, 2]], columns=["__1", "a__2"]), ViewsError, r"column '__1' names no view"),
    ],
)
def test_refusals_name_the_view_and_the_place(data, error, sentence):
    with pytest.raises(error, match=sentence) as caught:
        Views(data)
    assert isinstance(caught.value, QuorumHashError)
    assert "\n" not in str(caught.value)


def test_inf_is_found_in_a_later_block(monkeypatch):
    """A large matrix is read in pieces; the place is named within the whole."""
    monkeypatch.setattr("quorumhash.matrices.SCAN_VALUES", 3)
    with pytest.raises(ViewsError, match="row 2, column 1"):
        Views({"a": INF})
    assert not Views({"a": NOWHERE, "b": SQUARE}).present("a")[1]


def test_alignment_with_a_model():
    views = Views({"b": SQUARE, "a": SQUARE[:, :2]})
    aligned = views.aligned({"a": 2, "b": 3, "c": 5}, "Hasher")
    assert aligned.names == ("a", "b", "c")
    assert aligned.matrix("c") is None
    assert not aligned.present("c").any()


@pytest.mark.parametrize(
    ("widths", "sentence"),
    [
        ({"a": 2}, "view 'b' is unknown to this Hasher: it was fitted on 'a'"),
        ({"a": 2, "b": 4}, "X has 3 features, but Hasher is expecting 4 features as input in view 'b'"),
    ],
)
def test_a_model_refuses_other_views(widths, sentence):
    with pytest.raises(ViewsError, match=sentence):
        Views({"b": SQUARE, "a": SQUARE[:, :2]}).aligned(widths, "Hasher")


def test_unknown_view_lists_the_known():
    with pytest.raises(ViewsError, match="no view 'z'; the views are 'a'"):
        Views({"a": SQUARE})["z"]
