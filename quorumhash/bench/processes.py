"""Work shared out among processes that end with this one, with an error and with Ctrl-C."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from quorumhash.engines.threads import threads_wanted
from quorumhash.errors import ParameterError

Task = TypeVar("Task")
Result = TypeVar("Result")
WAITING_PER_JOB = 2  # tasks in hand for every worker; more would only fill memory with results


def walk(
    make_worker: Callable[[], Callable[[Task], Result]], tasks: Iterable[Task], n_jobs: int
) -> Generator[tuple[Task, Result]]:
    """Every task with its result, as they come; `make_worker` is called once in every process that works.

    With one job all is done here. Otherwise in new processes that share the threads (QUORUMHASH_THREADS) out; close
    the generator (contextlib.closing) so that they end when it is left early.

    >>> sorted(walk(lambda: abs, [-2, 1], n_jobs=1))
    [(-2, 2), (1, 1)]
    """
    if n_jobs == 1:
        work = make_worker()
        yield from ((task, work(task)) for task in tasks)
        return
    n_threads, before = threads_each(n_jobs), multiprocessing.active_children()
    pool = ProcessPoolExecutor(
        n_jobs,
        multiprocessing.get_context("spawn"),
        initializer=_start_worker,
        initargs=(make_worker, n_threads),
    )
    try:
        yield from _shared_out(pool, iter(tasks), n_jobs)
    except BrokenProcessPool as error:
        raise ParameterError(
            f"one of {n_jobs} worker processes died, perhaps for want of memory; what is done is stored: "
            "go on with fewer --jobs."
        ) from error
    finally:  # Ctrl-C lands here as well: workers are not waited for
        pool.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            if child not in before:
                child.terminate()
                child.join()


def _shared_out(pool: ProcessPoolExecutor, tasks: Iterator[Task], n_jobs: int) -> Iterator[tuple[Task, Any]]:
    waiting: dict[Future[Any], Task] = {}
    is_more = True
    while is_more or waiting:
        while is_more and len(waiting) < WAITING_PER_JOB * n_jobs:
            try:
                task = next(tasks)
            except StopIteration:
                is_more = False
            else:
                waiting[pool.submit(_work, task)] = task
        for future in wait(waiting, return_when=FIRST_COMPLETED).done if waiting else ():
            yield waiting.pop(future), future.result()


_worker: list[Callable[[Any], Any]] = []  # of a worker process, set when it starts


def _start_worker(make_worker: Callable[[], Callable[[Any], Any]], n_threads: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process stops its workers
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ["QUORUMHASH_THREADS"] = str(n_threads)
    threadpool_limits(n_threads)
    _worker.append(make_worker())


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(task: Any) -> Any:
    return _worker[0](task)


def threads_each(n_jobs: int) -> int:
    """How many threads each of so many processes has."""
    if n_jobs < 1:
        raise ParameterError(f"jobs must be a whole number from 1 up, got {n_jobs}.")
    return max(1, threads_wanted() // n_jobs)
