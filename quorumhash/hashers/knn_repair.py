"""k-NN-repair-ITQ: every view becomes the median over the item's neighbours by most views, then plain ITQ."""

from __future__ import annotations

from typing import Any

from quorumhash.checks import check_count, check_switch
from quorumhash.engines import Engine, Rows
from quorumhash.hashers.base import About, BaseHasher
from quorumhash.scaling import Scaling
from quorumhash.steps.bounds import Bound, learn_bounds, map_views
from quorumhash.steps.components import BitProjection, check_bit_projection, learn_bit_projection, project
from quorumhash.steps.neighbourhood import Neighbourhood, check_neighbourhood, learn_neighbourhood, mended_by_neighbours
from quorumhash.views import Views

STORED_ROWS = 2000


class KnnRepairITQHasher(BaseHasher):
    """Repair by nearest neighbours and iterative quantization.

    The distance of an item to each of at most 2,000 stored training rows is the median over views of its scaled
    distances, which a minority of damaged views does not move. Every view of the item, absent ones too, becomes the
    feature-wise median over the nearest rows. This also smooths: items of one kind move together, fine differences
    are lost. New items are treated alike. With one view nothing is repaired.

    Parameters
    ----------
    n_bits : int
        Bits per code.
    n_neighbors : int
        Stored rows that the median is taken over.
    rotate : bool
        Whether to rotate the principal components of the repaired views towards bits.
    random_state : int, generator or None
        Seed of the stored sample and of the rotation.

    Attributes
    ----------
    neighbourhood_ : Neighbourhood
        Scales of the views, and the stored rows.
    code_ : BitProjection
        Repaired rows to scores.

    Examples
    --------
    >>> import numpy as np
    >>> views = {"colour": np.eye(4), "shape": np.arange(8.0).reshape(4, 2)}
    >>> KnnRepairITQHasher(n_bits=3).fit(views).transform(views, packed=False).shape
    (4, 3)
    """

    about = About(year=None, fit_cost="N d S + N d^2, S stored rows", encode_cost="d S")
    learned = ("neighbourhood_", "code_")
    parts = (Scaling, Bound, Neighbourhood, BitProjection)

    def __init__(self, n_bits: int = 64, *, n_neighbors: int = 10, rotate: bool = True, random_state: Any = 0) -> None:
        self.n_bits = n_bits
        self.n_neighbors = n_neighbors
        self.rotate = rotate
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_count("n_neighbors", self.n_neighbors, 1, self)
        check_switch("rotate", self.rotate, self)

    def _check_state(self) -> None:
        check_neighbourhood(self.neighbourhood_, tuple(self.view_widths_.values()))
        check_bit_projection(self.code_, self.n_features_in_, self.n_bits_)

    def _state_bytes(self, views: Views) -> int:
        return len(views) * 8 * (views.shape[1] + self.n_bits)

    def _fit(self, views: Views, engine: Engine, seed: int) -> None:
        bounds, sample = learn_bounds(views, engine, seed, limit=STORED_ROWS)
        self.neighbourhood_ = learn_neighbourhood(tuple(bounds.values()), sample, int(self.n_neighbors))
        mended = map_views(mended_by_neighbours, self.neighbourhood_, views, engine)
        self.code_ = learn_bit_projection(mended, self.n_bits, engine, seed, rotate=self.rotate)

    def _scores(self, views: Views, engine: Engine) -> Rows:
        scores: Rows = map_views(_score_rows, (self.neighbourhood_, self.code_), views, engine)
        return scores


def _score_rows(model: tuple[Neighbourhood, BitProjection], present: Any, *blocks: Any) -> Any:
    hood, code = model
    return project(code, mended_by_neighbours(hood, present, *blocks))
