"""Code targets from the joined views and their landmark graphs, and the linear hash functions that follow them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.engines import Engine, Rows
from quorumhash.scaling import Scaling, joined_rows, joined_scores
from quorumhash.steps.directions import mixing_for_bits
from quorumhash.targets import GraphFactors, KernelSums, cross_sums, kernel_sums

FloatArray = npt.NDArray[np.float64]


def joined_sums(
    scalings: tuple[Scaling, ...], rows: Sequence[Rows | None], factors: GraphFactors, engine: Engine
) -> KernelSums:
    """What the target step needs of the joined views X (N, d), in one pass: they stand where a kernel stood."""
    pairs = factors.walked()
    gram, sums, cross = engine.sum_rows(_joined_sums, scalings, factors.sizes, *pairs, *rows)
    return kernel_sums(gram, sums, cross, factors.means, pairs[0].n_rows)


def _joined_sums(scalings: tuple[Scaling, ...], sizes: tuple[int, ...], *arrays: Any) -> Any:
    n_pairs = 2 * len(sizes)
    joined = joined_rows(scalings, *arrays[n_pairs:])
    return joined.T @ joined, joined.sum(0), cross_sums(sizes, joined, *arrays[:n_pairs])


def full_projection(
    projection: FloatArray,
    n_bits: int,
    rotate: bool,
    scalings: tuple[Scaling, ...],
    rows: Sequence[Rows | None],
    engine: Engine,
    seed: int,
) -> FloatArray:
    """The learned directions (d, r) as hash functions (d, n_bits): filled up, and rotated towards bits if asked."""
    return projection @ mixing_for_bits(
        lambda: engine.map_rows(joined_scores, scalings, projection, *rows),
        projection.shape[1], n_bits, rotate=rotate, engine=engine, seed=seed,
    )  # fmt: skip
