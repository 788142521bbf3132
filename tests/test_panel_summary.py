"""The summary of a panel: own figures over the best rival's, and new figures joined with those that are there."""

import pytest
from scripts import quality_script


@pytest.fixture(scope="module")
def panel_summary():
    return quality_script("panel_summary")


def results(methods, damage="swap", grid="main"):
    """`methods`: name -> MAP by seed, in one cell."""
    figures = [
        {
            "grid": grid, "dataset": "digits", "damage": damage, "rate": 0.2, "where": "both", "n_bits": 64,
            "method": name, "metric": "map", "mean": sum(values) / len(values), "spread": 0.0, "n_seeds": len(values),
            "weights": "equal", "values": values,
        }
        for name, values in methods.items()
    ]  # fmt: skip
    return {"title": "", "runs": 1, "planned": 1, "provenance": [{"commit": damage}], "figures": figures}


def test_a_rival_with_one_seed_is_compared_on_that_seed(panel_summary):
    found = panel_summary.summary(results({"quorum, groups": [0.4, 0.8], "itq": [0.5, 0.5], "lsh": [0.5]}))
    assert found["standings"]["quorum, groups map"]["cells"] == {"digits swap": (0.8, "lsh")}


def test_oracles_and_floats_are_no_rivals_and_clean_data_no_damage(panel_summary):
    told = {"quorum, groups": [0.6], "itq": [0.5], "oracle (quorum, groups)": [0.9], "float, damaged": [0.9]}
    cells = panel_summary.summary(results(told))["standings"]["quorum, groups map"]
    assert cells["worst"] == (1.2, "digits swap", "itq")
    assert panel_summary.summary(results(told, "clean"))["standings"] == {}


def test_with_a_source_wrong_the_row_that_was_told_counts(panel_summary):
    told = {"quorum, groups": [0.1], "quorum, groups, told the sources": [0.6], "itq": [0.5]}
    found = panel_summary.summary(results(told, "swap_source", "sources"))
    assert found["standings"]["quorum, groups map"]["cells"] == {"digits swap_source": (1.2, "itq")}


def test_new_figures_of_one_method_join_those_of_the_others(panel_summary):
    old = panel_summary.summary(results({"quorum, groups": [0.5], "itq": [0.5]}))
    new = panel_summary.summary(results({"quorum, groups": [0.6]}))
    assert new["standings"] == {}
    found = panel_summary.joined(old, new)
    assert found["standings"]["quorum, groups map"]["geometric_mean"] == pytest.approx(1.2)
    assert panel_summary.n_new(old, new) == 0
