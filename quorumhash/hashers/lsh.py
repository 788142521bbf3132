"""LSH: signs of random projections of the joined views."""

from __future__ import annotations

from typing import Any

from quorumhash.checks import check_scalings, check_shape
from quorumhash.engines import Engine, Rows
from quorumhash.hashers.base import About, BaseHasher
from quorumhash.scaling import Scaling, learn_scalings, linear_scores
from quorumhash.views import Views


class LSHHasher(BaseHasher):
    """Locality-sensitive hashing: each bit is the side of a random hyperplane through the mean of the joined views.

    Nothing is learned but the views' means and scales. Missing values and views count as the mean.

        x (d,)  the views of an item side by side, centred and scaled;  A (d, P) standard normal;  bits = sign(x A)

    Parameters
    ----------
    n_bits : int
        Bits per code.
    random_state : int, generator or None
        Seed of the hyperplanes.

    Attributes
    ----------
    scalings_ : dict of str to Scaling
        Mean and factor of every view.
    projection_ : array (n_features, n_bits)
        The hyperplanes' normals.

    References
    ----------
    M. Charikar, "Similarity estimation techniques from rounding algorithms", STOC 2002.

    Examples
    --------
    >>> import numpy as np
    >>> views = {"colour": np.eye(4), "shape": np.arange(8.0).reshape(4, 2)}
    >>> LSHHasher(n_bits=12).fit(views).transform(views).shape
    (4, 2)
    """

    about = About(year=2002, fit_cost="N d", encode_cost="d P", rotation="no: directions are random")
    learned = ("scalings_", "projection_")
    parts = (Scaling,)

    def __init__(self, n_bits: int = 64, *, random_state: Any = 0) -> None:
        self.n_bits = n_bits
        self.random_state = random_state

    def _check_state(self) -> None:
        check_scalings(self.scalings_, self.view_widths_)
        check_shape(self.projection_, (self.n_features_in_, self.n_bits_))

    def _fit(self, views: Views, engine: Engine, seed: int) -> None:
        self.scalings_ = learn_scalings(views, engine)
        self.projection_ = engine.random(seed).standard_normal((views.shape[1], self.n_bits))

    def _scores(self, views: Views, engine: Engine) -> Rows:
        return linear_scores(views, self.scalings_, self.projection_, engine)
