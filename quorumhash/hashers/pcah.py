"""PCAH: signs of the principal components of the joined views."""

from __future__ import annotations

from typing import Any

from quorumhash.checks import check_scalings, check_shape, check_switch
from quorumhash.engines import Engine, Rows
from quorumhash.hashers.base import About, BaseHasher
from quorumhash.scaling import Scaling, joined_scores, learn_scalings, linear_scores, put_views
from quorumhash.steps.directions import joined_scatter, mixing_for_bits, principal_directions
from quorumhash.views import Views


class PCAHasher(BaseHasher):
    """PCA hashing: each bit is the side of the mean along one principal direction of the joined views.

    Missing values and views count as the mean.

        x (d,)  the views of an item side by side, centred and scaled
        C (d, P)  the P principal directions;  bits = sign(x C)

    Where the data have fewer than P dimensions, the directions serve again in seeded random rotations.

    Parameters
    ----------
    n_bits : int
        Bits per code.
    rotate : bool
        Rotate the components towards bits. False is the published method; True makes it ITQ.
    random_state : int, generator or None
        Seed of the rotation, and of the bits above the number of dimensions; nothing else is drawn.

    Attributes
    ----------
    scalings_ : dict of str to Scaling
        Mean and factor of every view.
    projection_ : array (n_features, n_bits)
        Principal directions, rotated or not.

    References
    ----------
    J. Wang, S. Kumar and S.-F. Chang, "Semi-supervised hashing for scalable image retrieval", CVPR 2010 (its
    unsupervised part).

    Examples
    --------
    >>> import numpy as np
    >>> views = {"colour": np.eye(4), "shape": np.arange(8.0).reshape(4, 2)}
    >>> PCAHasher(n_bits=3).fit(views).transform(views, packed=False).shape
    (4, 3)
    """

    about = About(year=2010, fit_cost="N d^2 + d^3", encode_cost="d P")
    learned = ("scalings_", "projection_")
    parts = (Scaling,)

    def __init__(self, n_bits: int = 64, *, rotate: bool = False, random_state: Any = 0) -> None:
        self.n_bits = n_bits
        self.rotate = rotate
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_switch("rotate", self.rotate, self)

    def _check_state(self) -> None:
        check_scalings(self.scalings_, self.view_widths_)
        check_shape(self.projection_, (self.n_features_in_, self.n_bits_))

    def _state_bytes(self, views: Views) -> int:
        return 8 * len(views) * self.n_bits if self.rotate else 0

    def _fit(self, views: Views, engine: Engine, seed: int) -> None:
        self.scalings_ = learn_scalings(views, engine)
        scalings, rows = tuple(self.scalings_.values()), put_views(views, engine)
        directions = principal_directions(engine.sum_rows(joined_scatter, scalings, *rows), self.n_bits)
        self.projection_ = directions @ mixing_for_bits(
            lambda: engine.map_rows(joined_scores, scalings, directions, *rows),
            directions.shape[1], self.n_bits, rotate=self.rotate, engine=engine, seed=seed,
        )  # fmt: skip

    def _scores(self, views: Views, engine: Engine) -> Rows:
        return linear_scores(views, self.scalings_, self.projection_, engine)
