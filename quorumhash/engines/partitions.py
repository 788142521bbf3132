"""Rows in partitions, some whole blocks each, and what a dask worker does with one: an ordinary engine walks it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.engines.base import Engine, Rows
from quorumhash.engines.threads import ThreadsEngine
from quorumhash.engines.torchengine import TorchEngine
from quorumhash.matrices import Matrix, dense_rows

FEWEST, MANY = 4, 64  # partitions: a task costs a millisecond or two, so few rows make few of them ...
FEWEST_BLOCKS = 8  # of a partition, where that leaves FEWEST partitions
MOST_BLOCKS = 64  # of a partition; so very many rows make more than MANY


@dataclasses.dataclass(eq=False)
class Held(Rows):
    """Rows in partitions: futures or readers of files, of which a verb sees one `column` where a function gave several.

    `matrix` is what the driver itself can take rows from.
    """

    n_rows: int
    block_rows: int
    partitions: list[Any]
    column: int | None = None
    matrix: Matrix | None = None


@dataclasses.dataclass(frozen=True)
class Shard:
    """Rows that a task reads for itself."""

    files: Any
    bounds: slice


@dataclasses.dataclass(frozen=True)
class Walk:
    """What is done to a partition: a function, and how each of its arguments is to be understood."""

    function: Callable[..., Any]
    engine: str
    block_rows: int
    columns: tuple[int | None, ...]  # of the arguments that are rows
    is_rows: tuple[bool, ...]
    is_reused: tuple[bool, ...]


def partition_bounds(n_rows: int, block_rows: int) -> list[slice]:
    """Whole blocks, by the number of rows alone."""
    n_blocks = -(-n_rows // block_rows)
    n_partitions = max(FEWEST, min(MANY, n_blocks // FEWEST_BLOCKS))
    step = block_rows * min(MOST_BLOCKS, -(-n_blocks // n_partitions))
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


def array_bytes(value: Any) -> int:
    """Bytes of the arrays in a value."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return sum(array_bytes(getattr(value, field.name)) for field in dataclasses.fields(value))
    return sum(map(array_bytes, value)) if isinstance(value, list | tuple) else 0


def itself(value: Any) -> Any:
    """What was sent."""
    return value


def column_of(part: Any, column: int | None) -> npt.NDArray[Any]:
    """The rows of a partition, or of one of the arrays that a function made of it."""
    if isinstance(part, Shard):
        return dense_rows(part.files, part.bounds)
    values: Any = part if column is None else part[column]
    return np.concatenate(values) if isinstance(values, list) else values


def take_partition(part: Any, column: int | None, positions: npt.NDArray[np.intp]) -> npt.NDArray[Any]:
    """Some rows of a partition, by their positions in it."""
    if isinstance(part, Shard):
        return dense_rows(part.files, positions + part.bounds.start)
    return column_of(part, column)[positions]


def map_partition(*given: Any, walk: Walk) -> Any:
    """Blocks of a partition's rows: a list, or a tuple of lists; joined, they would be copied again by each verb."""
    with _worker_engine(walk.engine, walk.block_rows) as engine:
        arguments, reuse = _walked(engine, walk, given)
        made = engine.map_rows(walk.function, *arguments, reuse=reuse)
        return tuple(map(engine.get_blocks, made)) if isinstance(made, tuple) else engine.get_blocks(made)


def sum_partition(*given: Any, walk: Walk) -> Any:
    """What a function gives for the blocks of a partition, added up in their order, in float64."""
    with _worker_engine(walk.engine, walk.block_rows) as engine:
        return engine.sum_rows(walk.function, *_walked(engine, walk, given)[0])


def _walked(engine: Engine, walk: Walk, given: Sequence[Any]) -> tuple[list[Any], list[Rows]]:
    """The arguments as the worker's engine takes them; it copies what may be overwritten, for it was put."""
    arguments = [
        _rows(engine, value, column) if is_rows else value
        for value, column, is_rows in zip(map(aligned, given), walk.columns, walk.is_rows, strict=True)
    ]
    return arguments, [a for a, is_reused in zip(arguments, walk.is_reused, strict=True) if is_reused]


def _rows(engine: Engine, part: Any, column: int | None) -> Rows:
    made = part if column is None else part[column]
    return engine.put_blocks(made) if isinstance(made, list) else engine.put(column_of(part, column))


def aligned(value: Any) -> Any:
    """A value whose arrays lie as NumPy lays them; what came from another worker lies anywhere in its message.

    NumPy sends arrays that lie otherwise through other products, which round otherwise: a partition that a worker made
    and one that it was sent would not give the same bits.
    """
    if isinstance(value, np.ndarray):
        return value if value.flags.aligned else value.copy(order="K")
    if isinstance(value, list | tuple):
        parts = list(map(aligned, value))
        if all(new is old for new, old in zip(parts, value, strict=True)):
            return value
        return value._make(parts) if hasattr(value, "_make") else type(value)(parts)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
        changed = {name: new for name, old in fields.items() if (new := aligned(old)) is not old}
        return dataclasses.replace(value, **changed) if changed else value
    return value


def lengths_of(made: Any) -> Any:
    """How many rows came of a partition, of each list of blocks where there are several."""
    return tuple(map(lengths_of, made)) if isinstance(made, tuple) else sum(map(len, made))


def added(parts: list[Any]) -> Any:
    """The sum of equally shaped arrays, or tuples of them, from the first to the last."""
    if isinstance(parts[0], tuple):
        return tuple(added(list(column)) for column in zip(*parts, strict=True))
    total = np.array(parts[0])
    for part in parts[1:]:
        total += part
    return total


@lru_cache(maxsize=4)
def _worker_engine(name: str, block_rows: int) -> Engine:
    kind, _, device = name.partition(":")
    return ThreadsEngine(1, block_rows) if kind == "threads" else TorchEngine(device or "cpu", block_rows=block_rows)
