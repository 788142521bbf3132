"""Bits as latent factors: the signs from which weighted sums rebuild every view's features best.

    min  sum_m mu_m^t ( |Phi_m - V U_m^T|^2 + lambda |U_m|^2 ),   V (N, P) of -1 and 1,   mu >= 0, sum mu = 1

    Phi_m (N, R)  features of view m, brought to |Phi_m|^2 = N;   U_m (R, P)  factors;   U (M R, P) those of all views

Three steps in turn, each exact and none raising the objective. V stays in rows, everything else is small.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace

from quorumhash.engines import Engine, Rows
from quorumhash.proximal import signs
from quorumhash.steps.directions import lasting_pairs

FloatArray = npt.NDArray[np.float64]

SMALLEST_LOSS = 1e-12  # of a row: below it a view is rebuilt exactly


@dataclass(frozen=True)
class LatentBits:
    """The bits V of all rows, the weighted factors U (M R, P) for features as they were given, and how they came.

    Features times `scales` (M R,) are what the factors rebuild: it holds the views' sizes and mu_m^(t/2).
    """

    bits: Rows
    factors: FloatArray
    scales: FloatArray
    view_weights: FloatArray
    history: list[dict[str, float]]


def solve_latent_bits(
    features: Rows,
    bits: Rows,
    n_views: int,
    engine: Engine,
    *,
    ridge: float,
    power: float,
    max_iter: int,
    tol: float,
) -> LatentBits:
    """Alternate factors, bits and weights from the given bits (int8); features are all views' side by side (N, M R)."""
    n_rows = features.n_rows
    squares = engine.sum_rows(_squares, features)
    energies = squares.reshape(n_views, -1).sum(axis=1)
    is_silent = energies <= 0
    sizes = np.repeat(np.sqrt(n_rows / np.where(is_silent, n_rows, energies)), len(squares) // n_views)
    mu, history = np.full(n_views, 1 / n_views), list[dict[str, float]]()
    cross, gram = _sums(features, bits, sizes, engine)
    for _ in range(max_iter):
        U = _best_factors(cross, gram, ridge)
        weights = np.repeat(mu**power, len(U) // n_views)[:, None]
        bits = engine.map_rows(
            update_bits, features, bits, sizes[:, None] * weights * U, U.T @ (weights * U), reuse=[bits]
        )
        cross, gram = _sums(features, bits, sizes, engine)
        mu, objective = _best_weights(_losses(U, cross, gram, ridge, n_rows, is_silent), is_silent, power)
        history.append({"objective": objective})
        if len(history) > 1 and history[-2]["objective"] - objective <= tol * objective:
            break
    U = _best_factors(cross, gram, ridge)
    mu, _ = _best_weights(_losses(U, cross, gram, ridge, n_rows, is_silent), is_silent, power)
    roots = np.repeat(mu ** (power / 2), len(U) // n_views)
    return LatentBits(bits, roots[:, None] * U, roots * sizes, mu, history)


def latent_projection(found: LatentBits, relative_ridge: float) -> FloatArray:
    """Hash functions (M R, P): the factors' inverse U (U^T U + ridge I)^-1, ridge relative to the mean of U^T U.

    Without a ridge it is the least-squares inverse, which multiplies whatever the factors do not explain.
    """
    gram = found.factors.T @ found.factors
    values, vectors = lasting_pairs(gram)  # the others: combinations of bits that rebuild nothing
    values = values + relative_ridge * np.trace(gram) / len(gram)
    projection: FloatArray = found.scales[:, None] * ((found.factors @ vectors / values) @ vectors.T)
    return projection


def update_bits(features: Any, bits: Any, factors: Any, gram: Any) -> Any:
    """One pass over the bits of a block, each set to the better sign given the others.

    v_k = sign(Phi u_k - V (U^T u_k) + (u_k^T u_k) v_k); factors (M R, P) and gram (P, P) hold the views' weights.
    """
    xp = array_namespace(features)
    wanted = xp.astype(features, xp.float64) @ factors
    V = xp.astype(bits, xp.float64)
    for k in range(V.shape[1]):
        pull = wanted[:, k] - V @ gram[:, k] + gram[k, k] * V[:, k]
        V[:, k] = signs(pull)
    return xp.astype(V, xp.int8)


def _squares(features: Any) -> Any:
    xp = array_namespace(features)
    return (xp.astype(features, xp.float64) ** 2).sum(0)


def _sums(features: Rows, bits: Rows, sizes: FloatArray, engine: Engine) -> tuple[FloatArray, FloatArray]:
    """Phi^T V (M R, P) and V^T V (P, P)."""
    cross, gram = engine.sum_rows(_products, features, bits)
    return sizes[:, None] * cross, gram


def _products(features: Any, bits: Any) -> Any:
    xp = array_namespace(features)
    V = xp.astype(bits, xp.float64)
    return xp.astype(features, xp.float64).T @ V, V.T @ V


def _best_factors(cross: FloatArray, gram: FloatArray, ridge: float) -> FloatArray:
    return np.asarray(np.linalg.solve(gram + ridge * np.eye(len(gram)), cross.T).T, dtype=np.float64)


def _losses(
    U: FloatArray, cross: FloatArray, gram: FloatArray, ridge: float, n_rows: int, is_silent: npt.NDArray[np.bool_]
) -> FloatArray:
    """h_m = |Phi_m - V U_m^T|^2 + lambda |U_m|^2, without walking the rows."""
    by_feature = np.sum(U * (U @ gram + ridge * U - 2 * cross), axis=1)
    losses = np.where(is_silent, 0.0, n_rows) + by_feature.reshape(len(is_silent), -1).sum(axis=1)
    return np.asarray(np.maximum(losses, SMALLEST_LOSS * n_rows), dtype=np.float64)


def _best_weights(losses: FloatArray, is_silent: npt.NDArray[np.bool_], power: float) -> tuple[FloatArray, float]:
    """mu_m proportional to h_m^(-1 / (t - 1)), and sum_m mu_m^t h_m; a view that says nothing gets no weight."""
    if is_silent.all():
        return np.full(len(losses), 1 / len(losses)), 0.0
    ease = np.where(is_silent, 0.0, (losses / losses[~is_silent].min()) ** (-1 / (power - 1)))
    mu = ease / ease.sum()
    return mu, float(np.sum(mu**power * np.where(is_silent, 0.0, losses)))
