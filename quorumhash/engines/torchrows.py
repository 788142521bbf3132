"""The rows that the torch engine holds: as they were handed over, or made by map_rows; torch is not loaded here."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.engines.base import Rows
from quorumhash.errors import ParameterError


class GivenBlocks(Rows):
    """Rows as they were handed over; a block is copied to the device when it is walked, unless it lies there."""

    def __init__(self, matrix: Any, block_rows: int) -> None:
        self.matrix = matrix
        self.n_rows = int(matrix.shape[0])
        self.bounds = [slice(s, min(s + block_rows, self.n_rows)) for s in range(0, self.n_rows, block_rows)]
        self.n_blocks = len(self.bounds)
        self.copy: Any = None  # of the matrix on the device, where it is small


class MadeBlocks(Rows):
    """Rows made by map_rows: one tensor per block, on the device or spilled to the host."""

    def __init__(self, blocks: list[Any]) -> None:
        self.blocks = blocks
        self.n_blocks = len(blocks)
        self.n_rows = sum(len(block) for block in blocks)

    def pieces(self, positions: npt.NDArray[np.intp], as_tensor: Any) -> tuple[list[Any], npt.NDArray[np.intp]]:
        """Some rows block by block, each where it lies, and the order in which they are asked for."""
        starts = np.cumsum([0] + [len(block) for block in self.blocks])
        owners = np.searchsorted(starts, positions, side="right") - 1
        order = np.argsort(owners, kind="stable")
        found = []
        for i in np.unique(owners):
            local = as_tensor(positions[order][owners[order] == i] - starts[i])
            found.append(self.blocks[i][local.to(self.blocks[i].device)])
        return found, order


def own_rows(rows: Rows) -> Any:
    """These rows, refused where they are another engine's."""
    if not isinstance(rows, GivenBlocks | MadeBlocks):
        raise ParameterError(f"these rows belong to another engine ({type(rows).__name__}); put them again.")
    return rows
