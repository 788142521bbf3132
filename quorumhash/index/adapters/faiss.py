"""faiss in the memory of this process: a flat scan, exact, or inverted lists, approximate; nothing is kept on disk."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
import numpy.typing as npt

from quorumhash.codes import n_bytes
from quorumhash.errors import ParameterError
from quorumhash.index.adapters.base import Codes, Found, Store, agreed_bits, missing, portions, take_options
from quorumhash.index.idset import Ids, IdSet

ADDED = 100_000  # rows in one call


def open_url(url: str, n_bits: int | None) -> FaissStore:
    """A new store from `faiss://flat` or `faiss://ivf?lists=1024&probes=8`."""
    parts = urlsplit(url)
    kind = parts.netloc or "flat"
    if kind not in ("flat", "ivf") or parts.path.strip("/"):
        raise ParameterError(f"a faiss URL must be faiss://flat or faiss://ivf, got {url!r}; it keeps no files.")
    allowed = {"lists": "1024", "probes": "8"} if kind == "ivf" else {}
    options = take_options(parse_qs(parts.query), allowed, "faiss")
    for name, value in options.items():
        if not value.isdecimal() or int(value) < 1:
            raise ParameterError(f"{name} of a faiss URL must be a whole number of at least 1, got {value!r}.")
    return FaissStore(agreed_bits(n_bits, None, url), {name: int(value) for name, value in options.items()})


def binary_index(codes: Codes, ids: Ids, n_bits: int) -> Any:
    """faiss's own exact index, `IndexBinaryIDMap2` over `IndexBinaryFlat`, of codes (n, width) under ids (n,)."""
    faiss = _faiss()
    index = faiss.IndexBinaryIDMap2(faiss.IndexBinaryFlat(8 * n_bytes(n_bits)))
    index.add_with_ids(codes, ids)
    return index


def _faiss() -> Any:
    try:
        import faiss
    except ImportError as error:
        raise missing("faiss-cpu", "bench") from error
    return faiss


class FaissStore(Store):
    """A binary index of faiss; `lists` and `probes` in `options` make it an inverted one."""

    name = "the faiss store"

    def __init__(self, n_bits: int, options: dict[str, int]) -> None:
        faiss = _faiss()
        self.n_bits, width = n_bits, 8 * n_bytes(n_bits)  # faiss counts whole bytes; the unused bits are zero
        self._ids, self._lists = IdSet(np.empty(0, np.int64)), options.get("lists", 0)
        self._index: Any = None
        flat = faiss.IndexBinaryFlat(width)
        if self._lists:
            self._quantizer, self._index = flat, faiss.IndexBinaryIVF(flat, width, self._lists)
            self._index.nprobe = self._probes = min(options["probes"], self._lists)
            self._index.cp.min_points_per_centroid = 1  # few are the user's choice; no warning about it
        else:
            self._flat, self._index = flat, faiss.IndexBinaryIDMap2(flat)

    def __len__(self) -> int:
        return int(self._index.ntotal)

    def close(self) -> None:
        """Drop the codes."""
        self._index.reset()
        self._ids = IdSet(np.empty(0, np.int64))

    def _has(self, ids: Ids) -> npt.NDArray[np.bool_]:
        return self._ids.has(ids)

    def _add(self, codes: Codes, ids: Ids) -> None:
        if not self._index.is_trained:
            if len(codes) < self._lists:
                raise ParameterError(
                    f"the first codes train the lists of faiss and must be at least {self._lists}, got {len(codes)}; "
                    "add more at once, or ask for fewer lists."
                )
            self._index.train(codes)
        for part in portions("adding", len(ids), ADDED):
            self._index.add_with_ids(codes[part], ids[part])
        self._ids = self._ids.with_added(ids)

    def _remove(self, ids: Ids) -> None:
        self._index.remove_ids(ids)
        self._ids = self._ids.without(ids)

    def _nearest(self, queries: Codes, k: int) -> list[Found]:
        distances, ids = self._index.search(queries, k)
        short = (distances > 8 * queries.shape[1]).any(axis=1)  # too few in the lists probed: places left empty
        if short.any():
            distances[short], ids[short] = self._everywhere(queries[short], k)
        return list(zip(ids, distances, strict=True))

    def _everywhere(self, queries: Codes, k: int) -> tuple[Any, Any]:
        self._index.nprobe = self._lists
        try:
            found: tuple[Any, Any] = self._index.search(queries, k)
        finally:
            self._index.nprobe = self._probes
        return found

    def _ball(self, queries: Codes, radius: int) -> list[Found | None]:
        limits, distances, ids = self._index.range_search(queries, radius + 1)  # faiss leaves the bound out
        cuts = zip(limits[:-1].astype(int), limits[1:].astype(int), strict=True)
        return [(ids[start:end], distances[start:end]) for start, end in cuts]

    def _failures(self) -> tuple[type[Exception], ...]:
        return (RuntimeError,)
