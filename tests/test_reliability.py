"""Short runs of benchmarks/reliability: killed, torn, full, mutated, read while written."""

import importlib
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks" / "reliability"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the harness needs fork, RLIMIT_FSIZE and /proc")


@pytest.fixture
def proof(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module


def test_killed_writers_lose_nothing(proof):
    told = proof("kill").run(n_kills=30, seed=7)
    assert told["reopened"] + told.get("before_the_file", 0) == 30
    assert told["acknowledged_calls"] > 10


def test_a_torn_log_gives_whole_batches(proof):
    assert proof("torn_wal").run(n_cuts=60, seed=7)["different_states"] > 10


def test_a_full_disk_is_one_error_and_the_old_items(proof):
    proof("disk_full").run_limits(n_limits=10, seed=7)


def test_mutated_files_are_refused_or_right(proof):
    told = proof("mutations").run(n_files=120, seed=7)
    assert told["bad_numbers"] == []
    assert told["refused"] > 60


def test_readers_beside_a_writer_see_whole_batches(proof):
    told = proof("readers").run(seconds=3, n_readers=8)
    assert told["calls_of_the_writer"] > 10
    assert told["loads"] > 20
