"""Scripts of benchmarks/quality, which is no package, as modules."""

import importlib.util
from pathlib import Path

QUALITY = Path(__file__).parents[1] / "benchmarks" / "quality"


def quality_script(name):
    """The script of that name, imported anew."""
    spec = importlib.util.spec_from_file_location(name, QUALITY / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
