"""Where a result comes from: versions, machine and commit; no host name, no paths, nothing personal."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import subprocess
from pathlib import Path

from quorumhash._version import __version__

PACKAGES = ("numpy", "scipy", "scikit-learn")
CPU_MODEL = re.compile(r"^model name\s*:\s*(.+)$", re.MULTILINE)


def provenance(n_threads: int) -> dict[str, str]:
    """Facts that a result is stored with, by name; `n_threads` is how many the engine uses.

    >>> provenance(n_threads=2)["engine"]
    'threads, 2'
    """
    return {
        "quorumhash": __version__,
        "commit": commit() or __version__,
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in PACKAGES},
        "cpu": _cpu_model(),
        "cores": str(os.cpu_count() or 1),
        "platform": f"{platform.system()} {platform.machine()}",
        "engine": f"threads, {n_threads}",
    }


def commit() -> str:
    """The commit that the library runs from, with a + where its files were changed since; "" outside a clone."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():  # a folder further up may be somebody else's clone
        return ""
    head, changes = _git(root, "rev-parse", "--short=12", "HEAD"), _git(root, "status", "--porcelain", "quorumhash")
    return f"{head}{'+' if changes else ''}" if head else ""


def _git(root: Path, *words: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def _cpu_model() -> str:
    try:
        found = CPU_MODEL.search(Path("/proc/cpuinfo").read_text(errors="replace"))
    except OSError:
        found = None
    return found.group(1).strip() if found else platform.processor() or platform.machine()
