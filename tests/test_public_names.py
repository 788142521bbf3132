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
    "VoteHasher", "audit", "convert_codes", "damage", "encode_shards", "extract_features", "hamming_distances",
    "learn_vocabulary", "load", "load_dataset", "lookup_precision", "mean_average_precision", "nearest_rows",
    "neighbour_recall", "open_store", "precision_recall", "shards", "shared_labels", "__version__",
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


def test_help_loads_no_numerical_library():
    assert not loaded_by("import quorumhash.cli") & {"numpy", "scipy", "sklearn"}
