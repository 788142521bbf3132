"""SH: spectral hashing, waves along the principal components of the joined views."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace

from quorumhash.checks import check_scalings, check_shape, require
from quorumhash.engines import Engine, Rows
from quorumhash.hashers.base import About, BaseHasher
from quorumhash.scaling import Scaling, joined_scores, learn_scalings, put_views
from quorumhash.steps.directions import joined_scatter, principal_directions
from quorumhash.views import Views

FloatArray = npt.NDArray[np.float64]


class SpectralHasher(BaseHasher):
    """Spectral hashing: each bit is the sign of a wave along one principal direction of the joined views.

    The waves are the eigenfunctions of the Laplacian on a box with the extent of the training data, the slowest first;
    wide directions get several bits. They lie along the axes, so a rotation would leave the method. There are as many
    waves as bits, whatever the data. Missing values and views count as the mean; an item outside the box counts as on
    its edge (the original lets the wave run on).

        x (d,)  the views of an item side by side, centred and scaled;  c_j (d,)  j-th principal direction
        [a_j, a_j + r_j]  extent of x c_j over the training rows
        bit (j, k) = sign cos(k pi (x c_j - a_j) / r_j),  the P smallest k / r_j

    Parameters
    ----------
    n_bits : int
        Bits per code.
    random_state : int, generator or None
        Not used, nothing is drawn; there for the common contract.

    Attributes
    ----------
    scalings_ : dict of str to Scaling
        Mean and factor of every view.
    projection_ : array (n_features, n_bits)
        k pi c_j / r_j of every bit.
    phases_ : array (n_bits,)
        k pi a_j / r_j of every bit.
    last_angles_ : array (n_bits,)
        k pi of every bit, the wave's angle at the far edge of the box.

    References
    ----------
    Y. Weiss, A. Torralba and R. Fergus, "Spectral hashing", NIPS 2008.

    Examples
    --------
    >>> import numpy as np
    >>> views = {"colour": np.eye(4), "shape": np.arange(8.0).reshape(4, 2)}
    >>> SpectralHasher(n_bits=12).fit(views).transform(views).shape
    (4, 2)
    """

    about = About(year=2008, fit_cost="N d^2 + d^3", encode_cost="d P", rotation="no: waves lie along the axes")
    learned = ("scalings_", "projection_", "phases_", "last_angles_")
    parts = (Scaling,)

    def __init__(self, n_bits: int = 64, *, random_state: Any = 0) -> None:
        self.n_bits = n_bits
        self.random_state = random_state

    def _check_state(self) -> None:
        check_scalings(self.scalings_, self.view_widths_)
        check_shape(self.projection_, (self.n_features_in_, self.n_bits_))
        check_shape(self.phases_, (self.n_bits_,))
        check_shape(self.last_angles_, (self.n_bits_,))
        require((self.last_angles_ > 0).all())

    def _fit(self, views: Views, engine: Engine, seed: int) -> None:  # noqa: ARG002
        self.scalings_ = learn_scalings(views, engine)
        scalings, rows = tuple(self.scalings_.values()), put_views(views, engine)
        directions = principal_directions(engine.sum_rows(joined_scatter, scalings, *rows), self.n_bits)
        lows, highs = (engine.get(part) for part in engine.map_rows(_extremes, scalings, directions, *rows))
        starts = lows.min(axis=0)
        extents = highs.max(axis=0) - starts
        extents[extents == 0] = 1.0  # all rows alike: any wave will do
        axes, counts = slowest_waves(extents, self.n_bits)
        self.last_angles_ = np.pi * counts
        steps = self.last_angles_ / extents[axes]
        self.projection_, self.phases_ = directions[:, axes] * steps, starts[axes] * steps

    def _scores(self, views: Views, engine: Engine) -> Rows:
        scalings, rows = tuple(self.scalings_.values()), put_views(views, engine)
        scores: Rows = engine.map_rows(_waves, scalings, self.projection_, self.phases_, self.last_angles_, *rows)
        return scores


def slowest_waves(extents: FloatArray, n_waves: int) -> tuple[npt.NDArray[np.intp], FloatArray]:
    """Axis and number of half waves of the n_waves slowest eigenfunctions, (n_waves,) each; ties go to the first axis.

    >>> slowest_waves(np.array([3.0, 1.6]), 3)
    (array([0, 1, 0]), array([1., 1., 2.]))
    """
    # the widest axis alone has n_waves of them, all slower than the last of these counts on the others
    counts = np.ceil((n_waves + 1) * extents / extents.max()).astype(np.intp)
    axes = np.repeat(np.arange(len(extents)), counts)
    halves = np.concatenate([np.arange(1.0, count + 1.0) for count in counts])
    slowest = np.argsort(halves / extents[axes], kind="stable")[:n_waves]
    return axes[slowest], halves[slowest]


def _extremes(scalings: tuple[Scaling, ...], directions: Any, *blocks: Any) -> Any:
    scores = joined_scores(scalings, directions, *blocks)
    xp = array_namespace(scores)
    return xp.min(scores, axis=0)[None, :], xp.max(scores, axis=0)[None, :]


def _waves(scalings: tuple[Scaling, ...], projection: Any, phases: Any, last_angles: Any, *blocks: Any) -> Any:
    angles = joined_scores(scalings, projection, *blocks) - phases
    xp = array_namespace(angles)
    return xp.cos(xp.minimum(xp.maximum(angles, xp.zeros_like(angles)), last_angles))
