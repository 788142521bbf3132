"""What a model is: its views, how even and how independent its bits are, and how it came about."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.codes import Bytes, unpack_bits
from quorumhash.web.collection import Collection

SAMPLE = 20_000  # items that bits are looked at in
SHOWN_BITS = 128  # of a long code; codes are nested, so these are a code of their own
N_PAIRS = 20_000


def model_facts(collection: Collection) -> dict[str, Any]:
    """Everything the page shows of the model."""
    hasher, n_bits = collection.hasher, int(collection.hasher.n_bits_)
    step = max(1, len(collection.codes) // SAMPLE)
    bits = unpack_bits(collection.codes[::step], n_bits)
    stats = collection.index.stats()
    weights = getattr(hasher, "view_weights_", {})
    return {
        "method": collection.method,
        "kind": type(hasher).__name__,
        "n_bits": n_bits,
        "fingerprint": hasher.fingerprint(),
        "n_items": len(collection.ids),
        "n_distinct": int(stats["distinct_codes"]),
        "code_bytes": int(stats["code_bytes"]),
        "kernel": str(stats["kernel"]),
        "parameters": {name: _plain(value) for name, value in sorted(hasher.get_params(deep=False).items())},
        "views": [
            {"view": name, "width": int(width), "weight": _weight(weights, name)}
            for name, width in hasher.view_widths_.items()
        ],
        "balance": [round(float(share), 4) for share in bits.mean(axis=0)],
        "correlation": _correlation(bits[:, :SHOWN_BITS]),
        "distances": _distances(collection.codes, n_bits),
        "history": _history(getattr(hasher, "history_", None)),
    }


def _weight(weights: Any, name: str) -> float | None:
    return round(float(weights[name]), 4) if isinstance(weights, dict) and name in weights else None


def _correlation(bits: npt.NDArray[np.uint8]) -> list[list[float]]:
    """Between every two bits; 0 where a bit never changes."""
    centred = bits - bits.mean(axis=0)
    length = np.sqrt((centred**2).sum(axis=0))
    scaled = np.divide(centred, length, out=np.zeros_like(centred), where=length > 0)
    rows: list[list[float]] = np.round(scaled.T @ scaled, 3).tolist()
    return rows


def _distances(codes: Bytes, n_bits: int) -> list[int]:
    """How many of many random pairs of different items lie 0, 1, ... n_bits apart."""
    if len(codes) < 2:
        return [0] * (n_bits + 1)
    rng = np.random.default_rng(0)
    first = rng.integers(0, len(codes), N_PAIRS)
    second = (first + rng.integers(1, len(codes), N_PAIRS)) % len(codes)
    apart = np.bitwise_count(codes[first] ^ codes[second]).sum(axis=1)
    counts: list[int] = np.bincount(apart.astype(np.int64), minlength=n_bits + 1).tolist()
    return counts


def _history(history: Any) -> dict[str, list[float]]:
    """Numbers per sweep, by name; empty for methods that are solved at once."""
    if not history:
        return {}
    rows = [row if isinstance(row, dict) else {"objective": row} for row in history]
    names = [name for name in rows[0] if all(isinstance(row.get(name), int | float) for row in rows)]
    series = {name: [float(row[name]) for row in rows] for name in names}
    return {name: values for name, values in series.items() if all(map(math.isfinite, values))}


def _plain(value: Any) -> str:
    return str(value)[:80]
