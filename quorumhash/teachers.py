"""What an encoder is learned from: a sample at hand, more items where the engine has them, labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.classes import Told
from quorumhash.engines import Engine, Rows
from quorumhash.judging import Judge
from quorumhash.landmarks import SAMPLE_ROWS, sample_positions

FloatArray = npt.NDArray[np.float64]

MOST_ITEMS = 100_000  # rows that dimensions are learned from, and whose views are known again
MOST_BYTES = 2**28  # of such rows, as float32: where they are a sample, the host holds it for a moment


@dataclass(frozen=True)
class Items:
    """Rows where the engine has them, presence and views, and the judge that repairs them."""

    judge: Judge
    present: Rows
    blocks: Sequence[Rows | None]

    @property
    def everything(self) -> tuple[Any, ...]:
        """What functions of blocks take: the judge, no limit for any view, and the rows."""
        return self.judge, np.ones(len(self.judge.components)), self.present, *self.blocks


@dataclass(frozen=True)
class Labels:
    """The classes (n, c) of all items, and some of them at hand."""

    items: Items
    classes: Rows
    told: Told


@dataclass(frozen=True)
class Teachers:
    """What an encoder is learned from: repaired rows (s, all q) of a sample, more items where there are, and labels.

    `believed` (s, v) says which views, of those that count, are believed in which rows of the sample.
    """

    sample: FloatArray
    believed: npt.NDArray[np.bool_]
    items: Items | None = None
    labels: Labels | None = None


def most_items(n_features: int) -> int:
    """How many rows of so many features teach at most.

    >>> most_items(300), most_items(812), most_items(100_000)
    (100000, 82646, 10000)
    """
    return max(min(MOST_ITEMS, MOST_BYTES // (4 * n_features)), SAMPLE_ROWS)


def many_items(
    present: Rows, blocks: list[Rows | None], n_features: int, engine: Engine, seed: int
) -> tuple[Rows, list[Rows | None]] | None:
    """Presence and views of all rows, or of a seeded sample of them; None where the sample at hand is all rows."""
    if present.n_rows <= SAMPLE_ROWS:
        return None
    if present.n_rows <= most_items(n_features):
        return present, blocks
    positions = sample_positions(present.n_rows, engine, seed, most_items(n_features))
    some = [None if rows is None else engine.some_rows(rows, positions) for rows in blocks]
    return engine.some_rows(present, positions), some
