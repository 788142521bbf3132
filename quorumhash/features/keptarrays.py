"""Arrays that are kept in the cache folder by what they were made of, and read from there the next time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.cachefolder import cache_folder
from quorumhash.errors import ViewsError
from quorumhash.viewfiles import read_array, write_array


def kept_array(name: str, digest: str, n_rows: int, make: Callable[[], npt.NDArray[np.float32]]) -> npt.NDArray[Any]:
    """What `make` gives, or gave before: `digest`, in hexadecimal, stands for all that it is made of."""
    path = cache_folder("features") / f"{name}-{digest[:40]}.npy"
    try:
        kept = read_array(path)
        if len(kept) == n_rows:
            return kept
    except ViewsError:  # not there yet, or damaged
        pass
    made = make()
    write_array(path, made)
    return made
