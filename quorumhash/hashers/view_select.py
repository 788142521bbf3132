"""View selection: the views that agree on who is near whom, kernel principal components of these, rotated to bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace

from quorumhash.checks import check_landmarks, check_shape, check_switch, require
from quorumhash.engines import Engine, Rows
from quorumhash.hashers.base import About, BaseHasher
from quorumhash.kernelspace import ViewKernel, check_kernel, kernels_of_distances, landmark_distances, landmark_matrix
from quorumhash.landmarks import landmarks_for_bits, refuse_rare_views, sample_scaled, shared_landmarks
from quorumhash.overlap import excess_lift, neighbourhood_lift, view_worth
from quorumhash.querykernel import weighted_mean
from quorumhash.scaling import Scaling, learn_scalings
from quorumhash.similarity import kernel_bandwidth, squared_distances
from quorumhash.steps.bounds import map_views
from quorumhash.steps.components import BitProjection, check_bit_projection, learn_bit_projection, project
from quorumhash.steps.directions import SMALLEST_OF_KERNEL, whitening
from quorumhash.views import Views

FloatArray = npt.NDArray[np.float64]

UNCHOSEN = 1e-3  # what a view that was not chosen counts in the landmarks, ...
LAST_RESORT = 1e-9  # ... and in the kernel of an item: it speaks where none of the chosen does


@dataclass(frozen=True)
class MeanKernel:
    """Kernels of the views to shared landmarks, their weights in the mean kernel (M,), whitening (R, r)."""

    kernels: tuple[ViewKernel, ...]
    weights: FloatArray
    whitening: FloatArray


class ViewSelectHasher(BaseHasher):
    """Leave the weak views out: kernel PCA and iterative quantization of the views that share neighbourhoods.

    Views are ordered by worth (`quorumhash.overlap`); of the first 1, 2, .. M the set with the largest
    (sum over pairs of excess lift) / (number of views)^1.5 is kept. That is half-way between the mean over pairs, which
    always keeps two, and the mean over views, which keeps nearly all. The mean of the kept views' kernels to shared
    landmarks is hashed. Views left out speak only for items that have none of the kept ones.

    Parameters
    ----------
    n_bits : int
        Bits per code.
    n_landmarks : int, optional
        Shared landmarks; from the number of rows where not given (`default_n_landmarks`, at least 2 n_bits).
    rotate : bool
        Whether to rotate the kernel principal components towards bits.
    random_state : int, generator or None
        Seed of sample, landmarks and rotation.

    Attributes
    ----------
    chosen_views_ : list of str
        Views that are used, the worthiest first.
    view_worth_ : array (n_views,)
        Worth of the views, in their order.
    kernel_ : MeanKernel
        Kernels of the views and how they are joined.
    code_ : BitProjection
        Kernel features to scores.

    Examples
    --------
    >>> import numpy as np
    >>> points, noise = np.random.default_rng(0).standard_normal((2, 100, 3))
    >>> ViewSelectHasher(n_bits=8).fit({"a": points, "noise": noise, "b": points**3}).chosen_views_
    ['a', 'b']
    """

    about = About(year=None, fit_cost="N R (d + R) + R^3", encode_cost="d R + R P")
    learned = ("kernel_", "code_")
    told = ("chosen_views_", "view_worth_")
    parts = (Scaling, ViewKernel, MeanKernel, BitProjection)

    def __init__(
        self, n_bits: int = 64, *, n_landmarks: int | None = None, rotate: bool = True, random_state: Any = 0
    ) -> None:
        self.n_bits = n_bits
        self.n_landmarks = n_landmarks
        self.rotate = rotate
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_switch("rotate", self.rotate, self)
        check_landmarks(self)

    def _check_state(self) -> None:
        kernel, widths = self.kernel_, tuple(self.view_widths_.values())
        require(isinstance(kernel, MeanKernel) and len(kernel.kernels) == len(widths))
        check_shape(kernel.weights, (len(widths),))
        check_shape(kernel.whitening, (None, None))
        require((kernel.weights > 0).all())
        for part, width in zip(kernel.kernels, widths, strict=True):
            check_kernel(part, len(kernel.whitening), width)
        check_bit_projection(self.code_, kernel.whitening.shape[1], self.n_bits_)

    def _state_bytes(self, views: Views) -> int:
        return len(views) * 8 * (landmarks_for_bits(self.n_landmarks, self.n_bits, len(views)) + self.n_bits)

    def _fit(self, views: Views, engine: Engine, seed: int) -> None:
        scalings = learn_scalings(views, engine)
        sample, present = sample_scaled(views, scalings, engine, seed)
        refuse_rare_views(views, present)
        lift = neighbourhood_lift(sample, present, seed=seed)
        chosen = best_prefix(lift)
        self.view_worth_ = view_worth(lift)
        self.chosen_views_ = [views.names[m] for m in chosen]
        counts = {name: 1.0 if name in self.chosen_views_ else UNCHOSEN for name in views}
        placed = {name: np.asarray(part * np.float32(counts[name])) for name, part in sample.items()}
        landmarks = shared_landmarks(
            placed, present, landmarks_for_bits(self.n_landmarks, self.n_bits, len(views)), "kmeans", seed
        )
        kernels = []
        for m, name in enumerate(views):
            points = landmarks[name] / np.float32(counts[name])
            squares = squared_distances(sample[name][present[:, m]], points)
            kernels.append(ViewKernel(scalings[name], points, kernel_bandwidth(squares)))
        weights = np.array([1.0 if name in self.chosen_views_ else LAST_RESORT for name in views])
        self.kernel_ = MeanKernel(tuple(kernels), weights, _whitening(kernels, weights))
        features = map_views(_features, self.kernel_, views, engine)
        self.code_ = learn_bit_projection(features, self.n_bits, engine, seed, rotate=self.rotate)

    def _scores(self, views: Views, engine: Engine) -> Rows:
        scores: Rows = map_views(_score_rows, (self.kernel_, self.code_), views, engine)
        return scores


def best_prefix(lift: FloatArray) -> list[int]:
    """Positions of the views to keep, the worthiest first; all of them where no two agree beyond chance."""
    excess, order = excess_lift(lift), np.argsort(-view_worth(lift), kind="stable")
    if not excess.any():
        return list(range(len(lift)))
    values = [excess[np.ix_(order[:n], order[:n])].sum() / n**1.5 for n in range(1, len(order) + 1)]
    return [int(m) for m in order[: int(np.argmax(values)) + 1]]


def _whitening(kernels: list[ViewKernel], weights: FloatArray) -> FloatArray:
    """K_zz^(-1/2) of the landmarks' mean kernel (R, R), its directions that are rounding left out."""
    matrices = landmark_matrix(tuple(kernels))
    mean = sum(w * k.astype(np.float64) for w, k in zip(weights, matrices, strict=True)) / weights.sum()
    return whitening(mean, smallest=SMALLEST_OF_KERNEL)


def _features(kernel: MeanKernel, present: Any, *blocks: Any) -> Any:
    """Features (n, r) whose products are those of the mean kernel, as far as the landmarks see it (Nystrom)."""
    parts = kernels_of_distances(kernel.kernels, landmark_distances(kernel.kernels, *blocks))
    xp = array_namespace(present)
    return weighted_mean(xp.astype(present, xp.float64) * kernel.weights, *parts) @ kernel.whitening


def _score_rows(model: tuple[MeanKernel, BitProjection], present: Any, *blocks: Any) -> Any:
    kernel, code = model
    return project(code, _features(kernel, present, *blocks))
