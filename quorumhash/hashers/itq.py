"""ITQ: principal components of the joined views, rotated towards bits."""

from __future__ import annotations

from typing import Any

from quorumhash.checks import check_count, check_scalings, check_shape
from quorumhash.engines import Engine, Rows
from quorumhash.hashers.base import About, BaseHasher
from quorumhash.proximal import rotate_to_bits
from quorumhash.scaling import Scaling, joined_scores, learn_scalings, linear_scores, put_views
from quorumhash.steps.directions import joined_scatter, pad_columns, principal_directions
from quorumhash.views import Views


class ITQHasher(BaseHasher):
    """Iterative quantization of the joined views: the strongest simple rival, and the one to beat.

    Missing values and views count as the mean.

        x (d,)  the views of an item side by side, centred and scaled
        C (d, P)  the P principal directions;  R (P, P)  minimises |sign(X C R) - X C R|;  bits = sign(x C R)

    Parameters
    ----------
    n_bits : int
        Bits per code, at most the number of features of all views together.
    n_steps : int
        Rotation steps.
    random_state : int, generator or None
        Seed of the first rotation.

    Attributes
    ----------
    scalings_ : dict of str to Scaling
        Mean and factor of every view.
    projection_ : array (n_features, n_bits)
        Principal directions times rotation.

    References
    ----------
    Y. Gong and S. Lazebnik, "Iterative quantization: a Procrustean approach to learning binary codes", CVPR 2011.

    Examples
    --------
    >>> import numpy as np
    >>> views = {"colour": np.eye(4), "shape": np.arange(8.0).reshape(4, 2)}
    >>> ITQHasher(n_bits=3).fit(views).transform(views, packed=False).shape
    (4, 3)
    """

    about = About(
        year=2011, fit_cost="N d^2 + d^3 + 50 N P^2", encode_cost="d P", rotation="always; pcah is what it rotates"
    )
    learned = ("scalings_", "projection_")
    parts = (Scaling,)

    def __init__(self, n_bits: int = 64, *, n_steps: int = 50, random_state: Any = 0) -> None:
        self.n_bits = n_bits
        self.n_steps = n_steps
        self.random_state = random_state

    def handles(self, views: Views) -> tuple[bool, str]:
        """Principal components are at most as many as features."""
        n_features = views.shape[1]
        return self.n_bits <= n_features, (
            f"n_bits must be at most the number of features of all views together ({n_features}), got {self.n_bits}; "
            "use fewer bits, or lsh, which has no such limit."
        )

    def _check_parameters(self) -> None:
        check_count("n_steps", self.n_steps, 0, self)

    def _check_state(self) -> None:
        check_scalings(self.scalings_, self.view_widths_)
        check_shape(self.projection_, (self.n_features_in_, self.n_bits_))

    def _fit(self, views: Views, engine: Engine, seed: int) -> None:
        self.scalings_ = learn_scalings(views, engine)
        scalings = tuple(self.scalings_.values())
        rows = put_views(views, engine)
        directions = principal_directions(engine.sum_rows(joined_scatter, scalings, *rows), self.n_bits)
        directions = pad_columns(directions, self.n_bits)  # data may have fewer dimensions than features
        scores = engine.map_rows(joined_scores, scalings, directions, *rows)
        self.projection_ = directions @ rotate_to_bits(scores, self.n_bits, engine, seed, self.n_steps)

    def _scores(self, views: Views, engine: Engine) -> Rows:
        return linear_scores(views, self.scalings_, self.projection_, engine)
