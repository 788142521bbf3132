"""Vote: each view predicts the bits of one shared code, the majority decides."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from quorumhash.checks import check_landmarks, check_switch
from quorumhash.engines import Engine, Rows
from quorumhash.hashers.base import About, BaseHasher
from quorumhash.kernelspace import put_presence
from quorumhash.proximal import signs
from quorumhash.scaling import Scaling, put_views
from quorumhash.steps.bounds import Bound, bounded_rows, check_bounds, joined_bounded, learn_bounds, map_views
from quorumhash.steps.components import BitProjection, learn_bit_projection, project
from quorumhash.steps.kernelridge import (
    LandmarkKernel,
    Predictor,
    check_predictors,
    kernel_rows,
    learn_kernels,
    learn_predictor,
    predict,
)
from quorumhash.views import Views

STEEPNESS = 3.0  # of a vote: a prediction of a third of a bit counts nearly in full


class VoteHasher(BaseHasher):
    """One shared code, learned by iterative quantization; every view predicts its bits, and the majority decides.

    A damaged view of an item is one wrong vote. Votes are soft, so that ties fall to the views that are surer.

        t (P,)  bits of the shared code, 1 or -1;  f_m  ridge regression of t on the kernel of view m to its landmarks
        score = mean over the item's views of tanh(3 f_m(x_m))

    Parameters
    ----------
    n_bits : int
        Bits per code.
    rotate : bool
        Whether to rotate the shared code's principal components towards bits.
    n_landmarks : int, optional
        Landmarks of each view; from the number of rows where not given (`default_n_landmarks`).
    random_state : int, generator or None
        Seed of sample, landmarks and rotation.

    Attributes
    ----------
    bounds_ : list of Bound
        Scale and length limit of every view.
    voters_ : list of Predictor
        The regression of every view.

    Examples
    --------
    >>> import numpy as np
    >>> views = {"colour": np.eye(4), "shape": np.arange(8.0).reshape(4, 2)}
    >>> VoteHasher(n_bits=3).fit(views).transform(views, packed=False).shape
    (4, 3)
    """

    about = About(year=None, fit_cost="N d^2 + N L (d + M L)", encode_cost="d L + M L P")
    learned = ("bounds_", "voters_")
    parts = (Scaling, Bound, LandmarkKernel, Predictor)

    def __init__(
        self, n_bits: int = 64, *, rotate: bool = True, n_landmarks: int | None = None, random_state: Any = 0
    ) -> None:
        self.n_bits = n_bits
        self.rotate = rotate
        self.n_landmarks = n_landmarks
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_switch("rotate", self.rotate, self)
        check_landmarks(self)

    def _check_state(self) -> None:
        widths = tuple(self.view_widths_.values())
        check_bounds(self.bounds_, widths)
        check_predictors(self.voters_, widths, self.n_bits_)

    def _state_bytes(self, views: Views) -> int:
        return len(views) * 8 * (views.shape[1] + 2 * self.n_bits)

    def _fit(self, views: Views, engine: Engine, seed: int) -> None:
        bounds, sample = learn_bounds(views, engine, seed)
        self.bounds_ = list(bounds.values())
        given, present = put_views(views, engine), put_presence(views, engine)
        joined = engine.map_rows(joined_bounded, tuple(self.bounds_), *given)
        code = learn_bit_projection(joined, self.n_bits, engine, seed, rotate=self.rotate)
        targets = engine.map_rows(_bits, code, joined)
        self.voters_ = []
        for m, kernel in enumerate(learn_kernels(sample, len(views), self.n_landmarks, seed)):
            features = engine.map_rows(_kernel_of_view, self.bounds_[m], kernel, given[m])
            self.voters_.append(learn_predictor(kernel, m, features, targets, present, engine))

    def _scores(self, views: Views, engine: Engine) -> Rows:
        scores: Rows = map_views(_votes, (tuple(self.bounds_), tuple(self.voters_)), views, engine)
        return scores


def _bits(code: BitProjection, joined: Any) -> Any:
    return signs(project(code, joined))


def _kernel_of_view(bound: Bound, kernel: LandmarkKernel, block: Any) -> Any:
    return kernel_rows(kernel, bounded_rows((bound,), block)[0])


def _votes(model: tuple[tuple[Bound, ...], tuple[Predictor, ...]], present: Any, *blocks: Any) -> Any:
    bounds, voters = model
    xp = array_namespace(present)
    held = xp.astype(present, xp.float64)
    total = 0.0
    for m, rows in enumerate(bounded_rows(bounds, *blocks)):
        total = total + held[:, m, None] * xp.tanh(STEEPNESS * predict(voters[m], rows))
    return total / xp.sum(held, axis=1)[:, None]
