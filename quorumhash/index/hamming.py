"""HammingIndex: exact search by Hamming distance, in memory or in a durable file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from quorumhash._native.kernels import Search, chosen
from quorumhash.codes import MOST_BITS, Bytes, pack_bits, scores_to_bits
from quorumhash.engines.threads import threads_wanted
from quorumhash.errors import ParameterError
from quorumhash.index import searching
from quorumhash.index.arguments import (
    checked_codes,
    checked_filter,
    checked_number,
    checked_scores,
)
from quorumhash.index.items import Items
from quorumhash.index.journal import Journal
from quorumhash.index.matches import Matches, Neighbourhoods
from quorumhash.index.pairing import all_pairs
from quorumhash.index.planning import METHODS, Planner
from quorumhash.index.rescoring import rescored

if TYPE_CHECKING:
    from quorumhash.index.devicetable import DeviceCopy

_NONE = np.empty(0, dtype=np.uint16)


class HammingIndex(Items):
    """Codes under ids, searched exactly.

    Reading from several threads is safe; writing is not while others read or write.

    Parameters
    ----------
    n_bits : int
        Bits per code, 1 to 1024.
    method : str
        "auto" scans, and makes bands (multi-index hashing) once they pay; "scan" never makes bands and so takes the
        least memory; "multi-index" makes them at the first search, and still scans where that is faster. The answers
        are the same.
    deduplicate : bool
        False stores every code, repeated or not; the answers are the same. Ids that run on without a gap then take no
        memory, and codes are not sorted: the way to a thousand million codes (docs/scaling.md).
    journal : Journal, optional
        Where changes are written before they are made; `open` gives one.
    engine : str
        "threads", or "torch", "torch:cuda", "torch:cuda:1": where codes are searched by codes. The first search after a
        change copies all codes to the device. The answers are the same.

    Examples
    --------
    >>> index = HammingIndex(n_bits=8)
    >>> index.add(np.array([[0b1], [0b11], [0b11110000]], dtype=np.uint8), ids=[10, 20, 30])
    >>> matches = index.search(np.array([[0]], dtype=np.uint8), k=2)
    >>> matches.ids, matches.distances
    (array([[10, 20]]), array([[1, 2]], dtype=uint16))
    """

    def __init__(
        self,
        n_bits: int = 64,
        *,
        method: str = "auto",
        deduplicate: bool = True,
        journal: Journal | None = None,
        engine: str = "threads",
    ) -> None:
        super().__init__(checked_number(n_bits, "n_bits", 1, MOST_BITS), deduplicate, journal)
        if method not in METHODS:
            raise ParameterError(f"method must be one of {', '.join(METHODS)}, got {method!r}.")
        self._planner = Planner(self.n_bits, method)
        self._copy: DeviceCopy | None = None
        if engine != "threads":
            from quorumhash.index.devicetable import DeviceCopy  # torch is loaded for searches on a device only

            self._copy = DeviceCopy(engine)

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], n_bits: int | None = None, readonly: bool = False, **options: Any
    ) -> HammingIndex:
        """An index in a durable file: what a call that returned has changed survives kill -9.

        `n_bits` is needed for a new file. One process writes; many may read beside it. Items are read and checked when
        they are first needed, as they were when the file was opened.
        """
        from quorumhash.index.store import SegmentFile  # sqlite3 is loaded for durable files only

        file = SegmentFile(path, n_bits, readonly=readonly, checks_ids=False)
        try:
            return cls(file.n_bits, journal=file, **options)
        except BaseException:
            file.close()
            raise

    def search(
        self,
        query: npt.ArrayLike,
        k: int = 10,
        where: npt.ArrayLike | None = None,
        *,
        prefix_bits: int | None = None,
        model: Any = None,
    ) -> Matches:
        """The k nearest items of each query, nearest first, ties by id.

        Parameters
        ----------
        query : uint8 (q, n_bytes) or float (q, n_bits)
            Packed codes, ranked by Hamming distance; or scores before the sign, ranked by the sum of score * sign of
            the stored bit, highest first (`matches.scores`).
        k : int
            Items wanted; fewer come back where fewer may be found.
        where : int (n,) or bool (m,), optional
            Ids that may be found, or a mask whose entry i says it of id i.
        prefix_bits : int, optional
            Look at so many first bits (in whole bytes) before the rest, and at the rest only where they leave a chance:
            the same answers, sooner for long nested codes.
        model : fitted hasher or str, optional
            What encoded the query; another one than that of the stored codes is refused.
        """
        self._require_open()
        k, values = checked_number(k, "k", 1), np.asarray(query)
        self._checked_model(model)
        stage = 0 if prefix_bits is None else max(1, checked_number(prefix_bits, "prefix_bits", 1, self.n_bits) // 8)
        if values.dtype.kind == "f":
            return self._ranked(checked_scores(values, self.n_bits), k, where)
        queries = checked_codes(values, self.n_bits, "query")
        if self._copy is not None and self._table.segments:
            table = self._copy.table(self._table.segments, checked_filter(where))
            return Matches(*table.nearest(queries, min(k, len(table))))
        search = self._search(len(queries), where, stage, has_bands=not stage)
        ids, distances, effort = searching.nearest(search, queries, self._most(k, search))
        radii = distances[:, -1:].ravel() if where is None and not stage else _NONE
        self._planner.learn(self._table.segments, radii, effort, search.costs)
        return Matches(ids, distances)

    def _ranked(self, scores: npt.NDArray[np.float64], k: int, where: npt.ArrayLike | None) -> Matches:
        search, codes = self._search(len(scores), where, 0, has_bands=False), pack_bits(scores_to_bits(scores))
        ids, costs, distances, effort = searching.ranked(search, codes, scores, self._most(k, search))
        self._planner.learn([], _NONE, effort, search.costs)
        return Matches(ids, distances, np.abs(scores).sum(axis=1, keepdims=True) - 2 * costs)

    def within(
        self, query_codes: npt.ArrayLike, radius: int = 2, where: npt.ArrayLike | None = None, *, model: Any = None
    ) -> Neighbourhoods:
        """All items at a distance of at most `radius` of each query, nearest first, ties by id."""
        self._require_open()
        queries, radius = checked_codes(query_codes, self.n_bits, "query_codes"), checked_number(radius, "radius", 0)
        self._checked_model(model)
        return self._within(queries, min(radius, self.n_bits), where)

    def _within(self, queries: Bytes, radius: int, where: npt.ArrayLike | None = None) -> Neighbourhoods:
        if self._copy is not None and self._table.segments:
            return Neighbourhoods(
                *self._copy.table(self._table.segments, checked_filter(where)).within(queries, radius)
            )
        search = self._search(len(queries), where, 0, has_bands=True)
        offsets, ids, distances, effort = searching.within(search, queries, radius)
        radii = np.full(len(queries) if where is None else 0, radius, dtype=np.uint16)
        self._planner.learn(self._table.segments, radii, effort, search.costs)
        return Neighbourhoods(offsets, ids, distances)

    def pairs(self, radius: int = 2, *, max_pairs: int = 100_000_000) -> Neighbourhoods:
        """All pairs of items at a distance of at most `radius`, for de-duplication.

        Entry i is about the i-th of `index.ids` and holds the items of larger ids near it; so every pair is there once.
        More than `max_pairs` are refused.
        """
        self._require_open()
        radius = min(checked_number(radius, "radius", 0), self.n_bits)
        return all_pairs(self._table, lambda codes: self._within(codes, radius), radius, max_pairs)

    def rescore(
        self,
        vectors: npt.NDArray[Any],
        matches: Matches,
        queries: npt.ArrayLike,
        k: int | None = None,
        metric: str = "cosine",
    ) -> Matches:
        """Rank matches anew by the similarity of vectors: row i of `vectors` (an array or memory map) is about id i."""
        return rescored(vectors, matches, queries, k, metric)

    def to_faiss(self) -> Any:
        """The items in faiss's own exact index (`IndexBinaryIDMap2` over `IndexBinaryFlat`); needs the extra bench."""
        from quorumhash.index.adapters.faiss import binary_index

        return binary_index(*self.items(), self.n_bits)

    def stats(self) -> dict[str, Any]:
        """What the index holds, what it takes, and how it has searched so far."""
        segments = self._table.segments
        lists = sum(array.nbytes for s in segments for array in (s.ids, s.offsets) if array is not None)
        marks = sum(0 if s.is_there is None else s.is_there.nbytes for s in segments)
        return {
            "items": len(self),
            "distinct_codes": self._table.n_distinct,
            "segments": len(segments),
            "removed_items": sum(s.n_removed for s in segments),
            "code_bytes": sum(s.tiles.nbytes for s in segments),
            "id_bytes": lists + marks,
            "band_bytes": sum(0 if s.bands is None else s.bands.n_bytes for s in segments),
            "kernel": chosen(),
            "threads": threads_wanted(),
            "model": self.model,
            **self._planner.told(),
        }

    def _search(self, n_queries: int, where: npt.ArrayLike | None, stage: int, has_bands: bool) -> Search:
        kernel, allowed = chosen(), checked_filter(where)
        has_bands = has_bands and kernel != "numpy"
        if has_bands:
            self._planner.prepare(self._table.segments)
        parts = [s.part(None if allowed is None else allowed(s.names()), has_bands) for s in self._table.segments]
        return Search(kernel, self.n_bits, parts, stage, self._planner.costs(kernel, n_queries))

    @staticmethod
    def _most(k: int, search: Search) -> int:
        return min(k, searching.n_counting(search.parts))
