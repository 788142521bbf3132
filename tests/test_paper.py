"""The paper's experiments: every file runs in seconds on digits; results and page say what the runs gave."""

import importlib
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from quorumhash.bench.cli import bench
from quorumhash.bench.panel import SMOKE, read_panel
from quorumhash.bench.paper import experiments_of, merged, stored_results
from quorumhash.bench.paperpage import lookup_cell, paper_report, surface
from quorumhash.bench.runs import read_run, run_path
from quorumhash.codes import hamming_distances
from quorumhash.datasets import load_dataset, thinned
from quorumhash.errors import ParameterError
from quorumhash.experiment import relevance_of

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / "benchmarks" / "paper").glob("*.toml"))
EXPERIMENTS = [path for path in FILES if path.stem != "tuning"]


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    """Results and page of a smoke run of all files."""
    folder = tmp_path_factory.mktemp("paper")
    words = ["paper", *map(str, EXPERIMENTS), "--smoke", "--results", str(folder), "--html", str(folder / "page.html")]
    done = CliRunner().invoke(bench, words)
    assert done.exit_code == 0, done.output
    return folder


def test_there_is_a_result_for_every_experiment(smoke):
    names = {path.stem for path in smoke.glob("*.json")}
    planned = {
        f"{name}_{path.stem}"
        for path in EXPERIMENTS
        for cell in read_panel(path, SMOKE).cells
        for name in experiments_of(cell.grid)
    }
    assert names == planned
    assert {"table1_cifar10", "table1_nuswide", "out_of_sample_mnist", "parameter_nuswide"} <= names
    for name in names:
        result = json.loads((smoke / f"{name}.json").read_text())
        assert len(result["rows"]) == result["planned"]
        assert {"rows", "seeds", "commit", "command", "machine"} <= set(result)
        assert all({"method", "bits", "seed", "value"} <= set(row) for row in result["rows"])


def test_lookup_of_table_1_is_that_of_its_codes(smoke):
    """By the textbook: of the items within two bits of a query, the share with its label; 0 where there are none."""
    panel = read_panel(ROOT / "benchmarks" / "paper" / "cifar10.toml", SMOKE)
    cell = next(cell for cell in panel.cells if cell.grid == "table1" and cell.method == "itq" and cell.n_bits == 8)
    outcome = read_run(run_path(smoke / "cifar10.smoke.runs", cell.setting), cell.setting).outcome
    relevance = relevance_of(thinned(load_dataset("digits"), cell.setting.max_rows))
    shares = []
    for distances, relevant in zip(
        hamming_distances(outcome.query_codes, outcome.database_codes), relevance, strict=True
    ):
        found = [bool(r) for d, r in zip(distances, relevant, strict=True) if d <= 2]
        shares.append(sum(found) / len(found) if found else 0.0)
    rows = json.loads((smoke / "table1_cifar10.json").read_text())["rows"]
    row = next(row for row in rows if row["method"] == "itq" and row["bits"] == 8)
    assert row["value"] == pytest.approx(np.mean(shares), abs=1e-5)
    assert outcome.rescored is None


def test_history_is_that_of_the_sweeps(smoke):
    (row, other) = json.loads((smoke / "convergence_nuswide.json").read_text())["rows"]
    assert row["value"] == len(row["objective"]) == len(row["residual"]) > 20
    assert row["residual"][-1] < row["residual"][0]
    assert other["rank"][-1] < row["rank"][-1]  # as published the consensus collapses


def test_printed_numbers_stand_beside_ours(smoke):
    results = {f"{result['experiment']}_{result['dataset']}": result for result in stored_results(smoke)}
    result = results["table1_cifar10"]
    assert lookup_cell(result, "mean-filled", "mvlh", 8).endswith("(32.3 ± 0.4)")
    assert "(" not in lookup_cell(result, "mean-filled", "itq", 8)
    assert "(47.6 ± 0.5)" in lookup_cell(result, "mean-filled", "rmvh, published", 32)
    page = (smoke / "page.html").read_text()
    for word in ("(51.2 ± 0.4)", "share of lookups that found nothing", "Precision and recall at 48 bits", "14.1"):
        assert word in page, word


@pytest.mark.parametrize("name", ["cifar10", "nuswide"])
def test_table_2_times_mfh_and_chms_as_published_too(name):
    cells = read_panel(ROOT / "benchmarks" / "paper" / f"{name}.toml").cells
    published = {c.grid: set() for c in cells if c.method in ("mfh, published", "chms, published")}
    for cell in cells:
        if cell.grid in published:
            published[cell.grid].add((cell.method, cell.setting.parameters.get("graph")))
    assert list(published) == ["table2"]
    assert {("mfh", None), ("mfh, published", "nearest"), ("chms, published", "nearest")} <= published["table2"]
    facts = {"experiment": "table2", "dataset": name, "seeds": [0], "planned": 4, "commit": "", "machine": ""}
    rows = [
        {"data": "", "method": method, "bits": 64, "seed": 0, "value": 1.0, "encode_seconds": 1e-6}
        for method in ("mfh", "mfh, published", "chms", "chms, published")
    ]
    (table,) = paper_report([{**facts, "versions": "", "command": "", "rows": rows}]).tables
    printed = {row[0]: row[2] for row in table.rows}
    assert printed["mfh, published"] == printed["mfh"] == {"cifar10": "32.8", "nuswide": "41.6"}[name]
    assert printed["chms, published (reconstruction)"] == {"cifar10": "29.8", "nuswide": "37.2"}[name]


def test_a_surface_has_a_row_for_every_value():
    rows = [
        {"method": f"beta fixed, alpha={a}, lambda_={b}", "parameters": {"alpha": a, "lambda_": b}, "value": a + b}
        for a in (0.1, 10.0)
        for b in (1.0, 2.0)
    ]
    names, found = surface(rows, "beta fixed")
    assert names == ["alpha \\ lambda", "1", "2"]
    assert found == [("0.1", 1.1, 2.1), ("10", 11.0, 12.0)]


def test_drawings_of_the_documentation_are_fresh(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    figures, of_search = (importlib.import_module(name) for name in ("figures_paper", "figures_search"))
    charts = [*figures.charts(), *of_search.recall_charts()]
    drawn = {f"{name}.svg": figures.standalone(chart) for name, chart in charts}
    kept = {path.name: path.read_text() for path in (ROOT / "docs" / "figures").glob("*.svg")}
    assert set(drawn) == set(kept)
    for name, text in drawn.items():
        assert kept[name] == text, f"run benchmarks/figures_paper.py and figures_search.py: {name} is stale"


def test_an_empty_folder_gives_an_empty_page(tmp_path):
    assert paper_report(stored_results(tmp_path)).tables == ()


def test_a_grid_that_is_not_there_is_named():
    done = CliRunner().invoke(bench, ["paper", str(EXPERIMENTS[0]), "--grid", "table9", "--stored"])
    assert "got 'table9'" in str(done.exception)


def test_a_grid_run_alone_keeps_the_results_of_the_others(smoke):
    path = smoke / "table1_cifar10.json"
    before = json.loads(path.read_text())
    lacking = before | {"rows": [row for row in before["rows"] if row["data"] != "mean-filled"]}
    path.write_text(json.dumps(lacking))
    words = ["paper", str(ROOT / "benchmarks" / "paper" / "cifar10.toml"), "--smoke", "--results", str(smoke)]
    done = CliRunner().invoke(bench, [*words, "--stored", "--grid", "table1"])
    assert done.exit_code == 0, done.output
    after = json.loads(path.read_text())
    own = read_panel(ROOT / "benchmarks" / "paper" / "cifar10.toml", SMOKE).only(["table1"]).cells
    measured = {(cell.dataset, cell.method, cell.n_bits, cell.seed) for cell in own}
    kept = {(row["data"], row["method"], row["bits"], row["seed"]) for row in lacking["rows"]}
    assert {(row["data"], row["method"], row["bits"], row["seed"]) for row in after["rows"]} == measured | kept
    assert measured
    assert kept
    assert after["planned"] == before["planned"]
    path.write_text(json.dumps(before))


def test_one_method_can_be_asked_for_alone():
    panel = read_panel(ROOT / "benchmarks" / "paper" / "cifar10.toml", SMOKE)
    cells = panel.only(["table1"], ["quorum", "itq"]).cells
    assert {(cell.grid, cell.method) for cell in cells} == {("table1", "quorum"), ("table1", "itq")}
    assert panel.only(None).cells == panel.cells
    done = CliRunner().invoke(bench, ["paper", str(EXPERIMENTS[0]), "--method", "nobody", "--stored"])
    assert "a method must be one of" in str(done.exception)
    with pytest.raises(ParameterError, match="choose ones that meet"):
        panel.only(["figures, float"], ["quorum"])


def test_results_of_which_nothing_is_left_leave_no_trace():
    panel = read_panel(ROOT / "benchmarks" / "paper" / "cifar10.toml", SMOKE)
    cell = panel.only(["table2"]).cells[0]
    row = {"data": cell.dataset, "method": cell.method, "bits": cell.n_bits, "seed": cell.seed}
    facts = {"experiment": "table2", "profile": panel.profile, "seeds": [cell.seed]}
    old, new = (
        facts | {name: name + word for name in ("commit", "machine", "versions")} | {"rows": [row | {"value": word}]}
        for word in ("old", "new")
    )
    assert merged(old, new, panel) == new
    lacking = new | {"rows": []}
    assert merged(old, lacking, panel)["commit"] == "commitold and commitnew"
