"""Milvus: a collection of ids and binary vectors, on a server or in the embedded one's file."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import numpy as np
import numpy.typing as npt

from quorumhash.codes import n_bytes
from quorumhash.errors import ParameterError
from quorumhash.index.adapters.base import Codes, Found, Store, agreed_bits, missing, portions, take_options
from quorumhash.index.idset import Ids

MOST = 16_384  # Milvus gives no more for one query, and names no more in one call
ADDED = 10_000  # rows in one insert
_STATED = re.compile(r"quorumhash codes of (\d+) bits")


def open_url(url: str, n_bits: int | None) -> MilvusStore:
    """The collection that `milvus://host:port?table=codes` or `milvus:///file.db?table=codes` names."""
    parts = urlsplit(url)
    options = take_options(parse_qs(parts.query), {"table": "codes", "database": "", "tls": "no"}, "milvus")
    if not parts.netloc and not parts.path.strip("/"):
        raise ParameterError(f"a milvus URL must be milvus://host:port or milvus:///file.db, got {url!r}.")
    place = unquote(parts.path)
    if parts.hostname:
        place = f"{'https' if options['tls'] == 'yes' else 'http'}://{parts.hostname}:{parts.port or 19530}"
    login = {"user": unquote(parts.username or ""), "password": unquote(parts.password or "")}
    return MilvusStore(place, {**login, "db_name": options["database"]}, options["table"], n_bits)


class MilvusStore(Store):
    """A collection with the fields id and code, under a flat index: exact; an add of many rows is not one step."""

    most = MOST

    def __init__(self, place: str, login: dict[str, str], table: str, n_bits: int | None) -> None:
        try:
            import pymilvus
        except ImportError as error:
            raise missing("pymilvus", "milvus") from error
        self._milvus: Any = pymilvus
        self.name, self._table = f"the Milvus collection {table} at {place}", table
        with self._asked():
            self._client = pymilvus.MilvusClient(uri=place, **login)
            is_there = self._client.has_collection(table)
            self.n_bits = agreed_bits(n_bits, self._stated_bits() if is_there else None, self.name)
            if not is_there:
                self._make()
            self._client.load_collection(table)

    def _make(self) -> None:
        kinds, stated = self._milvus.DataType, f"quorumhash codes of {self.n_bits} bits"
        schema = self._client.create_schema(auto_id=False, enable_dynamic_field=False, description=stated)
        schema.add_field("id", kinds.INT64, is_primary=True)
        schema.add_field("code", kinds.BINARY_VECTOR, dim=8 * n_bytes(self.n_bits))  # whole bytes; unused bits are zero
        index = self._client.prepare_index_params()
        index.add_index("code", index_type="BIN_FLAT", metric_type="HAMMING")
        self._client.create_collection(self._table, schema=schema, index_params=index, consistency_level="Strong")

    def _stated_bits(self) -> int:
        stated = _STATED.fullmatch(self._client.describe_collection(self._table).get("description", ""))
        if not stated:
            raise ParameterError(f"{self.name} is not one that quorumhash made; name another table.")
        return int(stated.group(1))

    def __len__(self) -> int:
        return int(self._client.query(self._table, filter="", output_fields=["count(*)"])[0]["count(*)"])

    def close(self) -> None:
        """Close the connection; the collection stays."""
        self._client.close()

    def _has(self, ids: Ids) -> npt.NDArray[np.bool_]:
        found: list[int] = []
        for start in range(0, len(ids), ADDED):
            rows = self._client.get(self._table, ids=ids[start : start + ADDED].tolist(), output_fields=["id"])
            found += [row["id"] for row in rows]
        return np.isin(ids, np.array(found, dtype=np.int64))

    def _add(self, codes: Codes, ids: Ids) -> None:
        for part in portions("adding", len(ids), ADDED):
            rows = zip(ids[part].tolist(), codes[part], strict=True)
            self._client.insert(self._table, [{"id": name, "code": code.tobytes()} for name, code in rows])

    def _remove(self, ids: Ids) -> None:
        for part in portions("removing", len(ids), ADDED):
            self._client.delete(self._table, ids=ids[part].tolist())

    def _nearest(self, queries: Codes, k: int) -> list[Found]:
        return self._found(queries, k, {})

    def _ball(self, queries: Codes, radius: int) -> list[Found | None]:
        found = self._found(queries, MOST, {"radius": radius + 1})  # Milvus leaves the bound out
        return [one if len(one[0]) < MOST else None for one in found]

    def _found(self, queries: Codes, limit: int, parameters: dict[str, Any]) -> list[Found]:
        data, options = [query.tobytes() for query in queries], {"metric_type": "HAMMING", "params": parameters}
        answers = self._client.search(self._table, data=data, limit=limit, search_params=options)
        return [
            (np.array([hit["id"] for hit in hits], np.int64), np.array([hit["distance"] for hit in hits], np.float64))
            for hits in answers
        ]

    def _failures(self) -> tuple[type[Exception], ...]:
        return (self._milvus.exceptions.MilvusException, self._milvus.exceptions.ConnectError)
