"""The damage lab: one item's views damaged by hand, and what the model and a rival still find."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.index.hamming import HammingIndex
from quorumhash.views import Views
from quorumhash.web.answers import n_flipped, nearest
from quorumhash.web.collection import Collection, Rival, UnknownItemError

SPREAD_ROWS = 2_000  # from which the spread of every feature is taken


@dataclass(frozen=True)
class Dose:
    """How many views of an item are swapped, noisy and missing; which ones, the draw decides."""

    swapped: int = 0
    noisy: int = 0
    missing: int = 0
    strength: float = 2.0  # of the noise, in standard deviations of each feature
    draw: int = 0


class DamageLab:
    """A collection with views, and a rival that learned from the same ones."""

    def __init__(self, collection: Collection, rival: Rival) -> None:
        assert collection.views is not None, "there is no rival without views"
        self.collection, self.rival = collection, rival
        self.views = collection.views
        self.names = list(self.views)
        step = max(1, len(self.views) // SPREAD_ROWS)
        sample = self.views[::step]
        with np.errstate(all="ignore"):
            self.spread = {name: np.nan_to_num(np.nanstd(sample[name], axis=0)) for name in self.names}

    def tried(self, item: int, dose: Dose, k: int) -> dict[str, Any]:
        """What is found for the damaged item, before and after, by both methods."""
        started = time.perf_counter()
        row = self.collection.row(item)
        if row is None:
            raise UnknownItemError(item)
        clean = self.views[[row]]
        damaged, told = self._damaged(row, dose)
        values = self.collection.reliability(damaged)
        for i, fact in enumerate(told):
            fact["reliability"] = None if values is None else values[i]
        model = (self.collection.method, self.collection.hasher, self.collection.index)
        methods = [
            self._method(item, clean, damaged, k, *method)
            for method in (model, (self.rival.name, self.rival.hasher, self.rival.index))
        ]
        return {"views": told, "methods": methods, "seconds": time.perf_counter() - started}

    def _damaged(self, row: int, dose: Dose) -> tuple[Views, list[dict[str, Any]]]:
        """The damaged row, and per view what was done to it. The draw alone decides the order in which views are hit,
        so that a slider moves one view at a time."""
        rng = np.random.default_rng([dose.draw, row])
        here = [name for name in self.names if self.views.present(name)[row]]
        order = [here[i] for i in rng.permutation(len(here))]
        noise = {name: rng.standard_normal(len(self.spread[name])) for name in self.names}
        n_missing = min(dose.missing, len(order) - 1)
        missing, rest = order[len(order) - n_missing :], order[: len(order) - n_missing]
        swapped, noisy = rest[: dose.swapped], rest[dose.swapped : dose.swapped + dose.noisy]
        partner = self._partner(row, swapped, rng)
        values: dict[str, npt.NDArray[Any] | None] = {}
        facts = []
        for name in self.names:
            state = next(
                (s for s, hit in (("swapped", swapped), ("noisy", noisy), ("missing", missing)) if name in hit), ""
            )
            if name not in here:
                state = "absent"
            source = partner if state == "swapped" else row
            value = np.array(self.views[name][source], dtype=np.float64)[None]
            if state == "noisy":
                value = value + dose.strength * self.spread[name] * noise[name]
            values[name] = None if state in ("missing", "absent") else value
            told = int(self.collection.row_ids[partner]) if state == "swapped" else None
            facts.append({"view": name, "state": state or "intact", "partner": told})
        return Views(values), facts

    def _partner(self, row: int, names: list[str], rng: np.random.Generator) -> int:
        """Another row that has the views which it lends."""
        has_all = np.ones(len(self.views), dtype=bool)
        for name in names:
            has_all &= self.views.present(name)
        has_all[row] = False
        others = np.flatnonzero(has_all)
        return int(rng.choice(others)) if len(others) else row

    def _method(
        self, item: int, clean: Views, damaged: Views, k: int, name: str, hasher: Any, index: HammingIndex
    ) -> dict[str, Any]:
        before, after = (self.collection.encode(views, hasher)[0] for views in (clean, damaged))
        ids_before, _ = nearest(index, before, k, item)
        ids, distances = nearest(index, after, k, item)
        matches = [
            {**self.collection.told(int(i)), "distance": int(d), "is_kept": bool(np.isin(i, ids_before))}
            for i, d in zip(ids, distances, strict=True)
        ]
        return {
            "name": name,
            "matches": matches,
            "precision": self._precision(item, ids),
            "precision_before": self._precision(item, ids_before),
            "kept": float(np.isin(ids, ids_before).mean()) if len(ids) else 0.0,
            "flipped": n_flipped(before, after),
        }

    def _precision(self, item: int, ids: Any) -> float | None:
        """Share of the found items that have the item's label."""
        label = self.collection.label(item)
        if label is None or not len(ids):
            return None
        return float(np.mean([self.collection.label(int(i)) == label for i in ids]))
