"""What every store of codes does alike: checks at the door, order, ties, radius; a store answers a few questions."""

from __future__ import annotations

import operator
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from quorumhash.errors import MissingExtraError, ParameterError, QuorumHashError, RefusedError, StoreError
from quorumhash.index.arguments import checked_codes, checked_ids, checked_number
from quorumhash.index.matches import Distances, Ids, Matches, Neighbourhoods
from quorumhash.progress import begin_stage

Codes: TypeAlias = npt.NDArray[np.uint8]
Found: TypeAlias = tuple[Ids, npt.NDArray[Any]]  # ids (m,) and whole distances (m,) of one query, in any order

QUERIES = 256  # asked at once; bounds what comes back at once
IDS = 50_000  # asked for at once
SPARE = 16  # asked for beyond k: shows where a tie ends, mostly in the same question
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")


class Store(ABC):
    """Codes of `n_bits` bits under ids in a store of another program; `open_store` makes it.

    `add`, `remove`, `search`, `within`, `len` and `close` mean what they mean for `HammingIndex`: the radius is
    included, nearest first, ties by id, fewer columns where there are fewer than k items.
    """

    name: str  # for errors: where the store is, without any password
    n_bits: int
    most: int | None = None  # the most items that the store gives for one query, where it has a limit
    orders_ties = False  # True where `_nearest` itself takes the smallest ids of a tie

    def add(self, codes: npt.ArrayLike, ids: npt.ArrayLike) -> None:
        """Put codes uint8 (n, width) in under new ids int64 (n,)."""
        rows = checked_codes(codes, self.n_bits, "codes")
        names = checked_ids(ids, len(rows))
        with self._asked():
            known = names[self._there(names)]
            if len(known):
                raise ParameterError(f"id {known[0]} is already in {self.name}; remove it first, or give another id.")
            if len(names):
                self._add(rows, names)

    def has(self, ids: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Which of the ids (n,) are there."""
        names = checked_ids(ids)
        with self._asked():
            return self._there(names)

    def remove(self, ids: npt.ArrayLike) -> None:
        """Take items away by id."""
        names = checked_ids(ids)
        with self._asked():
            unknown = names[~self._there(names)]
            if len(unknown):
                raise ParameterError(f"id {unknown[0]} is not in {self.name}; give ids that were added.")
            if len(names):
                self._remove(names)

    def search(self, query: npt.ArrayLike, k: int = 10) -> Matches:
        """The k nearest items of each query (q, width), nearest first, ties by id."""
        queries, wanted = checked_codes(query, self.n_bits, "query"), checked_number(k, "k", 1)
        with self._asked():
            n_items = len(self)
            wanted = min(wanted, n_items)
            if self.most and wanted > self.most:
                raise ParameterError(
                    f"{self.name} gives at most {self.most} items per query, got k={k}; ask for fewer."
                )
            if not wanted or not len(queries):
                return Matches(np.empty((len(queries), wanted), np.int64), np.empty((len(queries), wanted), np.uint16))
            rows = [row for part in _parts(queries) for row in self._ranked(part, wanted, n_items)]
        width = min(len(ids) for ids, _ in rows)  # another client may have removed items meanwhile
        return Matches(np.stack([ids[:width] for ids, _ in rows]), np.stack([d[:width] for _, d in rows]))

    def within(self, query_codes: npt.ArrayLike, radius: int = 2) -> Neighbourhoods:
        """All items at most `radius` bits from each query (q, width), nearest first, ties by id."""
        queries, bound = checked_codes(query_codes, self.n_bits, "query_codes"), checked_number(radius, "radius", 0)
        with self._asked():
            found = [self._ball(part, min(bound, self.n_bits)) for part in _parts(queries)]
        rows = [_ordered(*one) if one is not None else None for part in found for one in part]
        whole = [row for row in rows if row is not None]
        if len(whole) < len(rows):
            raise RefusedError(
                f"{self.name} gives at most {self.most} items per query, and there are more within {bound}; use a "
                "smaller radius."
            )
        offsets = np.cumsum([0, *(len(ids) for ids, _ in whole)], dtype=np.int64)
        ids = np.concatenate([ids for ids, _ in whole]) if whole else np.empty(0, np.int64)
        distances = np.concatenate([d for _, d in whole]) if whole else np.empty(0, np.uint16)
        return Neighbourhoods(offsets, ids, distances)

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def close(self) -> None:
        """Leave the store; what is in it stays, if it is one that keeps."""

    @abstractmethod
    def _has(self, ids: Ids) -> npt.NDArray[np.bool_]:
        """Which ids are there."""

    @abstractmethod
    def _add(self, codes: Codes, ids: Ids) -> None: ...

    @abstractmethod
    def _remove(self, ids: Ids) -> None: ...

    @abstractmethod
    def _nearest(self, queries: Codes, k: int) -> list[Found]:
        """k nearest of each query; which of the farthest, where they tie, is the store's choice."""

    @abstractmethod
    def _ball(self, queries: Codes, radius: int) -> list[Found | None]:
        """All within the radius, the bound included, of each query; None where they are more than the store gives."""

    @abstractmethod
    def _failures(self) -> tuple[type[Exception], ...]:
        """Errors of the store's own client."""

    def _there(self, ids: Ids) -> npt.NDArray[np.bool_]:
        """Which ids are there, asked for in portions."""
        found = [self._has(ids[part]) for part in portions("asking for ids", len(ids), IDS)]
        return np.concatenate([np.zeros(0, dtype=bool), *found])

    def _ranked(self, queries: Codes, k: int, n_items: int) -> Iterator[tuple[Ids, Distances]]:
        """The k nearest of each query, ties by id: where the cut goes through a tie, all of the tie is asked for."""
        limit = k if self.orders_ties else min(k + SPARE, n_items, self.most or n_items)
        for query, found in zip(queries, self._nearest(queries, limit), strict=True):
            ids, distances = _ordered(*found)
            if not self.orders_ties and k <= len(ids) < n_items and distances[-1] == distances[k - 1]:
                whole = self._ball(query[None], int(distances[k - 1]))[0]
                if whole is not None and len(whole[0]) >= k:
                    ids, distances = _ordered(*whole)
            yield ids[:k], distances[:k]

    @contextmanager
    def _asked(self) -> Iterator[None]:
        """What the store's client raises, as one sentence."""
        try:
            yield
        except QuorumHashError:
            raise
        except self._failures() as error:
            reason = " ".join(str(error).split())[:200]
            raise StoreError(f"{self.name} does not do it ({reason}); see whether it runs and is yours.") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def portions(what: str, n_items: int, n_at_once: int) -> Iterator[slice]:
    """So many items in portions, told of as they are done, even where a thread of the store's walks them."""
    done = begin_stage(what, n_items, "items")  # now: who watches is known to the caller's thread alone

    def told() -> Iterator[slice]:
        for start in range(0, n_items, n_at_once):
            part = slice(start, min(start + n_at_once, n_items))
            yield part
            done(part.stop - part.start)

    return told()


def missing(package: str, extra: str) -> MissingExtraError:
    """The error for a package that is not installed, with the words that install it."""
    return MissingExtraError(f"the package {package} is needed and not installed: pip install 'quorumhash[{extra}]'.")


def agreed_bits(given: int | None, found: int | None, name: str) -> int:
    """Bits per code from the caller's word and what the store holds, either of which may be None."""
    if given is None and found is None:
        raise ParameterError(f"n_bits must be given for a new store, and {name} is new; give the length of the codes.")
    if given is not None and found is not None and given != found:
        raise ParameterError(f"{name} holds codes of {found} bits, got n_bits={given}; leave n_bits out.")
    return operator.index(given if found is None else found)  # type: ignore[arg-type]


def take_options(query: Mapping[str, list[str]], allowed: dict[str, str], url_kind: str) -> dict[str, str]:
    """The options of a URL (`?table=codes`), those not given at their default; an unknown one is refused."""
    unknown = sorted(set(query) - set(allowed))
    if unknown:
        known = ", ".join(allowed) or "none"
        raise ParameterError(f"options of a {url_kind} URL are {known}, got {unknown[0]!r}; leave it out.")
    options = allowed | {name: values[-1] for name, values in query.items()}
    if "table" in options and not _NAME.fullmatch(options["table"]):
        raise ParameterError(f"table must be letters, digits and _, at most 63, got {options['table']!r}; rename it.")
    return options


def _ordered(ids: Ids, distances: npt.NDArray[Any]) -> tuple[Ids, Distances]:
    order = np.lexsort((ids, distances))
    return ids[order], distances[order].astype(np.uint16)


def _parts(queries: Codes) -> Iterator[Codes]:
    return (queries[start : start + QUERIES] for start in range(0, len(queries), QUERIES))
