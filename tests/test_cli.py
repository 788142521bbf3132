"""The command line, started as its users start it."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from commands import call as quorumhash

import quorumhash as qh
from quorumhash.index.store import SegmentFile

STOPPED = "quorumhash: stopped; every file is the old one or a whole new one.\n"
RUN = [sys.executable, "-c", "from quorumhash.cli import main; main()"]


def process(*arguments, cwd=None, **environment):
    """A command in a process of its own, which takes two seconds to start; `quorumhash` calls it in this one."""
    return subprocess.run(
        [*RUN, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "NO_COLOR": "1", **environment},
    )


@pytest.fixture
def folder(tmp_path):
    digits = qh.load_dataset("digits")
    views = digits.views[digits.train_rows[:200]]
    np.savez(tmp_path / "views.npz", **dict(views.items()))
    np.save(tmp_path / "pixels.npy", views["pixels"])
    np.save(tmp_path / "profiles.npy", views["profiles"])
    np.save(tmp_path / "labels.npy", digits.labels[digits.train_rows[:200]])
    return tmp_path


def test_fit_and_encode_give_what_the_library_gives(folder):
    done = process("fit", "views.npz", "-o", "items.qh", "--bits", 16, "--method", "itq", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["rows"] == 200
    assert facts["views"] == {"pixels": 64, "gradients": 32, "frequencies": 45, "profiles": 46}
    done = process("encode", "items.qh", "views.npz", "-o", "codes.npy", "--json", cwd=folder)
    assert json.loads(done.stdout) == {
        "codes": "codes.npy", "rows": 200, "bits": 16, "bytes_per_code": 2, "fingerprint": facts["fingerprint"],
    }  # fmt: skip
    with np.load(folder / "views.npz") as views:
        expected = qh.ITQHasher(16).fit(dict(views)).transform(dict(views))
    np.testing.assert_array_equal(np.load(folder / "codes.npy"), expected)


def test_named_arrays_subsets_labels_and_text_output(folder):
    done = quorumhash(
        "fit",
        "pixels=pixels.npy",
        "profiles=profiles.npy",
        "-o",
        "items.qh",
        "--bits",
        8,
        "--labels",
        "labels.npy",
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    assert "Wrote items.qh: quorum, 8 bits, from Views(200 rows: pixels 64, profiles 46)" in done.stdout
    done = quorumhash("encode", "items.qh", "profiles=profiles.npy", "-o", "c.npy", "--unpacked", cwd=folder)
    assert "200 codes of 8 bits (8 bytes each)" in done.stdout
    assert np.load(folder / "c.npy").shape == (200, 8)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["fit", "nowhere.npz"], "there is no file nowhere.npz"),
        (["fit", "labels.npy"], "view 'labels' must be 2-D"),
        (["fit", "views.qh"], "views must be a .npz, .npy, .csv, .parquet or .lance, or name=path"),
        (["fit", "views.npz", "--seed", "-1"], "random_state must be a whole number from 0"),
        (["fit", "broken.npz"], "broken.npz is no readable .npz"),
        (["fit", "objects.npy"], "objects.npy is no readable .npy of plain numbers"),
        (["fit", "pixels.npy", "profiles.npy"], "several views must be given as name=path.npy each"),
        (["fit", "a=pixels.npy", "a=profiles.npy"], "a view is named twice"),
        (["fit", "views.npz", "--method", "magic"], "--method must be one of"),
        (["fit", "views.npz", "--bits", "0"], "n_bits of QuorumHasher must be a whole number from 1 to 1024, got 0"),
        (["fit", "views.npz", "--bits", "100000"], "n_bits of QuorumHasher must be a whole number from 1 to 1024, got"),
        (["fit", "views.npz", "--bits", "8", "--method", "lsh", "-o", "no/such/items.qh"], "no/such/items.qh"),
        (["fit", "views.npz", "--engine", "gpu"], "engine must be"),
        (["encode", "views.npz", "views.npz"], "views.npz"),
        (["encode", "nowhere.qh", "views.npz"], "nowhere.qh"),
        (["serve"], "serve needs a model file and an index file, or --demo"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_status_two(folder, arguments, sentence):
    (folder / "broken.npz").write_bytes(b"PK\x03\x04 not really")
    np.save(folder / "objects.npy", np.array([{}, {}]), allow_pickle=True)
    done = quorumhash(*arguments, cwd=folder)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert done.stderr.startswith("quorumhash: ")
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
    assert not (folder / "items.qh").exists()


def test_devices_links_and_folders_are_not_replaced(folder):
    (folder / "real.qh").write_text("old")
    (folder / "link.qh").symlink_to("real.qh")
    os.mkfifo(folder / "pipe")
    for target in ("pipe", "."):
        done = quorumhash("fit", "views.npz", "--method", "lsh", "-o", target, cwd=folder)
        assert done.returncode == 2
        assert "cannot be written" in done.stderr
    assert quorumhash("fit", "views.npz", "--method", "lsh", "-o", "link.qh", cwd=folder).returncode == 0
    assert (folder / "link.qh").is_symlink()
    assert isinstance(qh.load(folder / "real.qh"), qh.LSHHasher)


def test_warnings_are_one_line(folder):
    """Six different rows leave the consensus with fewer dimensions than bits."""
    np.savez(folder / "few.npz", a=np.tile(np.random.default_rng(0).standard_normal((6, 3)), (10, 1)))
    done = quorumhash("fit", "few.npz", "--bits", 8, "--method", "rmvh", cwd=folder)
    assert done.returncode == 0, done.stderr
    notes = [line for line in done.stderr.splitlines() if line.startswith("quorumhash: note: the consensus has rank")]
    assert len(notes) == 1


def test_debug_shows_the_traceback(folder):
    done = quorumhash("--debug", "fit", "nowhere.npz", cwd=folder)
    assert "Traceback" in done.stderr
    assert done.returncode != 0


def test_a_process_ends_with_one_sentence_and_status_two(folder):
    done = process("fit", "nowhere.npz", cwd=folder)
    assert done.returncode == 2
    assert done.stderr.startswith("quorumhash: there is no file nowhere.npz")
    assert done.stderr.count("\n") == 1


def test_wrong_usage_is_exit_status_two(folder):
    assert quorumhash("fit", cwd=folder).returncode == 2
    assert quorumhash("polish", cwd=folder).returncode == 2


def test_help_and_version():
    done = quorumhash("--help")
    assert done.returncode == 0
    for command in ("demo", "fit", "encode", "doctor"):
        assert command in done.stdout
    assert quorumhash("--version").stdout.strip() == qh.__version__


def test_help_names_every_method():
    text = " ".join(quorumhash("fit", "--help").stdout.split())
    assert all(name in text for name in qh.HASHERS)


def test_doctor():
    facts = json.loads(quorumhash("doctor", "--json", QUORUMHASH_THREADS="3").stdout)
    assert facts["quorumhash"] == qh.__version__
    assert facts["numpy"] == np.__version__
    assert facts["threads"].startswith("3 ")
    text = quorumhash("doctor").stdout
    assert all(name in text for name in facts)


def interrupted(*arguments, cwd, seconds=3.0):
    """The command after a Ctrl-C: exit status and what it said on the error stream."""
    process = subprocess.Popen(
        [*RUN, *arguments], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # background jobs ignore it
    )  # fmt: skip
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    return process.returncode, said


def test_ctrl_c_leaves_files_whole(folder):
    """An old report stays as it was, no temporary file is left behind, and one sentence says so."""
    report = folder / "report.html"
    report.write_text("old")
    status, said = interrupted("demo", cwd=folder)
    assert status == 130
    assert said == STOPPED
    assert report.read_text() == "old"
    assert not list(folder.glob(".*part*"))


WRITERS = {
    "fit": ("fit views.npz --method lsh --bits 16 -o items.qh", "items.qh"),
    "encode": ("encode model.qh views.npz -o codes.npy", "codes.npy"),
    "encode shards": ("encode model.qh views.npz -o shards/", "shards/views.codes.npy"),
    "audit, csv": ("audit views.npz --csv audit.csv", "audit.csv"),
    "audit, page": ("audit views.npz --html audit.html", "audit.html"),
    "index add": ("index add items.qhx packed.npy", "items.qhx"),
    "index remove": ("index remove items.qhx some.npy", "items.qhx"),
}


@pytest.mark.parametrize(("words", "target"), WRITERS.values(), ids=WRITERS)
def test_ctrl_c_while_a_file_is_written_leaves_the_old_one(folder, monkeypatch, words, target):
    """The interruption comes after the last byte and before anything says that they count."""
    with np.load(folder / "views.npz") as views:
        hasher = qh.LSHHasher(16).fit(dict(views))
        codes = hasher.transform(dict(views))
    hasher.save(folder / "model.qh")
    np.save(folder / "packed.npy", codes)
    np.save(folder / "some.npy", np.arange(5))
    with qh.HammingIndex.open(folder / "items.qhx", 16) as index:
        index.add(codes)
    (folder / "shards").mkdir()
    is_index = target.endswith(".qhx")
    if not is_index:
        (folder / target).write_bytes(b"old")
    before = sorted(path.name for path in folder.rglob("*"))

    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if is_index:
            put = SegmentFile._put
            patch.setattr(SegmentFile, "_put", lambda *given: (put(*given), interrupt()))
        else:
            patch.setattr(os, "replace", interrupt)
        done = quorumhash(*words.split(), cwd=folder)
    assert (done.returncode, done.stderr) == (130, STOPPED)
    if is_index:
        with qh.HammingIndex.open(folder / target) as index:
            assert index.ids.tolist() == list(range(200))
    else:
        assert (folder / target).read_bytes() == b"old"
    left = {path.name for path in folder.rglob("*")} - {*before}
    assert {name for name in left if not name.startswith("items.qhx-")} == set()


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("quorumhash fit --method rm", ["rmvh"]),
        ("quorumhash index c", ["check", "compact"]),
        ("quorumhash datasets get m", ["mnist"]),
    ],
)
def test_shells_complete_commands_methods_and_datasets(words, found):
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" ")), "_QUORUMHASH_COMPLETE": "complete_bash"}
    run = [sys.executable, "-c", "from quorumhash.cli import main; main()"]
    done = subprocess.run(run, capture_output=True, text=True, env={**os.environ, **asked})
    assert done.stdout.split() == found


def test_a_script_for_the_shell_is_shown():
    asked = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}  # the tests may run below no shell at all
    done = process("--show-completion", "bash", **asked)
    assert "complete -o default -F _quorumhash_completion quorumhash" in done.stdout
