"""What is learned of a view from a sample of its rows: scale, coordinates, signature and grain (coordinates.py).

Array code over the namespace of the sample, which lies where the engine computes. Eigenvectors, medians and what is
learned come to the host.

X (s, d) rows, centred and scaled;  C = X^T X / s
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace, is_numpy_array

from quorumhash.coordinates import (
    LARGEST_DEVIATION,
    Components,
    completed,
    coordinate_rows,
    emptied_rows,
    left_out_noise,
    scaled_and_completed,
    signature_rows,
)
from quorumhash.engines import Engine
from quorumhash.proximal import fix_signs
from quorumhash.scaling import Scaling
from quorumhash.tensors import beside, on_host

FloatArray = npt.NDArray[np.float64]

N_SIGNATURE, N_PLAIN, N_GRAIN = 128, 64, 64
FARTHEST = 4.0  # rows further out than this many median norms are drawn in before anything is learned from them
COMPLETION_ROUNDS = 3
ROUNDING = 1e-12  # of the length of the mean row: less is what sums over rows that are all alike leave of them


def describe(
    block: npt.NDArray[Any], present: npt.NDArray[np.bool_], n_components: int, engine: Engine | None = None
) -> tuple[Components, Any, Any]:
    """Learn one view from sampled rows (s, d); gives its components, and the rows' signature and coordinates.

    Grain is learned from every other row. Rows that it was learned from hardly vary in it, new ones do: so these rows
    show theirs along directions that the other rows would have given. All of it is computed where the engine does, and
    stays there.
    """
    rows, here = engine.beside(block) if engine else block, np.flatnonzero(present)

    def near(value: Any) -> Any:
        return beside(value, rows)

    components, other = _learned(rows if present.all() else rows[near(here)], n_components)
    by_others = replace(components, plain=components.plain[:, :0], signature=components.signature[:, :0], grain=other)
    there, by_others = near(components), near(by_others)
    values = scaled_and_completed(there, rows)
    signature, seen = signature_rows(there, values), near(here[::2])
    signature[seen, components.n_signature :] = signature_rows(by_others, values[seen])
    return components, signature, coordinate_rows(there, values)


def learn_components(block: npt.NDArray[Any], n_components: int) -> Components:
    """Learn one view from the sampled rows that have it, (s, d) with NaN where values are missing."""
    return _learned(block, n_components)[0]


def _learned(block: Any, n_components: int) -> tuple[Components, FloatArray]:
    """The same, and the grain (d, g) as the other half of the rows has it."""
    xp = array_namespace(block)
    scaling, drawn = robust_scaling(emptied_rows(xp.astype(block, xp.float64, copy=False)))
    missing = xp.isnan(drawn)
    is_holed = bool(xp.any(missing))
    filled = xp.where(missing, 0.0, drawn) if is_holed else drawn
    directions, variances = _principal(_squares(filled), n_components)
    for _ in range(COMPLETION_ROUNDS if is_holed else 0):
        total = float(_column_squares(filled).sum()) / len(filled)
        noise = float(left_out_noise(variances, total, len(directions)))
        filled = completed(filled, missing, beside(directions, filled), beside(variances, filled), noise)
        directions, variances = _principal(_squares(filled), n_components)
    squares = on_host(_column_squares(filled)) / len(filled)  # std would copy the rows three times over
    spreads = np.sqrt(np.maximum(squares - on_host(xp.mean(filled, axis=0)) ** 2, 0.0))
    varies = spreads > 1e-6 * max(float(spreads.max(initial=0.0)), 1e-300)
    levels = np.where(varies, 1.0 / np.where(varies, spreads, 1.0), 0.0)
    levelled = filled * beside(levels, filled)
    if is_numpy_array(levelled):  # in its place: the largest matrix here
        np.clip(levelled, -LARGEST_DEVIATION, LARGEST_DEVIATION, out=levelled)
    else:
        levelled = levelled.clip(-LARGEST_DEVIATION, LARGEST_DEVIATION)
    plain, signature, grain, other = _signature(levelled, directions, variances)
    return Components(scaling, levels, directions, variances, plain, signature, grain), other


def robust_scaling(block: Any) -> tuple[Scaling, Any]:
    """Mean and factor as in scaling.py, and the scaled rows, after far rows were drawn in: one of them could be all."""
    xp = array_namespace(block)
    is_whole = not bool(xp.any(xp.isnan(block)))
    centre = beside(_first_centre(block, is_whole), block)
    drawn = block - centre
    norms = np.sqrt(on_host(_total(drawn**2, is_whole, axis=1)))
    limit = FARTHEST * float(np.median(norms[norms > 0])) if (norms > 0).any() else 1.0
    drawn *= beside(np.minimum(1.0, limit / np.maximum(norms, 1e-300))[:, None], block)
    drawn += centre
    mean = _column_means(drawn, is_whole)
    drawn -= mean
    mean_square = float(_total(drawn**2, is_whole)) / len(block)
    if mean_square <= ROUNDING**2 * float((mean**2).sum()):  # all rows alike: not to be blown up to unit size
        drawn *= 0.0
        mean_square = 0.0
    factor = 1.0 / np.sqrt(mean_square) if mean_square > 0 else 1.0
    drawn *= factor
    return Scaling(on_host(mean), factor), drawn


def _total(values: Any, is_whole: bool, axis: int | None = None) -> Any:
    """The sum of what is there; where all is, without a copy."""
    xp = array_namespace(values)
    return xp.sum(values if is_whole else xp.where(xp.isnan(values), 0.0, values), axis=axis)


def _first_centre(block: Any, is_whole: bool) -> FloatArray:
    """The mean, or the median (d,) where far rows have carried the mean off: seen from there all rows are alike."""
    mean, some = on_host(_column_means(block, is_whole)), on_host(block[:: 1 + len(block) // 1000])
    if is_whole:
        median = np.median(some, axis=0)
    else:
        median = np.nanmedian(np.where(np.isnan(some).all(axis=0), mean, some), axis=0)
    typical = float(np.median(np.sqrt(np.nansum((some - median) ** 2, axis=1))))
    return mean if np.linalg.norm(mean - median) <= typical else median


def _column_means(block: Any, is_whole: bool) -> Any:
    xp = array_namespace(block)
    if is_whole:
        return xp.sum(block, axis=0) / len(block)
    return _total(block, is_whole, axis=0) / xp.sum(xp.astype(~xp.isnan(block), xp.float64), axis=0).clip(1.0, None)


def _column_squares(rows: Any) -> Any:
    """The sum of squares of every column, (d,)."""
    if is_numpy_array(rows):
        return np.einsum("ij,ij->j", rows, rows)
    return (rows * rows).sum(0)  # einsum is a product of batches there, and slow


def _squares(rows: Any) -> Any:
    return rows.T @ rows / len(rows)


def _principal(squares: Any, n_components: int) -> tuple[FloatArray, FloatArray]:
    variances, directions = map(on_host, array_namespace(squares).linalg.eigh(squares))
    order = slice(None, -min(n_components, len(variances)) - 1, -1)
    kept = variances[order] > 1e-12 * max(variances[-1], 1e-300)
    kept[0] = True
    if variances[-1] <= 0:  # a constant view still has one coordinate, always 0
        directions = np.zeros_like(directions)
    return fix_signs(directions[:, order][:, kept]), np.maximum(variances[order][kept], 0.0)


def _signature(
    levelled: Any, plain: FloatArray, variances: FloatArray
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


def _grains(*halves: Any) -> list[FloatArray]:
    """Of each half of the rows some (d, g) of the many small directions, evenly spread."""
    small = [_principal(squares, len(squares))[0][:, N_SIGNATURE:] for squares in halves]
    n_small = min(directions.shape[1] for directions in small)
    chosen = np.unique(np.linspace(0, max(n_small - 1, 0), min(N_GRAIN, n_small)).astype(int))
    return [directions[:, chosen] for directions in small]
