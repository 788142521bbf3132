"""`quorumhash index` and `quorumhash search`: what they print, write and refuse."""

import json
import re

import numpy as np
import pytest
import test_cli
from commands import call as quorumhash

import quorumhash as qh
from quorumhash.index.store import SegmentFile


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a model, its codes and an index of them."""
    folder, digits = tmp_path_factory.mktemp("cli"), qh.load_dataset("digits")
    views = digits.views[digits.train_rows[:150]]
    hasher = qh.ITQHasher(13).fit(views)
    hasher.save(folder / "items.qh")
    np.save(folder / "codes.npy", hasher.transform(views))
    np.save(folder / "ids.npy", np.arange(150) * 10)
    np.savez(folder / "query.npz", **dict(views[:4].items()))
    done = quorumhash(
        "index", "add", "items.qhx", "codes.npy", "--ids", "ids.npy", "--model", "items.qh", "--json", cwd=folder
    )
    assert json.loads(done.stdout) == {"index": "items.qhx", "added": 150, "items": 150}, done.stderr
    return folder


@pytest.fixture
def folder(made, tmp_path):
    for name in ("items.qh", "codes.npy", "ids.npy", "query.npz", "items.qhx"):
        (tmp_path / name).write_bytes((made / name).read_bytes())
    return tmp_path


def expected(folder, k=None, radius=None):
    codes, ids = np.load(folder / "codes.npy"), np.load(folder / "ids.npy")
    rows = []
    for query in codes[:4]:
        distances = np.unpackbits(codes ^ query, axis=1).sum(axis=1)
        order = np.lexsort((ids, distances))
        order = order[:k] if radius is None else order[distances[order] <= radius]
        rows.append((ids[order].tolist(), distances[order].tolist()))
    return {"queries": 4, "ids": [ids for ids, _ in rows], "distances": [d for _, d in rows]}


def test_search_gives_what_brute_force_gives(folder):
    done = quorumhash("search", "items.qh", "items.qhx", "query.npz", "-k", 7, "--json", cwd=folder)
    assert json.loads(done.stdout) == expected(folder, k=7), done.stderr
    done = quorumhash("search", "items.qh", "items.qhx", "query.npz", "--radius", 2, "--json", cwd=folder)
    assert json.loads(done.stdout) == expected(folder, radius=2), done.stderr
    done = test_cli.process("search", "items.qh", "items.qhx", "query.npz", cwd=folder)
    truth = expected(folder, k=10)
    lines = [
        " ".join(f"{i}:{d}" for i, d in zip(*row, strict=True))
        for row in zip(truth["ids"], truth["distances"], strict=True)
    ]
    assert done.stdout.splitlines() == lines


def test_items_are_removed_counted_checked_and_dropped(folder):
    np.save(folder / "some.npy", np.arange(0, 500, 10))
    done = quorumhash("index", "remove", "items.qhx", "some.npy", "--json", cwd=folder)
    assert json.loads(done.stdout) == {"index": "items.qhx", "removed": 50, "items": 100}, done.stderr
    facts = json.loads(quorumhash("index", "info", "items.qhx", "--json", cwd=folder).stdout)
    assert (facts["items"], facts["removed"], facts["bits"]) == (100, 50, 13)
    assert facts["model"] == qh.load(folder / "items.qh").fingerprint()
    done = quorumhash("index", "compact", "items.qhx", "--json", cwd=folder)
    assert json.loads(done.stdout)["dropped"] == 50, done.stderr
    done = quorumhash("index", "check", "items.qhx", cwd=folder)
    assert (done.returncode, done.stdout) == (0, "items.qhx is sound.\n")
    done = quorumhash("index", "add", "items.qhx", "codes.npy", cwd=folder)  # running numbers after the largest
    assert done.stdout == "Added 150 codes to items.qhx: 250 items.\n", done.stderr
    with SegmentFile(folder / "items.qhx") as file:
        assert sorted(file.load()[1])[100:] == list(range(1_491, 1_641))


def test_check_finds_a_changed_byte(folder):
    data = bytearray((folder / "items.qhx").read_bytes())
    place = data.index(np.load(folder / "codes.npy").tobytes())
    data[place] ^= 1
    (folder / "items.qhx").write_bytes(data)
    done = quorumhash("index", "check", "items.qhx", cwd=folder)
    assert done.returncode == 1
    assert "segment 0 was changed" in done.stdout
    done = quorumhash("search", "items.qh", "items.qhx", "query.npz", cwd=folder)
    assert done.returncode == 2
    assert "segment 0 was changed" in done.stderr


def test_a_new_index_has_the_bits_that_are_known(folder):
    for name, options, bits in (
        ("a.qhx", [], 16),
        ("b.qhx", ["--bits", 13], 13),
        ("c.qhx", ["--model", "items.qh"], 13),
    ):
        done = quorumhash("index", "add", name, "codes.npy", *options, cwd=folder)
        assert done.returncode == 0, done.stderr
        facts = json.loads(quorumhash("index", "info", name, "--json", cwd=folder).stdout)
        assert (facts["bits"], facts["items"]) == (bits, 150)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["index", "add", "items.qhx", "codes.npy", "--ids", "ids.npy"],
            "id 0 is already in the index file items.qhx; remove it first",
        ),
        (["index", "add", "items.qhx"], "give an index file and a .npy file"),
        (["index", "add", "items.qhx", "nowhere.npy"], "there is no file nowhere.npy"),
        (["index", "add", "new.qhx", "ids.npy"], "must be"),
        (["index", "add", "none.qhx", "one.npy"], "codes in one.npy must be rows of bytes, got shape"),
        (["index", "add", "one.npy", "--store", "faiss:", "--bits", "8"], "must be rows of bytes"),
        (["index", "add", "none.qhx", "codes.npy", "--ids", "reals.npy"], "ids must be whole numbers"),
        (["index", "add", "none.qhx", "codes.npy", "--ids", "one.npy"], "ids must be as many as codes"),
        (["index", "add", "none.qhx", "codes.npy", "--bits", "0"], "n_bits must be a whole number from 1 to 1024"),
        (["index", "add", "none.qhx", "codes.npy", "--bits", "99"], "codes must be packed codes of 99 bits"),
        (["index", "remove", "none.qhx", "ids.npy"], "there is no index file none.qhx"),
        (["index", "info", "none.qhx"], "The index file none.qhx does not exist"),
        (["index", "check", "codes.npy"], "is no index file of quorumhash"),
        (["index", "compact", "none.qhx"], "there is no index file none.qhx"),
        (["search", "items.qh", "items.qhx"], "search needs an index file and queries"),
        (["search", "items.qh", "items.qhx", "query.npz", "-k", "3", "--radius", "1"], "give -k or --radius, not both"),
        (["search", "items.qh", "query.npz", "--store", "redis://x"], "must begin with faiss://"),
        (["search", "other.qh", "items.qhx", "query.npz"], "holds codes of the model"),
    ],
)
def test_what_goes_wrong_is_one_sentence(folder, arguments, sentence):
    if "other.qh" in arguments:
        views = qh.load_dataset("digits").views[:50]
        qh.ITQHasher(13).fit(views).save(folder / "other.qh")
    np.save(folder / "one.npy", np.int64(3))
    np.save(folder / "reals.npy", np.full(150, np.nan))
    done = quorumhash(*arguments, cwd=folder)
    assert done.returncode == 2
    assert re.search(sentence, done.stderr), done.stderr
    assert done.stderr.count("\n") == 1
    assert not list(folder.glob("none.qhx*"))  # nor a lock


def test_one_id_that_is_no_list_is_removed_and_counted(folder):
    np.save(folder / "one.npy", np.int64(0))
    done = quorumhash("index", "remove", "items.qhx", "one.npy", cwd=folder)
    assert (done.returncode, done.stdout) == (0, "Removed 1 items from items.qhx: 149 items.\n"), done.stderr


@pytest.mark.extra
def test_a_store_answers_as_the_index_file_does(folder):
    url = f"lancedb://{folder}/lance?table=codes"
    options = ["--ids", "ids.npy", "--model", "items.qh", "--store", url, "--json"]
    done = quorumhash("index", "add", "codes.npy", *options, cwd=folder)
    assert json.loads(done.stdout)["items"] == 150, done.stderr
    done = quorumhash("search", "items.qh", "query.npz", "-k", 7, "--store", url, "--json", cwd=folder)
    assert json.loads(done.stdout) == expected(folder, k=7), done.stderr
    np.save(folder / "some.npy", np.arange(0, 500, 10))
    np.save(folder / "more.npy", np.arange(5_000, 5_150))
    done = quorumhash(
        "index", "add", "codes.npy", "--ids", "more.npy", "--store", url, cwd=folder
    )  # its bits are known
    assert done.stdout.endswith(": 300 items.\n"), done.stderr
    done = quorumhash("index", "remove", "more.npy", "--store", url, cwd=folder)
    done = quorumhash("index", "remove", "some.npy", "--store", url, cwd=folder)
    assert done.stdout.endswith(": 100 items.\n"), done.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["fit", "FAR.npz", "-o", "new.qh"], "cannot be read"),
        (["fit", "folder.npz", "-o", "new.qh"], "folder.npz is a folder or device; give the path of a file"),
        (["index", "add", "FAR.qhx", "codes.npy"], "cannot be opened"),
        (["index", "compact", "FAR.qhx"], "cannot be opened"),
        (["encode", "items.qh", "query.npz", "-o", "FAR.npy"], "cannot be written"),
    ],
)
def test_a_path_that_the_system_refuses_to_look_at_is_one_sentence(folder, arguments, sentence):
    (folder / "folder.npz").mkdir()
    far = "a" * 300  # a name too long is refused to everybody, a locked folder not to root
    done = quorumhash(*(word.replace("FAR", far) for word in arguments), cwd=folder)
    assert done.returncode == 2, done.stderr
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
