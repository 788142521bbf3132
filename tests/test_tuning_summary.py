"""The log of tuning: a score is the mean over all cells; only what is clearly better replaces the shipped setting."""

import pytest
from scripts import quality_script


@pytest.fixture(scope="module")
def tuning_summary():
    return quality_script("tuning_summary")


def results(figures):
    """`figures`: row -> (hasher, parameters, is_row_normalised, MAP and recall on one cell)."""
    rows, told = [], []
    for name, (hasher, parameters, is_normalised, *means) in figures.items():
        setting = {"role": "hasher", "hasher": hasher, "parameters": parameters, "is_row_normalised": is_normalised}
        rows.append({"method": name, "setting": setting})
        for metric, mean in zip(("map", "recall_10"), means, strict=False):
            told.append({"method": name, "metric": metric, "dataset": "digits", "damage": "swap", "mean": mean})
    told.append({"method": "itq", "metric": "lookup", "dataset": "digits", "damage": "swap", "mean": 9.0})
    return {"title": "", "runs": 1, "planned": 1, "provenance": [], "rows": rows, "figures": told}


def test_the_best_is_chosen_only_where_it_is_clearly_better(tuning_summary):
    log = tuning_summary.summary(
        results(
            {
                "itq": ("itq", {}, False, 0.5, 0.3),
                "itq, n_steps=9": ("itq", {"n_steps": 9}, False, 0.51, 0.3),  # 1.25 %
                "lsh": ("lsh", {}, False, 0.5, 0.3),
                "lsh, row_normalised": ("lsh", {}, True, 0.5, 0.34),  # 5 %
                "broken": ("lsh", {"x": 1}, False, 0.9),  # it has no figure in one cell
            }
        )
    )["methods"]
    assert [row["score"] for row in log["itq"]["tried"]] == [0.4, 0.405]
    assert log["itq"]["chosen"] == {"parameters": {}, "is_row_normalised": False, "score": 0.4, "gain": 0.0}
    assert log["lsh"]["chosen"] == {"parameters": {}, "is_row_normalised": True, "score": 0.42, "gain": 0.05}
    assert len(log["lsh"]["tried"]) == 2
