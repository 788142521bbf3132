"""Row blocks on the workers of a dask cluster; the only file that loads dask.

Rows are cut into partitions of whole blocks, by their number alone. One task walks one partition on a worker, with an
ordinary engine there (threads or torch), so blocks, sums and copies are that engine's. What a task made stays on its
worker as a future. Rows of files (shards) are read by the tasks that walk them; rows of the driver, and matrices that
go to every block, are sent once, inside a task of their own: the scheduler can repeat every task, so a worker that
dies costs time and changes no answer. (Data that is scattered would be lost with the worker that holds it.)

Tasks travel between processes as dask sends them, pickled: a cluster trusts its scheduler and its drivers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.engines.base import Engine, Rows, default_block_rows
from quorumhash.engines.partitions import (
    Held,
    Shard,
    Walk,
    added,
    array_bytes,
    column_of,
    itself,
    lengths_of,
    map_partition,
    partition_bounds,
    sum_partition,
    take_partition,
)  # fmt: skip
from quorumhash.engines.threads import ThreadsEngine, threads_wanted
from quorumhash.errors import EngineError, MissingExtraError, ParameterError
from quorumhash.matrices import dense_rows, is_sharded, is_sparse
from quorumhash.progress import counted, is_heard

MOST_SUMS, AT_ONCE = 16, 16  # more partial sums than that are first added by the workers, so many in a task
SMALL_BYTES = 16_384  # an argument larger than this is sent once, and not with every task
CONNECT = "5s"  # how long workers of this machine call one that has died, before its work is given to others
N_CACHED = 64  # such arguments kept for the next verb


class DaskEngine(Engine):
    """Walk row blocks on the workers of a dask cluster.

    Parameters
    ----------
    client : Client or str, optional
        A distributed.Client, or the address of a scheduler; default: worker processes of its own on this machine, which
        end with the outermost `with`.
    n_workers : int, optional
        How many processes of its own; default: QUORUMHASH_THREADS, else the cores this process may use.
    block_rows : int, optional
        Rows per block; where not given it follows from the number of rows.
    worker_engine : str
        What walks blocks on a worker: "threads" (one of them a task), "torch" or "torch:cuda".

    Examples
    --------
    >>> with DaskEngine(n_workers=2) as engine:  # doctest: +SKIP
    ...     codes = hasher.fit(views, engine=engine).transform(views, engine=engine)
    """

    def __init__(
        self,
        client: Any = None,
        *,
        n_workers: int | None = None,
        block_rows: int | None = None,
        worker_engine: str = "threads",
    ) -> None:
        self._distributed = _load_distributed()
        if (n_workers is not None and n_workers < 1) or (block_rows is not None and block_rows < 1):
            raise ParameterError(f"n_workers and block_rows must be at least 1, got {n_workers} and {block_rows}.")
        if worker_engine.partition(":")[0] not in ("threads", "torch"):
            raise ParameterError(f"worker_engine must be 'threads', 'torch' or 'torch:cuda', got {worker_engine!r}.")
        self.block_rows = block_rows
        self.worker_engine = worker_engine
        self.n_workers = n_workers
        self._given = client
        self._client: Any = None if client is None or isinstance(client, str) else client
        self._cluster: Any = None
        self._depth = 0
        self._sent: dict[str, Any] = {}  # futures of matrices that went to every block, by content
        self._put: dict[int, tuple[Any, Held]] = {}  # rows of the driver, by identity; the matrix is kept beside them
        self._lengths: dict[Any, Any] = {}  # of what a function made of a first partition, by it and types

    @property
    def at_hand(self) -> Engine:
        """Threads here: a round to the workers costs more than work on a sample."""
        return ThreadsEngine(block_rows=self.block_rows)

    def __enter__(self) -> DaskEngine:
        """Connect, or start the workers; inside another `with` of the same engine nothing happens."""
        if not self._depth and self._client is None:
            self._connect()
        self._depth += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Forget what was sent; end what this engine started."""
        self._depth -= 1
        if self._depth:
            return
        for kept in (self._sent, self._put, self._lengths):
            kept.clear()
        if self._client is not self._given:
            self._client.close(timeout=10)
            self._client = None
        if self._cluster is not None:
            self._cluster.close(timeout=30)
        self._cluster = None

    def _connect(self) -> None:
        distributed = self._distributed
        try:
            if isinstance(self._given, str):
                self._client = distributed.Client(self._given, set_as_default=False)
                return
            n_workers = self.n_workers or threads_wanted()
            with _configured({"distributed.comm.timeouts.connect": CONNECT}):
                self._cluster = distributed.LocalCluster(
                    n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", silence_logs="ERROR"
                )
            self._client = distributed.Client(self._cluster, set_as_default=False)
        except (OSError, TimeoutError) as error:
            raise EngineError(
                f"no dask scheduler answers at {self._given or 'an address of its own'}: start one, or give the "
                f"address that it prints ({type(error).__name__})."
            ) from error
        except RuntimeError as error:
            advice = "each loads the calling script anew, so put what it does under `if __name__ == '__main__':`"
            raise EngineError(f"the worker processes did not start: {advice}.") from error

    def put(self, matrix: Any) -> Rows:
        """Cut into partitions; rows of files are read by the workers, others are sent when they are first walked."""
        if id(matrix) in self._put:
            return self._put[id(matrix)][1]
        n_rows = int(matrix.shape[0])
        bounds = partition_bounds(n_rows, block_rows := self.block_rows or default_block_rows(n_rows))
        if is_sharded(matrix):
            return Held(n_rows, block_rows, [Shard(matrix.files, part) for part in bounds])
        held = Held(n_rows, block_rows, [], matrix=matrix)
        self._put[id(matrix)] = matrix, held
        return held

    def get(self, rows: Rows) -> npt.NDArray[Any]:
        """All rows as one host array."""
        held = _own(rows)
        if held.matrix is not None:
            return dense_rows(held.matrix, slice(None))
        return np.concatenate(self._gathered(self._submitted(column_of, held.partitions, [held.column])))

    def map_rows(self, function: Callable[..., Any], *arguments: Any, reuse: Sequence[Rows] = ()) -> Any:
        """Apply a function to every partition; only what comes of the first one is waited for, and that only once."""
        walk, walked, given = self._walk(function, arguments, reuse)
        futures = self._submitted(map_partition, *given, walk=walk)
        seen = function, tuple(map(type, arguments)), walked.n_rows, walked.block_rows
        if seen not in self._lengths:
            self._lengths[seen] = self._gathered(self._submitted(lengths_of, futures[:1]))[0]
        lengths = self._lengths[seen]
        first = partition_bounds(walked.n_rows, walked.block_rows)[0]

        def rows(length: int, column: int | None) -> Held:
            # a fact about a block is one row: of all partitions they are as many as there are blocks
            n_rows = walked.n_rows if length == first.stop else -(-walked.n_rows // walked.block_rows)
            return Held(n_rows, walked.block_rows, futures, column)

        if isinstance(lengths, tuple):
            return tuple(rows(length, i) for i, length in enumerate(lengths))
        return rows(lengths, None)

    def sum_rows(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Add up in block order, in float64: in partitions, in groups of partitions where there are many, then here."""
        walk, _, given = self._walk(function, arguments, ())
        futures = self._submitted(sum_partition, *given, walk=walk)
        while len(futures) > MOST_SUMS:
            groups = [futures[i : i + AT_ONCE] for i in range(0, len(futures), AT_ONCE)]
            with self._watched():
                futures = [self._client.submit(added, group, pure=False) for group in groups]
        return added(self._gathered(futures))

    def take_rows(self, rows: Rows, positions: npt.NDArray[np.intp]) -> npt.NDArray[Any]:
        """Some rows as a dense host array; each partition gives those of its own."""
        held, positions = _own(rows), np.asarray(positions)
        if held.matrix is not None:
            return dense_rows(held.matrix, positions)
        bounds = partition_bounds(held.n_rows, held.block_rows)
        owners = np.searchsorted([part.start for part in bounds], positions, side="right") - 1
        order = np.argsort(owners, kind="stable")
        wanted = [int(i) for i in np.unique(owners)]
        local = [positions[order][owners[order] == i] - bounds[i].start for i in wanted]
        partitions = [held.partitions[i] for i in wanted]
        found = np.concatenate(self._gathered(self._submitted(take_partition, partitions, [held.column], local)))
        taken = np.empty_like(found)
        taken[order] = found
        return taken

    def _walk(
        self, function: Callable[..., Any], arguments: Sequence[Any], reuse: Sequence[Rows]
    ) -> tuple[Walk, Held, list[list[Any]]]:
        """What to do, the rows that set the pace, and the tasks' arguments, a list of one for each argument."""
        is_rows = tuple(isinstance(argument, Rows) for argument in arguments)
        helds = [_own(a) for a in arguments if isinstance(a, Rows)]
        columns = tuple(_own(a).column if isinstance(a, Rows) else None for a in arguments)
        is_reused = tuple(any(a is rows for rows in reuse) for a in arguments)
        walk = Walk(function, self.worker_engine, helds[0].block_rows, columns, is_rows, is_reused)
        given = [self._partitions(_own(a)) if isinstance(a, Rows) else [self._whole(a)] for a in arguments]
        return walk, helds[0], given

    def _partitions(self, held: Held) -> list[Any]:
        if not held.partitions:
            matrix: Any = held.matrix
            for part in partition_bounds(held.n_rows, held.block_rows):
                rows = matrix[part] if is_sparse(matrix) else np.array(dense_rows(matrix, part))
                held.partitions.append(self._sent_alone(rows))
        return held.partitions

    def _whole(self, value: Any) -> Any:
        """An argument that goes to every block: itself where it is small, else a future, the same for the same."""
        if array_bytes(value) <= SMALL_BYTES:
            return value
        key = str(self._distributed.client.tokenize(value))
        if key not in self._sent:
            while len(self._sent) >= N_CACHED:
                del self._sent[next(iter(self._sent))]
            self._sent[key] = self._sent_alone(value)
        return self._sent[key]

    def _sent_alone(self, value: Any) -> Any:
        # rows that are sent on purpose are no oversight to be warned of
        with self._watched(), _configured({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            return self._client.submit(itself, value, pure=False)

    def _submitted(self, function: Callable[..., Any], *lists: list[Any], **shared: Any) -> list[Any]:
        """One task for each partition, in one message; a list of one goes to all."""
        n_tasks = max(len(values) for values in lists)
        columns = [values * n_tasks if len(values) == 1 else values for values in lists]
        with self._watched():
            return list(self._client.map(function, *columns, pure=False, **shared))

    def _gathered(self, futures: list[Any]) -> list[Any]:
        with self._watched():
            if is_heard():
                list(counted("pass", self._distributed.as_completed(futures), len(futures), "parts"))
            return list(self._client.gather(futures))

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Say in one sentence that the cluster is gone; errors of a function come as they are."""
        if self._client is None:
            raise ParameterError("this DaskEngine is not open: use it in `with DaskEngine(...) as engine:`.")
        distributed = self._distributed
        try:
            yield
        except distributed.scheduler.KilledWorker as error:
            raise EngineError(
                "a block was given to several dask workers and each of them died: give the workers more memory, or set "
                "a smaller block_rows."
            ) from error
        except Exception as error:
            if self._client.status == "running" and not isinstance(error, _lost(distributed)):
                raise
            raise EngineError(
                "the dask scheduler went away during the work: start it again, and the work from its beginning "
                f"({type(error).__name__})."
            ) from error


def _lost(distributed: Any) -> tuple[type[BaseException], ...]:
    return distributed.CancelledError, distributed.comm.CommClosedError, distributed.client.ClosedClientError


def _own(rows: Rows) -> Held:
    if not isinstance(rows, Held):
        raise ParameterError(f"these rows belong to another engine ({type(rows).__name__}); put them again.")
    return rows


def _load_distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise MissingExtraError(
            "the engine 'dask' needs dask.distributed, which is not installed: pip install 'quorumhash[dask]'."
        ) from error
    return distributed


def _configured(settings: dict[str, str]) -> Any:
    import dask

    return dask.config.set(settings)
