"""A view in a few coordinates, with missing values completed by the low-rank model itself.

Two sets per view, from one sample. `coordinates` keep distances: principal components of the view as it is. The
`signature` is what trust.py looks at: principal components of the features at unit spread each, so that a small feature
can raise its voice too. Where a view has more of them than are kept, half are those of the view as it is (`plain`):
features of an embedding come in order of worth, and at unit spread the worthless ones crowd out the others. Its `grain`
are directions in which the view hardly varies: noise lives in all directions, and shows there most.

x (d,) features, centred and scaled;  B (d, k) principal directions;  c = B^T x (k,) coordinates;  S (d, s) signature
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace

from quorumhash.checks import check_scaling, check_shape, require
from quorumhash.scaling import LARGEST_SCALED, Scaling

FloatArray = npt.NDArray[np.float64]

N_COMPONENTS = 128  # per view
N_COMPONENTS_TOGETHER = 1024  # of all views: their joint covariance is inverted
FEWEST_COMPONENTS = 16
LARGEST_DEVIATION = 8.0  # of one feature, in the signature
FEWEST_VALUES = 16  # in a row that holds one value all over and says nothing: fewer may be alike by chance
COMPLETION_STEPS = 6  # of conjugate gradients; more follow what few rows have taught too closely
COMPLETION_SHRINKAGE = 0.1  # of the mean variance: keeps a row with few values left from being blown up


@dataclass(frozen=True)
class Components:
    """What was learned about one view: scale, directions (d, k) with their variances (k,), signature (d, p + s)."""

    scaling: Scaling
    levels: FloatArray  # (d,) one over the spread of each scaled feature, 0 where it has none
    directions: FloatArray
    variances: FloatArray
    plain: FloatArray  # (d, p) of the signature, for features as they are
    signature: FloatArray  # (d, s) for features at unit spread
    grain: FloatArray  # (d, g) the same

    @property
    def n_signature(self) -> int:
        """Columns of the signature."""
        return int(self.plain.shape[1] + self.signature.shape[1])


def default_n_components(n_views: int) -> int:
    """Components per view, where the user does not say.

    >>> [default_n_components(m) for m in (1, 5, 20, 500)]
    [128, 128, 51, 16]
    """
    return max(FEWEST_COMPONENTS, min(N_COMPONENTS, N_COMPONENTS_TOGETHER // n_views))


def emptied_rows(block: Any) -> Any:
    """Rows (n, d) that hold one value all over say no more than zeros do, and become such; the others as they are."""
    xp = array_namespace(block)
    if block.shape[1] < FEWEST_VALUES:
        return block
    (rows,) = xp.nonzero((block[:, 0] != 0) & xp.all(block[:, 1:FEWEST_VALUES] == block[:, :1], axis=1))
    rows = rows[xp.all(block[rows] == block[rows, :1], axis=1)]
    if not rows.shape[0]:
        return block
    block = xp.astype(block, block.dtype, copy=True)
    block[rows] = 0
    return block


def left_out_noise(variances: Any, total: Any, width: int) -> Any:
    """Variance of every feature beside the low-rank model: that of the components left out, and a little."""
    left_out = max(width - variances.shape[0], 1)
    return (total - variances.sum()).clip(0.0, None) / left_out + COMPLETION_SHRINKAGE * variances.mean() + 1e-300


def completed(values: Any, missing: Any, directions: Any, variances: Any, noise: Any) -> Any:
    """Rows with missing entries filled in by what is expected of them, given the others of their row.

    Gaussian of covariance C = B V B^T + noise: with S = B V / (V + noise) B^T the expectation solves (1 - S)_mm x_m =
    S_mo x_o, m missing and o observed. Few steps of conjugate gradients for all rows at once, each with its own gaps.
    """
    xp = array_namespace(values)
    shrinkage, gaps = variances / (variances + noise), xp.astype(missing, values.dtype)

    def spread(rows: Any) -> Any:
        return ((rows @ directions) * shrinkage) @ directions.T * gaps

    residual = spread(values * (1.0 - gaps))
    found, step, size = 0.0 * residual, residual, xp.sum(residual**2, axis=1, keepdims=True)
    for _ in range(COMPLETION_STEPS):
        moved = step - spread(step)
        length = size / xp.sum(step * moved, axis=1, keepdims=True).clip(1e-300, None)
        found, residual, before = found + length * step, residual - length * moved, size
        size = xp.sum(residual**2, axis=1, keepdims=True)
        step = residual + size / before.clip(1e-300, None) * step
    return xp.where(missing, found, values)


def scaled_and_completed(components: Components, block: Any) -> Any:
    """Rows (n, d) centred, scaled, missing values filled in from the others of their row; float64."""
    xp = array_namespace(block)
    scaling, block = components.scaling, emptied_rows(block)
    # a float32 block less a float64 mean is float64 in one pass
    values = (block if block.dtype == xp.float32 else xp.astype(block, xp.float64, copy=False)) - scaling.mean
    values *= scaling.factor
    missing = xp.isnan(block)
    holed = xp.any(missing, axis=1)
    if not xp.any(holed):
        return values.clip(-LARGEST_SCALED, LARGEST_SCALED)
    values = xp.where(missing, 0.0, values).clip(-LARGEST_SCALED, LARGEST_SCALED)
    levels = components.levels
    total = xp.sum(xp.where(levels > 0, 1.0 / xp.where(levels > 0, levels, 1.0), 0.0) ** 2)
    noise = left_out_noise(components.variances, total, levels.shape[0])
    values[holed] = completed(values[holed], missing[holed], components.directions, components.variances, noise)
    return values


def coordinate_rows(components: Components, values: Any) -> Any:
    """Coordinates (n, k) of completed rows."""
    return values @ components.directions


def signature_rows(components: Components, values: Any) -> Any:
    """Signature and grain (n, p + s + g) of completed rows."""
    xp = array_namespace(values)
    levelled = (values * components.levels).clip(-LARGEST_DEVIATION, LARGEST_DEVIATION)
    rows = levelled @ xp.concat([components.signature, components.grain], axis=1)
    return xp.concat([values @ components.plain, rows], axis=1) if components.plain.shape[1] else rows


def empty_signature(components: Components) -> FloatArray:
    """Signature and grain (p + s + g,) of a row of zeros."""
    zeros = np.zeros((1, len(components.levels)))
    row: FloatArray = signature_rows(components, scaled_and_completed(components, zeros))[0]
    return row


def check_components(components: Any, width: int) -> None:
    """Refuse what are no components of a view of this width."""
    require(isinstance(components, Components))
    check_scaling(components.scaling, width)
    check_shape(components.levels, (width,))
    for part in (components.directions, components.plain, components.signature, components.grain):
        check_shape(part, (width, None))
    check_shape(components.variances, (components.directions.shape[1],))


COMPONENT_PARTS = (Components, Scaling)
