"""The scores of a benchmark as tables and charts for the report's page: figures are chosen and laid out, not made."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from quorumhash.bench.naming import called
from quorumhash.bench.panel import Panel
from quorumhash.bench.scores import BETTER_SMALLER, COMPARED, Figure, Place, Scores, geometric_mean
from quorumhash.bench.settings import BOTH, HASHER, run_key
from quorumhash.report import Chart, Curve, Report, Table

TITLES = {
    "map": "MAP",
    "recall_10": "R10@10",
    "recall_100": "R10@100",
    "rescored_10": "R10@10 after rescoring 100 candidates",
    "lookup": "lookup precision, radius 2",
    "distinct_codes": "distinct codes",
    "bytes_per_item": "bytes per item",
    "trust_auc": "trust, ROC AUC on queries",
    "false_alarms": "trust, false alarms on queries",
    "fit_seconds": "seconds of fit",
}
COUNTS = ("distinct_codes", "bytes_per_item")  # whole numbers; neither more nor fewer is better
CHARTED = ("map", "recall_10")
N_CHARTED_RIVALS = 4
LEAD = (
    "MAP: are items of the same kind first, over the whole ranking? R10@10 and R10@100: how many of the ten nearest "
    "items on the undamaged views are among the first 10 and 100? Lookup: precision within Hamming radius 2, empty "
    "lookups counting 0.\n\nFigures are means over the seeds. A method that was run on equally and on automatically "
    "weighted views counts with the better of the two."
)


def panel_report(scores: Scores) -> Report:
    """The page: ratios first, then tables grid by grid, charts, and how it was made."""
    tables: list[Table] = [*_ratio_tables(scores), *_mean_table(scores)]
    charts: list[Chart] = []
    for number, grid in enumerate(dict.fromkeys(cell.grid for cell in scores.panel.cells)):
        for dataset in dict.fromkeys(cell.dataset for cell in scores.panel.cells if cell.grid == grid):
            places = _places(scores, grid, dataset)
            if _axis(places):
                charts += _charts(scores, places)
            else:
                tables += _tables(scores, places, TITLES if number == 0 else COMPARED)
    title = scores.panel.title + (" (quick)" if scores.panel.is_quick else "")
    return Report(title, LEAD, (*tables, *_trouble(scores)), tuple(charts), facts=_facts(scores))


def _places(scores: Scores, grid: str, dataset: str) -> list[Place]:
    """The places of one dataset in one grid that have a figure, in the order of the file."""
    return list(dict.fromkeys(p for p, _ in scores.figures if (p.grid, p.dataset) == (grid, dataset)))


def _axis(places: list[Place]) -> str:
    """What changes along a chart of these places: bits, or the rate of one damage; "" where a table will do."""
    if len({place.n_bits for place in places}) > 1:
        return "n_bits"
    damages = {(place.damage, place.rate) for place in places}
    return "rate" if len(damages) > len({damage for damage, _ in damages}) else ""


def _column(place: Place) -> str:
    return place.damage if place.where == BOTH else f"{place.damage}, {place.where}"


def _tables(scores: Scores, places: list[Place], metrics: Iterable[str]) -> list[Table]:
    return [table for metric in metrics if (table := _table(scores, places, metric)).rows]


def _table(scores: Scores, places: list[Place], metric: str) -> Table:
    """Methods x damages of one metric; the best is bold, references are muted."""
    figures = {(p.method, _column(p)): scores.figures[p, metric] for p in places if (p, metric) in scores.figures}
    columns = tuple(dict.fromkeys(map(_column, places)))
    names = [method.name for method in scores.panel.methods if any(row == method.name for row, _ in figures)]
    is_count = metric in COUNTS
    rows = [
        (_shown(scores.panel, name), *(_mean(figures.get((name, column)), is_count) for column in columns))
        for name in names
    ]
    spread = max((figure.spread for figure in figures.values()), default=0.0)
    seeds = max((figure.n_seeds for figure in figures.values()), default=0)
    first = places[0] if places else Place("", "", "", 0.0, "", 0, "")
    return Table(
        f"{first.dataset}, {first.n_bits} bits: {TITLES[metric]} ({first.grid})",
        ("method", *columns),
        tuple(rows),
        note=f"Means over {seeds} seeds; the largest standard deviation is {spread:.3f}." if seeds > 1 else "One seed.",
        best="smallest" if metric in BETTER_SMALLER else "largest",
        best_columns=() if is_count else columns,
        reference_rows=_references(scores.panel),
    )


def _shown(panel: Panel, name: str) -> str:
    return called(name, next((method.hasher for method in panel.methods if method.name == name), ""))


def _references(panel: Panel) -> tuple[str, ...]:
    return tuple(method.name for method in panel.methods if method.role != HASHER)


def _mean(figure: Figure | None, is_count: bool) -> float | None:
    return None if figure is None else round(figure.mean) if is_count else figure.mean


def _charts(scores: Scores, places: list[Place]) -> list[Chart]:
    axis, charts = _axis(places), []
    for column in dict.fromkeys(map(_column, places)):
        chosen = [place for place in places if _column(place) == column]
        for metric in CHARTED:
            curves = [_curve(scores, chosen, axis, metric, name) for name in _charted(scores, chosen, metric)]
            first = chosen[0]
            title = f"{first.dataset}, {column}: {TITLES[metric]} ({first.grid})"
            caption = f"Of the rivals the {N_CHARTED_RIVALS} with the highest mean along the axis."
            x_label = "bits" if axis == "n_bits" else "rate of damage"
            charts.append(Chart(title, x_label, TITLES[metric], tuple(curves), caption, y_min=0.0))
    return charts


def _charted(scores: Scores, places: list[Place], metric: str) -> list[str]:
    """Names of the methods to draw: own ones, references, the best rivals."""
    totals: dict[str, float] = defaultdict(float)
    for place in places:
        totals[place.method] += scores.figures[place, metric].mean if (place, metric) in scores.figures else 0.0
    rivals = [method.name for method in scores.panel.methods if method.is_rival and method.name in totals]
    best = sorted(rivals, key=lambda name: -totals[name])[:N_CHARTED_RIVALS]
    kept = [method for method in scores.panel.methods if method.name in totals]
    return [method.name for method in kept if not method.is_rival or method.name in best]


def _curve(scores: Scores, places: list[Place], axis: str, metric: str, name: str) -> Curve:
    own = [place for place in places if place.method == name and (place, metric) in scores.figures]
    points = sorted((getattr(place, axis), scores.figures[place, metric].mean) for place in own)
    return Curve(_shown(scores.panel, name), [x for x, _ in points], [y for _, y in points])


def _ratio_tables(scores: Scores) -> list[Table]:
    """Own methods over the best rival in every place of the first grid."""
    standings = [standing for standing in scores.standings if standing.place.grid == scores.panel.cells[0].grid]
    tables = []
    for metric in COMPARED:
        found = [standing for standing in standings if standing.metric == metric]
        columns = tuple(dict.fromkeys(_column(standing.place) for standing in found))
        rows = []
        for method, dataset in dict.fromkeys((s.place.method, s.place.dataset) for s in found):
            own = [s for s in found if (s.place.method, s.place.dataset) == (method, dataset)]
            ratios = {_column(s.place): s.ratio for s in own}
            rows.append((f"{method}, {dataset}", *(ratios.get(column) for column in columns), geometric_mean(own)))
        if rows:
            title = f"{TITLES[metric]}: own methods over the best rival in each place"
            note = "Above 1: better than every rival there. The rival may be another one in every column."
            tables.append(Table(title, ("method, data", *columns, "geometric mean"), tuple(rows), note))
    return tables


def _mean_table(scores: Scores) -> list[Table]:
    """Geometric means of the ratios in every grid."""
    grids = dict.fromkeys((standing.place.grid, standing.place.method) for standing in scores.standings)
    rows: list[tuple[str | float | None, ...]] = []
    for grid, method in grids:
        own = [s for s in scores.standings if (s.place.grid, s.place.method) == (grid, method)]
        means = (geometric_mean([s for s in own if s.metric == metric]) for metric in COMPARED)
        rows.append((f"{method}, {grid}", *means, len(own) // len(COMPARED)))
    columns = ("method, grid", *(TITLES[metric] for metric in COMPARED), "places")
    return [Table("Own methods over the best rival: geometric means", columns, tuple(rows))] if rows else []


def _trouble(scores: Scores) -> list[Table]:
    """What was refused or failed, with the reason."""
    said: Counter[tuple[str, str]] = Counter()
    for setting in scores.panel.settings():
        run = scores.measured.get(run_key(setting))
        if run and (run.refusal or run.error):
            said[setting.label, f"failed: {run.error}" if run.error else run.refusal] += 1
    rows = tuple((_shown(scores.panel, label), reason, count) for (label, reason), count in said.items())
    return [Table("Refused or failed", ("method", "reason", "runs"), rows)] if rows else []


def _facts(scores: Scores) -> tuple[tuple[str, str], ...]:
    runs = scores.measured.values()
    seconds = sum(run.fit_seconds + run.encode_seconds for run in runs)
    origins = {name: {run.provenance.get(name, "?") for run in runs} for name in ("cpu", "cores", "platform", "jobs")}
    made_by = {name: {run.provenance.get(name, "?") for run in runs} for name in ("commit", "numpy", "python")}
    facts = [
        ("Runs", f"{len(runs):,} stored of {len(scores.panel.settings()):,} planned"),
        ("Seconds", f"{seconds:,.0f} of fitting and encoding in all"),
        ("Machine", "; ".join(f"{name} {', '.join(sorted(values))}" for name, values in origins.items())),
        ("Made by", "; ".join(f"{name} {', '.join(sorted(values))}" for name, values in made_by.items())),
    ]
    return tuple(facts + [("Left out", sentence) for sentence in scores.panel.skipped])
