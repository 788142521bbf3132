"""The threads engine with a bar over the rows of every pass; for the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from quorumhash.engines.base import Engine, Rows
from quorumhash.engines.threads import ThreadsEngine
from quorumhash.progress import row_bar

Begin = Callable[[int], Callable[[int], None]]


class WatchedEngine(ThreadsEngine):
    """Walk row blocks on a pool of threads and tell how many rows of a pass are done.

    Parameters
    ----------
    begin : callable
        Called with the rows of a pass before it; what it gives is called with the rows of each block after it.

    Examples
    --------
    >>> import numpy as np
    >>> with WatchedEngine(lambda n_rows: print) as engine:
    ...     total = engine.sum_rows(lambda block: block.sum(axis=0), engine.put(np.ones((200, 1))))
    100
    100
    """

    def __init__(self, begin: Begin, **options: Any) -> None:
        super().__init__(**options)
        self.begin = begin

    def _results(self, function: Callable[..., Any], arguments: Sequence[Any], reuse: Sequence[Rows]) -> Iterator[Any]:
        rows: Any = next(argument for argument in arguments if isinstance(argument, Rows))
        done = self.begin(rows.n_rows)
        for i, result in enumerate(super()._results(function, arguments, reuse)):
            yield result
            done(rows.n_rows * (i + 1) // rows.n_blocks - rows.n_rows * i // rows.n_blocks)  # blocks are about alike


@contextmanager
def watched(engine: str | Engine, what: str) -> Iterator[str | Engine]:
    """The engine with a bar, where it is the threads engine by name; any other as it is."""
    if engine != "threads":
        yield engine
        return
    with row_bar(what) as begin:
        yield WatchedEngine(begin)
