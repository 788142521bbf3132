"""The public face, and what importing costs."""

import importlib
import pkgutil
import subprocess
import sys

import quorumhash

PUBLIC = [
    "AnchorGraphHasher", "AuditReport", "CHMSHasher", "CKHHasher", "ConsensusHasher", "DATASETS", "Dataset",
    "EPAMHHasher", "EngineError", "GCCAHasher", "HASHERS", "HammingIndex", "ITQHasher", "IndexFileError",
    "IndexLockedError", "InductiveManifoldHasher", "KLSHHasher", "KernelITQHasher", "KnnRepairITQHasher", "LSHHasher",
    "MFHHasher", "MVLHHasher", "Matches", "MissingExtraError", "ModelFileError", "Neighbourhoods", "PCAHasher",
    "ParameterError", "QuorumHashError", "QuorumHasher", "RankWarning", "RefusedError", "RepairITQHasher",
    "RobustPCAHasher", "SSHHasher", "SpectralHasher", "StoreError", "ViewSelectHasher", "Views", "ViewsError",
    "VoteHasher", "audit", "convert_codes", "damage", "embed_texts", "encode_shards", "extract_features",
    "hamming_distances", "learn_vocabulary", "load", "load_dataset", "lookup_precision", "mean_average_precision",
    "nearest_rows", "neighbour_recall", "open_store", "precision_recall", "shards", "shared_labels", "__version__",
]  # fmt: skip


def modules():
    return [m.name for m in pkgutil.walk_packages(quorumhash.__path__, "quorumhash.")]


def test_public_names_are_these_and_sorted():
    assert quorumhash.__all__ == PUBLIC
    assert quorumhash.__all__[:-1] == sorted(quorumhash.__all__[:-1])
    assert dir(quorumhash) == sorted(PUBLIC)


def test_public_names_survive_the_import_of_every_module():
    """A lazily imported package loses a function that bears the name of one of its modules."""
    names = modules()
    for name in names:
        importlib.import_module(name)
    for name in PUBLIC:
        assert not isinstance(getattr(quorumhash, name), type(sys))
    assert not {name.rpartition(".")[2] for name in names} & set(PUBLIC)


def test_unknown_names_are_attribute_errors():
    assert not hasattr(quorumhash, "FooHasher")


def loaded_by(code):
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {code}; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_import_is_light():
    heavy = {"scipy", "sklearn", "pandas", "rich", "typer", "torch", "dask", "matplotlib", "faiss", "fastapi"}
    assert not loaded_by("import quorumhash") & heavy
    assert not loaded_by("from quorumhash import Views") & (heavy | {"scipy"})


HELP_OF_ALL = """
import contextlib, io
from typer.main import get_command
from quorumhash.cli import app

def show(command, *words):
    with contextlib.redirect_stdout(io.StringIO()) as said:
        get_command(app).main([*words, '--help'], prog_name='quorumhash', standalone_mode=False)
    assert 'Usage' in said.getvalue(), words
    for name, part in getattr(command, 'commands', {}).items():
        show(part, *words, name)

show(get_command(app))
"""


def test_help_of_every_command_loads_nothing_heavy():
    """Half a second is what people wait for help: typer (with its pydantic) and rich have it to themselves."""
    heavy = {"numpy", "scipy", "sklearn", "torch", "dask", "distributed", "pandas", "pyarrow", "fastapi", "uvicorn",
             "PIL", "cv2", "matplotlib", "faiss", "sqlite3", "urllib3", "requests"}  # fmt: skip
    loaded = loaded_by(f"exec({HELP_OF_ALL!r})")
    assert {"typer", "rich"} <= loaded
    assert loaded & heavy == set()
