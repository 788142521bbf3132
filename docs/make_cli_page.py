"""Write docs/cli.md from the help of every command.

python docs/make_cli_page.py    writes the page; tests/test_docs.py fails when it is stale.

The help is the commands' own `--help` without boxes and colours, 100 columns wide. How a value is written there
(`<path>`, `PATH`) and in which order commands are listed is typer's choice and differs between its releases, so
`comparable` leaves it out.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from pathlib import Path
from typing import Any
from unittest import mock

import typer
from typer.main import get_command

from quorumhash.cli import app

PAGE = Path(__file__).with_name("cli.md")
COLUMNS = 100
ENVIRONMENT = {"COLUMNS": str(COLUMNS), "TERMINAL_WIDTH": str(COLUMNS), "NO_COLOR": "1", "TERM": "dumb"}
ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
USAGE = re.compile(r"^Usage: [\s\S]*?\n\n|^Commands:\n(?:  .*\n)+", re.MULTILINE)
VALUES = re.compile(r"<[\w\[\]|]+>|\b(?:BOOLEAN|DIRECTORY|FILE|FLOAT|INTEGER|PATH|TEXT)\b")

LEAD = """# Command line

<!-- written by docs/make_cli_page.py from the commands' own help; do not edit -->

The command line is a thin coat over the library. What goes wrong is one sentence on the error stream and exit status
2; `quorumhash --debug COMMAND ...` shows the traceback. With `--json` a command prints one JSON object. Files of
views are described in [Files](files.md#views-files).
"""


def commands() -> dict[str, Any]:
    """Every command by the words that call it, the program itself first; help without boxes."""
    found: dict[str, Any] = {}

    def walk(words: str, command: Any) -> None:
        command.rich_markup_mode = None
        command.context_settings = {**(command.context_settings or {}), "max_content_width": COLUMNS}
        found[words] = command
        parts = getattr(command, "commands", {})
        for name in command.list_commands(typer.Context(command)) if parts else ():
            if not parts[name].hidden:
                walk(f"{words} {name}", parts[name])

    walk("quorumhash", get_command(app))
    return found


def help_of(words: str) -> str:
    """What `words --help` prints."""
    program, *arguments = words.split()
    printed = io.StringIO()
    with mock.patch.dict(os.environ, ENVIRONMENT), contextlib.redirect_stdout(printed):
        commands()[program].main([*arguments, "--help"], prog_name=program, standalone_mode=False)
    lines = ANSI.sub("", printed.getvalue()).replace("\\[", "[").splitlines()  # some releases escape the bracket
    return "\n".join(line.rstrip() for line in lines).strip()


def page() -> str:
    """The whole page."""
    parts = [f"## {words}\n\n```text\n{help_of(words)}\n```\n" for words in commands()]
    return "\n".join([LEAD, *parts])


def comparable(text: str) -> str:
    """A page without what typer's releases write differently: usage, names of values, where lines and columns break."""
    return " ".join(VALUES.sub(" ", USAGE.sub("", text)).split()).lower()


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
