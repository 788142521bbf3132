"""Engines: where rows live and how they are walked (six verbs; see base.py)."""

from __future__ import annotations

from typing import Any

from quorumhash.engines.base import Engine, Rows
from quorumhash.errors import ParameterError

__all__ = ["Engine", "Rows", "open_engine"]


def open_engine(engine: Any) -> Engine:
    """The engine of that name, or the one given.

    "threads"; "torch", "torch:cuda", "torch:cuda:1"; "dask" (workers of its own), "dask:tcp://host:8786" or a
    distributed.Client.

    >>> type(open_engine("threads")).__name__
    'ThreadsEngine'
    """
    if isinstance(engine, Engine):
        return engine
    if engine == "threads":
        from quorumhash.engines.threads import ThreadsEngine

        return ThreadsEngine()
    if isinstance(engine, str) and engine.partition(":")[0] == "torch":
        from quorumhash.engines.torchengine import TorchEngine

        return TorchEngine(engine.partition(":")[2] or "cpu")
    is_client = type(engine).__module__.partition(".")[0] == "distributed"
    if is_client or (isinstance(engine, str) and engine.partition(":")[0] == "dask"):
        from quorumhash.engines.daskengine import DaskEngine

        return DaskEngine(engine if is_client else engine.partition(":")[2] or None)
    raise ParameterError(
        "engine must be 'threads', 'torch', 'torch:cuda', 'dask', 'dask:tcp://host:port', a distributed.Client or an "
        f"Engine, got {engine!r}."
    )
