"""Triton kernels of the search on a device: which tiles of rows hold a match, then the matches in those tiles.

    mark     for every query and tile of rows: is any row of the tile nearer than the query's limit? All pairs of a
             query and a row pass through here, so it does little per pair: a product of signs on the matrix units (or
             xor and popcount), and the largest product of each query. Nothing is stored but the numbers of tiles.
    collect  the distances of one query to the rows of its marked tiles, and the rows nearer than the limit

A code is W words of 64 bits; with signs for bits, the product of two codes is 64 W - 2 (number of bits that differ):
padding bits are alike and count nothing. Small whole numbers: int8 factors and int32 sums are exact.
"""

from __future__ import annotations

from typing import Any

try:
    import triton
    import triton.language as tl
    from triton.runtime.errors import OutOfResources
except ImportError:  # it comes with the CUDA build of torch only
    triton = None
    OutOfResources = MemoryError

# queries, rows of a tile, warps of a program; the quickest of those tried (benchmarks/speed/gpu.py)
SHAPES = {"products": (64, 128, 4), "popcount": (32, 256, 4)}
SMALLEST_TILE = 16  # rows of a product on the matrix units
TILE_BYTES = (
    1 << 17
)  # signs of a tile's rows, a byte a bit, that a program keeps at hand: a good half of an H100's share


def is_available() -> bool:
    """Whether Triton is installed."""
    return triton is not None


if triton is not None:

    @triton.jit
    def _bit_counts(words):  # type: ignore[no-untyped-def]
        """Set bits of int64 words, by adding neighbours: no instruction of one maker alone."""
        x = words.to(tl.uint64, bitcast=True)
        x = x - ((x >> 1) & 0x5555555555555555)
        x = (x & 0x3333333333333333) + ((x >> 2) & 0x3333333333333333)
        x = (x + (x >> 4)) & 0x0F0F0F0F0F0F0F0F
        x = x + (x >> 8)
        x = x + (x >> 16)
        x = x + (x >> 32)
        return (x & 0x7F).to(tl.int32)

    @triton.jit
    def _signs(words, bits):  # type: ignore[no-untyped-def]
        """1 or -1 for the bits (64, 1) of words (1, n)."""
        return (((words >> bits) & 1) * 2 - 1).to(tl.int8)

    @triton.jit
    def mark_products(  # type: ignore[no-untyped-def]
        query_signs, rows, limits, marked, counts, n_queries, first, last, capacity,
        N_WORDS: tl.constexpr, QUERIES: tl.constexpr, TILE: tl.constexpr,
    ):  # fmt: skip
        """Marks of the tile of rows `first + TILE * program`; a query's limit is the product that must be surpassed."""
        tile = tl.program_id(0)
        places = first + tile.to(tl.int64) * TILE + tl.arange(0, TILE)
        bits = tl.arange(0, 64)
        # rows past the last repeat the last one: they can mark a tile in vain, and collect leaves them out
        places = tl.minimum(places, last - 1)
        factors = _signs(tl.load(rows + places * N_WORDS)[None, :], bits[:, None].to(tl.int64))
        for start in range(0, n_queries, QUERIES):
            q = start + tl.arange(0, QUERIES)
            is_query = q < n_queries
            left = tl.load(query_signs + q[:, None] * (64 * N_WORDS) + bits[None, :], mask=is_query[:, None], other=0)
            products = tl.dot(left, factors, out_dtype=tl.int32)
            for word in tl.static_range(1, N_WORDS):
                left = tl.load(
                    query_signs + q[:, None] * (64 * N_WORDS) + 64 * word + bits[None, :],
                    mask=is_query[:, None],
                    other=0,
                )
                more = _signs(tl.load(rows + places * N_WORDS + word)[None, :], bits[:, None].to(tl.int64))
                products = tl.dot(left, more, products, out_dtype=tl.int32)
            limit = tl.load(limits + q, mask=is_query, other=2**30)
            is_hit = tl.max(products, axis=1) > limit
            if tl.max(is_hit.to(tl.int32), axis=0) > 0:
                slot = tl.atomic_add(counts + q, 1, mask=is_hit)
                tl.store(marked + q.to(tl.int64) * capacity + slot, tile, mask=is_hit & (slot < capacity))

    @triton.jit
    def mark_bit_counts(  # type: ignore[no-untyped-def]
        queries, rows, limits, marked, counts, n_queries, first, last, capacity,
        N_WORDS: tl.constexpr, QUERIES: tl.constexpr, TILE: tl.constexpr, HAS_POPC: tl.constexpr,
    ):  # fmt: skip
        """As mark_products, by xor and popcount of the words (q, N_WORDS)."""
        tile = tl.program_id(0)
        places = tl.minimum(first + tile.to(tl.int64) * TILE + tl.arange(0, TILE), last - 1)
        for start in range(0, n_queries, QUERIES):
            q = start + tl.arange(0, QUERIES)
            is_query = q < n_queries
            distances = tl.zeros((QUERIES, TILE), dtype=tl.int32)
            for word in tl.static_range(0, N_WORDS):
                left = tl.load(queries + q * N_WORDS + word, mask=is_query, other=0)
                differing = left[:, None] ^ tl.load(rows + places * N_WORDS + word)[None, :]
                if HAS_POPC:
                    distances += tl.inline_asm_elementwise(
                        "popc.b64 $0, $1;", "=r,l", [differing], dtype=tl.int32, is_pure=True, pack=1
                    )
                else:
                    distances += _bit_counts(differing)
            limit = tl.load(limits + q, mask=is_query, other=2**30)
            is_hit = (64 * N_WORDS - 2 * tl.min(distances, axis=1)) > limit
            if tl.max(is_hit.to(tl.int32), axis=0) > 0:
                slot = tl.atomic_add(counts + q, 1, mask=is_hit & is_query)
                tl.store(marked + q.to(tl.int64) * capacity + slot, tile, mask=is_hit & is_query & (slot < capacity))

    @triton.jit
    def collect_marked(  # type: ignore[no-untyped-def]
        queries, rows, limits, marked, counts, found, n_found, first, last, capacity,
        N_WORDS: tl.constexpr, TILE: tl.constexpr,
    ):  # fmt: skip
        """Keys of the rows nearer than the limit in the marked tiles of query `program`, one below the other."""
        q = tl.program_id(0).to(tl.int64)
        limit = tl.load(limits + q)
        n_marked = tl.minimum(tl.load(counts + q), capacity)
        n_kept = 0
        for i in range(n_marked):
            tile = tl.load(marked + q * capacity + i).to(tl.int64)
            places = first + tile * TILE + tl.arange(0, TILE)
            is_row = places < last
            distances = tl.zeros((TILE,), dtype=tl.int32)
            for word in tl.static_range(0, N_WORDS):
                left = tl.load(queries + q * N_WORDS + word)
                distances += _bit_counts(left ^ tl.load(rows + places * N_WORDS + word, mask=is_row, other=0))
            is_near = is_row & (64 * N_WORDS - 2 * distances > limit)
            slot = n_kept + tl.cumsum(is_near.to(tl.int32), axis=0) - 1
            key = (distances.to(tl.int64) << 40) | places
            tl.store(found + q * capacity + slot, key, mask=is_near & (slot < capacity))
            n_kept += tl.sum(is_near.to(tl.int32), axis=0)
        tl.store(n_found + q, n_kept)


def shape_of(method: str, n_words: int) -> tuple[int, int, int]:
    """Queries, rows of a tile and warps for codes of so many words: wide codes have fewer rows in a tile.

    >>> [shape_of("products", n_words)[1] for n_words in (1, 8, 12, 16, 17, 40)]
    [128, 128, 128, 128, 64, 32]
    """
    together, tile, n_warps = SHAPES[method]
    while method == "products" and tile > SMALLEST_TILE and 64 * n_words * tile > TILE_BYTES:
        tile //= 2
    return together, tile, n_warps


def collect_near(
    method: str,
    queries: Any,
    query_signs: Any,
    rows: Any,
    limits: Any,
    span: tuple[int, int],
    capacity: int,
    shape: tuple[int, int, int] | None = None,
) -> tuple[Any, Any, Any]:
    """Keys (q, capacity) of rows `span` nearer than each query's limit, how many (q,), and how many tiles (q,).

    More than `capacity` of either: the keys are not complete, and the span must be cut. `queries` (q, W) and `rows`
    (n, W) are int64 words, `query_signs` (q, 64 W) int8, `limits` (q,) int32 products that must be surpassed.
    """
    (first, last), (n_queries, n_words) = span, queries.shape
    together, tile, n_warps = shape or shape_of(method, n_words)
    marked = rows.new_empty((n_queries, capacity), dtype=limits.dtype)
    found = rows.new_empty((n_queries, capacity))
    counts, n_found = limits.new_zeros(n_queries), limits.new_zeros(n_queries)
    grid = (-(-(last - first) // tile),)
    common = rows, limits, marked, counts, n_queries, first, last, capacity
    sizes = {"N_WORDS": n_words, "TILE": tile}
    if method == "popcount":
        mark_bit_counts[grid](queries, *common, **sizes, QUERIES=together, HAS_POPC=rows.is_cuda, num_warps=n_warps)
    else:
        try:
            mark_products[grid](query_signs, *common, **sizes, QUERIES=together, num_warps=n_warps, num_stages=3)
        except OutOfResources:  # nothing has run yet: smaller tiles, and where there are none, no tiles of signs
            smaller = (together, tile // 2, n_warps) if tile > SMALLEST_TILE else None
            again = method if smaller else "popcount"
            return collect_near(again, queries, query_signs, rows, limits, span, capacity, smaller)
    collect_marked[(n_queries,)](
        queries, rows, limits, marked, counts, found, n_found, first, last, capacity, **sizes, num_warps=4
    )
    return found, n_found, counts
