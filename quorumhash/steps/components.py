"""From features to bits: principal components, padded where the rank is short, rotated towards bits (ITQ)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace

from quorumhash.checks import check_shape, require
from quorumhash.engines import Engine, Rows
from quorumhash.steps.directions import mixing_for_bits, pad_columns, principal_pairs

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class BitProjection:
    """Features x (d,) to scores (x - mean) @ directions, directions (d, P)."""

    mean: FloatArray
    directions: FloatArray


def learn_bit_projection(rows: Rows, n_bits: int, engine: Engine, seed: int, *, rotate: bool = True) -> BitProjection:
    """Principal components of rows (N, d), rotated to bits; any number of bits.

    Where there are fewer components than bits, the rotation spreads them over all bits; without a rotation the surplus
    bits are constant.
    """
    mean, scatter = moments(rows, engine)
    _, directions = principal_pairs(scatter, n_bits)
    if not rotate:
        return BitProjection(mean, pad_columns(directions, n_bits))
    mixing = mixing_for_bits(
        lambda: engine.map_rows(project, BitProjection(mean, directions), rows),
        directions.shape[1], n_bits, rotate=True, engine=engine, seed=seed,
    )  # fmt: skip
    return BitProjection(mean, directions @ mixing)


def moments(rows: Rows, engine: Engine) -> tuple[FloatArray, FloatArray]:
    """Mean (d,) and centred scatter (d, d) of all rows, in two passes (mean first: no cancellation)."""
    mean = engine.sum_rows(_sums, rows) / rows.n_rows
    return mean, engine.sum_rows(_scatter, mean, rows)


def _sums(block: Any) -> Any:
    return array_namespace(block).sum(block, axis=0)


def _scatter(mean: Any, block: Any) -> Any:
    centred = block - mean
    return centred.T @ centred


def project(projection: BitProjection, block: Any) -> Any:
    """Scores (n, P) of one block of features."""
    return (block - projection.mean) @ projection.directions


def check_bit_projection(projection: Any, n_features: int, n_bits: int) -> None:
    """Refuse a projection of other features or to other bits."""
    require(isinstance(projection, BitProjection))
    check_shape(projection.mean, (n_features,))
    check_shape(projection.directions, (n_features, n_bits))
