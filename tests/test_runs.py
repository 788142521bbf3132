"""Stored runs: whole or made again, never done twice; what is measured from them, by one process or by two."""

import json
import math
import os
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import quorumhash.bench.workbench as workbench
from quorumhash.bench.panel import read_panel
from quorumhash.bench.processes import walk
from quorumhash.bench.provenance import commit, provenance
from quorumhash.bench.runs import n_stored, read_run, run_path, write_run
from quorumhash.bench.scores import as_plain, geometric_mean, measure_panel, measure_trust
from quorumhash.bench.settings import Setting
from quorumhash.bench.workbench import Workbench, run_settings
from quorumhash.datasets import load_dataset, thinned
from quorumhash.errors import ParameterError, RunFileError, RunFileWarning
from quorumhash.experiment import (
    Outcome,
    empty_outcome,
    measure_outcome,
    relevance_of,
    run_setting,
    undamaged_neighbours,
)
from quorumhash.hashers import HASHERS, ITQHasher

ITQ = Setting("itq", 16, "swap", 0.2, dataset="digits", max_rows=360, label="itq")
LSH = replace(ITQ, hasher="lsh", label="lsh")
PANEL = """
title = "Tiny"
datasets = ["digits"]
seeds = [0, 1]
max_rows = { digits = 360 }
joined = ["itq"]
[damages]
clean = {}
swap = { kind = "swap", rate = 0.3 }
[[methods]]
name = "itq"
hasher = "itq"
own = true
[[methods]]
name = "lsh"
hasher = "lsh"
[[methods]]
name = "itq, one step"
hasher = "itq"
parameters = { n_steps = 1 }
[[methods]]
name = "float"
role = "float"
[[methods]]
name = "chance"
role = "chance"
[grids.main]
bits = [16]
"""


@pytest.fixture(scope="module")
def digits():
    return thinned(load_dataset("digits"), 360)


def outcomes_equal(one, other):
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("database_codes", "query_codes", "rescored", "reliability", "damaged_queries")
        if getattr(one, name) is not None or getattr(other, name) is not None
    )


def test_a_run_is_read_back_as_it_was_stored(digits, tmp_path):
    rng = np.random.default_rng(0)
    outcome = replace(
        run_setting(ITQ, digits),
        rescored=rng.integers(0, 300, (60, 10)).astype(np.int32),
        reliability=rng.random((60, 3)).astype(np.float16),
        damaged_queries=rng.random((60, 3)) < 0.5,
        measures={"map": 0.1},
    )
    run = read_run(write_run(tmp_path, outcome, provenance(1)), ITQ)
    assert outcomes_equal(run.outcome, outcome)
    assert (run.outcome.fit_seconds, run.outcome.encode_seconds) == (outcome.fit_seconds, outcome.encode_seconds)
    assert run.outcome.measures == {"map": 0.1}
    assert run.provenance["numpy"] == np.__version__
    for value in run.provenance.values():
        assert os.sep + "work" not in value
        assert os.uname().nodename not in value or len(os.uname().nodename) < 4


def test_refusals_and_errors_are_stored(digits, tmp_path):
    setting = replace(ITQ, n_bits=500)
    write_run(tmp_path, run_setting(setting, digits), provenance(1))
    assert "n_bits must be at most" in read_run(run_path(tmp_path, setting), setting).outcome.refusal


def test_a_damaged_file_is_known_as_such(digits, tmp_path):
    path = write_run(tmp_path, run_setting(ITQ, digits), provenance(1))
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], whole[:-1], b"", b"not an archive"):
        path.write_bytes(content)
        with pytest.raises(RunFileError, match="is damaged or of another setting"):
            read_run(path, ITQ)


def test_a_wrong_byte_is_known_or_changes_nothing(digits, tmp_path):
    """An archive says some things twice, and holds dates; what is read is checked."""
    path = write_run(tmp_path, run_setting(ITQ, digits), provenance(1))
    whole, before, n_known = path.read_bytes(), read_run(path, ITQ), 0
    places = range(0, len(whole), 13)
    for place in places:
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :])
        try:
            after = read_run(path, ITQ)
        except RunFileError:
            n_known += 1
        else:
            assert outcomes_equal(after.outcome, before.outcome)
            assert after.provenance == before.provenance
    assert n_known > len(places) / 2


def test_a_file_of_another_setting_or_with_other_shapes_is_refused(digits, tmp_path):
    outcome = run_setting(ITQ, digits)
    other = run_path(tmp_path, LSH)
    write_run(tmp_path, outcome, {}).rename(other)
    with pytest.raises(RunFileError):
        read_run(other, LSH)
    for wrong in (
        {"query_codes": outcome.query_codes[:, :1]},
        {"query_codes": outcome.query_codes[:0]},
        {"rescored": np.full((60, 10), 300, dtype=np.int32)},
        {"reliability": np.zeros((7, 4), dtype=np.float16), "damaged_queries": np.zeros((7, 4), dtype=bool)},
    ):
        path = write_run(tmp_path, replace(outcome, **wrong), {})
        with pytest.raises(RunFileError):
            read_run(path, ITQ)
    with pytest.raises(RunFileError, match="there is no file"):
        read_run(tmp_path / "nothing", ITQ)


def test_runs_are_done_once_and_damaged_ones_again(tmp_path):
    told = []
    tally = run_settings([ITQ, LSH], tmp_path, done=told.append)
    assert tally == {"done": 2, "kept": 0}
    assert len(told) == 2
    files = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert run_settings([ITQ, LSH], tmp_path) == {"kept": 2}
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == files
    before = read_run(run_path(tmp_path, ITQ), ITQ).outcome
    run_path(tmp_path, ITQ).write_bytes(b"half a fi")
    with pytest.warns(RunFileWarning, match=r"digits_itq.* is damaged and is made again"):
        assert run_settings([ITQ, LSH], tmp_path) == {"kept": 1, "done": 1}
    assert outcomes_equal(read_run(run_path(tmp_path, ITQ), ITQ).outcome, before)
    assert n_stored(tmp_path, [ITQ, LSH, replace(ITQ, n_bits=8)]) == 2


def test_one_failure_stops_nothing_and_can_be_tried_again(tmp_path, monkeypatch):
    class Broken(ITQHasher):
        def _fit(self, views, engine, seed):
            raise ZeroDivisionError("by nothing\nat all")

    monkeypatch.setitem(HASHERS, "broken", Broken)
    broken = replace(ITQ, hasher="broken")
    assert run_settings([broken, LSH], tmp_path) == {"kept": 0, "failed": 1, "done": 1}
    assert read_run(run_path(tmp_path, broken), broken).outcome.error == "ZeroDivisionError: by nothing"
    assert run_settings([broken], tmp_path) == {"kept": 1}
    monkeypatch.setitem(HASHERS, "broken", ITQHasher)
    assert run_settings([broken], tmp_path, is_retry=True) == {"kept": 0, "done": 1}


def test_a_missing_dataset_is_known_before_any_work(tmp_path, monkeypatch):
    monkeypatch.delenv("QUORUMHASH_DATA", raising=False)
    with pytest.raises(ParameterError, match=r"mfeat\.npz"):
        run_settings([ITQ, replace(ITQ, dataset="mfeat")], tmp_path)
    assert not list(tmp_path.iterdir())


def test_two_processes_give_what_one_gives(tmp_path):
    settings = [ITQ, LSH, replace(ITQ, random_state=1), replace(ITQ, role="oracle")]
    for n_jobs in (1, 2):
        run_settings(settings, tmp_path / str(n_jobs), n_jobs)
    for setting in settings:
        one, two = (read_run(run_path(tmp_path / n, setting), setting) for n in ("1", "2"))
        assert outcomes_equal(one.outcome, two.outcome)
        assert two.provenance["jobs"] == "2"


def test_a_worker_that_dies_is_one_sentence():
    with pytest.raises(ParameterError, match="worker processes died"):
        list(walk(partial(partial, os._exit), [3], n_jobs=2))


def test_workers_end_when_their_work_is_left(monkeypatch):
    monkeypatch.setenv("QUORUMHASH_THREADS", "4")
    results = walk(partial(partial, time.sleep), [0, 300, 300], n_jobs=2)
    assert next(results) == (0, None)
    started = time.monotonic()
    results.close()
    assert time.monotonic() - started < 60
    assert list(walk(partial(partial, os.environ.get), [], n_jobs=2)) == []
    threads = list(walk(partial(partial, _environment), ["QUORUMHASH_THREADS"], n_jobs=2))
    assert threads == [("QUORUMHASH_THREADS", "2")]


def _environment(name):
    return os.environ.get(name)


def test_damage_is_done_once_for_runs_that_follow_each_other(monkeypatch):
    calls = []
    real = workbench.damaged_data
    monkeypatch.setattr(workbench, "damaged_data", lambda dataset, setting: calls.append(1) or real(dataset, setting))
    bench = Workbench()
    for setting in (ITQ, LSH, replace(ITQ, role="chance"), replace(ITQ, n_bits=8), replace(ITQ, random_state=1)):
        bench(setting)
    assert len(calls) == 3  # the first, that of chance (none), the other seed


class Weigher(ITQHasher):
    n_fits = 0

    def __init__(self, n_bits=64, *, view_weights=None, random_state=0):
        super().__init__(n_bits, random_state=random_state)
        self.view_weights = view_weights

    def fit(self, X, y=None, **options):
        Weigher.n_fits += 1
        self.view_weights_ = dict.fromkeys(X, 0.0) | {"pixels": 1.0}
        return self


def test_weighted_runs_see_the_views_that_were_found_worth_it(digits, monkeypatch):
    monkeypatch.setitem(HASHERS, "quorum", Weigher)
    bench = Workbench()
    for weights in ("auto", "auto, joined"):
        outcome = bench(replace(ITQ, damage="clean", weights=weights))
        pixels = {"pixels": digits.views["pixels"]}
        hasher = ITQHasher(16).fit({"pixels": pixels["pixels"][digits.train_rows]})
        assert np.array_equal(outcome.query_codes, hasher.transform({"pixels": pixels["pixels"][digits.query_rows]}))
    assert Weigher.n_fits == 1


def test_trust_is_measured_on_pairs_that_are_there():
    trust = np.array([[0.9, 0.001], [np.nan, 0.4], [0.005, 0.95]], dtype=np.float16)
    damaged = np.array([[False, True], [True, True], [False, False]])
    codes = np.zeros((3, 1), dtype=np.uint8)
    measures = measure_trust(Outcome(ITQ, codes, codes, reliability=trust, damaged_queries=damaged))
    assert measures["trust_auc"] == pytest.approx(5 / 6)  # of six pairs of pairs one is the wrong way round
    assert measures["false_alarms"] == pytest.approx(1 / 3)
    clean = measure_trust(Outcome(ITQ, codes, codes, reliability=trust, damaged_queries=np.zeros_like(damaged)))
    assert set(clean) == {"false_alarms"}
    assert measure_trust(empty_outcome(ITQ)) == {}


@pytest.fixture(scope="module")
def scores(tmp_path_factory):
    folder = tmp_path_factory.mktemp("panel")
    (folder / "tiny.toml").write_text(PANEL)
    panel = read_panel(folder / "tiny.toml")
    run_settings(panel.settings(), folder / "runs")
    return measure_panel(panel, folder / "runs"), folder / "runs"


def figure(scores, method, damage, metric):
    return next(f for (p, m), f in scores.figures.items() if (p.method, p.damage, m) == (method, damage, metric))


def test_figures_are_means_over_the_seeds_of_what_the_codes_give(scores, digits):
    truth = relevance_of(digits), undamaged_neighbours(digits)
    for metric in ("map", "recall_10", "distinct_codes"):
        values = [
            measure_outcome(run_setting(Setting("lsh", 16, "swap", 0.3, random_state=seed), digits), *truth)[metric]
            for seed in (0, 1)
        ]
        found = figure(scores[0], "lsh", "swap", metric)
        assert (found.mean, found.spread) == pytest.approx((np.mean(values), np.std(values)))
        assert found.n_seeds == 2


def test_own_methods_are_compared_with_the_best_rival(scores):
    for standing in scores[0].standings:
        place = standing.place
        rivals = [figure(scores[0], name, place.damage, standing.metric).mean for name in ("lsh", "itq, one step")]
        assert place.method == "itq"
        assert standing.ratio * max(rivals) == pytest.approx(
            figure(scores[0], "itq", place.damage, standing.metric).mean
        )
    assert len(scores[0].standings) == 2 * 3
    ratios = [standing.ratio for standing in scores[0].standings]
    assert geometric_mean(list(scores[0].standings)) == pytest.approx(math.prod(ratios) ** (1 / len(ratios)))
    assert math.isnan(geometric_mean([]))


def test_the_better_weighting_counts(scores):
    panel, folder = scores[0].panel, scores[1]
    doubled = [replace(cell, weights="auto", method="lsh") for cell in panel.cells if cell.method == "itq"]
    both = measure_panel(replace(panel, cells=(*panel.cells, *doubled)), folder)
    for metric in ("map", "empty_lookups"):
        found = figure(both, "lsh", "clean", metric)
        means = {name: figure(scores[0], name, "clean", metric).mean for name in ("itq", "lsh")}
        best = max if metric == "map" else min
        assert found.mean == best(means.values())
        assert found.weights == ("auto" if best(means, key=means.get) == "itq" else "equal")


def test_results_are_plain_and_whole(scores):
    plain = json.loads(json.dumps(as_plain(scores[0])))
    assert len(plain["rows"]) == len(scores[0].panel.cells)
    row = plain["rows"][0]
    assert row["setting"]["hasher"] == "itq"
    assert {"map", "recall_10", "recall_100", "lookup"} <= set(row["metrics"])
    assert plain["provenance"][row["provenance"]]["python"].startswith(f"{sys.version_info.major}.")
    assert {mean["dataset"] for mean in plain["geometric_means"]} == {"digits", "all"}
    assert plain["runs"] == plain["planned"] == len(scores[0].panel.settings())


def test_what_is_not_stored_is_left_open(scores, tmp_path):
    assert measure_panel(scores[0].panel, tmp_path).figures == {}


def test_rows_name_the_commit_they_were_made_by():
    root = Path(__file__).parents[1]
    if (root / ".git").exists():
        head = subprocess.run(["git", "-C", root, "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
        assert head.stdout.startswith(commit().removesuffix("+"))
        assert len(commit()) >= 12
    else:
        assert commit() == ""
