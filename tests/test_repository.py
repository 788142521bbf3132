"""What the repository promises about itself."""

import importlib
import os
import re
import tomllib
from pathlib import Path

from quorumhash import __version__

ROOT = Path(__file__).parents[1]


def test_changelog_names_the_version():
    heading = re.search(r"^## \[?(\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert heading
    assert heading.group(1) == __version__


def test_extras_are_those_of_the_design():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(extras) == {
        "bench", "serve", "torch", "embeddings", "dask", "lancedb", "postgres", "milvus", "docs", "test", "all",
    }  # fmt: skip
    assert all(name in extras["all"][0] for name in set(extras) - {"all"})


def test_ci_runs_what_people_run():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert re.findall(r"^make .*$", script.read_text(), re.MULTILINE) == ["make test", "make test-all"]


def test_figures_in_the_readme_name_their_benchmark():
    text = (ROOT / "README.md").read_text()
    for path in re.findall(r"benchmarks/[\w/.]+\.(?:py|json)", text):
        assert (ROOT / path).is_file(), path
    assert "benchmarks/results/" in text


def test_tables_of_figures_are_fresh(monkeypatch):
    """README and docs print what benchmarks/results holds."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    figures = importlib.import_module("figures")
    for page in figures.PAGES:
        text = (ROOT / page).read_text()
        assert "<!-- figures:" in text
        assert figures.fresh(text) == text, f"run python benchmarks/figures.py: {page} is stale"


def test_no_machine_path_is_named():
    for path in ROOT.rglob("*"):
        if path.is_file() and path.suffix in {".py", ".md", ".toml", ".yml", ".json", ""} and not _is_ignored(path):
            text = path.read_text(errors="ignore")
            assert "/work" + "/main" not in text, path
            assert "/ro" + "ot/" not in text, path


def _is_ignored(path):
    hidden = {".git", ".venv", "site", "build", "dist", ".hypothesis", ".mypy_cache", ".ruff_cache", ".pytest_cache"}
    return bool(hidden & set(path.relative_to(ROOT).parts)) or "__pycache__" in path.parts or ".egg-info" in str(path)
