"""The contract of an engine: where rows live and how they are walked.

Every large array of the library has one row per item, and every step of every solver is row by row or a sum over
rows into something small. Six verbs say all of it; the solvers use nothing else, so the mathematics is written once:

    put(matrix)                     host rows -> Rows
    get(rows)                       Rows -> host array
    map_rows(function, *arguments)  a function of one block of rows, applied to all blocks -> Rows
    sum_rows(function, *arguments)  the same, its small results added up in float64 -> host array(s)
    take_rows(rows, positions)      some rows on the host, dense
    random(seed)                    a generator; all draws are made on the host, so every engine sees the same ones

Beside them, `eigenpairs` decomposes one small host matrix, on the host or where that is quicker, `sample` takes
rows for array code that is no walk, and `beside` hands it host arrays.

Arguments that are Rows are walked block by block, in step; every other argument (a small matrix, a number, a
dataclass or tuple of them, None) goes whole to every block, its arrays turned into the engine's. Rows with equally many
rows are cut alike. A function is ordinary array code over its block's namespace
(array-api-compat), changes none of its arguments but those named in `reuse`, and returns one array or a tuple of them:
one row per row of the block, or one row for the whole block (a fact about it, to be fetched with `get`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.progress import estimated

FloatArray = npt.NDArray[np.float64]

N_BLOCKS = 16  # where the user does not say, rows are cut into about so many blocks ...
SMALLEST_BLOCK, LARGEST_BLOCK = 128, 2048  # ... of no fewer and no more rows: enough to share out, small enough to hold


class Rows:
    """A handle on an array with one row per item, cut into blocks that the engine keeps."""

    n_rows: int


class Engine(ABC):
    """Where rows live and how they are walked; a context manager around one fit or one transform."""

    @abstractmethod
    def put(self, matrix: Any) -> Rows:
        """Hand a host array, memory map or CSR matrix over; nothing is read yet."""

    @abstractmethod
    def get(self, rows: Rows) -> npt.NDArray[Any]:
        """All rows as one host array, blocks one below the other."""

    @abstractmethod
    def map_rows(self, function: Callable[..., Any], *arguments: Any, reuse: Sequence[Rows] = ()) -> Any:
        """Apply a function to every block; gives Rows, or a tuple of Rows where it returns a tuple.

        `reuse` names Rows that are not needed again: the function may overwrite their blocks and return them, so that a
        state and its successor never stand in memory side by side. (An engine that must be able to repeat a block
        hands the function a copy.)
        """

    @abstractmethod
    def sum_rows(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Add up a function's results over all blocks, in block order and in float64."""

    @abstractmethod
    def take_rows(self, rows: Rows, positions: npt.NDArray[np.intp]) -> npt.NDArray[Any]:
        """Some rows as a dense host array, in the order of the positions."""

    def random(self, seed: Any) -> np.random.Generator:
        """A host generator."""
        return np.random.default_rng(seed)

    def plan(self, n_features: int, memory_budget: float | None = None) -> None:  # noqa: B027
        """Hear, before the first put, how wide rows are and how many bytes the work may take; blocks may follow it."""

    def answer(self, rows: Rows, given: Any) -> Any:  # noqa: ARG002
        """All rows as the caller gets them who gave this matrix: a host array; on a device, tensors for tensors."""
        return self.get(rows)

    def beside(self, value: Any) -> Any:
        """Arrays of the host, and whatever holds some, where blocks are walked: for array code over a sample."""
        return value

    def held(self, rows: Rows) -> Any:
        """All rows as one array where the engine computes: a sample of rows, for array code."""
        return self.get(rows)

    def sample(self, rows: Rows, positions: npt.NDArray[np.intp]) -> Any:
        """Some rows as one array where the engine `at_hand` computes, in the order of the positions."""
        return self.take_rows(rows, positions)

    def some_rows(self, rows: Rows, positions: npt.NDArray[np.intp]) -> Rows:
        """The same, put in."""
        return self.put(self.sample(rows, positions))

    def eigenpairs(self, matrix: FloatArray, n_pairs: int | None = None) -> tuple[FloatArray, FloatArray]:
        """As the function below; an engine may do it where it is quicker."""
        return eigenpairs(matrix, n_pairs)

    @property
    def at_hand(self) -> Engine:
        """The engine for rows that the host holds: this one, unless its blocks are walked far away."""
        return self

    def put_blocks(self, blocks: Sequence[npt.NDArray[Any]]) -> Rows:
        """Rows that lie in blocks of this engine's size already; they stay the caller's."""
        return self.put(np.concatenate(blocks))

    def get_blocks(self, rows: Rows) -> list[npt.NDArray[Any]]:
        """All rows as host arrays, in as many as cost nothing."""
        return [self.get(rows)]

    @property
    def rows_at_once(self) -> int | None:
        """Rows whose results may be held at a time where they are not needed together; None: any number."""
        return None

    def __enter__(self) -> Engine:
        return self

    def __exit__(  # noqa: B027  an engine that holds nothing has nothing to let go
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go of threads, device memory or connections."""


def eigenpairs(matrix: FloatArray, n_pairs: int | None = None) -> tuple[FloatArray, FloatArray]:
    """The eigenvalues (p,), rising, and eigenvectors (n, p) of a symmetric host matrix: all, or the largest n_pairs.

    >>> eigenpairs(np.diag([1.0, 3.0, 2.0]), 2)[0]
    array([2., 3.])
    """
    if n_pairs is None:
        values, vectors = np.linalg.eigh(matrix)
        return values, vectors
    import scipy.linalg

    chosen = [len(matrix) - n_pairs, len(matrix) - 1]
    with estimated("eigenvectors", 4.0 * len(matrix) ** 3):
        values, vectors = scipy.linalg.eigh(matrix, subset_by_index=chosen, driver="evr", check_finite=False)
    return values, vectors


def default_block_rows(n_rows: int) -> int:
    """Rows per block from the number of rows alone, so that it is the same on every machine.

    >>> [default_block_rows(n) for n in (10, 1_500, 10_000, 1_000_000)]
    [128, 128, 640, 2048]
    """
    return min(LARGEST_BLOCK, max(SMALLEST_BLOCK, 64 * -(-n_rows // (64 * N_BLOCKS))))
