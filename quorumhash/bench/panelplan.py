"""What a benchmark's file plans: its datasets, damages and grids, and the cells that follow from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from quorumhash.bench.panelmethods import FLOAT_UNDAMAGED, Method
from quorumhash.bench.settings import AUTO, AUTO_JOINED, CLEAN, FLOAT, Setting, simplest


@dataclass(frozen=True)
class Damage:
    """A named kind of damage; `datasets` are those that it is tried on, empty: all."""

    kind: str
    rate: float
    options: dict[str, Any]
    datasets: tuple[str, ...]


@dataclass(frozen=True)
class Grid:
    """Combinations to run, all of them; empty rates: the damages' own."""

    name: str
    datasets: tuple[str, ...]
    damages: tuple[str, ...]
    rates: tuple[float, ...]
    where: tuple[str, ...]
    seeds: tuple[int, ...]
    bits: tuple[int, ...]
    methods: tuple[str, ...]
    weights: tuple[str, ...]


@dataclass(frozen=True)
class Source:
    """A dataset and the options of its loader."""

    dataset: str
    options: dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """What all runs of a file share: what its datasets are, how they are cut, and what judges the runs."""

    sources: dict[str, Source]
    max_rows: dict[str, int]
    joined: tuple[str, ...]
    has_splits: bool
    is_validation: bool
    is_by_labels: bool

    def data(self, name: str, seed: int) -> Setting:
        """A setting that says what is known of the data; method, bits and damage are still to come."""
        source = self.sources[name]
        options = source.options | ({"split": seed} if self.has_splits else {})
        setting = Setting("", 0, random_state=seed, dataset=source.dataset, max_rows=self.max_rows.get(name))
        judged = replace(setting, is_validation=self.is_validation, is_by_labels=self.is_by_labels)
        return replace(judged, dataset_options=options)


@dataclass(frozen=True)
class Cell:
    """One place in one table, for one seed, and the run that fills it, in its simplest form: cells may share a run."""

    grid: str
    dataset: str
    damage: str
    rate: float
    where: str
    n_bits: int
    method: str
    weights: str
    seed: int
    setting: Setting


def cells_of(grid: Grid, damages: dict[str, Damage], methods: dict[str, Method], plan: Plan) -> Iterator[Cell]:
    """Every combination; what shares damaged data stands together."""
    for dataset, name in product(grid.datasets, grid.damages):
        damage = damages[name]
        if damage.datasets and dataset not in damage.datasets:
            continue
        for rate, where, seed in product(grid.rates or (damage.rate,), grid.where, grid.seeds):
            data = replace(plan.data(dataset, seed), damage=damage.kind, rate=rate, where=where)
            data = replace(data, damage_options=damage.options)
            tried = [methods[name] for name in grid.methods if seed in (methods[name].seeds or grid.seeds)]
            for n_bits, method in product(grid.bits, tried):
                for weights in (weights for weights in method.weights if weights in grid.weights):
                    setting = simplest(_filled(replace(data, n_bits=n_bits), method, weights, plan.joined))
                    yield Cell(grid.name, dataset, name, rate, where, n_bits, method.name, weights, seed, setting)


def _filled(data: Setting, method: Method, weights: str, joined: tuple[str, ...]) -> Setting:
    setting = replace(
        data,
        hasher=method.hasher,
        parameters=method.parameters,
        role=method.role,
        weights=AUTO_JOINED if weights == AUTO and method.hasher in joined else weights,
        is_told_sources=method.is_told_sources,
        is_row_normalised=method.is_row_normalised,
        label=method.name,
    )
    return replace(setting, role=FLOAT, damage=CLEAN) if method.role == FLOAT_UNDAMAGED else setting
