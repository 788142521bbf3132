"""Views: named matrices about the same items, with what is missing marked; the only gate for input.

    rows of every view are the same items, in the same order
    a value is missing       NaN in a float matrix
    a view is missing        None for the whole view, or a row that is NaN throughout
    an item                  must have at least one view

Everything behind the gate may rely on this and checks nothing again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.columngroups import column_groups
from quorumhash.errors import ViewsError
from quorumhash.matrices import Matrix, as_matrix, is_sharded, is_sparse, present_rows


class Views:
    """Named, aligned matrices with presence masks.

    Parameters
    ----------
    data : dict, list, 2-D array, pandas frame or Views
        A dict of name -> matrix (or None where no item has the view); a list of matrices, named "view0",
        "view1", ...; one 2-D array or sparse matrix, named "view0"; a frame whose columns are called
        name__feature, or a frame without any such column, which is one view. Matrices may be of any float or integer
        type, sparse, in Fortran order, memory maps or files (`shards`), and are not copied.

    Examples
    --------
    >>> import numpy as np
    >>> views = Views({"colour": np.eye(3), "shape": [[1, 2], [3, np.nan], [5, 6]]})
    >>> views
    Views(3 rows: colour 3, shape 2)
    >>> views["shape"][1]
    array([ 3., nan])
    >>> len(views[[0, 2]])
    2
    """

    ndim = 2

    _matrices: dict[str, Matrix | None]
    _present: dict[str, npt.NDArray[np.bool_]]
    _incomplete: dict[str, bool]
    _n_rows: int

    def __init__(self, data: Any) -> None:
        if isinstance(data, Views):
            self._matrices, self._present, self._incomplete = data._matrices, data._present, data._incomplete
            self._n_rows = data._n_rows
            return
        self._matrices = {name: None if value is None else as_matrix(name, value) for name, value in _named(data)}
        self._n_rows = _common_rows(self._matrices)
        self._present = {}
        self._incomplete = {}
        for name, matrix in self._matrices.items():
            if matrix is None:
                self._present[name], self._incomplete[name] = np.zeros(self._n_rows, dtype=bool), True
            else:
                self._present[name], self._incomplete[name] = present_rows(name, matrix)
        _refuse_items_without_view(self._present)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the views in the given order."""
        return tuple(self._matrices)

    @property
    def widths(self) -> dict[str, int]:
        """Number of features of every view; 0 where the whole view is None."""
        return {name: 0 if matrix is None else int(matrix.shape[1]) for name, matrix in self._matrices.items()}

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, features of all views together), as scikit-learn's splitters want it."""
        return self._n_rows, sum(self.widths.values())

    def __len__(self) -> int:
        return self._n_rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._matrices)

    def __contains__(self, name: object) -> bool:
        return name in self._matrices

    def __repr__(self) -> str:
        return f"Views({self._n_rows} rows: {', '.join(f'{n} {w}' for n, w in self.widths.items())})"

    def items(self) -> Iterator[tuple[str, npt.NDArray[Any]]]:
        """Pairs of a view's name and its 2-D array."""
        return ((name, self[name]) for name in self._matrices)

    def __getitem__(self, key: Any) -> Any:
        """A view's dense 2-D array by name, or a Views of some rows by position, slice or mask."""
        if isinstance(key, str):
            matrix = self.matrix(key)
            if matrix is None:
                return np.empty((self._n_rows, 0))
            return matrix.toarray() if is_sparse(matrix) else matrix[:] if is_sharded(matrix) else matrix
        if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:
            key = key[0]  # scikit-learn's splitters ask for views[rows, ...]
        return self._rows(_row_key(key, self._n_rows))

    def _rows(self, key: slice | npt.NDArray[Any]) -> Views:
        part = Views.__new__(Views)
        part._matrices = {name: None if matrix is None else matrix[key] for name, matrix in self._matrices.items()}
        part._present = {name: present[key] for name, present in self._present.items()}
        part._incomplete = self._incomplete
        part._n_rows = len(next(iter(part._present.values())))
        return part

    def matrix(self, name: str) -> Matrix | None:
        """The view as it is kept: array, memory map, CSR, or None when no item has it."""
        if name not in self._matrices:
            raise ViewsError(f"there is no view {name!r}; the views are {_listed(self.names)}.")
        return self._matrices[name]

    def present(self, name: str) -> npt.NDArray[np.bool_]:
        """Which items have the view at all, shape (rows,)."""
        self.matrix(name)
        return self._present[name]

    def is_incomplete(self, name: str) -> bool:
        """Whether the view may hold missing values or rows (False: certainly complete)."""
        self.matrix(name)
        return self._incomplete[name]

    def aligned(self, widths: Mapping[str, int], owner: str) -> Views:
        """These views in the order and width that a model was fitted with; absent ones become None.

        Parameters
        ----------
        widths : mapping of str to int
            Number of features per view of the model.
        owner : str
            Name of the model's class, for the error sentence.
        """
        for name, width in self.widths.items():
            if name not in widths:
                raise ViewsError(
                    f"view {name!r} is unknown to this {owner}: it was fitted on {_listed(tuple(widths))}."
                )
            if self._matrices[name] is not None and width != widths[name]:
                raise ViewsError(
                    f"X has {width} features, but {owner} is expecting {widths[name]} features as input "
                    f"in view {name!r}."
                )
        part = Views.__new__(Views)
        absent = np.zeros(self._n_rows, dtype=bool)
        part._matrices = {name: self._matrices.get(name) for name in widths}
        part._present = {name: self._present.get(name, absent) for name in widths}
        part._incomplete = {name: self._incomplete.get(name, True) for name in widths}
        part._n_rows = self._n_rows
        return part


def _named(data: Any) -> list[tuple[str, Any]]:
    """Name the parts of any accepted container."""
    if isinstance(data, Mapping) and not is_sparse(data):  # a sparse matrix in dict-of-keys form is a Mapping too
        parts = list(data.items())
        for name, _ in parts:
            if not isinstance(name, str) or not name:
                raise ViewsError(f"a view's name must be a non-empty text, got {name!r}.")
    elif hasattr(data, "iloc") and hasattr(data, "columns"):
        parts = _frame_parts(data)
    elif isinstance(data, Sequence) and not isinstance(data, str) and any(_is_matrix_like(part) for part in data):
        parts = [(f"view{i}", part) for i, part in enumerate(data)]
    else:
        parts = [("view0", data)]
    if not parts:
        raise ViewsError("there are no views: give at least one matrix.")
    if all(part is None for _, part in parts):
        raise ViewsError(f"every view is None ({_listed(tuple(n for n, _ in parts))}): give at least one matrix.")
    return parts


def _is_matrix_like(part: Any) -> bool:
    """Whether a member of a list is a view of its own (then the list is one of views, not of rows)."""
    if part is None or is_sparse(part) or hasattr(part, "iloc"):
        return True
    if hasattr(part, "ndim"):
        return bool(part.ndim >= 2)
    first = part[0] if isinstance(part, Sequence) and not isinstance(part, str) and len(part) else None
    return isinstance(first, Sequence | np.ndarray) and not isinstance(first, str)


def _frame_parts(frame: Any) -> list[tuple[str, Any]]:
    groups = column_groups([str(column) for column in frame.columns])
    return [(name, frame.iloc[:, positions]) for name, positions in groups.items()] or [("view0", frame)]


def _common_rows(matrices: Mapping[str, Matrix | None]) -> int:
    counts = {name: int(matrix.shape[0]) for name, matrix in matrices.items() if matrix is not None}
    first, n_rows = next(iter(counts.items()))
    for name, count in counts.items():
        if count != n_rows:
            raise ViewsError(
                f"view {name!r} has {count} rows but view {first!r} has {n_rows}: row i of every view must be the same "
                "item; mark an absent one by a row of NaN."
            )
    if n_rows == 0:
        raise ViewsError(f"view {first!r} has no rows: found array with 0 sample(s), at least 1 is required.")
    return n_rows


def _refuse_items_without_view(present: Mapping[str, npt.NDArray[np.bool_]]) -> None:
    nowhere = ~np.logical_or.reduce(list(present.values()))
    if nowhere.any():
        row = int(np.argmax(nowhere))
        raise ViewsError(
            f"row {row} has no view at all ({int(nowhere.sum())} such row(s)): every item needs at least one of "
            f"{_listed(tuple(present))}; leave the item out."
        )


def _row_key(key: Any, n_rows: int) -> slice | npt.NDArray[Any]:
    if isinstance(key, slice):
        return key
    rows = np.asarray(key) if not isinstance(key, tuple) else np.empty((0, 0))
    if rows.ndim == 0:
        rows = rows[None]
    if rows.size == 0:
        rows = rows.astype(np.intp)
    if rows.dtype == bool and rows.shape != (n_rows,):
        raise ViewsError(f"a mask of rows must have shape ({n_rows},), got {rows.shape}.")
    if rows.dtype.kind not in "iub" or rows.ndim != 1:
        raise ViewsError(f"rows must be given by position, slice or mask, got {key!r}; a view is named by a text.")
    return rows


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(repr(name) for name in names)
