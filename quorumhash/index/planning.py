"""Which way to search: by a scan, or by bands, which must be made first.

Bands of a segment are made once the time they would have saved so far is the time they take to make: then no order of
queries costs more than twice what the better way would have. Whether bands, once there, answer a query is decided
step by step in multiindex.c, by the same costs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash._native.kernels import Costs, Effort
from quorumhash.index.bands import band_widths, make_bands
from quorumhash.index.codetable import Segment
from quorumhash.index.searching import thread_map

# nanoseconds, measured by benchmarks/speed/hamming_planner.py on one thread; neon is an estimate
SCAN = {"avx512": 0.09, "avx2": 0.17, "neon": 0.3, "portable": 0.65}  # a row of 64 bits
ALONE, FEW = 0.4, 4  # ... where fewer than FEW queries share the walk and memory is what they wait for
LOOK_UP = 18.0
CANDIDATE, FAR_CANDIDATE = 0.5, 3.0  # a row met, of one word and of more: those do not stand side by side
MAKE = 30.0  # a row and band
SMALLEST = 20_000  # rows under which a scan takes microseconds

METHODS = ("auto", "scan", "multi-index")


class Planner:
    """Makes the bands of segments when they pay, and counts how queries were answered."""

    def __init__(self, n_bits: int, method: str) -> None:
        self.n_bits = n_bits
        self.method = method
        self.effort = Effort(0, 0)
        self.last = "none"

    def costs(self, kernel: str, n_queries: int) -> Costs:
        """What a scan and a look-up cost so many queries with this kernel."""
        if kernel not in SCAN:
            return Costs(0.0, LOOK_UP, _candidate(self.n_bits))
        row = SCAN[kernel] if n_queries >= FEW else max(SCAN[kernel], ALONE)
        return Costs(row * max(self.n_bits / 64, 0.25), LOOK_UP, _candidate(self.n_bits))

    def prepare(self, segments: Sequence[Segment]) -> None:
        """Make the bands that are due."""
        for segment in segments:
            if segment.bands is None and segment.n_rows and self._is_due(segment):
                spread = thread_map if segment.n_rows > SMALLEST else map
                segment.bands = make_bands(segment.tiles, segment.n_rows, self.n_bits, spread)

    def _is_due(self, segment: Segment) -> bool:
        if self.method != "auto":
            return self.method == "multi-index"
        return segment.saved_seconds > 0 and segment.saved_seconds > seconds_to_make(self.n_bits, segment.n_rows)

    def learn(self, segments: Sequence[Segment], radii: npt.NDArray[np.uint16], effort: Effort, costs: Costs) -> None:
        """Take note of queries answered: how far their farthest items were, and in which way they were found."""
        self.effort = Effort(self.effort.scanned + effort.scanned, self.effort.looked_up + effort.looked_up)
        if effort.scanned or effort.looked_up:
            self.last = "scan" if not effort.looked_up else "multi-index" if not effort.scanned else "both"
        if self.method == "auto" and costs.scan and len(radii):
            for segment in segments:
                if segment.bands is None and segment.n_rows >= SMALLEST:
                    segment.saved_seconds += seconds_saved(costs, self.n_bits, segment.n_rows, radii)

    def told(self) -> dict[str, Any]:
        """What `stats` says of it."""
        return {
            "method": self.method,
            "last_search": self.last,
            "scans": self.effort.scanned,
            "look_ups": self.effort.looked_up,
        }


def look_up_seconds(n_bits: int, n_rows: int, radius: int) -> float:
    """Time of one query by bands, up to this radius, in a segment of n_rows spread evenly."""
    widths = band_widths(n_bits, n_rows)
    total = 0.0
    for step in range(radius + 1):
        n_flips, band = divmod(step, len(widths))
        n_values = math.comb(widths[band], n_flips)
        total += n_values * (LOOK_UP + _candidate(n_bits) * n_rows / 2 ** widths[band])
        if total > 1e12:
            break
    return total * 1e-9


def seconds_saved(costs: Costs, n_bits: int, n_rows: int, radii: npt.NDArray[np.uint16]) -> float:
    """Time that bands would have saved the queries whose farthest items stand at these distances."""
    values, counts = np.unique(radii, return_counts=True)
    scan = costs.scan * n_rows * 1e-9
    saved = [scan - look_up_seconds(n_bits, n_rows, int(radius)) for radius in values]
    return float(sum(n * max(seconds, 0.0) for n, seconds in zip(counts, saved, strict=True)))


def seconds_to_make(n_bits: int, n_rows: int) -> float:
    """Time to make the bands of a segment."""
    return MAKE * 1e-9 * n_rows * len(band_widths(n_bits, n_rows))


def _candidate(n_bits: int) -> float:
    return CANDIDATE if n_bits <= 64 else FAR_CANDIDATE
