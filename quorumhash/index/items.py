"""Items of an index: codes under ids; a change goes to the journal first, and is made as a whole or not at all."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from quorumhash.codes import Bytes, n_bytes
from quorumhash.errors import ParameterError
from quorumhash.index.arguments import checked_codes, checked_ids, fingerprint_of, running_ids
from quorumhash.index.codetable import CodeTable, Ids
from quorumhash.index.journal import Journal


class Items:
    """What every index can do with its items; those of a file are read when they are first needed."""

    def __init__(self, n_bits: int, deduplicate: bool, journal: Journal | None) -> None:
        self.n_bits = n_bits
        self.model = ""  # fingerprint of the model whose codes these are
        self._deduplicate = deduplicate
        self._journal = journal
        self._is_closed = False
        self._turn = threading.Lock()
        self._held: CodeTable | None = None  # None: still in the file
        if journal is None:
            self._held = self._new_table()
        else:
            self.model = journal.model

    def _new_table(self) -> CodeTable:
        return CodeTable(n_bytes(self.n_bits), self._deduplicate)

    @property
    def _table(self) -> CodeTable:
        if self._held is None:
            with self._turn:
                if self._held is None and self._journal is not None:
                    self._load(self._journal, newest=False)
        assert self._held is not None
        return self._held

    def _load(self, journal: Journal, newest: bool) -> None:
        table = self._new_table()
        table.add(*journal.load(newest))
        self._held, self.model = table, journal.model

    def refresh(self) -> bool:
        """Take over what another process has written to the file since; whether there was anything."""
        if self._journal is None or not self._journal.refresh():
            return False
        self._load(self._journal, newest=True)
        return True

    def close(self) -> None:
        """Close the file, if there is one, and free the memory; a second call does nothing."""
        if self._journal is not None:
            self._journal.close()
        self._is_closed = True
        self._held = self._new_table()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        return self._journal.n_seen if self._held is None and self._journal is not None else len(self._table)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_bits={self.n_bits}, {len(self):,} items)"

    @property
    def ids(self) -> Ids:
        """All ids, in rising order."""
        return self._table.ids()

    def items(self) -> tuple[Bytes, Ids]:
        """All codes (n, n_bytes) and ids (n,), ids rising: what `add` of another index or store takes."""
        self._require_open()
        parts = [(np.empty((0, n_bytes(self.n_bits)), np.uint8), np.empty(0, np.int64)), *self._table.items()]
        codes, ids = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        order = np.argsort(ids)
        return codes[order], ids[order]

    def add(self, codes: npt.ArrayLike, ids: npt.ArrayLike | None = None, *, model: Any = None) -> None:
        """Add items, all or none.

        Parameters
        ----------
        codes : uint8 (n, n_bytes)
            Packed codes.
        ids : int (n,), optional
            New ids, each once; default: running numbers from 0, after the largest id so far (in a file: the largest
            it had when it was opened).
        model : fitted hasher or str, optional
            The hasher that made the codes, or its fingerprint; remembered, and codes of another one are refused.
        """
        rows, fingerprint = self._writable(codes), self._checked_model(model)
        names = running_ids(self._table.next_id, len(rows)) if ids is None else checked_ids(ids, len(rows))
        there = self._table.contains(names)
        if there.any():
            raise ParameterError(
                f"ids must be new to add, got {names[there][0]}, which is there already; use update or remove it first."
            )
        if self._journal is not None and len(rows):
            self._journal.append(rows, names, fingerprint)
        self._table.add(rows, names)
        self.model = fingerprint or self.model

    def update(self, codes: npt.ArrayLike, ids: npt.ArrayLike, *, model: Any = None) -> None:
        """Give items that are there new codes, all or none."""
        rows, fingerprint = self._writable(codes), self._checked_model(model)
        names = self._known_ids(ids, len(rows))
        if self._journal is not None and len(rows):
            self._journal.replace(rows, names, fingerprint)
        self._table.remove(names)
        self._table.add(rows, names)
        self.model = fingerprint or self.model

    def remove(self, ids: npt.ArrayLike) -> None:
        """Take items away by id, all or none."""
        self._require_open()
        names = self._known_ids(ids, None)
        if self._journal is not None and len(names):
            self._journal.remove(names)
        self._table.remove(names)

    def compact(self) -> None:
        """Store every distinct code once and drop what was removed, in memory and in the file; no answer changes."""
        self._require_open()
        if self._journal is not None:
            self._journal.compact()
        if self._held is not None:
            self._held.compact()

    def _writable(self, codes: npt.ArrayLike) -> Bytes:
        self._require_open()
        return checked_codes(codes, self.n_bits, "codes")

    def _require_open(self) -> None:
        if self._is_closed:
            raise ParameterError("this HammingIndex is closed; open it again.")

    def _known_ids(self, ids: npt.ArrayLike, n_items: int | None) -> Ids:
        names = checked_ids(ids, n_items)
        there = self._table.contains(names)
        if not there.all():
            raise ParameterError(f"ids must be in the index, got {names[~there][0]}, which is not; add it first.")
        return names

    def _checked_model(self, model: Any) -> str:
        fingerprint = fingerprint_of(model)
        if fingerprint and self.model and fingerprint != self.model:
            raise ParameterError(
                f"this HammingIndex holds codes of the model {self.model[:12]}, got codes of {fingerprint[:12]}; "
                "encode with that model, or use another index."
            )
        return fingerprint
