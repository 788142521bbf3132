"""LanceDB: a table of ids and packed codes in a folder; every add and remove is a version, whole or not at all."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import numpy as np
import numpy.typing as npt

from quorumhash.codes import n_bytes
from quorumhash.errors import ParameterError
from quorumhash.index.adapters.base import Codes, Found, Store, agreed_bits, missing, portions, take_options
from quorumhash.index.idset import Ids
from quorumhash.progress import expected

IDS = 10_000  # named in one condition
ADDED = 100_000  # rows in one batch
REMOVING = 2.0  # times what finding the ids has taken, about


def open_url(url: str, n_bits: int | None) -> LanceStore:
    """The table that `lancedb:///folder?table=codes` names, made when it is not there."""
    parts = urlsplit(url)
    if parts.netloc or not parts.path.strip("/"):
        raise ParameterError(f"a lancedb URL must be lancedb:///folder, with three slashes, got {url!r}.")
    options = take_options(parse_qs(parts.query), {"table": "codes"}, "lancedb")
    return LanceStore(unquote(parts.path), options["table"], n_bits)


class LanceStore(Store):
    """A table with the columns id and code, searched without an index: exact."""

    def __init__(self, folder: str, table: str, n_bits: int | None) -> None:
        try:
            import lancedb
            import pyarrow
        except ImportError as error:
            raise missing("lancedb", "lancedb") from error
        self.name = f"the LanceDB table {table} in {folder}"
        self._arrow: Any = pyarrow
        self._asking_seconds = 0.0  # that looking for the ids of the last call has taken
        with self._asked():
            database = lancedb.connect(folder)
            self._table: Any = _open_table(database, table)
            is_there = self._table is not None
            self.n_bits = agreed_bits(n_bits, self._stated_bits() if is_there else None, self.name)
            self._schema = self._made_schema()
            if not is_there:
                self._table = database.create_table(table, schema=self._schema)

    def _made_schema(self) -> Any:
        arrow = self._arrow
        codes = arrow.list_(arrow.uint8(), n_bytes(self.n_bits))
        fields = [arrow.field("id", arrow.int64(), nullable=False), arrow.field("code", codes, nullable=False)]
        return arrow.schema(fields, metadata={"quorumhash.n_bits": str(self.n_bits)})

    def _stated_bits(self) -> int:
        stated = (self._table.schema.metadata or {}).get(b"quorumhash.n_bits", b"")
        if not stated.isdigit():
            raise ParameterError(f"{self.name} is not one that quorumhash made; name another table.")
        return int(stated)

    def __len__(self) -> int:
        self._table.checkout_latest()  # what other clients have written
        return int(self._table.count_rows())

    def close(self) -> None:
        """Let go of the table; it stays in its folder."""
        self._table = None

    def _has(self, ids: Ids) -> npt.NDArray[np.bool_]:
        self._table.checkout_latest()
        found = [self._rows(self._table.search().where(text).limit(IDS))[0] for text in _conditions(ids)]
        return np.isin(ids, np.concatenate([np.empty(0, np.int64), *found]))

    def _there(self, ids: Ids) -> npt.NDArray[np.bool_]:
        started = time.monotonic()
        found = super()._there(ids)
        self._asking_seconds = time.monotonic() - started
        return found

    def _add(self, codes: Codes, ids: Ids) -> None:
        def batch(part: slice) -> Any:
            values = self._arrow.array(codes[part].ravel())
            lists = self._arrow.FixedSizeListArray.from_arrays(values, codes.shape[1])
            return self._arrow.RecordBatch.from_arrays([self._arrow.array(ids[part]), lists], schema=self._schema)

        batches = (batch(part) for part in portions("adding", len(ids), ADDED))
        self._table.add(self._arrow.RecordBatchReader.from_batches(self._schema, batches))  # one version, all or none

    def _remove(self, ids: Ids) -> None:
        with expected("removing", REMOVING * self._asking_seconds):  # one version, all or none
            self._table.delete(" OR ".join(_conditions(ids)))

    def _nearest(self, queries: Codes, k: int) -> list[Found]:
        return [self._rows(self._query(query).limit(k)) for query in queries]

    def _ball(self, queries: Codes, radius: int) -> list[Found | None]:
        n_items = max(1, len(self))
        ranges = (self._query(query).distance_range(upper_bound=radius + 1) for query in queries)  # it leaves it out
        return [self._rows(one.limit(n_items)) for one in ranges]

    def _query(self, query: Codes) -> Any:
        asked = self._table.search(query, vector_column_name="code").distance_type("hamming")
        return asked.bypass_vector_index()  # somebody may have made one: it would be approximate

    @staticmethod
    def _rows(query: Any) -> Found:
        table = query.select(["id", "_distance"] if hasattr(query, "bypass_vector_index") else ["id"]).to_arrow()
        ids = table["id"].to_numpy()
        return ids, table["_distance"].to_numpy() if "_distance" in table.column_names else ids[:0]

    def _failures(self) -> tuple[type[Exception], ...]:
        return (RuntimeError, OSError, ValueError)


def _open_table(database: Any, table: str) -> Any:
    """The table, or None where there is none; how tables are listed differs between releases."""
    try:
        return database.open_table(table)
    except (ValueError, OSError) as error:
        if "not found" not in str(error).lower():
            raise
        return None


def _conditions(ids: Ids) -> list[str]:
    return [f"id IN ({', '.join(map(str, ids[start : start + IDS].tolist()))})" for start in range(0, len(ids), IDS)]
