"""RPCA-ITQ: principal components that do not believe every view of every item, rotated towards bits."""

from __future__ import annotations

from typing import Any

from quorumhash.checks import check_count, check_switch
from quorumhash.engines import Engine, Rows
from quorumhash.hashers.base import About, BaseHasher
from quorumhash.scaling import Scaling
from quorumhash.steps.bounds import Bound, learn_bounds, map_views
from quorumhash.steps.components import BitProjection, check_bit_projection, learn_bit_projection, project
from quorumhash.steps.subspace import Subspace, check_subspace, learn_subspace, mended_by_subspace
from quorumhash.views import Views

LENGTH_LIMIT = 1.3  # times a view's median row


class RobustPCAHasher(BaseHasher):
    """Robust principal components and iterative quantization: views far from what the others imply are mended.

    Items lie near a subspace of the joined views. An item's place in it is estimated from its views, each weighted by
    how well the place fits it (`quorumhash.steps.agreement`), in a few rounds; out-of-line views move to what the place
    implies, absent ones are filled in. The subspace is learned on rows so mended, in a few rounds. New items are
    treated alike.

        x_m (d_m,) views, w_m weights, C_m (d_m, q) directions, l (q,) variances along them, v variance of the rest
        place u = (sum_m w_m C_m^T C_m + v diag(1/l))^-1 sum_m w_m C_m^T x_m;   implied view u C_m^T

    Parameters
    ----------
    n_bits : int
        Bits per code.
    rank : int
        Dimensions of the subspace (q); no more than a quarter of the features, or it would hold the damage too.
    rotate : bool
        Whether to rotate the principal components of the mended rows towards bits.
    random_state : int, generator or None
        Seed of the sample that scales are learned on, and of the rotation.

    Attributes
    ----------
    subspace_ : Subspace
        Scales of the views and the subspace.
    code_ : BitProjection
        Mended rows to scores.

    Examples
    --------
    >>> import numpy as np
    >>> views = {"colour": np.eye(4), "shape": np.arange(8.0).reshape(4, 2)}
    >>> RobustPCAHasher(n_bits=3).fit(views).transform(views, packed=False).shape
    (4, 3)
    """

    about = About(year=None, fit_cost="N d^2 + d^3 a round", encode_cost="d q + M q^2 + d P")
    learned = ("subspace_", "code_")
    parts = (Scaling, Bound, Subspace, BitProjection)

    def __init__(self, n_bits: int = 64, *, rank: int = 16, rotate: bool = True, random_state: Any = 0) -> None:
        self.n_bits = n_bits
        self.rank = rank
        self.rotate = rotate
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_count("rank", self.rank, 1, self)
        check_switch("rotate", self.rotate, self)

    def _check_state(self) -> None:
        check_subspace(self.subspace_, tuple(self.view_widths_.values()))
        check_bit_projection(self.code_, self.n_features_in_, self.n_bits_)

    def _state_bytes(self, views: Views) -> int:
        return len(views) * 8 * (2 * views.shape[1] + self.n_bits)

    def _fit(self, views: Views, engine: Engine, seed: int) -> None:
        bounds, sample = learn_bounds(views, engine, seed, LENGTH_LIMIT)
        rank = max(1, min(self.rank, views.shape[1] // 4))
        self.subspace_, mended = learn_subspace(views, tuple(bounds.values()), sample, rank, engine)
        self.code_ = learn_bit_projection(mended, self.n_bits, engine, seed, rotate=self.rotate)

    def _scores(self, views: Views, engine: Engine) -> Rows:
        scores: Rows = map_views(_score_rows, (self.subspace_, self.code_), views, engine)
        return scores


def _score_rows(model: tuple[Subspace, BitProjection], present: Any, *blocks: Any) -> Any:
    space, code = model
    return project(code, mended_by_subspace(space, present, *blocks))
