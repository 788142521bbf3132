"""A view in a few coordinates, with missing values completed by the low-rank model itself.

Two sets per view, from one sample. `coordinates` keep distances: principal components of the view as it is. The
`signature` is what trust.py looks at: principal components of the features at unit spread each, so that a small feature
can raise its voice too. Where a view has more of them than are kept, half are those of the view as it is (`plain`):
features of an embedding come in order of worth, and at unit spread the worthless ones crowd out the others. Its `grain`
are directions in which the view hardly varies: noise lives in all directions, and shows there most.

x (d,) features, centred and scaled;  B (d, k) principal directions;  c = B^T x (k,) coordinates;  S (d, s) signature
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace

from quorumhash.checks import check_scaling, check_shape, require
from quorumhash.proximal import fix_signs
from quorumhash.scaling import LARGEST_SCALED, Scaling

FloatArray = npt.NDArray[np.float64]

N_COMPONENTS = 128  # per view
N_COMPONENTS_TOGETHER = 1024  # of all views: their joint covariance is inverted
FEWEST_COMPONENTS = 16
N_SIGNATURE, N_PLAIN, N_GRAIN = 128, 64, 64
FARTHEST = 4.0  # rows further out than this many median norms are drawn in before anything is learned from them
LARGEST_DEVIATION = 8.0  # of one feature, in the signature
FEWEST_VALUES = 16  # in a row that holds one value all over and says nothing: fewer may be alike by chance
COMPLETION_STEPS = 6  # of conjugate gradients; more follow what few rows have taught too closely
COMPLETION_ROUNDS = 3
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


def describe(
    block: npt.NDArray[Any], present: npt.NDArray[np.bool_], n_components: int
) -> tuple[Components, FloatArray, FloatArray]:
    """Learn one view from sampled rows (s, d); gives its components, and the rows' signature and coordinates.

    Grain is learned from every other row. Rows that it was learned from hardly vary in it, new ones do: so these rows
    show theirs along directions that the other rows would have given.
    """
    components, other = _learned(block[present], n_components)
    values = scaled_and_completed(components, block)
    signature = signature_rows(components, values)
    seen = np.flatnonzero(present)[::2]
    by_others = replace(components, plain=components.plain[:, :0], signature=components.signature[:, :0], grain=other)
    signature[seen, components.n_signature :] = signature_rows(by_others, values[seen])
    return components, signature, coordinate_rows(components, values)


def learn_components(block: npt.NDArray[Any], n_components: int) -> Components:
    """Learn one view from the sampled rows that have it, (s, d) with NaN where values are missing."""
    return _learned(block, n_components)[0]


def _learned(block: npt.NDArray[Any], n_components: int) -> tuple[Components, FloatArray]:
    """The same, and the grain (d, g) as the other half of the rows has it."""
    scaling, drawn = robust_scaling(emptied_rows(np.asarray(block, dtype=np.float64)))
    missing = np.isnan(drawn)
    filled = np.where(missing, 0.0, drawn) if missing.any() else drawn
    directions, variances = _principal(_squares(filled), n_components)
    for _ in range(COMPLETION_ROUNDS if missing.any() else 0):
        total = np.einsum("ij,ij->", filled, filled) / len(filled)
        filled = _completed(filled, missing, directions, variances, _noise(variances, total, len(directions)))
        directions, variances = _principal(_squares(filled), n_components)
    squares = np.einsum("ij,ij->j", filled, filled) / len(filled)  # std would copy the rows three times over
    spreads = np.sqrt(np.maximum(squares - filled.mean(axis=0) ** 2, 0.0))
    varies = spreads > 1e-6 * max(float(spreads.max(initial=0.0)), 1e-300)
    levels = np.where(varies, 1.0 / np.where(varies, spreads, 1.0), 0.0)
    levelled = filled * levels
    np.clip(levelled, -LARGEST_DEVIATION, LARGEST_DEVIATION, out=levelled)
    plain, signature, grain, other = _signature(levelled, directions, variances)
    return Components(scaling, levels, directions, variances, plain, signature, grain), other


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


def robust_scaling(block: FloatArray) -> tuple[Scaling, FloatArray]:
    """Mean and factor as in scaling.py, and the scaled rows, after far rows were drawn in: one of them could be all."""
    is_whole = not np.isnan(block).any()
    total = np.sum if is_whole else np.nansum  # the same sums; the second copies what it adds up
    mean = _first_centre(block, is_whole)
    drawn = block - mean
    norms = np.sqrt(total(drawn**2, axis=1))
    limit = FARTHEST * float(np.median(norms[norms > 0])) if (norms > 0).any() else 1.0
    drawn *= np.minimum(1.0, limit / np.maximum(norms, 1e-300))[:, None]
    drawn += mean
    mean = _column_means(drawn, is_whole)
    drawn -= mean
    mean_square = float(total(drawn**2)) / len(block)
    factor = 1.0 / np.sqrt(mean_square) if mean_square > 0 else 1.0
    drawn *= factor
    return Scaling(mean, factor), drawn


def _first_centre(block: FloatArray, is_whole: bool) -> FloatArray:
    """The mean, or the median (d,) where far rows have carried the mean off: seen from there all rows are alike."""
    mean, some = _column_means(block, is_whole), block[:: 1 + len(block) // 1000]
    if is_whole:
        median = np.median(some, axis=0)
    else:
        median = np.nanmedian(np.where(np.isnan(some).all(axis=0), mean, some), axis=0)
    typical = float(np.median(np.sqrt(np.nansum((some - median) ** 2, axis=1))))
    return mean if np.linalg.norm(mean - median) <= typical else median


def _column_means(block: FloatArray, is_whole: bool) -> FloatArray:
    if is_whole:
        return np.asarray(block.sum(axis=0) / len(block))
    means: FloatArray = np.nansum(block, axis=0) / np.maximum((~np.isnan(block)).sum(axis=0), 1)
    return means


def _squares(rows: FloatArray) -> FloatArray:
    squares: FloatArray = rows.T @ rows / len(rows)
    return squares


def _principal(squares: FloatArray, n_components: int) -> tuple[FloatArray, FloatArray]:
    variances, directions = np.linalg.eigh(squares)
    order = slice(None, -min(n_components, len(variances)) - 1, -1)
    kept = variances[order] > 1e-12 * max(variances[-1], 1e-300)
    kept[0] = True  # a constant view still has one coordinate, always 0
    return fix_signs(directions[:, order][:, kept]), np.maximum(variances[order][kept], 0.0)


def _signature(
    levelled: FloatArray, plain: FloatArray, variances: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Plain directions (d, p), levelled ones (d, s), and the grain (d, g) of every other row and of the rest."""
    halves = _squares(levelled[::2]), _squares(levelled[1::2] if len(levelled) > 1 else levelled)
    directions, levelled_variances = _principal((halves[0] + halves[1]) / 2, levelled.shape[1])
    if directions.shape[1] <= N_SIGNATURE:
        return plain[:, :0], directions, directions[:, :0], directions[:, :0]
    n_plain = min(N_PLAIN, plain.shape[1])
    n_levelled = N_SIGNATURE - n_plain
    size = levelled_variances[:n_levelled].sum() / max(float(variances[:n_plain].sum()), 1e-300)  # both of one size
    return plain[:, :n_plain] * np.sqrt(size), directions[:, :n_levelled], *_grains(*halves)


def _grains(*halves: FloatArray) -> list[FloatArray]:
    """Of each half of the rows some (d, g) of the many small directions, evenly spread."""
    small = [_principal(squares, len(squares))[0][:, N_SIGNATURE:] for squares in halves]
    n_small = min(directions.shape[1] for directions in small)
    chosen = np.unique(np.linspace(0, max(n_small - 1, 0), min(N_GRAIN, n_small)).astype(int))
    return [directions[:, chosen] for directions in small]


def _noise(variances: Any, total: Any, width: int) -> Any:
    """Variance of every feature beside the low-rank model: that of the components left out, and a little."""
    left_out = max(width - variances.shape[0], 1)
    return (total - variances.sum()).clip(0.0, None) / left_out + COMPLETION_SHRINKAGE * variances.mean() + 1e-300


def _completed(values: Any, missing: Any, directions: Any, variances: Any, noise: Any) -> Any:
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
    noise = _noise(components.variances, total, levels.shape[0])
    values[holed] = _completed(values[holed], missing[holed], components.directions, components.variances, noise)
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
