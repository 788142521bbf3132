"""`quorumhash audit`: what is wrong with views, on the terminal, as JSON, CSV and page; a thin coat."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from quorumhash.errors import ParameterError
from quorumhash.printing import JsonOption


def audit(
    views: Annotated[
        list[str],
        typer.Argument(
            help="One .npz with an array per view, one .csv, .parquet or .lance with columns name__feature, or "
            "name=path for each view.",
            metavar="VIEWS...",
        ),
    ],
    model: Annotated[
        Path | None, typer.Option("--model", help="Model file of a quorum hasher that says what is normal.")
    ] = None,
    sources: Annotated[
        list[str] | None,
        typer.Option("--source", "--sources", help="Views that err together, such as photo=gist,words; once a source."),
    ] = None,
    false_alarms: Annotated[
        float, typer.Option("--false-alarms", help="Share of undamaged views that may look suspicious.")
    ] = 0.01,
    csv: Annotated[Path | None, typer.Option("--csv", help="Write every damaged pair of row and view.")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write a page.")] = None,
    images: Annotated[
        Path | None,
        typer.Option("--images", help="Folder of pictures for the page, named by row number or one per row."),
    ] = None,
    engine: Annotated[str, typer.Option("--engine", help="Where the rows are walked.")] = "threads",
    seed: Annotated[int, typer.Option("--seed", help="Seed of the sample that is learned from.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Say what is wrong with views: kinds of damage, rows, and the rows that misplaced data belong to.

    Example: quorumhash audit views.npz --html audit.html
    """
    from rich.console import Console

    from quorumhash.auditing import audit as audit_views
    from quorumhash.hashers import load
    from quorumhash.progress import watching
    from quorumhash.viewfiles import read_views, require_writable

    for path in (csv, html):
        if path is not None:
            require_writable(path)
    if images is not None and html is None:
        raise ParameterError("--images shows pictures on the page: give --html too.")
    with watching("audit"):
        report = audit_views(
            read_views(views),
            _sources(sources or []),
            false_alarms=false_alarms,
            model=None if model is None else load(model),
            random_state=seed,
            engine=engine,
        )
    if csv is not None:
        report.to_csv(csv)
    if html is not None:
        report.to_html(html, images=images)
    if as_json:
        typer.echo(report.to_json())
    else:
        Console().print(report.table())


def _sources(words: list[str]) -> dict[str, list[str]] | None:
    """From photo=gist,words, or one JSON object, to a dict."""
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        try:
            found = json.loads(words[0])
        except json.JSONDecodeError as error:
            raise ParameterError(f"--sources must be JSON or name=view,view, got {words[0]!r}.") from error
        return dict(found)
    named: dict[str, list[str]] = {}
    for word in words:
        name, mark, members = word.partition("=")
        if not (name and mark and members):
            raise ParameterError(f"--source must be name=view,view such as photo=gist,words, got {word!r}.")
        named[name] = members.split(",")
    return named or None
