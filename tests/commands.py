"""The command line called in this process: starting a new one takes two seconds and proves nothing more."""

import contextlib
import io
import os
import sys
import traceback
import warnings
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from quorumhash.cli import main


def call(*words, cwd=None, **environment):
    """What a command prints on both streams, and its exit status, with the warnings that its users have."""
    out, err, status = io.StringIO(), io.StringIO(), 0
    with (
        contextlib.chdir(cwd or Path.cwd()),
        mock.patch.object(sys, "argv", ["quorumhash", *map(str, words)]),
        mock.patch.dict(os.environ, {"NO_COLOR": "1", "COLUMNS": "80", **environment}),
        warnings.catch_warnings(),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        warnings.resetwarnings()
        for kind in (DeprecationWarning, ImportWarning, PendingDeprecationWarning, ResourceWarning):
            warnings.simplefilter("ignore", kind)  # as Python itself starts
        try:
            main()
        except SystemExit as end:
            status = end.code or 0
        except Exception:
            traceback.print_exc()
            status = 1
    return SimpleNamespace(stdout=out.getvalue(), stderr=err.getvalue(), returncode=status)
