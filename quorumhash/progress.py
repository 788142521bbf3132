"""Progress bars: on the terminal's error stream, only when asked for; rich is imported only then."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def sweep_bar(is_shown: bool, total: int, what: str) -> Iterator[Callable[[dict[str, float]], None] | None]:
    """A bar over a solver's sweeps with objective, residual and rank; yields None when it is not shown."""
    if not is_shown or total == 0:
        yield None
        return
    with _bar(what, total) as advance:
        yield lambda facts: advance(
            f"{what}: objective {facts['objective']:.6g}, residual {facts['residual']:.1e}, rank {facts['rank']:.0f}"
        )


@contextmanager
def task_bar(is_shown: bool, total: int, what: str) -> Iterator[Callable[[str], None]]:
    """A bar over a known number of tasks; call what it yields with the name of the task just done."""
    if not is_shown:
        yield lambda _: None
        return
    with _bar(what, total) as advance:
        yield lambda name: advance(f"{what}: {name}")


@contextmanager
def waiting_bar(is_shown: bool, what: str) -> Iterator[None]:
    """A bar for work whose length is not known: it moves, and counts the seconds."""
    if not is_shown:
        yield
        return
    with _bar(what, None):
        yield


@contextmanager
def count_bar(total: int, what: str, unit: str) -> Iterator[Callable[[int], None]]:
    """A bar over so many things; call what it yields with how many more are done."""
    with _bars(what, total, f" {unit}/s", 1) as (progress, task):
        yield lambda n_done: progress.update(task, advance=n_done)


@contextmanager
def row_bar(what: str) -> Iterator[Callable[[int], Callable[[int], None]]]:
    """A bar over passes through rows: call what it yields with a pass's rows, and what that gives with rows done."""
    with _bars(what, None, " rows/s", 1) as (progress, task):
        n_passes, started = 0, time.monotonic()

        def begin(n_rows: int) -> Callable[[int], None]:
            nonlocal n_passes
            n_passes += 1
            progress.reset(
                task, total=n_rows, description=f"{what}, {time.monotonic() - started:.0f} s, pass {n_passes}"
            )
            return lambda n_done: progress.update(task, advance=n_done)

        yield begin


@contextmanager
def _bar(what: str, total: int | None) -> Iterator[Callable[[str], None]]:
    with _bars(what, total, "/min", 60) as (progress, task):
        yield lambda text: progress.update(task, advance=1, description=text)


@contextmanager
def _bars(what: str, total: int | None, unit: str, seconds: int) -> Iterator[tuple[Any, Any]]:
    """One bar with time gone, time left and rate, on a terminal only."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class RateColumn(ProgressColumn):
        """How much is done in a second or a minute, as measured lately."""

        def render(self, task: Task) -> Text:
            rate = seconds * (task.speed or 0.0)
            return Text("" if task.speed is None else f"{rate:,.0f}{unit}" if rate >= 100 else f"{rate:.3g}{unit}")

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        RateColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        yield progress, progress.add_task(what, total=total)
