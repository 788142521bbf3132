"""The demo at a reduced size: the whole path from damage to page."""

import io
import math

import numpy as np
import pytest
from rich.console import Console

import quorumhash.demo as demo
from quorumhash.bench.settings import Setting
from quorumhash.datasets import load_dataset
from quorumhash.datasets.base import thinned
from quorumhash.evaluation import chance_precision
from quorumhash.experiment import (
    chance_outcome,
    float_distances,
    measure_outcome,
    relevance_of,
    run_setting,
    undamaged_neighbours,
)
from quorumhash.hashers import HASHERS
from quorumhash.report import print_table, write_report


@pytest.fixture(scope="module")
def results():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "load_dataset", lambda name: thinned(load_dataset(name), 480))
        patch.setattr(demo, "BITS", (8, 16))
        patch.setattr(demo, "CURVE_BITS", 16)
        for name, (hasher, options) in demo.METHODS.items():
            if hasher == "rmvh" and "max_iter" not in options:
                patch.setitem(demo.METHODS, name, (hasher, {**options, "max_iter": 5}))
        done = []
        yield demo.run_demo(done.append), done


def test_every_planned_run_is_made_and_told(results):
    outcomes, done = results
    assert list(outcomes.outcomes) == demo.planned_runs()
    assert len(done) == len(demo.planned_runs())


def test_tables_have_all_methods_with_float_and_chance_rows(results):
    for damage in demo.DAMAGES:
        table = demo.damage_table(results[0], damage)
        assert [row[0] for row in table.rows] == ["float search", "chance", *demo.METHODS]
        scores = {row[0]: row[1] for row in table.rows}
        assert scores["chance"] == pytest.approx(0.1, abs=0.03)
        assert all(score > scores["chance"] for name, score in scores.items() if name != "chance")


def test_bold_is_what_is_best_and_not_what_is_most(results):
    for damage in demo.DAMAGES:
        bold = demo.damage_table(results[0], damage).best_columns
        assert {name.split()[0] for name in bold} == {"MAP", "lookup", "R10@10", "R10@100"}


def test_the_last_table_has_every_method_of_the_library_best_first(results):
    table = demo.demo_tables(results[0])["every method"]
    names = [row[0] for row in table.rows]
    assert set(names) == {*demo.METHODS, *HASHERS} - {"quorum"}  # quorum stands with both objectives
    assert len(names) == len(set(names))
    maps = [row[1] + row[3] for row in table.rows]
    assert maps == sorted(maps, reverse=True)


def test_tables_fit_eighty_columns_with_every_label_on_one_line(results):
    for table in demo.demo_tables(results[0]).values():
        console = Console(width=80, file=io.StringIO())
        print_table(table, console)
        lines = console.file.getvalue().splitlines()
        assert all(len(line) <= 80 for line in lines)
        assert all(any(line.startswith(f"{row[0]} ") for line in lines) for row in table.rows)


def test_report_is_complete(results, tmp_path):
    report = demo.demo_report(results[0])
    titles = [chart.title for chart in report.charts]
    for word in ("MAP against bits", "Precision and recall", "objective", "residual", "rank"):
        assert any(word in title for title in titles), word
    assert len(report.strips) == 3
    assert all(len(row) == 11 for strip in report.strips for row in strip.rows)
    write_report(tmp_path / "report.html", report)
    text = (tmp_path / "report.html").read_text()
    assert all(title in text for title in titles)
    assert text.count("data:image/png") == 3 * 5 * 11


def test_experiment_measures_codes_against_labels_and_undamaged_neighbours():
    digits = load_dataset("digits")
    relevance, neighbours = relevance_of(digits), undamaged_neighbours(digits)
    assert relevance.shape == (297, 1500)
    chance = measure_outcome(chance_outcome(Setting("lsh", 32), digits), relevance, neighbours)
    assert chance["map"] == pytest.approx(chance_precision(relevance), abs=0.02)
    assert chance["recall_10"] < 0.03
    good = measure_outcome(run_setting(Setting("itq", 32), digits), relevance, neighbours)
    assert good["map"] > 0.5
    assert good["recall_10"] < good["recall_100"]
    assert all(math.isfinite(value) for value in good.values())


def test_float_search_finds_its_own_neighbours_on_undamaged_data():
    digits = load_dataset("digits")
    distances = float_distances(digits, digits.views)
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :10]
    assert (np.sort(nearest) == np.sort(undamaged_neighbours(digits))).mean() > 0.99


def test_a_refusal_is_a_result():
    outcome = run_setting(Setting("itq", 500), load_dataset("digits"))
    assert "n_bits must be at most" in outcome.refusal
    assert len(outcome.query_codes) == 0
