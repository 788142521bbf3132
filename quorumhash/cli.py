"""The command line: a thin coat over the library. Heavy imports wait inside the commands, so --help is quick."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from quorumhash.auditcli import audit
from quorumhash.bench.cli import bench
from quorumhash.datasetscli import datasets
from quorumhash.errors import QuorumHashError
from quorumhash.index.cli import index, search
from quorumhash.printing import JsonOption, note, say
from quorumhash.usage import Commands, UsageError
from quorumhash.web.cli import serve

app = typer.Typer(
    name="quorumhash",
    cls=Commands,
    help="Short binary codes for items seen through several views, some of them damaged or missing.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)
app.add_typer(bench)
app.add_typer(index)
app.command()(search)
app.command()(serve)
app.add_typer(datasets)
app.command()(audit)

ViewsArgument = Annotated[
    list[str],
    typer.Argument(
        help="One .npz with an array per view, one .csv, .parquet or .lance with columns name__feature, or name=path "
        "for each view.",
        metavar="VIEWS...",
    ),
]


def main() -> None:
    """Run the command; a deliberate error is one sentence and exit status 2, a warning one line."""
    warnings.showwarning = _show_warning
    try:
        app(prog_name="quorumhash")
    except QuorumHashError as error:
        if "--debug" in sys.argv and not isinstance(error, UsageError):
            raise
        typer.echo(f"quorumhash: {error}", err=True)
        raise SystemExit(2) from None
    except SystemExit as error:
        if not _is_interrupted(error):
            raise
        typer.echo("quorumhash: stopped; every file is the old one or a whole new one.", err=True)
        raise SystemExit(130) from None
    except MemoryError:
        typer.echo("quorumhash: there is not enough memory for this: use fewer bits, rows or landmarks.", err=True)
        raise SystemExit(2) from None


def _is_interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C is what ended the command, and the command did not speak of it itself."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ if error.__suppress_context__ else error.__context__
    return error is not None


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    note(str(message))


def _version(is_asked: bool) -> None:
    if is_asked:
        from quorumhash import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error; goes before the command.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    pass


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to write the page.")] = Path("report.html"),
    as_json: JsonOption = False,
) -> None:
    """Damage digits in four views, learn codes, search, score; print tables and write report.html.

    Example: quorumhash demo
    """
    from quorumhash.demo import demo_report, demo_tables, planned_runs, run_demo
    from quorumhash.progress import task_bar
    from quorumhash.report import print_table, write_report
    from quorumhash.viewfiles import require_writable

    require_writable(out)
    with task_bar(True, len(planned_runs()), "demo") as done:
        results = run_demo(done)
    write_report(out, demo_report(results))
    tables = demo_tables(results)
    if not as_json:
        for table in tables.values():
            print_table(table)
            typer.echo("")
    rows = {name: [dict(zip(t.columns, row, strict=True)) for row in t.rows] for name, t in tables.items()}
    facts = {"report": str(out), "seconds": round(results.seconds, 1), "tables": rows}
    say(as_json, facts, f"Wrote {out} ({results.seconds:.0f} s for {len(planned_runs())} fits).")


def _methods() -> list[str]:
    from quorumhash.hashers import HASHERS

    return list(HASHERS)


@app.command()
def fit(
    views: ViewsArgument,
    out: Annotated[Path, typer.Option("--out", "-o", help="Model file to write.")] = Path("items.qh"),
    bits: Annotated[int, typer.Option("--bits", help="Bits per code.")] = 64,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            help="Which hasher: quorum, rmvh, itq, lsh, klsh, sh, pcah, agh, imh, kitq, epamh, mfh, chms, ckh, ssh, "
            "mvlh, vote, repair_itq, knn_repair_itq, gcca_itq, rpca_itq or view_select.",
            autocompletion=_methods,
        ),
    ] = "quorum",
    labels: Annotated[
        Path | None, typer.Option("--labels", help="Labels of the rows, .npy, for methods that learn from them.")
    ] = None,
    engine: Annotated[str, typer.Option("--engine", help="Where the rows are walked.")] = "threads",
    seed: Annotated[int, typer.Option("--seed", help="Seed of every random draw.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Learn hash functions from views and write a model file.

    Example: quorumhash fit views.npz -o items.qh --bits 64
    """
    import time

    from quorumhash.errors import ParameterError
    from quorumhash.hashers import HASHERS
    from quorumhash.progress import watching
    from quorumhash.viewfiles import read_array, read_views, require_writable

    require_writable(out)
    if method not in HASHERS:
        raise ParameterError(f"--method must be one of {', '.join(HASHERS)}, got {method!r}.")
    hasher = HASHERS[method](n_bits=bits, random_state=seed)
    y = None if labels is None else read_array(labels)
    with watching(f"fit {method}"):
        given, started = read_views(views), time.perf_counter()
        hasher.fit(given, y, engine=engine)
    hasher.save(out)
    seconds = round(time.perf_counter() - started, 2)
    facts = {"model": str(out), "method": method, "bits": bits, "rows": len(given), "views": given.widths,
             "seconds": seconds, "fingerprint": hasher.fingerprint()}  # fmt: skip
    say(as_json, facts, f"Wrote {out}: {method}, {bits} bits, from {given} in {seconds} s.")


@app.command()
def encode(
    model: Annotated[Path, typer.Argument(help="Model file.", metavar="MODEL")],
    views: ViewsArgument,
    out: Annotated[
        str, typer.Option("--out", "-o", help="Codes to write, .npy; or, for shards, the folder for them.")
    ] = "codes.npy",
    unpacked: Annotated[bool, typer.Option("--unpacked", help="One byte per bit instead of eight bits.")] = False,
    engine: Annotated[str, typer.Option("--engine", help="Where the rows are walked.")] = "threads",
    store: Annotated[str, typer.Option("--store", help="Shards: URL of a store that the codes go into too.")] = "",
    first_id: Annotated[int, typer.Option("--first-id", help="Shards: id of the first row in the store.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Turn views into codes with a model; views may be missing, values may be NaN.

    Where --out is a folder, or ends in /, every argument is a shard with all views of its rows: .npz, .npy, .parquet,
    .lance, or a folder with a .npy for each view. Each gets a file of codes; those that are finished are passed over,
    so the same command goes on where it was stopped.

    Example: quorumhash encode items.qh views.npz -o codes.npy

    Example: quorumhash encode items.qh part-*.npz -o codes/
    """
    from quorumhash.errors import ParameterError
    from quorumhash.hashers import load
    from quorumhash.progress import watching
    from quorumhash.viewfiles import read_views, require_writable, write_array

    if out.endswith("/") or os.path.isdir(out):
        if unpacked:
            raise ParameterError("--unpacked is for one file of codes: codes of shards are packed.")
        _encode_shards(load(model), views, out, engine, (store, first_id), as_json)
        return
    if store or first_id:
        raise ParameterError("--store and --first-id are for shards: give --out a folder, ending in /.")
    require_writable(Path(out))
    hasher = load(model)
    with watching("encode"):
        codes = hasher.transform(read_views(views), packed=not unpacked, engine=engine)
    write_array(out, codes)
    facts = {"codes": str(out), "rows": len(codes), "bits": hasher.n_bits, "bytes_per_code": codes.shape[1],
             "fingerprint": hasher.fingerprint()}  # fmt: skip
    say(as_json, facts, f"Wrote {out}: {len(codes)} codes of {hasher.n_bits} bits ({codes.shape[1]} bytes each).")


def _encode_shards(
    hasher: Any, shards: list[str], out: str, engine: str, target: tuple[str, int], as_json: bool
) -> None:
    from contextlib import ExitStack
    from itertools import count

    from quorumhash.index.adapters import open_store
    from quorumhash.progress import watching
    from quorumhash.shardcodes import encode_shards

    with ExitStack() as opened:
        store = opened.enter_context(open_store(target[0], hasher.n_bits)) if target[0] else None
        rename, numbers = opened.enter_context(watching("encode")), count(1)
        encoded = encode_shards(
            hasher, shards, out, engine=engine, store=store, first_id=target[1],
            done=lambda _: rename(f"encode, {next(numbers)} of {len(shards)} shards done"),
        )  # fmt: skip
    n_rows, n_new = sum(shard.n_rows for shard in encoded), sum(shard.is_new for shard in encoded)
    facts = {"folder": out, "shards": len(encoded), "new": n_new, "rows": n_rows, "bits": hasher.n_bits,
             "fingerprint": hasher.fingerprint()}  # fmt: skip
    say(as_json, facts, f"{out}: {len(encoded)} shards, {n_rows} codes; {n_new} shards encoded now.")


@app.command()
def doctor(as_json: JsonOption = False) -> None:
    """Say what this installation has: versions, threads, Hamming kernel, extras.

    Example: quorumhash doctor
    """
    from quorumhash.doctor import examine

    facts = examine()
    lines = [f"{name:<18}{value}" for name, value in facts.items()]
    say(as_json, facts, "\n".join(lines))
