"""What is released: a wheel and an sdist that install into an empty environment, with a compiler and without one.

Slow and from the network (the dependencies of the core), so an extra; `make release-check` runs it alone.
"""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import quorumhash

pytestmark = pytest.mark.extra
ROOT = Path(__file__).parents[1]
BUILT = shutil.ignore_patterns("*.so", "__pycache__", "*.egg-info", "build", "dist")
NAMES = ("LICENSE", "README.md", "pyproject.toml", "setup.py")
SEARCH = """
import json, numpy as np, quorumhash as qh
digits = qh.load_dataset("digits")
codes = qh.ITQHasher(n_bits=64).fit(digits.views).transform(digits.views)
index = qh.HammingIndex(n_bits=64)
index.add(codes)
found = index.search(codes[:5], k=3)
print(json.dumps([qh.__version__, qh.__file__, index.stats()["kernel"], found.distances.tolist()]))
"""


def run(*words, cwd, **environment):
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, capture_output=True, text=True, timeout=1500,
        env={**{k: v for k, v in os.environ.items() if k != "PYTHONPATH"}, **environment},
    )  # fmt: skip
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """(wheel, sdist), built from a copy of the tree in an environment that pip makes for it."""
    tree, dist = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("dist")
    shutil.copytree(ROOT / "quorumhash", tree / "quorumhash", ignore=BUILT)
    for name in NAMES:
        shutil.copy(ROOT / name, tree / name)
    backend = "import sys, setuptools.build_meta as backend; backend.build_sdist(sys.argv[1])"
    tools = tmp_path_factory.mktemp("tools")
    run(sys.executable, "-m", "pip", "install", "--quiet", "--target", tools, "setuptools>=77", cwd=tree)
    run(sys.executable, "-c", backend, dist, cwd=tree, PYTHONPATH=str(tools))
    (sdist,) = dist.glob("*.tar.gz")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", dist, sdist, cwd=tree)
    (wheel,) = dist.glob("*.whl")
    return wheel, sdist


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    """The Python of an environment with nothing in it but pip."""
    folder = tmp_path_factory.mktemp("empty")
    venv.create(folder / "venv", with_pip=True)
    return folder / "venv" / "bin" / "python"


def answers(python, folder):
    version, file, kernel, distances = json.loads(run(python, "-c", SEARCH, cwd=folder))
    assert version == quorumhash.__version__
    assert str(ROOT) not in file
    assert [row[0] for row in distances] == [0] * 5
    return kernel, distances


def test_files_hold_what_they_need_and_no_more(files):
    wheel, sdist = files
    assert wheel.name.startswith(f"quorumhash-{quorumhash.__version__}-cp311-abi3-")
    names = zipfile.ZipFile(wheel).namelist()
    assert "quorumhash/py.typed" in names
    assert any(name.endswith(".so") for name in names)
    assert not any(name.startswith(("tests", "benchmarks", "docs")) for name in names)
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert {"quorumhash/_native/hamming.h", "quorumhash/_native/scan.c", "setup.py", "LICENSE"} <= inside


def test_wheel_then_sdist_without_a_compiler_answer_alike(files, empty, tmp_path):
    wheel, sdist = files
    run(empty, "-m", "pip", "install", "--quiet", wheel, cwd=tmp_path)
    kernel, distances = answers(empty, tmp_path)
    assert kernel != "numpy"
    assert "fit" in run(empty.parent / "quorumhash", "--help", cwd=tmp_path)
    words = ("install", "--quiet", "--no-deps", "--force-reinstall", "--no-cache-dir", sdist)
    run(empty, "-m", "pip", *words, cwd=tmp_path, CC="false", CXX="false")
    kernel, same = answers(empty, tmp_path)
    assert kernel == "numpy"
    assert same == distances
    told = json.loads(run(empty.parent / "quorumhash", "doctor", "--json", cwd=tmp_path))
    assert "install again with a C compiler" in told["hamming kernel"]
    assert "pip install 'quorumhash[torch]'" in told["extra torch"]


def test_everything_together_resolves(tmp_path):
    """pip finds versions of every extra that go together; where all are installed it takes those."""
    words = ("install", "--dry-run", "--quiet", "--no-build-isolation", f"{ROOT}[all]")
    run(sys.executable, "-m", "pip", *words, cwd=tmp_path)
