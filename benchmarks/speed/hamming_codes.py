"""Codes that searches are measured on: clustered ones, and what QuorumHasher makes of photographs."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash import QuorumHasher, load_dataset

Codes = npt.NDArray[np.uint8]

N_CENTRES = 2000
MOST_FLIPPED = 0.2  # share of bits in which an item differs from its centre: 1 % to this, evenly
QUERY_FLIPPED = 0.03


def flipped(codes: Codes, shares: npt.NDArray[np.float64], rng: np.random.Generator) -> Codes:
    """The codes with each bit turned round with the probability of its row; in blocks, for memory."""
    blocks = []
    for start in range(0, len(codes), 250_000):
        block = codes[start : start + 250_000]
        turned = (
            rng.random((len(block), 8 * codes.shape[1]), dtype=np.float32) < shares[start : start + len(block), None]
        )
        blocks.append(block ^ np.packbits(turned, axis=1))
    return np.concatenate(blocks)


def queries_of(codes: Codes, n_queries: int, rng: np.random.Generator) -> Codes:
    """Items with 3 % of their bits turned round."""
    rows = rng.choice(len(codes), n_queries, replace=False)
    return flipped(codes[rows], np.full(n_queries, QUERY_FLIPPED), rng)


def clustered(n_items: int, n_bits: int, n_queries: int, seed: int = 0) -> tuple[Codes, Codes]:
    """Codes around 2,000 random centres, and queries."""
    rng = np.random.default_rng([seed, n_bits])
    centres = rng.integers(0, 256, (N_CENTRES, n_bits // 8), dtype=np.uint8)
    codes = flipped(centres[rng.integers(0, N_CENTRES, n_items)], rng.uniform(0.01, MOST_FLIPPED, n_items), rng)
    return codes, queries_of(codes, n_queries, rng)


@cache
def codes_of_coco5(n_bits: int) -> tuple[Codes, Codes]:
    """Codes that QuorumHasher makes of the database rows and of the query rows of coco5."""
    dataset = load_dataset("coco5")
    hasher = QuorumHasher(n_bits=n_bits).fit(dataset.views[dataset.train_rows])
    return hasher.transform(dataset.views[dataset.database_rows]), hasher.transform(dataset.views[dataset.query_rows])


def real(n_items: int, n_bits: int, n_queries: int, share: float, seed: int = 0) -> tuple[Codes, Codes]:
    """Stored codes of coco5 repeated to n_items, `share` of the bits turned round; query codes repeated likewise."""
    stored, asked = codes_of_coco5(n_bits)
    rng = np.random.default_rng([seed, n_bits])
    codes = np.resize(stored, (n_items, stored.shape[1]))
    return flipped(codes, np.full(n_items, share), rng) if share else codes, np.resize(
        asked, (n_queries, asked.shape[1])
    )


def bare_pass() -> Any:
    """The C function of bare_pass.c, compiled for this processor."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "bare_pass.so"
        source = Path(__file__).with_name("bare_pass.c")
        subprocess.run(["cc", "-O3", "-march=native", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
        function = ctypes.CDLL(str(library)).bare_pass
    function.argtypes, function.restype = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64], ctypes.c_uint64
    return function
