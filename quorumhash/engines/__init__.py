"""Engines: where rows live and how they are walked (six verbs; see base.py)."""

from __future__ import annotations

from quorumhash.engines.base import Engine, Rows
from quorumhash.errors import ParameterError

__all__ = ["Engine", "Rows", "open_engine"]


def open_engine(engine: str | Engine) -> Engine:
    """The engine of that name, or the one given: "threads", "torch", "torch:cuda", "torch:cuda:1".

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
    raise ParameterError(f"engine must be 'threads', 'torch', 'torch:cuda' or an Engine, got {engine!r}.")
