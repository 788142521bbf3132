"""Stores of other programs behind one door: `open_store(url)`."""

from __future__ import annotations

import importlib
from urllib.parse import urlsplit

from quorumhash.errors import ParameterError
from quorumhash.index.adapters.base import Store

STORES = {"faiss": "faiss", "lancedb": "lancedb", "postgresql": "postgres", "postgres": "postgres", "milvus": "milvus"}


def open_store(url: str, n_bits: int | None = None) -> Store:
    """Open a store of codes by its URL; `n_bits` is needed for a new one.

    | url | store |
    |---|---|
    | `faiss://flat`, `faiss://ivf?lists=1024&probes=8` | faiss in the memory of this process; ivf is approximate |
    | `lancedb:///folder?table=codes` | LanceDB in a folder |
    | `postgresql://user:password@host/database?table=codes` | PostgreSQL with pgvector 0.7 or newer |
    | `milvus://host:19530?table=codes`, `milvus:///file.db` | Milvus, a server or the embedded one |

    >>> import numpy as np
    >>> with open_store("faiss://flat", n_bits=8) as store:  # doctest: +SKIP
    ...     store.add(np.array([[7], [9]], dtype=np.uint8), ids=[10, 20])
    ...     store.search(np.array([[9]], dtype=np.uint8), k=1).ids.tolist()
    [[20]]
    >>> open_store("redis://localhost")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    quorumhash.errors.ParameterError: a store's URL must begin with faiss://, lancedb://, postgresql:// or ...
    """
    scheme = urlsplit(url).scheme
    if scheme not in STORES:
        raise ParameterError(
            f"a store's URL must begin with faiss://, lancedb://, postgresql:// or milvus://, got {scheme or url!r}; "
            "an index file is opened by HammingIndex.open."
        )
    opened: Store = importlib.import_module(f"quorumhash.index.adapters.{STORES[scheme]}").open_url(url, n_bits)
    return opened
