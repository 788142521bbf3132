"""A benchmark as a TOML file: which methods, on which data, damaged how; read and checked into a list of cells.

    title = "..."                       what the panel shows, one line
    datasets = ["digits", "mfeat"]
    seeds = [0, 1, 2]
    max_rows = { mfeat = 600 }          thin these datasets; see datasets.thinned
    validation = true                   queries are training rows, for choosing parameters; see datasets.validation_cut
    weighted = ["coco5"]                datasets on which "auto" is tried, default: all
    joined = ["itq", "lsh"]             hashers that look at the views side by side: weighted views reach them as one
    [damages]                           name -> kind, rate, datasets (default: all), options of `damage`; {} is none
    swap = { kind = "swap", rate = 0.2 }
    [[methods]]                         name, hasher, parameters, weights (["equal", "auto"]), own, told_sources, seeds,
                                        row_normalised (views with rows of one length; see bench/weighting.py);
    tried = [{}, { n_steps = 9 }]       one row for each: parameters, row_normalised;
    every_other = true                  or one row for each hasher that no other method names, less those in `without`;
    role = "float"                      or float, float_undamaged, oracle (with a hasher), chance, peer (with a peer of
                                        bench/peers.py)
    [grids.main]                        bits; and, where not all or not the default: damages, datasets, methods, seeds,
    bits = [64]                         rates (in place of the damages'), where ("both", "queries", "database"),
                                        weights, without (methods left out)
    [quick]                             with --quick: datasets, damages, grids, methods to keep; bits, seeds, max_rows

A hasher that this version does not have is left out, and `skipped` says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from quorumhash.bench.panelmethods import FLOAT_UNDAMAGED, Method, read_methods
from quorumhash.bench.paneltable import PanelTable, read_table
from quorumhash.bench.settings import (
    AUTO,
    AUTO_JOINED,
    BOTH,
    CLEAN,
    DATABASE,
    EQUAL,
    FLOAT,
    QUERIES,
    Setting,
    run_key,
    simplest,
)
from quorumhash.corruption import KINDS
from quorumhash.datasets import DATASETS
from quorumhash.errors import ParameterError

SMALLEST_ROWS = 120  # five sixths of them are the database, in which the first 100 are sought


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


@dataclass(frozen=True)
class Panel:
    """A benchmark: its cells in the order of the file, its methods, and sentences about what was left out."""

    title: str
    path: Path
    is_quick: bool
    methods: tuple[Method, ...]
    cells: tuple[Cell, ...]
    skipped: tuple[str, ...]

    def settings(self) -> list[Setting]:
        """Every run once; those on the same damaged data follow each other."""
        runs: dict[str, Setting] = {}
        for cell in self.cells:
            runs.setdefault(run_key(cell.setting), cell.setting)
        return list(runs.values())

    def runs_folder(self) -> Path:
        """Where runs are stored unless another folder is named: beside the file."""
        return self.path.with_suffix(".quick.runs" if self.is_quick else ".runs")


def read_panel(path: Path, is_quick: bool = False) -> Panel:
    """Read and check a benchmark's file; `is_quick` keeps what its [quick] table keeps."""
    table = read_table(path)
    skipped: list[str] = []
    title, joined, quick = table.text("title"), table.texts("joined", ()), table.inner("quick")
    is_validation = table.flag("validation")
    datasets = table.names("datasets", among=DATASETS)
    seeds = table.counts("seeds", (0,), smallest=0)
    weighted = table.names("weighted", among=DATASETS, default=datasets)
    rows = table.inner("max_rows")
    max_rows = {name: rows.count(name, SMALLEST_ROWS) for name in datasets if name in rows}
    rows.finish()
    damages = {name: _damage(inner) for name, inner in table.inners("damages").items()}
    methods = read_methods(table, skipped)
    names = tuple(method.name for method in methods)
    whole = Grid("", datasets, tuple(damages), (), (BOTH,), seeds, (), names, (EQUAL, AUTO))
    grids = [_grid(name, inner, whole, skipped) for name, inner in table.inners("grids").items()]
    quick_grids, quick_rows = _quick(grids, quick)
    table.finish()
    if is_quick:
        grids, max_rows = quick_grids, max_rows | dict.fromkeys(datasets, quick_rows) if quick_rows else max_rows
    chosen = {method.name: method for method in methods}
    every = (cell for grid in grids for cell in _cells(grid, damages, chosen, joined, max_rows))
    if is_validation:
        every = (replace(cell, setting=replace(cell.setting, is_validation=True)) for cell in every)
    cells = tuple(cell for cell in every if cell.weights == EQUAL or cell.dataset in weighted)
    if not cells:
        raise ParameterError(f"{path} has no run at all; name methods of this version, damages and grids.")
    return Panel(title, path, is_quick, methods, cells, tuple(dict.fromkeys(skipped)))


def _damage(table: PanelTable) -> Damage:
    kind = table.text("kind", CLEAN)
    if kind not in (CLEAN, *KINDS):
        table.refuse("kind", f"must be one of {', '.join(KINDS)}, got {kind!r}")
    limited = table.names("datasets", among=DATASETS, default=())
    rate = table.number("rate", 0.0 if kind == CLEAN else 0.2)
    options = PanelTable(table.path, table.place, {"options": table.rest()}).plain("options")
    if unknown := sorted(set(options) - {"sources", "names", "image_shape", "fill"}):
        table.refuse(unknown[0], "is no key of a damage; the keys are kind, rate, datasets and the options of `damage`")
    return Damage(kind, rate, options, limited)


def _grid(name: str, table: PanelTable, whole: Grid, skipped: list[str]) -> Grid:
    left_out = table.texts("without", ())
    methods = tuple(method for method in table.texts("methods", whole.methods) if method not in left_out)
    for absent in sorted({*methods} - {*whole.methods}):
        skipped.append(f"grid {name} goes without the method {absent!r}, which is not in this version")
    grid = Grid(
        name,
        table.names("datasets", whole.datasets, whole.datasets),
        table.names("damages", whole.damages, whole.damages),
        table.shares("rates", ()),
        table.names("where", (BOTH, QUERIES, DATABASE), whole.where),
        table.counts("seeds", whole.seeds, smallest=0),
        table.counts("bits", None, smallest=1),
        tuple(method for method in whole.methods if method in methods),
        table.names("weights", (EQUAL, AUTO), whole.weights),
    )
    table.finish()
    return grid


def _quick(grids: list[Grid], quick: PanelTable) -> tuple[list[Grid], int]:
    """The grids that --quick keeps and its number of rows, 0 where it is not said."""
    chosen = quick.names("grids", [grid.name for grid in grids], tuple(grid.name for grid in grids))
    kept = {key: quick.texts(key, ()) for key in ("datasets", "damages", "methods")}
    replaced = {"seeds": quick.counts("seeds", (), smallest=0), "bits": quick.counts("bits", (), smallest=1)}
    max_rows = quick.count("max_rows", SMALLEST_ROWS) if "max_rows" in quick else 0
    quick.finish()
    changed = []
    for grid in (grid for grid in grids if grid.name in chosen):
        less: dict[str, Any] = {key: values for key, values in replaced.items() if values}
        for key, names in kept.items():
            less |= {key: tuple(name for name in getattr(grid, key) if name in names)} if names else {}
        changed.append(replace(grid, **less))
    return changed, max_rows


def _cells(
    grid: Grid,
    damages: dict[str, Damage],
    methods: dict[str, Method],
    joined: tuple[str, ...],
    max_rows: dict[str, int],
) -> Iterator[Cell]:
    """Every combination; what shares damaged data stands together."""
    for dataset, name in product(grid.datasets, grid.damages):
        damage = damages[name]
        if damage.datasets and dataset not in damage.datasets:
            continue
        for rate, where, seed in product(grid.rates or (damage.rate,), grid.where, grid.seeds):
            data = Setting("", 0, damage.kind, rate, {}, seed, dataset, max_rows.get(dataset), where, damage.options)
            tried = [methods[name] for name in grid.methods if seed in (methods[name].seeds or grid.seeds)]
            for n_bits, method in product(grid.bits, tried):
                for weights in (weights for weights in method.weights if weights in grid.weights):
                    setting = simplest(_filled(replace(data, n_bits=n_bits), method, weights, joined))
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
