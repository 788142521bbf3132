"""GCCA-ITQ: what all views can agree on linearly, rotated towards bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace

from quorumhash.checks import check_positive, check_shape, check_switch
from quorumhash.engines import Engine, Rows
from quorumhash.hashers.base import About, BaseHasher
from quorumhash.kernelspace import put_presence
from quorumhash.scaling import Scaling, put_views
from quorumhash.steps.bounds import Bound, check_bounds, joined_bounded, learn_bounds, map_views
from quorumhash.steps.components import BitProjection, check_bit_projection, learn_bit_projection, project
from quorumhash.steps.directions import principal_pairs
from quorumhash.views import Views

FloatArray = npt.NDArray[np.float64]


class GCCAHasher(BaseHasher):
    """Generalised canonical correlation (MAX-VAR) and iterative quantization of the mean variates of an item's views.

        G (N, P), U_m (d_m, P)   min  sum_m |G - X_m U_m|^2 + r_m |U_m|^2 over the items each view has,   G^T D G = I
        D  the number of views of every item;  code from the mean of x_m U_m over an item's views

    The more the views agree on a dimension, the more it varies in the mean. G solves an eigenproblem of N rows, found
    here through one of the size of the joined features.

    Parameters
    ----------
    n_bits : int
        Bits per code.
    ridge : float
        r_m relative to the mean variance of the view's features. Small ridges trust directions of little variance.
    rotate : bool
        Whether to rotate the variates towards bits.
    random_state : int, generator or None
        Seed of the sample that bounds row lengths, and of the rotation.

    Attributes
    ----------
    bounds_ : list of Bound
        Scale and length limit of every view.
    variates_ : array (n_features, n_variates)
        U_1 .. U_M, one below the other.
    code_ : BitProjection
        Mean variates to scores.

    References
    ----------
    J. R. Kettenring, "Canonical analysis of several sets of variables", Biometrika 1971.

    Examples
    --------
    >>> import numpy as np
    >>> views = {"colour": np.eye(4), "shape": np.arange(8.0).reshape(4, 2)}
    >>> GCCAHasher(n_bits=3).fit(views).transform(views, packed=False).shape
    (4, 3)
    """

    about = About(year=1971, fit_cost="N d^2 + d^3", encode_cost="d P")
    learned = ("bounds_", "variates_", "code_")
    parts = (Scaling, Bound, BitProjection)

    def __init__(self, n_bits: int = 64, *, ridge: float = 1.0, rotate: bool = True, random_state: Any = 0) -> None:
        self.n_bits = n_bits
        self.ridge = ridge
        self.rotate = rotate
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_switch("rotate", self.rotate, self)
        check_positive("ridge", self.ridge, self)

    def _check_state(self) -> None:
        check_bounds(self.bounds_, tuple(self.view_widths_.values()))
        check_shape(self.variates_, (self.n_features_in_, None))
        check_bit_projection(self.code_, self.variates_.shape[1], self.n_bits_)

    def _state_bytes(self, views: Views) -> int:
        return len(views) * 16 * self.n_bits

    def _fit(self, views: Views, engine: Engine, seed: int) -> None:
        bounds, _ = learn_bounds(views, engine, seed)
        self.bounds_ = list(bounds.values())
        present, given = put_presence(views, engine), put_views(views, engine)
        scatter, mean_scatter = engine.sum_rows(_scatters, tuple(self.bounds_), present, *given)
        self.variates_ = max_var(scatter, mean_scatter, list(views.widths.values()), self.n_bits, float(self.ridge))
        variates = map_views(_mean_variates, (tuple(self.bounds_), self.variates_), views, engine)
        self.code_ = learn_bit_projection(variates, self.n_bits, engine, seed, rotate=self.rotate)

    def _scores(self, views: Views, engine: Engine) -> Rows:
        scores: Rows = map_views(_score_rows, (tuple(self.bounds_), self.variates_, self.code_), views, engine)
        return scores


def max_var(
    scatter: FloatArray, mean_scatter: FloatArray, widths: list[int], n_variates: int, ridge: float
) -> FloatArray:
    """The views' projections U (sum of d, p), one below the other, p at most n_variates.

    X (N, sum of d) the joined views, 0 where absent;  scatter = X^T X;  mean_scatter = X^T D^-1 X
    W  block diagonal, W_m = (X_m^T X_m + r_m)^(-1/2);  W mean_scatter W = V diag(l) V^T;  U = W V diag(l)^(1/2)
    """
    W = np.zeros_like(scatter)
    for start, width in zip(np.cumsum([0, *widths]), widths, strict=False):
        block = slice(start, start + width)
        values, vectors = np.linalg.eigh(scatter[block, block])
        damped = np.maximum(values, 0.0) + (ridge * np.mean(values) or 1.0)  # a constant view has no variance at all
        W[block, block] = (vectors * damped**-0.5) @ vectors.T
    shares, directions = principal_pairs(W @ mean_scatter @ W, n_variates)
    return W @ directions * np.sqrt(shares) if len(shares) else np.zeros((len(W), 1))  # none: all rows are alike


def _scatters(bounds: tuple[Bound, ...], present: Any, *blocks: Any) -> Any:
    xp = array_namespace(present)
    joined = joined_bounded(bounds, *blocks)
    n_views = xp.sum(xp.astype(present, xp.float64), axis=1)
    return joined.T @ joined, joined.T @ (joined / n_views[:, None])


def _mean_variates(model: tuple[tuple[Bound, ...], Any], present: Any, *blocks: Any) -> Any:
    xp = array_namespace(present)
    bounds, variates = model
    return joined_bounded(bounds, *blocks) @ variates / xp.sum(xp.astype(present, xp.float64), axis=1)[:, None]


def _score_rows(model: tuple[tuple[Bound, ...], Any, BitProjection], present: Any, *blocks: Any) -> Any:
    bounds, variates, code = model
    return project(code, _mean_variates((bounds, variates), present, *blocks))
