"""Imports point only downward, optional packages have one door, files stay small."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "quorumhash"

LEVELS = [
    {
        "_native", "_native.layout", "_version", "atomic", "bench", "bench.settings", "engines.base", "errors",
        "index", "index.idset", "index.journal", "index.matches", "index.neartiles", "printing", "progress", "steps",
        "steps.simplex", "steps.thresholds", "supervision", "tensors",
    },
    {
        "_drawing", "bench.paneltable", "bench.provenance", "cachefolder", "codes", "datasets.download", "evaluation",
        "features.opencv", "features.pictures", "hashers.labels", "hashers.plain", "index.rescoring",
        "index.writerlock", "matrices", "modelfile", "patches", "similarity",
    },
    {
        "_native.fallback", "engines.threads", "engines.torchengine", "features.colour_moments", "features.gist",
        "features.wavelet_texture", "index.arguments", "index.segments", "overlap", "report", "views",
    },
    {"engines.partitions", "parquetfiles"},
    {"engines.daskengine"},
    {
        "_native.kernels", "bench.processes", "corruption", "datasets.base", "engines", "hashers.columns",
        "index.adapters.base", "index.database", "viewfiles", "viewworth",
    },
    {
        "datasets.digits", "datasets.files", "doctor", "hashers.base", "index.adapters", "index.adapters.faiss",
        "index.adapters.lancedb", "index.adapters.milvus", "index.adapters.postgres", "index.bands", "index.searching",
        "index.segmentreader", "proximal", "scaling", "shardfiles",
    },
    {
        "checks", "datasets.coco5", "datasets.mfeat", "datasets.nuswide", "datasets.sources", "index.codetable",
        "index.store", "landmarks", "nested", "querykernel", "steps.agreement", "steps.directions", "steps.smoothness",
        "shardedrows", "sweeps", "targets",
    },
    {
        "calibration", "consensus", "coordinates", "datasets.idx", "evidence", "features.visual_words",
        "hashers.epamh", "hashers.itq", "hashers.lsh", "hashers.pcah", "hashers.sh", "index.devicetable",
        "index.items", "index.pairing", "index.planning", "kernelspace", "nearness", "repair", "steps.averagedgraph",
        "steps.components", "steps.latentbits", "steps.lineartargets", "viewoptions",
    },
    {
        "encoding", "features.extraction", "hashers.chms", "hashers.kitq", "hashers.klsh", "hashers.mfh",
        "hashers.ssh", "index.hamming", "steps.bounds", "steps.centredkernels", "steps.classgraph",
        "steps.joinedgraph", "trust",
    },
    {
        "features", "hashers.agh", "hashers.ckh", "hashers.gcca", "hashers.imh", "hashers.mvlh", "hashers.rmvh",
        "hashers.view_select", "steps.kernelridge", "steps.neighbourhood", "steps.subspace", "trustlearning",
    },
    {"datasets.picturesets", "hashers.knn_repair", "hashers.rpca", "hashers.vote", "judging", "steps.crossview"},
    {"datasets.cifar10", "datasets.fashion_mnist", "datasets.mnist", "hashers.repair", "quorum"},
    {"datasets", "hashers.quorum"},
    {"datasets.catalogue", "hashers"},
    {"bench.peers", "bench.weighting", "datasetscli", "index.cli", "shardcodes"},
    {"bench.panelmethods", "experiment"},
    {"bench.panel", "bench.runs", "demo"},
    {"bench.workbench"},
    {"bench.scores"},
    {"bench.panelpage"},
    {"bench.cli"},
    {"cli"},
]  # fmt: skip
OPTIONAL = {
    "torch", "dask", "distributed", "matplotlib", "faiss", "fastapi", "cv2", "pywt", "lancedb", "pyarrow", "psycopg",
    "pymilvus", "triton",
}  # fmt: skip


def files():
    return {_name(path): path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py"}


def _name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ([node.module] if node.module != "quorumhash" else [f"quorumhash.{a.name}" for a in node.names])
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def level_of(name):
    return next(i for i, level in enumerate(LEVELS) if name in level)


def test_every_file_has_a_level():
    assert set(files()) == set().union(*LEVELS)


@pytest.mark.parametrize("name", sorted(files()))
def test_imports_point_downward(name):
    for imported in imports(files()[name]):
        if imported.startswith("quorumhash."):
            other = imported.removeprefix("quorumhash.")
            if other in files():
                assert level_of(other) < level_of(name), f"{name} must not import {other}"


def test_no_hasher_imports_another():
    hashers = {name for name in files() if name.startswith("hashers.")} - {
        "hashers.base",
        "hashers.columns",
        "hashers.labels",
        "hashers.plain",
    }
    for name in hashers:
        assert not {i.removeprefix("quorumhash.") for i in imports(files()[name])} & hashers


def test_optional_packages_have_one_door_in_a_room():
    for package in OPTIONAL:
        doors = [name for name, path in files().items() if any(i.split(".")[0] == package for i in imports(path))]
        rooms = [door.split(".")[0] for door in doors]
        assert len(rooms) == len(set(rooms)), f"{package} is imported in {doors}"


def test_nothing_is_unpickled_or_evaluated():
    for name, path in files().items():
        assert not {"pickle", "marshal", "shelve", "dill", "joblib"} & {i.split(".")[0] for i in imports(path)}, name
        calls = [
            n.func.id
            for n in ast.walk(ast.parse(path.read_text()))
            if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
        ]
        assert not {"eval", "exec"} & set(calls), name
        assert "allow_pickle=True" not in path.read_text()


def test_files_stay_small():
    lengths = {name: len(path.read_text().splitlines()) for name, path in files().items()}
    assert {name: n for name, n in lengths.items() if n > 300} == {}
