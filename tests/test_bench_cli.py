"""quorumhash bench, started as its users start it: run, stop, go on, report, list."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from test_cli import RUN, quorumhash
from typer.testing import CliRunner

from quorumhash.bench.cli import bench
from quorumhash.bench.panel import read_panel
from quorumhash.bench.runs import SUFFIX, read_run, run_path
from quorumhash.errors import ParameterError

TINY = """
title = "Digits, tiny"
datasets = ["digits"]
seeds = [0, 1]
max_rows = { digits = 360 }
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
name = "later <b>"
hasher = "later_hasher"
[[methods]]
name = "oracle"
role = "oracle"
hasher = "itq"
[[methods]]
name = "float, damaged"
role = "float"
[[methods]]
name = "float, undamaged"
role = "float_undamaged"
[[methods]]
name = "chance"
role = "chance"
[grids.main]
bits = [16]
[grids.bits]
bits = [8, 16, 500]
seeds = [0]
damages = ["swap"]
[grids.sweep]
bits = [16]
rates = [0.0, 0.3, 0.5]
damages = ["swap"]
where = ["queries"]
seeds = [0]
methods = ["itq", "lsh"]
[quick]
grids = ["main"]
seeds = [0]
damages = ["clean"]
"""
SLOW = """
title = "Long enough to be stopped"
datasets = ["digits"]
seeds = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19]
max_rows = { digits = 600 }
[damages]
swap = { kind = "swap", rate = 0.3 }
[[methods]]
name = "rmvh"
hasher = "rmvh"
parameters = { max_iter = 100 }
[[methods]]
name = "lsh"
hasher = "lsh"
[grids.main]
bits = [32]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    (folder / "tiny.toml").write_text(TINY)
    done = quorumhash("bench", "run", "tiny.toml", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "note: later <b> is left out: the hasher 'later_hasher' is not in this version" in done.stderr
    facts = json.loads(done.stdout)
    assert facts["done"] + facts["refused"] == facts["runs"]
    assert facts["refused"] == 2  # 500 bits are too many for itq, with and without an oracle
    return folder


@pytest.fixture
def inside(folder, monkeypatch):
    """Commands called in this process, in the folder: half the time goes into starting a new one."""
    monkeypatch.chdir(folder)
    return lambda *arguments: CliRunner().invoke(bench, arguments)


def test_a_second_run_does_nothing_and_quick_has_a_folder_of_its_own(folder, inside):
    facts = json.loads(inside("run", "tiny.toml", "--json").stdout)
    assert facts["kept"] == facts["runs"]
    done = inside("run", "tiny.toml", "--quick")
    assert re.match(r"4 runs in tiny.quick.runs: 4 done, 0 kept, 0 refused, 0 failed\.", done.stdout)
    assert "4 of 4 runs" in inside("report", "tiny.quick.runs").stdout
    assert "(quick)" in (folder / "tiny.quick.runs" / "report.html").read_text()


def test_report_writes_results_and_a_page(folder, inside):
    words = ("bench", "report", "tiny.toml", "--html", "page.html", "--results", "all.json", "--json")
    done = quorumhash(*words, cwd=folder)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert (facts["page"], facts["results"]) == ("page.html", "all.json")
    assert facts["measured"] == facts["runs"]
    results = json.loads((folder / "all.json").read_text())
    page = (folder / "page.html").read_text()
    for title in ("MAP: own methods over the best rival", "digits, 16 bits: MAP (main)", "R10@100 (main)",
                  "digits, swap: MAP (bits)", "digits, swap, queries: R10@10 (sweep)", "Refused or failed",
                  "distinct codes"):  # fmt: skip
        assert title in page, title
    assert page.count('<svg class="chart"') == 4
    assert "later &lt;b&gt; is left out" in page
    assert "<b>" not in page
    means = {(f["method"], f["damage"]): f["mean"] for f in results["figures"]
             if (f["grid"], f["metric"]) == ("main", "map")}  # fmt: skip
    assert means["chance", "swap"] < means["lsh", "swap"] < means["itq", "swap"] < means["oracle", "swap"]
    assert means["float, undamaged", "swap"] == means["float, damaged", "clean"]
    assert f"{means['itq', 'swap']:.3f}" in page
    rates = {f["rate"]: f["mean"] for f in results["figures"]
             if (f["grid"], f["metric"], f["method"]) == ("sweep", "map", "itq")}  # fmt: skip
    assert rates[0.0] > rates[0.3] > rates[0.5]
    assert inside("report", "tiny.runs").exit_code == 0
    assert json.loads((folder / "tiny.runs" / "results.json").read_text()) == results


def test_list_names_files_and_counts_stored_runs(folder, inside):
    (folder / "broken.toml").write_text("title = 1")
    rows = {row["file"]: row for row in json.loads(inside("list", ".", "--json").stdout)["benchmarks"]}
    assert set(rows) == {"tiny.toml", "broken.toml"}
    assert rows["tiny.toml"]["title"] == "Digits, tiny"
    assert rows["tiny.toml"]["stored"] == rows["tiny.toml"]["runs"]
    assert "title must be a text" in rows["broken.toml"]["error"]
    assert "tiny.toml: Digits, tiny (" in inside("list", ".").stdout
    assert "There is no benchmark" in inside("list", "nowhere").stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["run", "nowhere.toml"], "nowhere.toml cannot be read"),
        (["run", "tiny.toml", "-o", "tiny.toml"], "the folder tiny.toml cannot be made"),
        (["run", "tiny.toml", "--jobs", "0"], "jobs must be a whole number from 1 up, got 0"),
        (["report", "tiny.toml", "--jobs", "0"], "jobs must be a whole number from 1 up, got 0"),
        (["report", "other.toml"], "there is no folder other.runs with runs"),
        (["report", "empty"], "cannot be read"),
        (["report", "tiny.toml", "--html", "no/such/page.html"], "no/such/page.html cannot be written"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(folder, inside, arguments, sentence):
    (folder / "other.toml").write_text(TINY.replace("[damages]", "[damages]\nzero = { kind = 'zero' }"))
    (folder / "empty").mkdir(exist_ok=True)
    error = inside(*arguments).exception
    assert isinstance(error, ParameterError)  # which the command line prints with exit status 2
    assert sentence in str(error)


def stopped_later(folder, jobs):
    """A benchmark that is at work, with two runs stored, in a process group of its own."""
    (folder / "slow.toml").write_text(SLOW)
    process = subprocess.Popen(
        [*RUN, "bench", "run", "slow.toml", "--jobs", str(jobs)], cwd=folder, stderr=subprocess.PIPE, text=True,
        start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    deadline = time.monotonic() + 90
    while len(list((folder / "slow.runs").glob(f"*{SUFFIX}"))) < 2:
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return process


@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_leaves_whole_files_and_no_process(tmp_path, jobs):
    """Stopped once some runs are stored; what is there is whole, and the same command would go on from it."""
    process = stopped_later(tmp_path, jobs)
    runs = tmp_path / "slow.runs"
    process.send_signal(signal.SIGINT)  # to the parent alone: it has to stop its workers
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert re.search(r"stopped; \d+ of 40 runs are stored in slow.runs, the same command goes on", said)
    stored = {path for path in runs.iterdir() if path.name != "panel.toml"}
    settings = [s for s in read_panel(tmp_path / "slow.toml").settings() if run_path(runs, s) in stored]
    assert 2 <= len(settings) == len(stored) < 40  # nothing else is there, no temporary file
    for setting in settings:
        assert np.any(read_run(run_path(runs, setting), setting).outcome.query_codes)
    assert not _others_in_group(process.pid)


def test_workers_do_not_outlive_a_killed_parent(tmp_path):
    process = stopped_later(tmp_path, 2)
    process.kill()
    process.communicate(timeout=60)
    assert not _others_in_group(process.pid)


def _others_in_group(group):
    """Processes that are left of the group; waits a little for those that are just ending."""
    for _ in range(100):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return False
        time.sleep(0.1)
    return True


def test_help_of_bench_is_quick_to_load():
    code = "import sys, quorumhash.bench.cli; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
