"""Views weighted as a quorum model weighs them, or with rows of one length, so that rivals stand on the same footing.

Most methods bring every view to one scale themselves, which undoes a weight: such a weight can only drop a view. A
method that looks at the views side by side is therefore given them as one joined view, where weights last.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from quorumhash.engines import open_engine
from quorumhash.errors import ParameterError
from quorumhash.hashers import HASHERS
from quorumhash.scaling import learn_scalings
from quorumhash.views import Views

WEIGHER = "quorum"
JOINED = "joined"  # name of the one view of joined views
N_BITS = 32  # of the model that is asked for its weights; they do not depend on it


def automatic_weights(training: Views, random_state: int) -> dict[str, float]:
    """The worth of every view by name, as a quorum model with automatic weights finds it on the training rows."""
    if WEIGHER not in HASHERS:
        raise ParameterError(f"automatic weights need the hasher {WEIGHER!r}, which is not in this version.")
    hasher = HASHERS[WEIGHER](n_bits=N_BITS, random_state=random_state)
    hasher.set_params(view_weights="auto")
    weights: Mapping[str, float] = hasher.fit(training).view_weights_
    return {name: float(weight) for name, weight in weights.items()}


def weighted_views(
    views: Views, train_rows: npt.NDArray[np.int64], weights: Mapping[str, float], is_joined: bool = False
) -> Views:
    """Views centred on the training mean, scaled to a mean squared norm of 1, times their weight; float64.

    What is missing stays missing and a view of weight 0 is left out; an item that has no other view counts as the mean.

    >>> views = Views({"colour": [[1.0], [3.0]], "shape": [[5.0], [np.nan]], "noise": [[7.0], [0.0]]})
    >>> weighted = weighted_views(views, np.arange(2), {"colour": 2.0, "shape": 1.0, "noise": 0.0})
    >>> weighted["colour"].ravel().tolist(), weighted["shape"].ravel().tolist()
    ([-2.0, 2.0], [0.0, nan])
    """
    chosen = [name for name in views if weights.get(name, 0.0) > 0 and views.present(name)[train_rows].any()]
    if not chosen:
        raise ParameterError(f"weights must be above 0 for some view that holds data, got {dict(weights)}.")
    kept = {name: np.asarray(views[name], dtype=np.float64) for name in chosen}
    is_empty = ~np.logical_or.reduce([views.present(name) for name in chosen])
    seen = train_rows[~is_empty[train_rows]]
    with open_engine("threads") as engine:
        scalings = learn_scalings(Views({name: matrix[seen] for name, matrix in kept.items()}), engine)
    weighted = {
        name: (matrix - scalings[name].mean) * (scalings[name].factor * weights[name]) for name, matrix in kept.items()
    }
    weighted[chosen[0]][is_empty] = 0.0
    return Views({JOINED: np.hstack(list(weighted.values()))} if is_joined else weighted)


def row_normalised_views(views: Views, train_rows: npt.NDArray[np.int64]) -> Views:
    """Views centred on the training mean, every row then brought to length 1; float64.

    A row of large noise counts no more than another one. What is missing stays missing and has no share in the length;
    a row at the mean stays there.

    >>> views = Views({"shape": [[1.0, 5.0], [3.0, 5.0], [2.0, 9.0]], "word": [[0.0], [4.0], [np.nan]]})
    >>> row_normalised_views(views, np.arange(2))["shape"].tolist()
    [[-1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    """
    with open_engine("threads") as engine:
        scalings = learn_scalings(views[train_rows], engine)
    normalised = {}
    for name, scaling in scalings.items():
        centred = np.asarray(views[name], dtype=np.float64) - scaling.mean
        lengths = np.sqrt(np.nansum(centred**2, axis=1, keepdims=True))
        normalised[name] = centred / np.where(lengths > 0, lengths, 1.0)
    return Views(normalised)
