"""Progress bars: on the terminal's error stream, only when asked for; rich is imported only then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


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
def _bar(what: str, total: int) -> Iterator[Callable[[str], None]]:
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
        """How many tasks are done in a minute, as measured lately."""

        def render(self, task: Task) -> Text:
            return Text("" if task.speed is None else f"{60 * task.speed:.3g}/min")

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
        task = progress.add_task(what, total=total)
        yield lambda text: progress.update(task, advance=1, description=text)
