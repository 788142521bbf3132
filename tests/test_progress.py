"""Long work tells of itself: every step once, to who asks, and the bits stay the same."""

import os
import pty
import re
import subprocess
import sys
import time

import numpy as np
import pytest

import quorumhash as qh
from quorumhash.cli import main
from quorumhash.engines.torchengine import TorchEngine
from quorumhash.hashers import HASHERS
from quorumhash.progress import begin_stage, counted, estimated, heard_by, is_heard, stage
from quorumhash.viewfiles import read_views


class Told:
    """What was told: [what, total, unit, steps done] of every stage."""

    def __init__(self):
        self.stages = []

    def __call__(self, what, total, unit):
        told = [what, total, unit, 0]
        self.stages.append(told)

        def done(n_done, said=""):
            told[3] += n_done

        return done


def test_a_stage_is_heard_where_somebody_asks_and_its_own_stages_are_not():
    told = Told()
    begin_stage("before", 3)(1)
    assert not is_heard()
    with heard_by(told):
        with stage("outer", 2) as done:
            assert not is_heard()
            with stage("inner", 5) as inner:
                inner(5)
            done(2)
        list(counted("things", "abc", 3, "letters"))
    assert told.stages == [["outer", 2, "steps", 2], ["things", 3, "letters", 3]]
    assert not is_heard()


def test_a_call_that_cannot_be_looked_into_goes_by_the_clock_and_ends_with_it():
    told = Told()
    with heard_by(told), estimated("a product", 1e30):
        time.sleep(0.5)
        ((what, total, _, n_done),) = told.stages
        assert 0 < n_done < 10 < total
    assert "about" in what
    with heard_by(told), pytest.raises(ZeroDivisionError), estimated("fails", 1e30):
        1 / 0  # noqa: B018
    assert not is_heard()


@pytest.mark.parametrize("name", HASHERS)
def test_every_hasher_learns_the_same_while_it_is_watched(name):
    rng, told = np.random.default_rng(0), Told()
    views = {"a": rng.standard_normal((300, 12)), "b": rng.standard_normal((300, 9))}
    plain = HASHERS[name](n_bits=8).fit(views)
    with heard_by(told):
        seen = HASHERS[name](n_bits=8).fit(views)
    assert seen.fingerprint() == plain.fingerprint()
    passes = [stage for stage in told.stages if stage[0] == "pass"]
    assert passes
    assert all(total == n_done for _, total, _, n_done in passes)
    assert all(n_done <= total for _, total, _, n_done in told.stages)


def test_learning_whom_to_trust_tells_of_all_its_steps():
    rng, told = np.random.default_rng(0), Told()
    shared = rng.standard_normal((400, 6))
    views = {name: shared @ rng.standard_normal((6, 10)) for name in "abc"}
    with heard_by(told):
        qh.QuorumHasher(8).fit(views)
    totals = {what: (total, n_done) for what, total, _, n_done in told.stages}
    for what in ("describing views", "learning whom to trust", "comparing views"):
        total, n_done = totals[what]
        assert n_done == total > 2


def test_other_engines_tell_too():
    pytest.importorskip("torch", reason="needs torch")
    views, told = np.random.default_rng(0).standard_normal((300, 12)), Told()
    with heard_by(told), TorchEngine("cpu") as engine:
        qh.ITQHasher(8).fit(views, engine=engine)
    assert [300, "rows", 300] in [stage[1:] for stage in told.stages if stage[0] == "pass"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs a terminal of its own, as Unix gives it")
def test_a_terminal_shows_stage_rate_and_time_left(tmp_path):
    digits = qh.load_dataset("digits")
    np.savez(tmp_path / "views.npz", **{name: digits.views[name] for name in digits.views})
    ours, theirs = pty.openpty()
    start = "from quorumhash.cli import main; main()"
    files = [str(tmp_path / "views.npz"), "-o", str(tmp_path / "m.qh")]
    wide = {**os.environ, "COLUMNS": "200", "TERM": "xterm"}
    with subprocess.Popen(
        [sys.executable, "-c", start, "fit", *files], stderr=theirs, stdout=subprocess.DEVNULL, env=wide
    ) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            shown += piece
        assert process.wait() == 0
    os.close(ours)
    text = shown.decode()
    assert "learning whom to trust" in text
    assert re.search(r"[\d.,]+ steps/s", text)  # a rate
    assert re.search(r"0:00:0\d.*0:00:0\d", text)  # time gone and time left


def test_reading_tells_of_bytes_of_a_table_and_of_ids_of_an_index(tmp_path):
    told, rows = Told(), np.random.default_rng(0).standard_normal((2_500, 3))
    np.savetxt(tmp_path / "views.csv", rows, delimiter=",", header="a,b,c", comments="")
    with qh.HammingIndex.open(tmp_path / "items.qhx", 16) as index:
        index.add(np.arange(400, dtype=np.uint8).reshape(200, 2))
        index.remove([3, 4])
    with heard_by(told):
        read_views([str(tmp_path / "views.csv")])
        with qh.HammingIndex.open(tmp_path / "items.qhx", readonly=True) as index:
            index.search(np.zeros((1, 2), dtype=np.uint8), k=1)
    (_, n_bytes, unit, n_read), *others = told.stages
    assert unit == "bytes"
    assert 0 < n_read <= n_bytes == (tmp_path / "views.csv").stat().st_size
    assert ["reading", 202, "ids", 202] in others  # 198 items, and the removed ones when they came and when they went


def test_a_store_tells_of_every_item(tmp_path):
    pytest.importorskip("faiss", reason="needs faiss")
    told, codes = Told(), np.random.default_rng(0).integers(0, 256, (1_000, 2), dtype=np.uint8)
    with heard_by(told), qh.open_store("faiss:", n_bits=16) as store:
        store.add(codes, np.arange(1_000))
        store.remove(np.arange(10))
    asked = ["asking for ids", 1_000, "items", 1_000], ["asking for ids", 10, "items", 10]
    assert told.stages == [asked[0], ["adding", 1_000, "items", 1_000], asked[1]]


def test_a_store_whose_own_thread_walks_the_portions_tells_too(tmp_path):
    pytest.importorskip("lancedb", reason="needs lancedb")
    told, codes = Told(), np.random.default_rng(0).integers(0, 256, (1_000, 2), dtype=np.uint8)
    with heard_by(told), qh.open_store(f"lancedb://{tmp_path}/codes", n_bits=16) as store:
        store.add(codes, np.arange(1_000))
    assert ["adding", 1_000, "items", 1_000] in told.stages


def test_an_audit_is_watched_from_the_first_byte_to_the_last_row(tmp_path, monkeypatch):
    heard = []

    def audit(*_, verbose=False, **__):
        heard.append(is_heard() and not verbose)  # one bar, which shows the stages
        raise qh.QuorumHashError("enough")

    monkeypatch.setattr("quorumhash.auditing.audit", audit)
    np.savez(tmp_path / "views.npz", a=np.ones((3, 2)), b=np.ones((3, 2)))
    monkeypatch.setattr(sys, "argv", ["quorumhash", "audit", str(tmp_path / "views.npz")])
    with pytest.raises(SystemExit):
        main()
    assert heard == [True]


def test_an_estimate_is_filled_when_the_call_is_over():
    told = Told()
    with heard_by(told), estimated("long", 1e15):
        pass
    with heard_by(told), estimated("short", 1.0):
        time.sleep(0.3)
    assert all(total == n_done for _, total, _, n_done in told.stages)
