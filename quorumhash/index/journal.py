"""What an index writes its changes to before it makes them in memory."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.uint8]
Ids = npt.NDArray[np.int64]


class Journal(Protocol):
    """A durable list of items; a call that returned has written, one that raised has changed nothing."""

    n_bits: int

    @property
    def model(self) -> str:
        """Fingerprint of the model whose codes it holds; "" when none was told."""

    @property
    def n_seen(self) -> int:
        """Items when it was opened, or last loaded."""

    def load(self, newest: bool = True) -> tuple[Codes, Ids]:
        """All items; with newest=False those of when it was opened, or last loaded."""

    def append(self, codes: Codes, ids: Ids, model: str = "") -> None:
        """Add items under new ids."""

    def replace(self, codes: Codes, ids: Ids, model: str = "") -> None:
        """Give items that are there new codes."""

    def remove(self, ids: Ids) -> None:
        """Take items away."""

    def refresh(self) -> bool:
        """Whether another process has changed the items since it was opened, or last loaded."""

    def compact(self) -> None:
        """Make the file small."""

    def close(self) -> None:
        """Let others write."""
