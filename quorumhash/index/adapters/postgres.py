"""PostgreSQL with pgvector: a table of ids and bit(n); every add and remove is one transaction."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit

import numpy as np
import numpy.typing as npt

from quorumhash.codes import unpack_bits
from quorumhash.errors import ParameterError
from quorumhash.index.adapters.base import Codes, Found, Store, agreed_bits, missing, portions, take_options
from quorumhash.index.idset import Ids

COPIED = 50_000  # rows in one piece of a COPY


def open_url(url: str, n_bits: int | None) -> PostgresStore:
    """The table that `postgresql://...?table=codes` names, made when it is not there; other options are libpq's."""
    parts = urlsplit(url)
    query = parse_qs(parts.query, keep_blank_values=True)
    options = take_options({"table": query.pop("table", ["codes"])}, {"table": "codes"}, "postgresql")
    address = urlunsplit(parts._replace(scheme="postgresql", query=urlencode(query, doseq=True)))
    name = f"the PostgreSQL table {options['table']} in {parts.hostname or 'local'}{parts.path}"
    return PostgresStore(address, options["table"], n_bits, name)


class PostgresStore(Store):
    """A table with the columns id (primary key) and code, read in sequence: exact, ties by id in SQL."""

    orders_ties = True

    def __init__(self, address: str, table: str, n_bits: int | None, name: str) -> None:
        try:
            import psycopg
        except ImportError as error:
            raise missing("psycopg", "postgres") from error
        self._errors, self.name, self._table = psycopg.Error, name, table
        with self._asked():
            self._connection: Any = psycopg.connect(address, autocommit=True)
        try:
            with self._asked():
                self._prepare(n_bits)
        except BaseException:
            self._connection.close()
            raise

    def _prepare(self, n_bits: int | None) -> None:
        self._sql("CREATE EXTENSION IF NOT EXISTS vector")
        found = self._sql(
            "SELECT atttypmod, format_type(atttypid, NULL) FROM pg_attribute "
            "WHERE attrelid = to_regclass(%s) AND attname = 'code'",
            [f'"{self._table}"'],
        ).fetchone()
        if found and found[1] != "bit":
            raise ParameterError(f"{self.name} is not one that quorumhash made; name another table.")
        self.n_bits = agreed_bits(n_bits, found and found[0], self.name)
        self._type = f"bit({self.n_bits})"
        if not found:
            self._sql(f'CREATE TABLE "{self._table}" (id bigint PRIMARY KEY, code {self._type} NOT NULL)')

    def __len__(self) -> int:
        return int(self._sql(f'SELECT count(*) FROM "{self._table}"').fetchone()[0])

    def close(self) -> None:
        """Close the connection; the table stays."""
        self._connection.close()

    def _has(self, ids: Ids) -> npt.NDArray[np.bool_]:
        rows = self._sql(f'SELECT id FROM "{self._table}" WHERE id = ANY(%s)', [ids.tolist()]).fetchall()
        return np.isin(ids, np.array([row[0] for row in rows], dtype=np.int64))

    def _add(self, codes: Codes, ids: Ids) -> None:
        copying, connection = f'COPY "{self._table}" (id, code) FROM STDIN', self._connection
        with connection.transaction(), connection.cursor() as cursor, cursor.copy(copying) as copy:
            for part in portions("adding", len(ids), COPIED):
                rows = zip(ids[part], self._texts(codes[part]), strict=True)
                copy.write("".join(f"{name}\t{text}\n" for name, text in rows))

    def _remove(self, ids: Ids) -> None:
        with self._connection.transaction():
            for part in portions("removing", len(ids), COPIED):
                self._sql(f'DELETE FROM "{self._table}" WHERE id = ANY(%s)', [ids[part].tolist()])

    def _nearest(self, queries: Codes, k: int) -> list[Found]:
        return self._rows(queries, "ORDER BY distance, id LIMIT %s", k)

    def _ball(self, queries: Codes, radius: int) -> list[Found | None]:
        return [*self._rows(queries, "WHERE stored.code <~> asked.code <= %s", radius)]

    def _rows(self, queries: Codes, condition: str, number: int) -> list[Found]:
        """Ids and distances of each query, from one statement for all of them."""
        text = (
            f"WITH asked AS MATERIALIZED (SELECT place, code::{self._type} AS code "  # or it is read anew for every row
            "FROM unnest(%s::text[]) WITH ORDINALITY AS given(code, place)) "
            "SELECT asked.place, found.id, found.distance FROM asked, "
            "LATERAL (SELECT id, stored.code <~> asked.code AS distance "
            f'FROM "{self._table}" AS stored {condition}) AS found ORDER BY asked.place'
        )
        with self._connection.transaction():
            self._sql("SET LOCAL enable_indexscan = off")  # somebody may have made an index: it would be approximate
            rows = self._sql(text, [[*self._texts(queries)], number]).fetchall()
        table = np.array(rows, dtype=np.int64).reshape(-1, 3)
        cuts = np.searchsorted(table[:, 0], np.arange(1, len(queries) + 2))
        return [(table[start:end, 1], table[start:end, 2]) for start, end in pairwise(cuts)]

    def _texts(self, codes: Codes) -> Iterator[str]:
        digits = unpack_bits(codes, self.n_bits) + ord("0")
        return (row.tobytes().decode("ascii") for row in digits)

    def _sql(self, text: str, values: list[Any] | None = None) -> Any:
        return self._connection.execute(text, values)

    def _failures(self) -> tuple[type[Exception], ...]:
        return (self._errors,)
