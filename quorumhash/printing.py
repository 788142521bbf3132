"""What every command of the command line prints with."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


def say(as_json: bool, facts: dict[str, Any], sentence: str) -> None:
    """Print the facts as one JSON object, or the sentence."""
    typer.echo(json.dumps(facts) if as_json else sentence)


def note(sentence: str) -> None:
    """Print a line on the error stream that is no error."""
    typer.echo(f"quorumhash: note: {sentence}", err=True)
