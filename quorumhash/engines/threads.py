"""The default engine: row blocks on a thread pool, one BLAS thread per worker.

Two OpenBLAS threads on a busy machine wait for each other by spinning and can be slower than one; threads over blocks
do not wait. The cut into blocks does not depend on the number of
threads and sums are added in block order, so one thread and many give the same bits.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import lru_cache, partial
from types import TracebackType
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from threadpoolctl import ThreadpoolController

from quorumhash.engines.base import LARGEST_BLOCK, Engine, Rows, default_block_rows
from quorumhash.errors import ParameterError
from quorumhash.matrices import Matrix, dense_rows
from quorumhash.progress import begin_stage
from quorumhash.tensors import is_tensor

Item = TypeVar("Item")
Result = TypeVar("Result")

BLOCKS_AT_ONCE = 16  # of every thread, where results are needed a part at a time
ROW_COPIES, ROW_NUMBERS = 8, 4096  # a row in work: its features some eight times over, kernels and targets; float64
SHARE_IN_WORK = 0.5  # of the memory budget; the rest is for samples, sums and results
SMALLEST_BLOCK = 16
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h


class _Given(Rows):
    """Rows of a matrix as it was handed over; a block is read, and made dense, when it is walked."""

    def __init__(self, matrix: Matrix, block_rows: int) -> None:
        self.matrix = matrix
        self.n_rows = int(matrix.shape[0])
        self.bounds = [slice(s, min(s + block_rows, self.n_rows)) for s in range(0, self.n_rows, block_rows)]
        self.n_blocks = len(self.bounds)

    def block(self, i: int) -> npt.NDArray[Any]:
        return dense_rows(self.matrix, self.bounds[i])

    def hand_over(self, i: int) -> npt.NDArray[Any]:
        """A copy: what the caller put is the caller's."""
        return np.array(self.block(i))


class _Made(Rows):
    """Rows made by map_rows: one array per block."""

    def __init__(self, blocks: list[Any]) -> None:
        self.blocks = blocks
        self.n_blocks = len(blocks)
        self.n_rows = sum(len(block) for block in blocks)

    def block(self, i: int) -> npt.NDArray[Any]:
        block: npt.NDArray[Any] = self.blocks[i]
        return block

    def hand_over(self, i: int) -> npt.NDArray[Any]:
        block, self.blocks[i] = self.block(i), None
        return block


class _Lent(_Made):
    """Blocks that remain another's: who wants to write into one gets a copy."""

    def hand_over(self, i: int) -> npt.NDArray[Any]:
        return np.array(self.block(i))


class ThreadsEngine(Engine):
    """Walk row blocks on a pool of threads.

    Parameters
    ----------
    n_threads : int, optional
        Default: the environment variable QUORUMHASH_THREADS, else the cores this process may use.
    block_rows : int, optional
        Rows per block; where not given it follows from the number of rows. Sums over blocks round differently for
        another value, nothing else changes.
    memory_budget : int, optional
        Bytes that the work may take, `fit`'s argument where not given: blocks are made smaller to fit it. Memory maps
        do not count, the system drops their pages when it needs them.

    Examples
    --------
    >>> import numpy as np
    >>> with ThreadsEngine(n_threads=2, block_rows=2) as engine:
    ...     rows = engine.put(np.arange(6.0).reshape(3, 2))
    ...     engine.sum_rows(lambda block: block.T @ block, rows)
    array([[20., 26.],
           [26., 35.]])
    """

    def __init__(
        self, n_threads: int | None = None, block_rows: int | None = None, *, memory_budget: float | None = None
    ) -> None:
        self.n_threads = threads_wanted() if n_threads is None else n_threads
        if self.n_threads < 1 or (block_rows is not None and block_rows < 1):
            raise ParameterError(f"n_threads and block_rows must be at least 1, got {self.n_threads} and {block_rows}.")
        self.block_rows = block_rows
        self.memory_budget = memory_budget
        self._most_rows = LARGEST_BLOCK
        self._blas = thread_pools()
        self._pool = self._new_pool()
        self._limits: list[Any] = []
        keep_freed_memory()

    def _new_pool(self) -> ThreadPoolExecutor:
        """Every worker begins by holding OpenMP to one thread: a BLAS built on it counts them per calling thread.

        What it calls must not know this engine: a worker would keep its own pool, and so itself, for ever.
        """
        one_thread = partial(self._blas.limit, limits=1, user_api="openmp")
        return ThreadPoolExecutor(self.n_threads, thread_name_prefix="quorumhash", initializer=one_thread)

    def __enter__(self) -> ThreadsEngine:
        """Also hold BLAS to one thread for the small algebra between the verbs."""
        self._limits.append(self._blas.limit(limits=1))
        self._limits[-1].__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give BLAS its threads back; after Ctrl-C, which may catch a worker half begun, the workers are new ones."""
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            left, self._pool = self._pool, self._new_pool()
            left.shutdown(wait=False, cancel_futures=True)  # else Python waits at its end for that worker, for ever
        self._limits.pop().__exit__(kind, error, trace)

    def plan(self, n_features: int, memory_budget: float | None = None) -> None:
        """Make blocks so small that those in work fit the budget: the engine's own, else the one given."""
        budget = self.memory_budget if self.memory_budget is not None else memory_budget
        if budget is not None:
            in_work = 8 * self.n_threads * (ROW_COPIES * n_features + ROW_NUMBERS)
            self._most_rows = max(SMALLEST_BLOCK, min(LARGEST_BLOCK, int(SHARE_IN_WORK * budget / in_work)))

    @property
    def rows_at_once(self) -> int:
        """Some blocks for every thread."""
        return BLOCKS_AT_ONCE * self.n_threads * (self.block_rows or self._most_rows)

    def put(self, matrix: Any) -> Rows:
        """Keep a reference; blocks are slices of it."""
        return _Given(matrix, self.block_rows or min(self._most_rows, default_block_rows(int(matrix.shape[0]))))

    def get(self, rows: Rows) -> npt.NDArray[Any]:
        """All rows as one array."""
        return np.concatenate(self.get_blocks(rows))

    def put_blocks(self, blocks: Sequence[npt.NDArray[Any]]) -> Rows:
        """Keep references."""
        return _Lent(list(blocks))

    def get_blocks(self, rows: Rows) -> list[npt.NDArray[Any]]:
        """The blocks, uncopied."""
        held = _own(rows)
        return [held.block(i) for i in range(held.n_blocks)]

    def map_rows(self, function: Callable[..., Any], *arguments: Any, reuse: Sequence[Rows] = ()) -> Any:
        """Apply a function to every block, the blocks in parallel."""
        results = list(self._results(function, arguments, reuse))
        if isinstance(results[0], tuple):
            return tuple(_Made(list(blocks)) for blocks in zip(*results, strict=True))
        return _Made(results)

    def sum_rows(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Add up in block order; only blocks in flight are held."""
        totals: list[npt.NDArray[np.float64]] = []
        is_tuple = False
        for result in self._results(function, arguments, ()):
            is_tuple = isinstance(result, tuple)
            parts = result if is_tuple else (result,)
            if totals:
                for total, part in zip(totals, parts, strict=True):
                    total += part
            else:
                totals = [np.array(part, dtype=np.float64) for part in parts]
        return tuple(totals) if is_tuple else totals[0]

    def take_rows(self, rows: Rows, positions: npt.NDArray[np.intp]) -> npt.NDArray[Any]:
        """Some rows as a dense array."""
        if isinstance(rows, _Given):
            return dense_rows(rows.matrix, positions)
        held = _own(rows)
        starts = np.cumsum([0] + [len(held.block(i)) for i in range(held.n_blocks)])
        owners = np.searchsorted(starts, positions, side="right") - 1
        return np.stack([held.block(i)[p - starts[i]] for i, p in zip(owners, positions, strict=True)])

    def _results(self, function: Callable[..., Any], arguments: Sequence[Any], reuse: Sequence[Rows]) -> Iterator[Any]:
        def given(argument: Any, i: int) -> Any:
            if not isinstance(argument, Rows):
                return argument
            held = _own(argument)
            return held.hand_over(i) if argument in reuse else held.block(i)

        def work(i: int) -> Any:
            return function(*[given(argument, i) for argument in arguments])

        walked = _own(next(argument for argument in arguments if isinstance(argument, Rows)))
        n_rows, n_blocks = walked.n_rows, walked.n_blocks
        done = begin_stage("pass", n_rows, "rows")
        # closing() cancels the blocks not yet begun when the caller stops early: an error, or Ctrl-C
        results: Any = self._pool.map(work, range(n_blocks))
        with self._blas.limit(limits=1), closing(results):
            for i, result in enumerate(results):
                yield result
                done(n_rows * (i + 1) // n_blocks - n_rows * i // n_blocks)  # blocks are about alike


def keep_freed_memory() -> None:
    """Let glibc keep the pages of freed temporaries instead of returning them to the system after every block.

    Else a sum over blocks spends more time on page faults than on products. Left alone, glibc finds such thresholds by
    itself; a process of dask must be told, for dask switches that off in its workers.
    """
    try:
        tell = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library
        return
    tell(M_MMAP_THRESHOLD, 31 << 20)  # 32 MB is the most it takes
    tell(M_TRIM_THRESHOLD, 62 << 20)


def _own(rows: Rows) -> _Given | _Made:
    if not isinstance(rows, _Given | _Made):
        raise ParameterError(f"these rows belong to another engine ({type(rows).__name__}); put them again.")
    return rows


def one_blas_thread() -> Any:
    """Within this context, NumPy's OpenBLAS has one thread: many threads wait for each other over a small matrix."""
    return thread_pools().select(internal_api="openblas").limit(limits=1)


def thread_pools() -> ThreadpoolController:
    """The thread pools of the libraries that are loaded: looked for anew, which takes milliseconds, after an import."""
    return _thread_pools(len(sys.modules))


@lru_cache(maxsize=1)
def _thread_pools(n_modules: int) -> ThreadpoolController:  # noqa: ARG001
    return ThreadpoolController()


def run_together(
    function: Callable[[Item], Result], items: Sequence[Item], done: Callable[[int], None] | None = None,
    rows: Any = None,
) -> list[Result]:  # fmt: skip
    """A function of each of a few items, side by side with one BLAS thread each; results in the order of the items.

    For learning between the verbs; the same bits whatever the number of threads. `done` hears of each. If the `rows`
    that are looked at lie on a device, one thread asks it: several would wait for each other, not for the device.

    >>> run_together(lambda x: x * x, [3, 1, 2])
    [9, 1, 4]
    """

    def work(item: Item) -> Result:
        result = function(item)
        if done is not None:
            done(1)
        return result

    with side_by_side(1 if is_tensor(rows) else len(items)) as together:
        return together(work, items)


@contextmanager
def side_by_side(most: int) -> Iterator[Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]]:
    """What `run_together` does, for who asks again and again: at most so many threads, started once."""
    n_threads = min(threads_wanted(), most)
    with thread_pools().limit(limits=1):
        if n_threads < 2:
            yield lambda function, items: list(map(function, items))
            return
        with ThreadPoolExecutor(n_threads, thread_name_prefix="quorumhash") as pool:
            yield lambda function, items: list(pool.map(function, items))


def threads_wanted() -> int:
    """Threads for engine and index alike: QUORUMHASH_THREADS, else the cores this process may use."""
    text = os.environ.get("QUORUMHASH_THREADS", "")
    if not text:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not text.isdecimal() or int(text) < 1:
        raise ParameterError(f"QUORUMHASH_THREADS must be a whole number from 1 up, got {text!r}.")
    return int(text)
