"""A benchmark as a TOML file: which methods, on which data, damaged how; read and checked into a list of cells.

    title = "..."                       what the panel shows, one line
    datasets = ["digits", "mfeat"]      names of datasets, or of variants
    [variants]                          name -> dataset and options of its loader
    seeds = [0, 1, 2]
    max_rows = { mfeat = 600 }          thin these datasets; see datasets.thinned
    splits = true                       a run's seed is also the split of its dataset, whose loader must know splits
    by_labels = true                    labels alone judge: no true neighbours, no rescoring, no trust
    runs = "paper"                      runs are kept in paper.runs beside the file, and shared with its neighbours
    validation = true                   queries are training rows, for choosing parameters; see datasets.validation_cut
    weighted = ["coco5"]                datasets on which "auto" is tried, default: all
    joined = ["itq", "lsh"]             hashers that look at the views side by side: weighted views reach them as one
    [damages]                           name -> kind, rate, datasets (default: all), options of `damage`; {} is none
    swap = { kind = "swap", rate = 0.2 }
    [[methods]]                         name, hasher, parameters, weights (["equal", "auto"]), own, told_sources, seeds,
                                        row_normalised (views with rows of one length; see bench/weighting.py);
    tried = [{}, { n_steps = 9 }]       one row for each: parameters, row_normalised;
    crossed = { gamma = [1, 9], ... }   one row for every combination of these values;
    every_other = true                  or one row for each hasher that no other method names, less those in `without`;
    role = "float"                      or float, float_undamaged, oracle (with a hasher), chance, peer (with a peer of
                                        bench/peers.py)
    [grids.main]                        bits; and, where not all or not the default: damages, datasets, methods, seeds,
    bits = [64]                         rates (in place of the damages'), where ("both", "queries", "database"),
                                        weights, without (methods left out)
    [quick]                             with --quick: datasets, damages, grids, methods to keep; bits, seeds, max_rows

With --smoke every dataset is digits, thinned, and every grid has one dataset and seed, two bits and two variants of a
method. A hasher that this version does not have is left out, and `skipped` says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from quorumhash.bench.panelmethods import Method, read_methods
from quorumhash.bench.panelplan import Cell, Damage, Grid, Plan, Source, cells_of
from quorumhash.bench.paneltable import PanelTable, read_table
from quorumhash.bench.settings import AUTO, BOTH, CLEAN, DATABASE, EQUAL, QUERIES, Setting, run_key
from quorumhash.corruption import KINDS
from quorumhash.datasets import DATASETS
from quorumhash.errors import ParameterError

WHOLE, QUICK, SMOKE = "", "quick", "smoke"  # profiles: everything; what [quick] keeps; a bit of everything, on digits
SMOKE_DATASET, SMOKE_ROWS, N_SMOKE = "digits", 240, 2
SMALLEST_ROWS = 120  # five sixths of them are the database, in which the first 100 are sought


@dataclass(frozen=True)
class Panel:
    """A benchmark: its cells in the order of the file, its methods, and sentences about what was left out."""

    title: str
    path: Path
    profile: str  # WHOLE, QUICK or SMOKE
    methods: tuple[Method, ...]
    cells: tuple[Cell, ...]
    skipped: tuple[str, ...]
    runs: str = ""  # name of the folder of the runs, less its ending; empty: that of the file

    @property
    def is_quick(self) -> bool:
        """Whether it is less than the file plans."""
        return self.profile != WHOLE

    def settings(self) -> list[Setting]:
        """Every run once; those on the same damaged data follow each other."""
        runs: dict[str, Setting] = {}
        for cell in self.cells:
            runs.setdefault(run_key(cell.setting), cell.setting)
        return list(runs.values())

    def only(self, grids: Sequence[str] | None, methods: Sequence[str] | None = None) -> Panel:
        """The same with these grids and these methods alone; None and none at all: every one."""
        kept = self._named("grid", grids), self._named("method", methods)
        cells = tuple(c for c in self.cells if c.grid in kept[0] and c.method in kept[1])
        if not cells:
            raise ParameterError(f"{self.path}: no grid of {grids} has a method of {methods}; choose ones that meet.")
        return replace(self, cells=cells)

    def _named(self, what: str, names: Sequence[str] | None) -> list[str]:
        known = list(dict.fromkeys(getattr(cell, what) for cell in self.cells))
        if unknown := [name for name in names or () if name not in known]:
            raise ParameterError(
                f"{self.path}: a {what} must be one of {', '.join(map(repr, known))}, got {unknown[0]!r}; choose one."
            )
        return list(names) if names else known

    def runs_folder(self) -> Path:
        """Where runs are stored unless another folder is named: beside the file."""
        name = self.runs or self.path.stem
        return self.path.with_name(f"{name}.{self.profile}.runs" if self.profile else f"{name}.runs")


def read_panel(path: Path, profile: str = WHOLE) -> Panel:
    """Read and check a benchmark's file; QUICK keeps what its [quick] table keeps, SMOKE a bit of everything."""
    table = read_table(path)
    skipped: list[str] = []
    title, joined, quick = table.text("title"), table.texts("joined", ()), table.inner("quick")
    runs = table.text("runs") if "runs" in table else ""
    sources = _sources(table)
    datasets = table.names("datasets", among=sources)
    seeds = table.counts("seeds", (0,), smallest=0)
    weighted = table.names("weighted", among=sources, default=datasets)
    rows = table.inner("max_rows")
    max_rows = {name: rows.count(name, SMALLEST_ROWS) for name in datasets if name in rows}
    rows.finish()
    flags = (table.flag(key) for key in ("splits", "validation", "by_labels"))
    plan = Plan(sources, max_rows, joined, *flags)
    damages = {name: _damage(inner, sources) for name, inner in table.inners("damages").items()}
    methods = read_methods(table, skipped)
    names = tuple(method.name for method in methods)
    whole = Grid("", datasets, tuple(damages), (), (BOTH,), seeds, (), names, (EQUAL, AUTO))
    called = {method.family: [other.name for other in methods if other.family == method.family] for method in methods}
    grids = [_grid(name, inner, whole, called, skipped) for name, inner in table.inners("grids").items()]
    quick_grids, quick_rows = _quick(grids, quick)
    table.finish()
    if profile == QUICK:
        rows_of = max_rows | dict.fromkeys(datasets, quick_rows) if quick_rows else max_rows
        grids, plan = quick_grids, replace(plan, max_rows=rows_of)
    chosen = {method.name: method for method in methods}
    if profile == SMOKE:
        grids, plan = [_smoke_grid(grid, chosen) for grid in grids], _smoke_plan(plan, datasets)
    every = (cell for grid in grids for cell in cells_of(grid, damages, chosen, plan))
    cells = tuple(cell for cell in every if cell.weights == EQUAL or cell.dataset in weighted)
    if not cells:
        raise ParameterError(f"{path} has no run at all; name methods of this version, damages and grids.")
    return Panel(title, path, profile, methods, cells, tuple(dict.fromkeys(skipped)), runs)


def _sources(table: PanelTable) -> dict[str, Source]:
    """What a dataset of the file is: the variants, and every dataset as it comes."""
    sources = {name: Source(name, {}) for name in DATASETS}
    for name, inner in table.inners("variants").items() if "variants" in table else ():
        if (dataset := inner.text("dataset")) not in DATASETS:
            inner.refuse("dataset", f"must be one of {', '.join(DATASETS)}, got {dataset!r}")
        sources[name] = Source(dataset, PanelTable(table.path, inner.place, {"o": inner.rest()}).plain("o"))
    return sources


def _smoke_plan(plan: Plan, datasets: tuple[str, ...]) -> Plan:
    small = Source(SMOKE_DATASET, {})
    return replace(
        plan, sources=dict.fromkeys(datasets, small), max_rows=dict.fromkeys(datasets, SMOKE_ROWS), has_splits=False
    )


def _smoke_grid(grid: Grid, methods: dict[str, Method]) -> Grid:
    families: dict[str, list[str]] = {}
    for name in grid.methods:
        families.setdefault(methods[name].family or name, []).append(name)
    kept = tuple(name for names in families.values() for name in names[:N_SMOKE])
    return replace(
        grid, datasets=grid.datasets[:1], seeds=grid.seeds[:1], bits=grid.bits[:N_SMOKE], rates=grid.rates[:1],
        methods=kept,
    )  # fmt: skip


def _damage(table: PanelTable, sources: dict[str, Source]) -> Damage:
    kind = table.text("kind", CLEAN)
    if kind not in (CLEAN, *KINDS):
        table.refuse("kind", f"must be one of {', '.join(KINDS)}, got {kind!r}")
    limited = table.names("datasets", among=sources, default=())
    rate = table.number("rate", 0.0 if kind == CLEAN else 0.2)
    options = PanelTable(table.path, table.place, {"options": table.rest()}).plain("options")
    if unknown := sorted(set(options) - {"sources", "names", "image_shape", "fill"}):
        table.refuse(unknown[0], "is no key of a damage; the keys are kind, rate, datasets and the options of `damage`")
    return Damage(kind, rate, options, limited)


def _grid(name: str, table: PanelTable, whole: Grid, families: dict[str, list[str]], skipped: list[str]) -> Grid:
    """A method's name stands for all of its variants, where it has some."""
    left_out, named = (
        [variant for method in table.texts(key, default) for variant in families.get(method, [method])]
        for key, default in (("without", ()), ("methods", whole.methods))
    )
    methods = tuple(method for method in named if method not in left_out)
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
