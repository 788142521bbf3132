"""Which rows of a whole table another model made: looked for in a sample of them, then told of every row."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.coordinates import Components, coordinate_rows, scaled_and_completed, signature_rows
from quorumhash.engines import Engine
from quorumhash.inspection import Inspection
from quorumhash.judging import Judge, described_rows
from quorumhash.landmarks import sample_positions
from quorumhash.versions import VERSION_ROWS, Version, far_from_core, find_version, in_second_cluster, learn_core
from quorumhash.views import Views

FloatArray = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


def version_rows(
    views: Views, judge: Judge, seen: Inspection, noisy: Flags, engine: Engine, seed: int
) -> dict[int, Flags]:
    """For the position of every view that has such a group its rows (n,); `noisy` (n, M) rows are taken for noise."""
    positions = sample_positions(len(views), engine, seed, VERSION_ROWS)
    usable = seen.usable[positions]
    coordinates, signatures = described(views[positions], judge, seen.facts[positions] == 0)
    groups = {}
    for m, rows in enumerate(signatures):
        core = learn_core(rows, judge.components[m].n_signature, usable[:, m])
        found = find_version(coordinates, m, noisy[positions, m], usable, (core, rows), seed)
        if found is not None:
            is_of_noise = found.centres is None and found.core is None
            group = noisy[:, m] if is_of_noise else _of_version(views, judge, found, engine)
            groups[m] = group & seen.usable[:, m]
    return groups


def described(views: Views, judge: Judge, present: Flags) -> tuple[list[FloatArray], list[FloatArray]]:
    """Coordinates and signatures of every view of a few rows."""
    blocks = [None if views.matrix(name) is None else np.asarray(views[name], dtype=np.float64) for name in views]
    return described_rows(judge, present, *blocks)


def _of_version(views: Views, judge: Judge, version: Version, engine: Engine) -> Flags:
    """Which rows (n,) of a view are far from its core, or lie in the second of two clusters."""
    components, name = judge.components[version.view], views.names[version.view]
    rows = engine.map_rows(_is_of_version, components, version.core, version.centres, engine.put(views.matrix(name)))
    return np.asarray(engine.get(rows))


def _is_of_version(components: Components, core: Any, centres: Any, block: Any) -> Any:
    values = scaled_and_completed(components, block)
    if core is not None:
        return far_from_core(core, signature_rows(components, values))
    return in_second_cluster(centres, coordinate_rows(components, values))
