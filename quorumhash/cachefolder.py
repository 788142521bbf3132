"""Where what can be made again is kept: the folder QUORUMHASH_CACHE names, else the user's cache of the platform."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from quorumhash.errors import ParameterError

CACHE_VARIABLE = "QUORUMHASH_CACHE"


def cache_folder(*parts: str, is_made: bool = True) -> Path:
    """The cache folder, or a folder in it; made where it is not there yet.

    >>> cache_folder("features", is_made=False).name
    'features'
    """
    folder = _root().joinpath(*parts)
    try:
        if is_made:
            folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ParameterError(
            f"the cache folder {folder} cannot be made ({error.strerror or error}): set {CACHE_VARIABLE} to a folder "
            "that may be written to."
        ) from error
    return folder


def _root() -> Path:
    named = os.environ.get(CACHE_VARIABLE, "")
    if named:
        return Path(named)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA", "")
        return (Path(base) if base else Path.home() / "AppData" / "Local") / "quorumhash" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "quorumhash"
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base else Path.home() / ".cache") / "quorumhash"
