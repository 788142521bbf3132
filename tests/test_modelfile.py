"""Model files: what is written comes back, and nothing else is ever believed."""

import doctest
import hashlib
import io
import json
import os
import pickle
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from quorumhash import atomic, modelfile
from quorumhash._version import __version__
from quorumhash.errors import ModelFileError, ParameterError
from quorumhash.modelfile import fingerprint, read_model, write_model

PARAMETERS = {"n_bits": 16, "objective": "groups", "view_weights": None, "sources": [["gist"], ["words"]]}
STATE = {
    "mean": np.linspace(-1, 1, 12).reshape(3, 4),
    "views": {"gist": {"landmarks": np.arange(20, dtype=np.float32).reshape(4, 5), "scale": 0.25}},
    "codes": np.arange(24, dtype=np.uint8).reshape(6, 4),
}


@pytest.fixture
def model(tmp_path) -> Path:
    path = tmp_path / "items.qh"
    write_model(path, "QuorumHasher", PARAMETERS, STATE)
    return path


def assert_same(left, right) -> None:
    """Equal in value, type, dtype, shape, memory order and order of keys; NaN equals NaN."""
    assert type(left) is type(right)
    if isinstance(left, dict):
        assert list(left) == list(right)
        for key in left:
            assert_same(left[key], right[key])
    elif isinstance(left, list):
        assert len(left) == len(right)
        for one, other in zip(left, right, strict=True):
            assert_same(one, other)
    elif isinstance(left, np.ndarray):
        assert (left.dtype, left.shape) == (right.dtype, right.shape)
        assert (left.flags.c_contiguous, left.flags.f_contiguous) == (
            right.flags.c_contiguous,
            right.flags.f_contiguous,
        )
        assert left.tobytes() == right.tobytes()
    else:
        assert repr(left) == repr(right)


# --- what is written comes back ---------------------------------------------------------------------------------

dtypes = hnp.boolean_dtypes() | hnp.integer_dtypes() | hnp.unsigned_integer_dtypes()
dtypes |= hnp.floating_dtypes(sizes=(16, 32, 64)) | hnp.complex_number_dtypes(sizes=(64, 128))
arrays = hnp.arrays(dtypes, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
texts = st.text(st.characters(exclude_categories=()), max_size=5)
keys = texts | st.sampled_from(["array", "$array", "$$array", "$float", "$", "float", "state", "../x", ""])
leaves = st.none() | st.booleans() | st.integers() | st.floats() | texts | arrays
leaves |= st.sampled_from([2**53, -(2**64), float("inf"), float("nan"), -0.0, 5e-324])
trees = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=12
)


@given(kind=texts, parameters=st.dictionaries(keys, leaves, max_size=3), state=trees)
@settings(deadline=None, derandomize=True, max_examples=300)
def test_every_tree_comes_back(tmp_path_factory, kind, parameters, state):
    path = tmp_path_factory.getbasetemp() / "any_tree.qh"
    write_model(path, kind, parameters, state)
    content = read_model(path)
    assert (content.kind, content.library_version, content.format_version) == (kind, __version__, 1)
    assert_same(content.parameters, parameters)
    assert_same(content.state, state)
    assert fingerprint(kind, content.parameters, content.state) == fingerprint(kind, parameters, state)


@pytest.mark.parametrize(
    "array",
    [
        np.array(3.0),
        np.zeros((0, 7)),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(12.0).reshape(3, 4)[:, ::2],
        np.arange(12.0).reshape(3, 4)[::-1],
        np.broadcast_to(np.arange(3.0), (4, 3)),
        np.arange(3, dtype=">i4"),
        np.array([[True, False]]),
    ],
)
def test_arrays_of_every_layout_come_back_writable(tmp_path, array):
    write_model(tmp_path / "a.qh", "Any", {}, array)
    state = read_model(tmp_path / "a.qh").state
    np.testing.assert_array_equal(state, array)
    assert (state.dtype, state.shape) == (array.dtype, array.shape)
    assert state.flags.writeable
    assert state.flags.f_contiguous or not array.flags.f_contiguous
    assert state.flags.c_contiguous or not array.flags.c_contiguous


def test_arrays_longer_than_a_chunk_come_back(tmp_path):
    array = np.random.default_rng(0).normal(size=(333, 1001))
    write_model(tmp_path / "a.qh", "Any", {}, [array, array.T])
    assert_same(read_model(tmp_path / "a.qh").state, [array, array.T])


def test_an_integer_of_any_size_comes_back(tmp_path):
    write_model(tmp_path / "a.qh", "Any", {}, [2**20_000, -(2**53), 2**53 - 1])
    assert read_model(tmp_path / "a.qh").state == [2**20_000, -(2**53), 2**53 - 1]


def test_numpy_scalars_come_back_as_python_numbers(tmp_path):
    write_model(tmp_path / "a.qh", "Any", {}, [np.float32(0.5), np.int64(3), np.bool_(True), np.float64("nan")])
    assert_same(read_model(tmp_path / "a.qh").state, [0.5, 3, True, float("nan")])


def test_other_tools_can_read_the_file(model):
    with zipfile.ZipFile(model) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        assert names == ["manifest.json", "arrays/0000.npy", "arrays/0001.npy", "arrays/0002.npy"]
        assert all(info.compress_type == zipfile.ZIP_STORED for info in archive.infolist())
        manifest = json.loads(archive.read("manifest.json"), parse_constant=pytest.fail)
        stored = [STATE["mean"], STATE["views"]["gist"]["landmarks"], STATE["codes"]]
        for name, expected in zip(names[1:], stored, strict=True):
            assert_same(np.load(io.BytesIO(archive.read(name)), allow_pickle=False), expected)
            entry = manifest["arrays"][name]
            assert entry["sha256"] == hashlib.sha256(archive.read(name)).hexdigest()
            assert (tuple(entry["shape"]), entry["dtype"]) == (expected.shape, expected.dtype.str)
    assert manifest["kind"] == "QuorumHasher"
    assert manifest["state"]["views"]["gist"]["scale"] == 0.25


def test_the_trailer_is_the_checksum_of_all_bytes_before_it(model):
    data = model.read_bytes()
    assert data[-64:].decode() == hashlib.sha256(data[:-64]).hexdigest()


def test_the_same_content_gives_the_same_bytes(tmp_path, model):
    again = tmp_path / "again.qh"
    write_model(again, "QuorumHasher", dict(PARAMETERS), {key: STATE[key] for key in STATE})
    assert again.read_bytes() == model.read_bytes()


def test_the_examples_in_the_docstrings_run():
    assert doctest.testmod(modelfile).failed == 0


# --- fingerprints -----------------------------------------------------------------------------------------------


def test_a_fingerprint_depends_on_content_only(monkeypatch):
    before = fingerprint("QuorumHasher", PARAMETERS, STATE)
    monkeypatch.setattr(modelfile, "__version__", "99.0")
    turned = {key: STATE[key] for key in reversed(STATE)}
    assert fingerprint("QuorumHasher", PARAMETERS, turned) == before
    assert len(before) == 64
    assert set(before) <= set("0123456789abcdef")


@pytest.mark.parametrize(
    ("kind", "parameters", "state"),
    [
        ("ITQHasher", PARAMETERS, STATE),
        ("QuorumHasher", {**PARAMETERS, "n_bits": 17}, STATE),
        ("QuorumHasher", {**PARAMETERS, "n_bits": 16.0}, STATE),
        ("QuorumHasher", PARAMETERS, {**STATE, "mean": np.nextafter(STATE["mean"], 2)}),
        ("QuorumHasher", PARAMETERS, {**STATE, "mean": STATE["mean"].reshape(4, 3)}),
        ("QuorumHasher", PARAMETERS, {**STATE, "codes": STATE["codes"].view(np.int8)}),
        ("QuorumHasher", PARAMETERS, {**STATE, "mean": STATE["codes"], "codes": STATE["mean"]}),
    ],
)
def test_a_fingerprint_tells_models_apart(kind, parameters, state):
    assert fingerprint(kind, parameters, state) != fingerprint("QuorumHasher", PARAMETERS, STATE)


# --- what cannot be written -------------------------------------------------------------------------------------


def nested(depth: int) -> list:
    tree: list = []
    for _ in range(depth):
        tree = [tree]
    return tree


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"a": [1, {"b": (1, 2)}]}, r"state\['a'\]\[1\]\['b'\] must be a dict .* got tuple"),
        ({1: 2}, "state must be a dict with text keys"),
        (np.array([object()]), "got ndarray of object"),
        (np.array(["text"]), "got ndarray of <U4"),
        (np.array(["2020-01-01"], "datetime64[D]"), "got ndarray of datetime64"),
        (np.zeros(2, [("x", "f8")]), "got ndarray of "),
        (np.zeros(2, np.longdouble), "got ndarray of "),
        (np.ma.masked_array([1.0, 2.0], [True, False]), "got MaskedArray"),
        (1j, "got complex"),
        (np.datetime64("2020-01-01"), "got date"),
        (b"bytes", "got bytes"),
        (nested(101), "nested at most 100 deep"),
    ],
)
def test_a_tree_that_cannot_come_back_is_refused_and_leaves_no_file(tmp_path, state, message):
    with pytest.raises(ParameterError, match=message):
        write_model(tmp_path / "a.qh", "Any", {}, state)
    with pytest.raises(ParameterError, match=message):
        fingerprint("Any", {}, state)
    assert list(tmp_path.iterdir()) == []


def test_a_tree_that_holds_itself_is_refused(tmp_path):
    tree: list = []
    tree += [tree, tree]
    with pytest.raises(ParameterError, match="nested at most"):
        write_model(tmp_path / "a.qh", "Any", {}, tree)


def test_the_deepest_tree_allowed_comes_back(tmp_path):
    write_model(tmp_path / "a.qh", "Any", {}, nested(100))
    assert read_model(tmp_path / "a.qh").state == nested(100)


@pytest.mark.parametrize(("kind", "parameters"), [(None, {}), ("Any", None), ("Any", [1])])
def test_kind_and_parameters_are_checked(tmp_path, kind, parameters):
    with pytest.raises(ParameterError, match="kind must be a str and parameters a dict"):
        write_model(tmp_path / "a.qh", kind, parameters, {})


def test_a_path_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    for path in (tmp_path / "no" / "folder.qh", tmp_path / "file" / "a.qh", tmp_path):
        with pytest.raises(ModelFileError, match="cannot be written") as caught:
            write_model(path, "Any", {}, {})
        assert str(path) in str(caught.value)

    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(atomic.tempfile, "mkstemp", refuse)
    with pytest.raises(ModelFileError, match=r"a\.qh cannot be written \(Permission denied\); give a path"):
        write_model(tmp_path / "a.qh", "Any", {}, {})


# --- a write that does not end ----------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt(), MemoryError()])
@pytest.mark.parametrize("step", ["fsync", "chmod", "replace"])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(model, monkeypatch, step, error):
    before = model.read_bytes()

    def fail(*args):
        raise error

    monkeypatch.setattr(atomic.os, step, fail)
    with pytest.raises(ModelFileError if isinstance(error, OSError) else type(error)):
        write_model(model, "Other", {}, {"x": np.ones(1000)})
    monkeypatch.undo()
    assert model.read_bytes() == before
    assert list(model.parent.iterdir()) == [model]


def test_a_killed_write_leaves_the_old_file(model):
    before = model.read_bytes()
    program = (
        "import os, sys, numpy\n"
        "from quorumhash import atomic, modelfile\n"
        "atomic.os.fsync = lambda *args: os._exit(9)\n"
        "modelfile.write_model(sys.argv[1], 'Other', {}, {'x': numpy.ones(100_000)})\n"
    )
    root = Path(modelfile.__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", program, str(model)], cwd=root, check=False)
    assert done.returncode == 9
    assert model.read_bytes() == before
    assert_same(read_model(model).state, STATE)


# --- files that are no model ------------------------------------------------------------------------------------


def test_what_is_no_model_file_gets_its_own_sentence(tmp_path):
    (tmp_path / "empty.qh").touch()
    (tmp_path / "text.qh").write_text("these are not the codes you are looking for\n" * 9)
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("word/document.xml", "<xml/>")
    expected = {
        "missing.qh": "does not exist; check the path",
        "text.qh/inside.qh": "does not exist|cannot be read",
        ".": "is a folder or device",
        "empty.qh": "is empty; restore it from a copy or fit again",
        "text.qh": "is no model file of quorumhash",
        "other.zip": "is no model file of quorumhash",
    }
    for name, message in expected.items():
        with pytest.raises(ModelFileError, match=message) as caught:
            read_model(tmp_path / name)
        assert str(caught.value).startswith(f"The model file {tmp_path / name} ")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_refused_without_waiting_for_it(tmp_path):
    os.mkfifo(tmp_path / "pipe.qh")
    with pytest.raises(ModelFileError, match="is a folder or device"):
        read_model(tmp_path / "pipe.qh")


@pytest.mark.parametrize(
    ("error", "message"), [(PermissionError(13, "Permission denied"), "Permission denied"), (MemoryError(), "memory")]
)
def test_a_file_that_cannot_be_read_is_not_called_damaged(model, monkeypatch, error, message):
    def refuse(*args):
        raise error

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(ModelFileError, match=rf"cannot be read \(.*{message}"):
        read_model(model)


# --- damaged files ----------------------------------------------------------------------------------------------


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    changed = bytearray(data)
    start, stop = sorted(rng.integers(0, len(data), 2).tolist())
    some = rng.bytes(int(rng.integers(1, 40)))
    match rng.integers(9):
        case 0:
            changed[start] ^= 1 << int(rng.integers(8))
        case 1:
            for place in rng.integers(0, len(data), int(rng.integers(2, 20))):
                changed[place] ^= int(rng.integers(1, 256))
        case 2:
            del changed[start:]
        case 3:
            changed[start:start] = some
        case 4:
            del changed[start : start + len(some)]
        case 5:
            changed += some
        case 6:
            middle = (start + stop) // 2
            changed[start:stop] = changed[middle:stop] + changed[start:middle]
        case 7:
            changed[start:stop] = bytes(stop - start)
        case 8:
            changed[start : start + len(some)] = some
    return bytes(changed)


def test_two_thousand_damaged_files_are_all_refused(model):
    data, rng, seen = model.read_bytes(), np.random.default_rng(20240607), set()
    while len(seen) < 2000:
        damaged = mutated(data, rng)
        if damaged == data or damaged in seen:
            continue
        seen.add(damaged)
        model.write_bytes(damaged)
        with pytest.raises(ModelFileError):
            read_model(model)


def test_a_file_cut_off_anywhere_is_refused(model):
    data = model.read_bytes()
    for size in [*range(0, len(data), 5), *range(len(data) - 100, len(data))]:
        model.write_bytes(data[:size])
        with pytest.raises(ModelFileError):
            read_model(model)


def signed(data: bytes) -> bytes:
    return data[:-64] + hashlib.sha256(data[:-64]).hexdigest().encode()


def test_damage_under_a_valid_checksum_never_escapes_as_another_error(model):
    """A flip the checksum covers may be harmless (a time stamp); it must load or be a ModelFileError."""
    data, rng = model.read_bytes(), np.random.default_rng(7)
    for _ in range(1500):
        model.write_bytes(signed(mutated(data, rng)))
        try:
            content = read_model(model)
        except ModelFileError:
            continue
        assert {type(content.parameters), type(content.kind)} == {dict, str}


# --- forged files: every checksum right, the content wrong ------------------------------------------------------


class Forgery:
    """The parts of a model file, to be changed and put together again with a valid trailer."""

    def __init__(self, path: Path):
        self.path = path
        with zipfile.ZipFile(path) as archive:
            self.members = [(name, archive.read(name), zipfile.ZIP_STORED) for name in archive.namelist()]
        self.manifest = json.loads(self.members.pop(0)[1])
        self.first = self.manifest["arrays"]["arrays/0000.npy"]

    def replace(self, number: int, content: bytes, method: int = zipfile.ZIP_STORED) -> None:
        name = self.members[number][0]
        self.members[number] = (name, content, method)
        self.manifest["arrays"][name]["sha256"] = hashlib.sha256(content).hexdigest()

    def write(self, text: str | bytes | None = None, method: int = zipfile.ZIP_STORED) -> None:
        buffer = io.BytesIO()
        text = json.dumps(self.manifest) if text is None else text
        with zipfile.ZipFile(buffer, "w") as archive:
            for name, content, how in [("manifest.json", text, method), *self.members]:
                archive.writestr(name, content, how)
            archive.comment = bytes(64)
        self.path.write_bytes(signed(buffer.getvalue()))


@pytest.fixture
def forgery(model) -> Forgery:
    return Forgery(model)


def assert_refused(forgery: Forgery, message: str) -> None:
    with pytest.raises(ModelFileError, match=message) as caught:
        read_model(forgery.path)
    assert str(caught.value).startswith(f"The model file {forgery.path} ")
    assert "restore it from a copy or fit again" in str(caught.value) or "upgrade" in str(caught.value)


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def test_a_forgery_that_changes_nothing_is_accepted(forgery):
    forgery.write()
    assert_same(read_model(forgery.path).state, STATE)


def test_a_newer_format_asks_for_an_upgrade(forgery):
    forgery.manifest.update(format_version=2, something_new=[])
    forgery.members.append(("new/member.bin", b"", zipfile.ZIP_DEFLATED))
    forgery.write()
    assert_refused(forgery, rf"has format version 2, but quorumhash {__version__} reads versions up to 1; upgrade")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "another model"}, "manifest is not quorumhash's"),
        ({"format_version": 0}, "missing or wrong fields"),
        ({"format_version": "1"}, "missing or wrong fields"),
        ({"format_version": None}, "missing or wrong fields"),
        ({"kind": 3}, "missing or wrong fields"),
        ({"parameters": []}, "missing or wrong fields"),
        ({"parameters": {"$float": "nan"}}, "does not fit"),
        ({"arrays": []}, "missing or wrong fields"),
        ({"unknown": 1}, "missing or wrong fields"),
        ({"state": {"$array": "arrays/0007.npy"}}, r"holds \['\$array'\] that stands for nothing"),
        ({"state": [{"$array": "arrays/0000.npy"}] * 2}, "that stands for nothing"),
        ({"state": {"$array": "arrays/0000.npy"}}, "does not fit its arrays"),
        ({"state": {"$array": "arrays/0000.npy", "x": 1}}, "that stands for nothing"),
        ({"state": {"$float": "1.5"}}, "that stands for nothing"),
        ({"state": {"$pickle": "gASVAAAA"}}, "that stands for nothing"),
        ({"state": {"$int": "seven"}}, "invalid literal"),
    ],
)
def test_a_manifest_with_a_wrong_field_is_refused(forgery, change, message):
    forgery.manifest.update(change)
    forgery.write()
    assert_refused(forgery, message)


@pytest.mark.parametrize(
    "field", ["format", "format_version", "library_version", "kind", "parameters", "state", "arrays"]
)
def test_a_manifest_that_lacks_a_field_is_refused(forgery, field):
    del forgery.manifest[field]
    forgery.write()
    assert_refused(forgery, "missing or wrong fields|not quorumhash's")


@pytest.mark.parametrize(
    "text", ["", "format: yaml", "{", '{"format": NaN}', '{"a": -Infinity}', b"\xff\xfe\xfd", "[" * 100_000, "9" * 5000]
)
def test_a_manifest_that_is_not_json_is_refused(forgery, text):
    forgery.write(text)
    assert_refused(forgery, "manifest is no valid JSON")


@pytest.mark.parametrize("text", ["[]", "null", "3", '"text"', "{}"])
def test_a_manifest_of_something_else_is_refused(forgery, text):
    forgery.write(text)
    assert_refused(forgery, "manifest is not quorumhash's")


def test_a_manifest_nested_too_deep_is_refused(forgery):
    forgery.manifest["state"] = nested(300)
    forgery.write()
    assert_refused(forgery, "nested too deep")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shape": [4, 3]}, "shape and dtype that the manifest states"),
        ({"shape": [12]}, "shape and dtype"),
        ({"shape": [3, 5]}, "shape and dtype"),
        ({"shape": [10**12, 10**6]}, "shape and dtype"),
        ({"shape": [10**4000]}, "shape and dtype"),
        ({"shape": [0, 10**30]}, "shape and dtype"),
        ({"shape": [-3, -4]}, "no valid shape"),
        ({"shape": [3.0, 4]}, "no valid shape"),
        ({"shape": [True] * 65}, "no valid shape"),
        ({"shape": [1] * 65}, "no valid shape"),
        ({"shape": 12}, "is damaged"),
        ({"dtype": "<i8"}, "shape and dtype"),
        ({"dtype": ">f8"}, "shape and dtype"),
        ({"dtype": "<f4"}, "shape and dtype"),
        ({"dtype": "|O"}, "dtype or order that is not allowed"),
        ({"dtype": "<M8[ns]"}, "dtype or order that is not allowed"),
        ({"dtype": "f8,f8"}, "dtype or order that is not allowed"),
        ({"dtype": ["<f8"]}, "is damaged"),
        ({"order": "F"}, "shape and dtype"),
        ({"order": "K"}, "dtype or order that is not allowed"),
        ({"sha256": "0" * 64}, "SHA-256"),
        ({"sha256": None}, "SHA-256"),
    ],
)
def test_an_array_that_is_not_what_the_manifest_says_is_refused(forgery, change, message):
    forgery.first.update(change)
    forgery.write()
    assert_refused(forgery, message)


@pytest.mark.parametrize("entry", [None, [], "text", {"shape": [3, 4]}])
def test_an_array_entry_that_is_incomplete_is_refused(forgery, entry):
    forgery.manifest["arrays"]["arrays/0000.npy"] = entry
    forgery.write()
    assert_refused(forgery, "what its manifest states of arrays/0000.npy is incomplete")


def test_a_huge_shape_in_manifest_and_header_is_refused_before_memory_is_taken(forgery):
    shape = [10**9, 10**3]
    content = forgery.members[0][1].replace(b"(3, 4), }              ", b"(1000000000, 1000), }  ")
    assert content != forgery.members[0][1]
    forgery.replace(0, content)
    forgery.first["shape"] = shape
    forgery.write()
    assert_refused(forgery, "shape and dtype")


def test_other_values_under_the_old_hash_are_refused(forgery):
    name, content, method = forgery.members[0]
    forgery.members[0] = (name, content[:-1] + b"\x00", method)
    forgery.write()
    assert_refused(forgery, "SHA-256")


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"no array" * 28, npy(np.zeros((3, 4)))[:-1]])
def test_a_member_that_is_no_array_is_refused(forgery, content):
    forgery.replace(0, content)
    forgery.write()
    assert_refused(forgery, "shape and dtype")


class Trap:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was opened",))


@pytest.mark.parametrize("dtype", ["<f8", "|O"])
def test_a_pickled_array_is_refused_and_never_opened(forgery, dtype):
    forgery.replace(0, npy(np.array([Trap()], dtype=object)))
    forgery.first.update(shape=[1], dtype=dtype)
    forgery.write()
    assert_refused(forgery, "not allowed" if dtype == "|O" else "shape and dtype")


def test_a_missing_member_is_refused(forgery):
    del forgery.members[1]
    forgery.write()
    assert_refused(forgery, r"members are not those of its manifest, see \['arrays/0001.npy'\]")


@pytest.mark.parametrize("name", ["extra.npy", "arrays/0003.npy", "../evil.npy", "/etc/passwd", "arrays/../../x"])
def test_a_member_that_the_manifest_does_not_name_is_refused(forgery, name):
    forgery.members.append((name, b"1", zipfile.ZIP_STORED))
    forgery.write()
    assert_refused(forgery, rf"members are not those of its manifest, see \['{name}'\]")


@pytest.mark.parametrize(
    "name", ["../evil.npy", "/etc/passwd", "arrays/0001.npy/../x", "state.npy", "arrays/00001.npy"]
)
def test_a_name_that_the_manifest_may_not_give_is_refused(forgery, name):
    entries = list(forgery.manifest["arrays"].items())
    forgery.manifest["arrays"] = dict([(name, entries[0][1]), *entries[1:]])
    forgery.manifest["state"]["mean"] = {"$array": name}
    forgery.members[0] = (name, *forgery.members[0][1:])
    forgery.write()
    assert_refused(forgery, rf"manifest names a file \['{name}'\] it may not hold")


def test_members_in_another_order_are_refused(forgery):
    forgery.members.reverse()
    forgery.write()
    assert_refused(forgery, "members are not those of its manifest")


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("name", ["arrays/0000.npy", "manifest.json"])
def test_a_member_held_twice_is_refused(forgery, name):
    forgery.members.append((name, forgery.members[0][1], zipfile.ZIP_STORED))
    forgery.write()
    assert_refused(forgery, "holds a member twice" if name != "manifest.json" else "members are not those")


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_compressed_member_is_refused(forgery, method):
    forgery.replace(0, forgery.members[0][1], method)
    forgery.write()
    assert_refused(forgery, "compressed or encrypted member")


def test_a_compressed_manifest_is_refused(forgery):
    forgery.write(method=zipfile.ZIP_DEFLATED)
    assert_refused(forgery, "manifest is compressed")


def test_a_signed_file_without_a_zip_is_refused(forgery):
    forgery.path.write_bytes(signed(forgery.path.read_bytes()[:200] + bytes(64)))
    assert_refused(forgery, r"is damaged \(File is not a zip file\)")


def test_members_that_claim_more_bytes_than_the_file_has_are_refused(forgery):
    data = bytearray(forgery.path.read_bytes())
    entry = data.rindex(b"PK\x01\x02", 0, data.rindex(b"arrays/0000.npy"))
    data[entry + 20 : entry + 28] = 2 * (2**31 - 1).to_bytes(4, "little")  # both sizes in the ZIP directory
    forgery.path.write_bytes(signed(bytes(data)))
    assert_refused(forgery, "members claim more bytes than it has")


def test_bytes_between_directory_and_trailer_are_refused(forgery):
    forgery.path.write_bytes(signed(forgery.path.read_bytes() + bytes(30)))
    assert_refused(forgery, "does not end where its ZIP directory says")


def test_bytes_before_the_first_member_are_refused(forgery):
    data = forgery.path.read_bytes()
    forgery.path.write_bytes(signed(data[:43] + data))
    assert_refused(forgery, "manifest is not its first member")


# --- no pickle, little memory -----------------------------------------------------------------------------------


def test_neither_writing_nor_reading_uses_pickle(model, monkeypatch):
    for name in ("load", "loads", "dump", "dumps", "Unpickler", "Pickler"):
        monkeypatch.setattr(pickle, name, pytest.fail)
    monkeypatch.setattr(np, "load", pytest.fail)
    write_model(model, "QuorumHasher", PARAMETERS, STATE)
    assert_same(read_model(model).state, STATE)
    assert "import pickle" not in Path(modelfile.__file__).read_text(encoding="utf-8")


def test_reading_takes_about_twice_the_size_of_the_file(tmp_path):
    path = tmp_path / "large.qh"
    write_model(path, "Any", {}, [np.zeros((1000, 1000)), np.ones(10**6, np.float32)])
    tracemalloc.start()
    try:
        read_model(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2.3 * path.stat().st_size
