"""Progress bars, on the terminal's error stream, for who asks; rich is imported only then.

Work that takes long tells of itself wherever it is done: `stage` around a known number of steps, `estimated` around one
call that cannot be looked into. Nobody hears of it unless `watching` is open around it: then a bar shows the stage with
its rate and the time it has left. A stage within a stage is not heard of.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, Protocol, TypeVar


class Done(Protocol):
    """Call it with how many more steps are done, and what is to be said of them."""

    def __call__(self, n_done: int, said: str = "") -> None:  # noqa: D102
        ...


Begin = Callable[[str, int, str], Done]  # what is done, in how many steps, what a step is

Thing = TypeVar("Thing")

TICK = 0.1  # seconds
TICKS = "ticks"  # steps of a bar that goes by the clock: their rate says nothing
PRODUCT = 384  # rows and columns of the product that tells how fast this processor is

_heard: ContextVar[Begin | None] = ContextVar("heard", default=None)


def begin_stage(what: str, total: int, unit: str = "steps") -> Done:
    """Tell of work of so many steps; call what it gives with how many of them are done."""
    begin = _heard.get()
    return _unheard if begin is None else begin(what, total, unit)


def is_heard() -> bool:
    """Whether anybody watches, for work that would have to be done otherwise to tell of itself."""
    return _heard.get() is not None


@contextmanager
def stage(what: str, total: int, unit: str = "steps") -> Iterator[Done]:
    """The same for a block of code, whose own stages are steps of this one."""
    done = begin_stage(what, total, unit)
    token = _heard.set(None)
    try:
        yield done
    finally:
        _heard.reset(token)


def counted(what: str, things: Iterable[Thing], total: int, unit: str) -> Iterator[Thing]:
    """The things, told of as they come."""
    done = begin_stage(what, total, unit)
    for thing in things:
        yield thing
        done(1)


@contextmanager
def estimated(what: str, n_operations: float) -> Iterator[None]:
    """One call that cannot be looked into, expected to take the time of so many operations of a product."""
    with expected(what, n_operations / _operations_a_second() if is_heard() else 0.0):
        yield


@contextmanager
def expected(what: str, seconds: float) -> Iterator[None]:
    """One call that cannot be looked into: the bar goes by the clock."""
    if not is_heard():
        yield
        return
    over = threading.Event()
    n_ticks = max(1, round(seconds / TICK))

    def tick(done: Done) -> None:
        n_left = n_ticks
        while not over.wait(TICK):
            if n_left > 1:
                n_left -= 1
                done(1)
        done(n_left)  # it was quicker, or took longer: now it is done

    with stage(f"{what}, about {n_ticks * TICK:.0f} s", n_ticks, TICKS) as done:
        clock = threading.Thread(target=tick, args=(done,), daemon=True)
        clock.start()
        try:
            yield
        finally:
            over.set()
            clock.join()


@contextmanager
def watching(what: str) -> Iterator[Callable[[str], None]]:
    """Show a bar for the stages of what is done inside, one after the other; passes over rows are counted.

    Call what it yields with what is to stand before the stages from then on.
    """
    with _bars(what, None, "steps", 1) as (progress, task):
        n_passes, started, before = 0, time.monotonic(), what

        def rename(said: str) -> None:
            nonlocal before
            before = said

        def begin(stage_name: str, total: int, unit: str) -> Done:
            nonlocal n_passes
            n_passes += stage_name == "pass"
            number = f" {n_passes}" if stage_name == "pass" else ""
            title = f"{before}, {time.monotonic() - started:.0f} s, {stage_name}{number}"
            progress.reset(task, total=total, description=title, unit=unit)

            def done(n_done: int, said: str = "") -> None:
                progress.update(task, advance=n_done, **({"description": f"{title}: {said}"} if said else {}))

            return done

        with heard_by(begin):
            yield rename


@contextmanager
def heard_by(begin: Begin) -> Iterator[None]:
    """Have every stage of what is done inside told to `begin`."""
    token = _heard.set(begin)
    try:
        yield
    finally:
        _heard.reset(token)


@contextmanager
def sweep_bar(is_shown: bool, total: int, what: str) -> Iterator[Callable[[dict[str, float]], None] | None]:
    """A bar over a solver's sweeps with objective, residual and rank; yields None when it is not shown."""

    def said(facts: dict[str, float]) -> str:
        return f"objective {facts['objective']:.6g}, residual {facts['residual']:.1e}, rank {facts['rank']:.0f}"

    if is_heard():
        with stage("sweeps", total, "sweeps") as done:
            yield lambda facts: done(1, said(facts))
    elif not is_shown or total == 0:
        yield None
    else:
        with _bar(what, total) as advance:
            yield lambda facts: advance(f"{what}: {said(facts)}")


@contextmanager
def task_bar(is_shown: bool, total: int, what: str) -> Iterator[Callable[[str], None]]:
    """A bar over a known number of tasks; call what it yields with the name of the task just done."""
    if not is_shown:
        yield lambda _: None
        return
    with _bar(what, total) as advance:
        yield lambda name: advance(f"{what}: {name}")


@contextmanager
def count_bar(total: int, what: str, unit: str) -> Iterator[Callable[[int], None]]:
    """A bar over so many things; call what it yields with how many more are done."""
    with _bars(what, total, unit, 1) as (progress, task):
        yield lambda n_done: progress.update(task, advance=n_done)


@contextmanager
def _bar(what: str, total: int | None) -> Iterator[Callable[[str], None]]:
    with _bars(what, total, "", 60) as (progress, task):
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
            if task.speed is None or task.fields["unit"] == TICKS:
                return Text("")
            rate, per = seconds * task.speed, "min" if seconds == 60 else "s"
            number = f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"
            return Text(f"{number} {task.fields['unit']}/{per}".replace(" /", "/"))

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
        yield progress, progress.add_task(what, total=total, unit=unit)


@cache
def _operations_a_second() -> float:
    """Of a product of two matrices on one thread, the best of three."""
    import numpy as np

    matrix, best = np.ones((PRODUCT, PRODUCT)), float("inf")
    for _ in range(3):
        started = time.perf_counter()
        matrix @ matrix
        best = min(best, time.perf_counter() - started)
    return 2 * PRODUCT**3 / best


def _unheard(n_done: int, said: str = "") -> None:
    """Nobody asked."""
