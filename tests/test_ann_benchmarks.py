"""The module for ann-benchmarks keeps that program's interface, behind a stand-in for its base class."""

import importlib
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks" / "ann_benchmarks"
BASE = "class BaseANN:\n    def get_batch_results(self):\n        return self.res\n"


@pytest.fixture
def module(tmp_path, monkeypatch):
    algorithms = tmp_path / "stand_in" / "algorithms"
    (algorithms / "base").mkdir(parents=True)
    (algorithms / "base" / "module.py").write_text(BASE)
    shutil.copytree(FOLDER, algorithms / "quorumhash")
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("stand_in.algorithms.quorumhash.module")
    for name in [name for name in sys.modules if name.startswith("stand_in")]:
        del sys.modules[name]


@pytest.mark.parametrize("method", ["auto", "scan"])
def test_bits_are_found_exactly(module, method):
    bits = np.random.default_rng(0).integers(0, 2, (200, 50)).astype(bool)
    search = module.QuorumHashBits("hamming", method)
    search.fit(bits)
    distances = (bits[:5, None] != bits).sum(axis=2)
    wanted = np.argsort(distances, axis=1, kind="stable")[:, :7]
    np.testing.assert_array_equal(search.query(bits[0], 7), wanted[0])
    search.batch_query(bits[:5], 7)
    np.testing.assert_array_equal(search.get_batch_results(), wanted)


@pytest.mark.parametrize("metric", ["angular", "euclidean"])
def test_all_candidates_give_the_exact_order(module, metric):
    """With every item a candidate the answer is that of brute force; with few it is a part of good ones."""
    vectors = np.random.default_rng(0).standard_normal((300, 8)) * np.linspace(0.5, 2, 300)[:, None]
    search = module.QuorumHashVectors(metric, 16)
    search.fit(vectors)
    rows = vectors / np.linalg.norm(vectors, axis=1, keepdims=True) if metric == "angular" else vectors
    wanted = np.argsort(((rows[:4, None] - rows) ** 2).sum(axis=2), axis=1)[:, :10]
    search.set_query_arguments(300)
    np.testing.assert_array_equal(search.query(vectors[0], 10), wanted[0])
    search.batch_query(vectors[:4], 10)
    np.testing.assert_array_equal(search.get_batch_results(), wanted)
    search.set_query_arguments(60)
    search.batch_query(vectors[:4], 10)
    found = [len(set(ours) & set(best)) for ours, best in zip(search.get_batch_results(), wanted.tolist(), strict=True)]
    assert sum(found) > 2 * 4 * 10 * 60 / 300  # chance is a fifth


def test_other_metrics_are_refused(module):
    with pytest.raises(ValueError, match="hamming"):
        module.QuorumHashBits("jaccard")
    with pytest.raises(ValueError, match="angular or euclidean"):
        module.QuorumHashVectors("hamming", 64)


def test_settings_name_classes_that_are_there(module):
    text = (FOLDER / "config.yml").read_text()
    for line in text.splitlines():
        if "constructor:" in line:
            assert hasattr(module, line.split()[-1])
