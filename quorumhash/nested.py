"""Bits from dimensions so that codes are nested: the first 64 bits of a longer code are the 64-bit code.

The dimensions come in order of variance. The first block of 64 bits rotates the first 64 dimensions towards bits. Every
later block adds the next 64 dimensions and cuts all so far anew, by 64 columns of a rotation of its own: the later
dimensions alone vary so little that bits of theirs would drown the first ones (docs/quorum.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace, device

from quorumhash.engines import Engine
from quorumhash.proximal import rotate_to_bits

FloatArray = npt.NDArray[np.float64]

BLOCK = 64
MOST_TURNED = 256  # dimensions


def learn_rotation(sample: Any, n_bits: int, engine: Engine, seed: int, n_steps: int) -> FloatArray:
    """The matrix (p, n_bits) from dimensions to scores, learned on rows (s, p) in order of variance."""
    n_dimensions = sample.shape[1]
    rotation = np.zeros((n_dimensions, n_bits))
    for block, start in enumerate(range(0, n_bits, BLOCK)):
        width = min(BLOCK, n_bits - start)
        n_turned = min(start + width, MOST_TURNED)
        n_used = min(n_turned, n_dimensions)
        xp = array_namespace(sample)  # zero columns where the data have fewer dimensions than bits
        rows = xp.zeros((len(sample), n_turned), dtype=xp.float64, device=device(sample))
        rows[:, :n_used] = sample[:, :n_used]
        turn = rotate_to_bits(engine.put(rows), n_turned, engine, seed + block, n_steps)
        rotation[:n_used, start : start + width] = turn[:n_used, :width]
    return rotation
