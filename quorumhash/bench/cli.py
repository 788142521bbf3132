"""`quorumhash bench`: run a benchmark's file, report on what is stored, list the files; a coat over the library."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from quorumhash.errors import ParameterError
from quorumhash.printing import JsonOption, note, say

bench = typer.Typer(name="bench", help="Run benchmarks, report on them, list them.", no_args_is_help=True)

PanelArgument = Annotated[Path, typer.Argument(help="The benchmark's file, .toml.", metavar="FILE")]
QuickOption = Annotated[bool, typer.Option("--quick", help="Only what the file keeps under quick.")]
JobsOption = Annotated[int, typer.Option("--jobs", help="Processes to share the work, and the threads, among.")]

MethodOption = Annotated[
    list[str] | None, typer.Option("--method", help="Only this method; others keep what is stored.")
]
SmokeOption = Annotated[bool, typer.Option("--smoke", help="A bit of everything on digits, in seconds.")]
COPIES = {"": "panel.toml", "quick": "panel.quick.toml", "smoke": "panel.smoke.toml"}  # with the runs, by profile, so
# that their folder can be reported on alone


def _profile(quick: bool, smoke: bool) -> str:
    if quick and smoke:
        raise ParameterError("--quick and --smoke cannot be had together; give one of them.")
    return "quick" if quick else "smoke" if smoke else ""


def _shown(path: Path) -> Path:
    """The path as others would write it: of a file somewhere else the name alone."""
    return Path(path.name) if path.is_absolute() else path


@bench.command("run")
def run_bench(
    file: PanelArgument,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder of the runs; by default beside the file.")
    ] = None,
    jobs: JobsOption = 1,
    quick: QuickOption = False,
    smoke: SmokeOption = False,
    grid: Annotated[list[str] | None, typer.Option("--grid", help="Only this grid; may be said again.")] = None,
    method: MethodOption = None,
    retry: Annotated[bool, typer.Option("--retry", help="Do runs again that failed.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Do every run of a benchmark that is not stored yet; Ctrl-C stops it, the same command goes on.

    Example: quorumhash bench run benchmarks/quality/panel.toml --jobs 2
    """
    from quorumhash.atomic import replacing
    from quorumhash.bench.panel import read_panel
    from quorumhash.bench.runs import n_stored
    from quorumhash.bench.workbench import make_folder, run_settings
    from quorumhash.progress import task_bar

    panel = read_panel(file, _profile(quick, smoke)).only(grid, method)
    folder, settings = out or panel.runs_folder(), panel.settings()
    for sentence in panel.skipped:
        note(sentence)
    make_folder(folder)
    with replacing(folder / COPIES[panel.profile]) as copy:
        copy.write(file.read_bytes())
    try:
        with task_bar(True, len(settings), "bench") as done:
            tally = run_settings(settings, folder, jobs, done, retry)
    except KeyboardInterrupt:
        stored = f"{n_stored(folder, settings)} of {len(settings)} runs are stored in {folder}"
        typer.echo(f"quorumhash: stopped; {stored}, the same command goes on.", err=True)
        raise typer.Exit(130) from None
    told = ", ".join(f"{tally[word]} {word}" for word in ("done", "kept", "refused", "failed"))
    facts = {"folder": str(folder), "runs": len(settings), **tally, "skipped": list(panel.skipped)}
    say(as_json, facts, f"{len(settings)} runs in {folder}: {told}.")


@bench.command("report")
def report_bench(
    source: Annotated[
        Path, typer.Argument(help="The folder of the runs, or the benchmark's file.", metavar="FOLDER_OR_FILE")
    ],
    html: Annotated[
        Path | None, typer.Option("--html", help="Page to write; by default report.html in the folder.")
    ] = None,
    results: Annotated[
        Path | None, typer.Option("--results", help="Results to write; by default results.json in the folder.")
    ] = None,
    jobs: JobsOption = 1,
    quick: QuickOption = False,
    smoke: SmokeOption = False,
    as_json: JsonOption = False,
) -> None:
    """Measure the stored runs; write all results as JSON and a page with tables and charts.

    Example: quorumhash bench report benchmarks/quality/panel.toml --html panel.html
    """
    import json

    from quorumhash.atomic import replacing
    from quorumhash.bench.panel import read_panel
    from quorumhash.bench.panelpage import panel_report
    from quorumhash.bench.scores import as_plain, measure_panel
    from quorumhash.progress import task_bar
    from quorumhash.report import write_report
    from quorumhash.viewfiles import require_writable

    found = [profile for profile, name in COPIES.items() if (source / name).is_file()]
    profile = _profile(quick, smoke) or (found[0] if found else "")
    panel = read_panel(source / COPIES[profile] if source.is_dir() else source, profile)
    folder = source if source.is_dir() else panel.runs_folder()
    page, stored = html or folder / "report.html", results or folder / "results.json"
    if not folder.is_dir():
        raise ParameterError(f"there is no folder {folder} with runs; do `quorumhash bench run {source}` first.")
    require_writable(page)
    require_writable(stored)
    with task_bar(True, len(panel.settings()), "measuring") as done:
        scores = measure_panel(panel, folder, jobs, done)
    if not scores.measured:
        raise ParameterError(f"{folder} holds no run of {panel.path}; do `quorumhash bench run` first.")
    with replacing(stored) as file:
        file.write((json.dumps(as_plain(scores)) + "\n").encode())
    write_report(page, panel_report(scores))
    n_measured, n_planned = len(scores.measured), len(panel.settings())
    facts = {"page": str(page), "results": str(stored), "measured": n_measured, "runs": n_planned}
    say(as_json, facts, f"Wrote {page} and {stored}: {n_measured} of {n_planned} runs.")


@bench.command("paper")
def paper_bench(
    files: Annotated[list[Path], typer.Argument(help="Files of the paper's experiments, .toml.", metavar="FILE...")],
    results: Annotated[Path, typer.Option("--results", help="Folder of the results, one JSON file each.")] = Path(
        "benchmarks/results"
    ),
    html: Annotated[Path | None, typer.Option("--html", help="One page of all results that are in the folder.")] = None,
    grid: Annotated[list[str] | None, typer.Option("--grid", help="Only this grid; others keep their results.")] = None,
    method: MethodOption = None,
    stored: Annotated[bool, typer.Option("--stored", help="Run nothing; measure what is stored.")] = False,
    jobs: JobsOption = 1,
    smoke: SmokeOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run the paper's experiments, write their results, one JSON file each, and a page with its numbers beside ours.

    Example: quorumhash bench paper benchmarks/paper/mnist.toml --html paper.html
    """
    import json

    from quorumhash.atomic import replacing
    from quorumhash.bench.panel import read_panel
    from quorumhash.bench.paper import merged, paper_results, stored_results
    from quorumhash.bench.paperpage import paper_report
    from quorumhash.bench.scores import measure_panel
    from quorumhash.bench.workbench import make_folder, run_settings
    from quorumhash.progress import task_bar
    from quorumhash.report import write_report

    make_folder(results)
    written: list[dict[str, Any]] = []
    for path in files:
        whole = read_panel(path, _profile(False, smoke))
        panel = whole.only(grid, method)
        settings, folder = panel.settings(), panel.runs_folder() if not smoke else results / f"{path.stem}.smoke.runs"
        if not stored:
            with task_bar(True, len(settings), path.stem) as done:
                run_settings(settings, folder, jobs, done)
        with task_bar(True, len(settings), "measuring") as done:
            scores = measure_panel(panel, folder, jobs, done)
        for experiment, result in paper_results(scores, whole, f"quorumhash bench paper {_shown(path)}").items():
            target = results / f"{experiment}_{path.stem}.json"
            if (grid or method) and target.is_file():  # what others gave stays
                result = merged(json.loads(target.read_text(encoding="utf-8")), result, whole)
            with replacing(target) as file:
                file.write((json.dumps(result, separators=(",", ":")) + "\n").encode())
            written.append({"file": str(target), "rows": len(result["rows"]), "planned": result["planned"]})
            if not as_json:  # hours may lie between two files
                typer.echo(f"Wrote {target.name}: {len(result['rows'])} of {result['planned']} rows.")
    if html is not None:
        write_report(html, paper_report(stored_results(results)))
    facts = {"results": written, "page": None if html is None else str(html)}
    if as_json or html is not None:
        say(as_json, facts, f"Wrote {html}.")


@bench.command("list")
def list_benches(
    folder: Annotated[Path, typer.Argument(help="Where to look for files.")] = Path("benchmarks"),
    as_json: JsonOption = False,
) -> None:
    """List the benchmark files of a folder: what each shows, how many of its runs are stored.

    Example: quorumhash bench list
    """
    from quorumhash.bench.panel import read_panel
    from quorumhash.bench.runs import SUFFIX, n_stored
    from quorumhash.errors import QuorumHashError

    rows: list[dict[str, Any]] = []
    for path in sorted(folder.rglob("*.toml")):
        if path.name in COPIES.values() and any(path.parent.glob(f"*{SUFFIX}")):
            continue
        try:
            panel = read_panel(path)
        except QuorumHashError as error:
            rows.append({"file": str(path), "error": str(error)})
            continue
        settings = panel.settings()
        stored = n_stored(panel.runs_folder(), settings)
        rows.append({"file": str(path), "title": panel.title, "runs": len(settings), "stored": stored})
    lines = [
        row["error"]
        if "error" in row
        else f"{row['file']}: {row['title']} ({row['stored']} of {row['runs']} runs stored)"
        for row in rows
    ]
    sentence = "\n".join(map(str, lines)) or f"There is no benchmark's file (.toml) in {folder}."
    say(as_json, {"benchmarks": rows}, sentence)
