"""Wrong usage of the command line (unknown options and commands, missing or unreadable values) as one sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperGroup

from quorumhash.errors import ParameterError

# typer brings a click of its own, or takes the installed one, by its release: this is the right one of the two
WrongUsage: type[Exception] = typer.BadParameter.__mro__[1]
ORDER = ("demo", "fit", "encode", "index", "search", "audit", "serve", "datasets", "bench", "doctor")
HELP_ASKED = "NoArgsIsHelpError"  # a group called without a command: its help is already printed


class UsageError(ParameterError):
    """The words of a command are not what it takes."""


class Commands(TyperGroup):
    """The commands in the order in which people meet them; what typer would draw as a box is a `UsageError`."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names for the help; one that is not in ORDER comes last."""
        return sorted(super().list_commands(ctx), key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))

    def make_context(self, info_name: str | None, *words: Any, **more: Any) -> Any:
        """Read the options before the command."""
        with _as_sentence(None):
            return super().make_context(info_name, *words, **more)

    def invoke(self, ctx: Any) -> Any:
        """Find the command, read its words, call it."""
        with _as_sentence(ctx):
            return super().invoke(ctx)


@contextmanager
def _as_sentence(ctx: Any) -> Iterator[None]:
    try:
        yield
    except WrongUsage as error:
        if type(error).__name__ == HELP_ASKED:
            raise
        raise UsageError(_sentence(error, ctx)) from error


def _sentence(error: Any, ctx: Any) -> str:
    """What is wrong, what may have been meant, and where to look."""
    if getattr(error, "option_name", "") == "--debug":
        return "--debug goes before the command: quorumhash --debug COMMAND ..."
    likely = list(getattr(error, "possibilities", None) or ())
    text = " ".join((error.message if likely else error.format_message()).split()).rstrip(".?")
    text = re.sub(r"[.?]? Did you mean", ", did you mean", text)
    text = text.replace(": Input should", ": input should") + _given(error)
    meant = f", did you mean {' or '.join(sorted(likely))}" if likely and "did you mean" not in text else ""
    called = "quorumhash" if ctx is None else f"{ctx.command_path} {ctx.invoked_subcommand or ''}".strip()
    return f"{text[:1].lower()}{text[1:]}{meant}; see {error.ctx.command_path if error.ctx else called} --help."


def _given(error: Any) -> str:
    """The value that could not be read, where typer's sentence leaves it out."""
    faults: list[Any] = getattr(error.__cause__, "errors", list)()
    return f", got {faults[0]['input']!r}" if faults else ""
