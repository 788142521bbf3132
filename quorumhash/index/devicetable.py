"""Codes of an index as torch tensors, and exact search among them; the only file of this room that loads torch.

Items stand in the order of their ids, so that ties by id are ties by position. The rows are walked in spans that grow:
the first one gives every query k matches, each further one is asked only for rows strictly nearer than the k-th match
so far (a row as near, further down, has a larger id and loses the tie). So few rows are ever written, and no matrix of
distances. A match is one number, distance << 40 | position: the smallest k are the answer.

How the rows of a span that are near enough are found (`method`): "products" and "popcount" are Triton kernels
(neartiles.py); "matmul" is plain torch, on any device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash._native.layout import Bytes, to_words
from quorumhash.errors import MissingExtraError, ParameterError
from quorumhash.index import neartiles
from quorumhash.index.arguments import Filter
from quorumhash.index.codetable import Segment

Ids = npt.NDArray[np.int64]
Distances = npt.NDArray[np.uint16]

METHODS = ("auto", "products", "popcount", "matmul")
POSITION_BITS = 40
POSITION_MASK = (1 << POSITION_BITS) - 1
NOWHERE = 1 << 62  # larger than every key
FIRST_SPAN, GROWTH = 16_384, 8
CAPACITY = 4096  # keys of a query and span
MOST_QUERIES = 16_384  # at a time
PAIRS = {"cpu": 1 << 22, "cuda": 1 << 28}  # of queries and rows whose products are held at a time by "matmul"


class DeviceTable:
    """Codes (n, n_bytes) under ids in rising order (None: running numbers), on a device.

    Parameters
    ----------
    codes : uint8 (n, n_bytes)
        Packed codes, in the order of their ids; or words (n, W) as an int64 tensor, which is kept where it lies.
    ids : int64 (n,), optional
        Rising; None: 0, 1, 2, ...
    device : str
        "cpu", "cuda", "cuda:0", ...
    method : str
        "auto": "products" where Triton runs, else "matmul".
    """

    def __init__(self, codes: Any, ids: Ids | None, device: str = "cpu", method: str = "auto") -> None:
        self._torch = torch = _load_torch()
        if method not in METHODS:
            raise ParameterError(f"method of a DeviceTable must be one of {', '.join(METHODS)}, got {method!r}.")
        self.words = codes.to(device) if isinstance(codes, torch.Tensor) else self._words(codes).to(device)
        self.ids = ids
        is_fused = self.words.is_cuda and neartiles.is_available()
        self.method = ("products" if is_fused else "matmul") if method == "auto" else method
        self.shape: tuple[int, int, int] | None = None  # of the kernels' tiles; None: the measured best

    def __len__(self) -> int:
        return int(self.words.shape[0])

    def nearest(self, queries: Bytes, k: int) -> tuple[Ids, Distances]:
        """The k nearest items of each query (q, n_bytes), nearest first, ties by id; k is at most len(self)."""
        words = self._words(queries).to(self.words.device)
        parts = [self._nearest(words[i : i + MOST_QUERIES], k) for i in range(0, len(words), MOST_QUERIES)]
        keys = np.concatenate([np.empty((0, k), dtype=np.int64), *parts])
        return self._named(keys & POSITION_MASK), (keys >> POSITION_BITS).astype(np.uint16)

    def within(self, queries: Bytes, radius: int) -> tuple[Ids, Ids, Distances]:
        """All items within the radius of each query, nearest first, ties by id: offsets (q + 1), ids, distances."""
        words = self._words(queries).to(self.words.device)
        owners, keys = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        for start in range(0, len(words), MOST_QUERIES):
            part = words[start : start + MOST_QUERIES]
            reach = self._torch.full((len(part),), radius + 1, dtype=self._torch.int64, device=part.device)
            first = 0
            while first < len(self):
                found, counts, first = self._collected(part, reach, first, len(self))
                rows, places = (found < NOWHERE).nonzero(as_tuple=True)
                owners.append((rows + start).cpu().numpy())
                keys.append(found[rows, places].cpu().numpy())
        owner, key = np.concatenate(owners), np.concatenate(keys)
        order = np.lexsort((key, owner))
        counts = np.bincount(owner, minlength=len(words))
        offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
        return offsets, self._named(key[order] & POSITION_MASK), (key[order] >> POSITION_BITS).astype(np.uint16)

    def _named(self, positions: Ids) -> Ids:
        return positions if self.ids is None else self.ids[positions]

    def _words(self, codes: Bytes) -> Any:
        return self._torch.from_numpy(to_words(codes).view(np.int64))

    def _nearest(self, queries: Any, k: int) -> npt.NDArray[np.int64]:
        """Keys (q, k), rising."""
        first = min(max(FIRST_SPAN, k), len(self))
        best = self._first_keys(queries, first, k)
        while first < len(self):
            reach = best[:, -1] >> POSITION_BITS
            found, _, first = self._collected(queries, reach, first, min(first * GROWTH, len(self)))
            if found.shape[1]:
                best = self._smallest(self._torch.cat([best, found], dim=1), k)
        return np.asarray(best.cpu().numpy())

    def _first_keys(self, queries: Any, n_rows: int, k: int) -> Any:
        """The k smallest keys of the first rows, from all distances, some queries at a time."""
        torch, parts = self._torch, []
        positions = torch.arange(n_rows, device=queries.device)
        step = max(1, PAIRS[queries.device.type] // 8 // n_rows)
        rows = self._factors(self.words[:n_rows])
        for start in range(0, len(queries), step):
            products = self._factors(queries[start : start + step]) @ rows.T
            keys = (self._distances(products) << POSITION_BITS) | positions
            parts.append(self._smallest(keys, k))
        return torch.cat(parts) if parts else positions.new_empty((0, k))

    def _smallest(self, keys: Any, k: int) -> Any:
        return self._torch.topk(keys, k, dim=1, largest=False, sorted=True).values

    def _collected(self, queries: Any, reach: Any, first: int, last: int) -> tuple[Any, Any, int]:
        """Keys (q, w) of rows from `first` nearer than reach (q,), NOWHERE in the gaps; counts; where the walk is now.

        A span with more matches than there is room for is cut in half and tried again; CAPACITY rows always fit.
        """
        torch = self._torch
        limits = (64 * queries.shape[1] - 2 * reach).to(torch.int32)
        signs = self._signs(queries)
        while True:
            collect = self._collect_matmul if self.method == "matmul" else self._collect_tiles
            found, counts, most = collect(queries, signs, limits, (first, last))
            if most <= CAPACITY or last - first <= CAPACITY:
                break
            last = first + max((last - first) // 2, CAPACITY)
        found = found[:, : int(counts.max()) if len(counts) else 0]
        gaps = torch.arange(found.shape[1], device=found.device) >= counts[:, None]
        return found.masked_fill(gaps, NOWHERE), counts, last

    def _collect_tiles(self, queries: Any, signs: Any, limits: Any, span: tuple[int, int]) -> tuple[Any, Any, int]:
        found, counts, n_tiles = neartiles.collect_near(
            self.method, queries, signs, self.words, limits, span, CAPACITY, self.shape
        )
        return found, counts, int(self._torch.maximum(counts, n_tiles).max())

    def _collect_matmul(self, queries: Any, signs: Any, limits: Any, span: tuple[int, int]) -> tuple[Any, Any, int]:
        torch, n_queries = self._torch, len(queries)
        found = torch.full((n_queries, CAPACITY), NOWHERE, dtype=torch.int64, device=queries.device)
        counts = torch.zeros(n_queries, dtype=torch.int64, device=queries.device)
        left = signs.to(self._factor_dtype())
        step = max(1, PAIRS[queries.device.type] // max(n_queries, 1))
        for start in range(span[0], span[1], step):
            rows = self._factors(self.words[start : min(start + step, span[1])])
            products = left @ rows.T
            owner, place = (products > limits[:, None]).nonzero(as_tuple=True)  # by query, then by row
            new = torch.bincount(owner, minlength=n_queries)
            slot = torch.arange(len(owner), device=owner.device) - (new.cumsum(0) - new)[owner] + counts[owner]
            keys = (self._distances(products[owner, place]) << POSITION_BITS) | (place + start)
            fits = slot < CAPACITY
            found[owner[fits], slot[fits]] = keys[fits]
            counts += new
            if int(counts.max()) > CAPACITY and span[1] - span[0] > CAPACITY:
                break
        return found, counts, int(counts.max())

    def _distances(self, products: Any) -> Any:
        return (64 * self.words.shape[1] - products.to(self._torch.int64)) >> 1

    def _factor_dtype(self) -> Any:
        """Whole numbers up to 1,024 are exact in float16 too."""
        return self._torch.float16 if self.words.is_cuda else self._torch.float32

    def _factors(self, words: Any) -> Any:
        return self._signs(words).to(self._factor_dtype())

    def _signs(self, words: Any) -> Any:
        """1 or -1 for every bit, (n, 64 W) int8; in which order is all the same."""
        torch = self._torch
        places = torch.arange(64, device=words.device)
        return ((((words[:, :, None] >> places) & 1) * 2 - 1).to(torch.int8)).reshape(len(words), -1)


class DeviceCopy:
    """The items of an index on a device, copied again when they have changed.

    Parameters
    ----------
    engine : str
        "torch", "torch:cuda", "torch:cuda:0", ...
    """

    def __init__(self, engine: str) -> None:
        kind, _, device = engine.partition(":") if isinstance(engine, str) else ("", "", "")
        if kind != "torch":
            raise ParameterError(
                f"engine of a HammingIndex must be 'threads', 'torch' or 'torch:cuda', got {engine!r}."
            )
        torch = _load_torch()
        if device.startswith("cuda") and not torch.cuda.is_available():
            raise ParameterError(f"engine of a HammingIndex must name a device that is there, got {engine!r}.")
        self.device = device or "cpu"
        self._segments: list[tuple[Segment, int]] = []
        self._table: DeviceTable | None = None

    def table(self, segments: Sequence[Segment], allowed: Filter | None) -> DeviceTable:
        """The table of these segments, of the allowed items alone where there is a filter."""
        state = [(segment, segment.n_removed) for segment in segments]
        is_same = len(state) == len(self._segments) and all(
            a is c and b == d for (a, b), (c, d) in zip(state, self._segments, strict=True)
        )
        if self._table is None or not is_same:
            codes, ids = (np.concatenate(part) for part in zip(*(s.items() for s in segments), strict=True))
            order = np.argsort(ids)
            self._table, self._segments = DeviceTable(codes[order], ids[order], self.device), state
        if allowed is None or self._table.ids is None:
            return self._table
        chosen = np.flatnonzero(allowed(self._table.ids))
        rows = self._table.words[_load_torch().from_numpy(chosen).to(self._table.words.device)]
        return DeviceTable(rows, self._table.ids[chosen], self.device)


def _load_torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError(
            "a search on a device needs PyTorch, which is not installed: pip install 'quorumhash[torch]'."
        ) from error
    return torch
