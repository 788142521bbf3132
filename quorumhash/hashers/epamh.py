"""EPAMH: one binary code, one rotation per view, views weighted without a parameter."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.checks import check_count, check_scalings, check_shape
from quorumhash.engines import Engine, Rows
from quorumhash.hashers.base import About, BaseHasher
from quorumhash.proximal import decomposed, signs
from quorumhash.scaling import Scaling, learn_scalings, linear_scores, put_views, separate_rows
from quorumhash.steps.directions import pad_columns, principal_directions
from quorumhash.views import Views

FloatArray = npt.NDArray[np.float64]


class EPAMHHasher(BaseHasher):
    """Parameter-free multi-view iterative quantization: every view's components are rotated to one common code.

        V_m (N, P)  principal components of view m, padded with zero columns above its rank, |V_m|^2 = N P as |B|^2
        minimise over B in {-1, 1}, R_m orthogonal (P, P)   sum_m |B - V_m R_m|
        mu_m = |B - V_m R_m|;  B = sign(sum_m V_m R_m / mu_m);  R_m by Procrustes;  the sum falls in every step
        bits of an item = sign(sum_m v_m R_m / mu_m), with the training mu_m

    An absent view adds nothing to an item's sum.

    Departure: all V_m are brought to the size of B. As features come, mu_m would follow a view's unit; and where V_m is
    far smaller than B, mu_m is the same for all.

    Parameters
    ----------
    n_bits : int
        Bits per code.
    n_steps : int
        Steps of the alternation, at least 1.
    random_state : int, generator or None
        Seed of the first rotations.

    Attributes
    ----------
    scalings_ : dict of str to Scaling
        Mean and factor of every view.
    projection_ : array (n_features, n_bits)
        Directions times rotation over mu of every view, one below the other.
    history_ : list of float
        The objective after every step.

    References
    ----------
    C. Zheng et al., "Efficient parameter-free adaptive multi-modal hashing", IEEE Signal Processing Letters 2020.

    Examples
    --------
    >>> import numpy as np
    >>> views = {"colour": np.eye(4), "shape": np.arange(8.0).reshape(4, 2)}
    >>> EPAMHHasher(n_bits=12).fit(views).transform(views).shape
    (4, 2)
    """

    about = About(year=2020, fit_cost="N d^2 + 50 M N P^2", encode_cost="d P", rotation="always, one for each view")
    learned = ("scalings_", "projection_")
    told = ("history_",)
    parts = (Scaling,)

    def __init__(self, n_bits: int = 64, *, n_steps: int = 50, random_state: Any = 0) -> None:
        self.n_bits = n_bits
        self.n_steps = n_steps
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_count("n_steps", self.n_steps, 1, self)

    def _check_state(self) -> None:
        check_scalings(self.scalings_, self.view_widths_)
        check_shape(self.projection_, (self.n_features_in_, self.n_bits_))

    def _state_bytes(self, views: Views) -> int:
        return 8 * len(views) * len(views.names) * self.n_bits

    def _fit(self, views: Views, engine: Engine, seed: int) -> None:
        self.scalings_ = learn_scalings(views, engine)
        scalings, rows = tuple(self.scalings_.values()), put_views(views, engine)
        scatters = engine.sum_rows(_view_scatters, scalings, *rows)
        directions = tuple(sized_directions(scatter, self.n_bits, len(views)) for scatter in scatters)
        scores = engine.map_rows(_view_scores, scalings, directions, *rows)
        turns, self.history_ = turns_to_common_code(scores, self.n_bits, self.n_steps, engine, seed)
        self.projection_ = np.vstack([part @ turn for part, turn in zip(directions, turns, strict=True)])

    def _scores(self, views: Views, engine: Engine) -> Rows:
        return linear_scores(views, self.scalings_, self.projection_, engine)


def sized_directions(scatter: FloatArray, n_bits: int, n_rows: int) -> FloatArray:
    """Principal directions (d, n_bits) of one view, zero above its rank; the scores have mean square 1."""
    directions = principal_directions(scatter, n_bits)
    energy = float(np.sum(directions * (scatter @ directions)))
    padded: FloatArray = pad_columns(directions, n_bits)
    return padded * np.sqrt(n_rows * n_bits / energy) if energy > 0 else padded


def turns_to_common_code(
    scores: tuple[Rows, ...], n_bits: int, n_steps: int, engine: Engine, seed: int
) -> tuple[list[FloatArray], list[float]]:
    """R_m / mu_m (P, P) of every view after n_steps, and the objective after each of them.

    With R_m from B^T V_m = U S T^T, |B - V_m R_m|^2 = |B|^2 + |V_m|^2 - 2 tr S: one pass over the rows is one step.
    """
    generator, n_rows = engine.random(seed), scores[0].n_rows
    turns = [np.linalg.qr(generator.standard_normal((n_bits, n_bits)))[0] for _ in scores]
    squares = engine.sum_rows(_squares, *scores)
    history = []
    for _ in range(n_steps):
        products, mu = engine.sum_rows(_code_by_scores, tuple(turns), *scores), []
        for m, product in enumerate(products):
            left, values, right = decomposed(product)
            rest = n_rows * n_bits + float(squares[m]) - 2.0 * float(values.sum())
            mu.append(np.sqrt(max(rest, np.finfo(np.float64).tiny)))
            turns[m] = (left @ right).T / mu[m]
        history.append(float(sum(mu)))
    return turns, history


def _view_scatters(scalings: tuple[Scaling, ...], *blocks: Any) -> Any:
    parts = separate_rows(scalings, *blocks)
    return tuple(part.T @ part for part in parts)


def _view_scores(scalings: tuple[Scaling, ...], directions: tuple[Any, ...], *blocks: Any) -> Any:
    parts = separate_rows(scalings, *blocks)
    return tuple(part @ direction for part, direction in zip(parts, directions, strict=True))


def _squares(*scores: Any) -> Any:
    return tuple((part**2).sum() for part in scores)


def _code_by_scores(turns: tuple[Any, ...], *scores: Any) -> Any:
    """B^T V_m (P, P) of every view for one block, B = sign(sum_m V_m turn_m)."""
    total = sum(part @ turn for part, turn in zip(scores, turns, strict=True))
    code = signs(total)
    return tuple(code.T @ part for part in scores)
