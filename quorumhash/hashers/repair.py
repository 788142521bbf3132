"""Repair-ITQ: views out of line with the other views are replaced by what those predict, then plain ITQ."""

from __future__ import annotations

from typing import Any

from quorumhash.checks import check_count, check_landmarks, check_switch
from quorumhash.engines import Engine, Rows
from quorumhash.hashers.base import About, BaseHasher
from quorumhash.landmarks import default_n_landmarks
from quorumhash.scaling import Scaling
from quorumhash.steps.bounds import Bound, learn_bounds, map_views
from quorumhash.steps.components import BitProjection, check_bit_projection, learn_bit_projection, project
from quorumhash.steps.crossview import CrossView, check_cross_view, learn_cross_view, mended_by_views
from quorumhash.steps.kernelridge import LandmarkKernel, Predictor
from quorumhash.views import Views

LENGTH_LIMIT = 2.0  # times a view's median row; a tighter limit would hide noise from the comparison


class RepairITQHasher(BaseHasher):
    """Cross-view repair and iterative quantization.

    Every view predicts the principal components of all views, by ridge regression on kernels to its landmarks. The
    predictions for a view from the others are averaged, weighted by their precision and by how far their own view is
    in line; a view far from this average loses its weight (`quorumhash.steps.agreement`). After three rounds it is
    replaced by the average as far as it lost weight, absent views wholly; the repaired views are hashed by ITQ. New
    items are repaired alike.

        z_m = x_m C_m (q_m,) components;  p_nm prediction of z_m by view n;  a_nm 1 / mean squared error of p_nm
        zhat_m = sum_{n != m} w_n a_nm p_nm / sum_{n != m} w_n a_nm;   repaired x_m = w_m x_m + (1 - w_m) zhat_m C_m^T

    Parameters
    ----------
    n_bits : int
        Bits per code.
    n_components : int
        Principal components of each view that are predicted.
    n_landmarks : int, optional
        Landmarks of each view; from the number of rows where not given (`default_n_landmarks`).
    rotate : bool
        Whether to rotate the principal components of the repaired views towards bits.
    random_state : int, generator or None
        Seed of sample, landmarks and rotation.

    Attributes
    ----------
    cross_view_ : CrossView
        Scales of the views, and what they say of each other.
    code_ : BitProjection
        Repaired rows to scores.

    Examples
    --------
    >>> import numpy as np
    >>> views = {"colour": np.eye(4), "shape": np.arange(8.0).reshape(4, 2)}
    >>> RepairITQHasher(n_bits=3).fit(views).transform(views, packed=False).shape
    (4, 3)
    """

    about = About(year=None, fit_cost="N d^2 + N L (d + M L)", encode_cost="d L + M L q + d P")
    learned = ("cross_view_", "code_")
    parts = (Scaling, Bound, LandmarkKernel, Predictor, CrossView, BitProjection)

    def __init__(
        self,
        n_bits: int = 64,
        *,
        n_components: int = 48,
        n_landmarks: int | None = None,
        rotate: bool = True,
        random_state: Any = 0,
    ) -> None:
        self.n_bits = n_bits
        self.n_components = n_components
        self.n_landmarks = n_landmarks
        self.rotate = rotate
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_count("n_components", self.n_components, 1, self)
        check_switch("rotate", self.rotate, self)
        check_landmarks(self)

    def _check_state(self) -> None:
        check_cross_view(self.cross_view_, tuple(self.view_widths_.values()))
        check_bit_projection(self.code_, self.n_features_in_, self.n_bits_)

    def _state_bytes(self, views: Views) -> int:
        kernels = 4 * len(views.names) * (self.n_landmarks or default_n_landmarks(len(views)))
        components = 8 * sum(min(self.n_components, width) for width in views.widths.values())
        return len(views) * (8 * (views.shape[1] + self.n_bits) + kernels + 3 * components)

    def _fit(self, views: Views, engine: Engine, seed: int) -> None:
        bounds, sample = learn_bounds(views, engine, seed, LENGTH_LIMIT)
        self.cross_view_ = learn_cross_view(
            views, tuple(bounds.values()), sample, engine, seed,
            n_components=self.n_components, n_landmarks=self.n_landmarks,
        )  # fmt: skip
        mended = map_views(mended_by_views, self.cross_view_, views, engine)
        self.code_ = learn_bit_projection(mended, self.n_bits, engine, seed, rotate=self.rotate)

    def _scores(self, views: Views, engine: Engine) -> Rows:
        scores: Rows = map_views(_score_rows, (self.cross_view_, self.code_), views, engine)
        return scores


def _score_rows(model: tuple[CrossView, BitProjection], present: Any, *blocks: Any) -> Any:
    cross, code = model
    return project(code, mended_by_views(cross, present, *blocks))
