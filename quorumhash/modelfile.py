"""Model files: a manifest and plain arrays in one checksummed ZIP, without pickle.

    manifest.json      format, versions, kind, parameters, state; per array file its SHA-256, shape, dtype and order
    arrays/0000.npy    the arrays in the order in which parameters and state hold them, uncompressed
    archive comment    SHA-256, in 64 hex digits, of every byte before it

A tree is a nested dict (text keys), list, str, int, float, bool, None or numeric array; NumPy scalars become
Python's. In the manifest {"$array": file}, {"$float": "nan"} and {"$int": "0x1"} stand for what JSON cannot
hold, and a key that begins with "$" gets a second one.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from quorumhash._version import __version__
from quorumhash.atomic import replacing
from quorumhash.errors import ModelFileError, ParameterError

Tree: TypeAlias = Any
Parts: TypeAlias = list[bytes | memoryview]

FORMAT, FORMAT_VERSION = "quorumhash model", 1

_MANIFEST = "manifest.json"
_FIELDS = {"format": str, "format_version": int, "library_version": str, "kind": str}
_FIELDS |= {"parameters": dict, "state": object, "arrays": dict}
_SIZES = ("i2", "i4", "i8", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16")
_DTYPES = {"|b1", "|i1", "|u1", *(order + size for order in "<>" for size in _SIZES)}
_DIGEST_SIZE, _CHUNK_SIZE, _MAX_DEPTH = 64, 1 << 20, 100
_RESTORE = "restore it from a copy or fit again"


@dataclass(frozen=True, eq=False)
class ModelContent:
    """What a model file holds."""

    kind: str
    parameters: dict[str, Tree]
    state: Tree
    library_version: str
    format_version: int


def write_model(path: str | os.PathLike[str], kind: str, parameters: dict[str, Tree], state: Tree) -> None:
    """Write a model file, whole or not at all; the same trees, with arrays of any shape, give the same bytes.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_model(folder + "/items.qh", "ITQHasher", {"n_bits": 8}, {"mean": np.zeros(3)})
    ...     read_model(folder + "/items.qh").kind
    'ITQHasher'
    """
    members: dict[str, Parts] = {_MANIFEST: []}
    arrays: dict[str, dict[str, Any]] = {}

    def store(array: npt.NDArray[Any]) -> str:
        name = _array_name(len(arrays))
        arrays[name], members[name] = _describe(array)
        return name

    model = _encode_model(kind, parameters, state, store)
    manifest = {"format": FORMAT, "format_version": FORMAT_VERSION, "library_version": __version__, **model}
    members[_MANIFEST] = [json.dumps({**manifest, "arrays": arrays}, indent=1, allow_nan=False).encode("ascii")]
    try:
        with replacing(path) as file:
            file.write(_signed_archive(members))
    except OSError as error:
        raise ModelFileError(
            f"The model file {os.fspath(path)} cannot be written ({error.strerror or error}); "
            "give a path in a folder that exists, may be written to and has space."
        ) from error


def read_model(path: str | os.PathLike[str]) -> ModelContent:
    """Read and check a model file, arrays with their shapes; anything but an intact file is a ModelFileError.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_model(folder + "/items.qh", "ITQHasher", {"n_bits": 8}, {"mean": np.zeros(3)})
    ...     read_model(folder + "/items.qh").state
    {'mean': array([0., 0., 0.])}
    """
    name = os.fspath(path)
    try:
        return _parse(_read_bytes(Path(path)))
    except ModelFileError as error:
        raise ModelFileError(f"The model file {name} {error}.") from error.__cause__
    except (OSError, MemoryError) as error:
        reason = getattr(error, "strerror", None) or str(error) or "not enough memory"
        raise ModelFileError(f"The model file {name} cannot be read ({reason}); check its permissions.") from error
    except Exception as error:  # a forged file can break each step of ZIP, JSON and NumPy in a way of its own
        reason = str(error) or type(error).__name__
        raise ModelFileError(f"The model file {name} is damaged ({reason}); {_RESTORE}.") from error


def fingerprint(kind: str, parameters: dict[str, Tree], state: Tree) -> str:
    """SHA-256, in hex, of a model's content, whatever its path, its library version and the order of its dict keys.

    >>> model = {"n_bits": 8}, {"mean": np.zeros(3)}
    >>> fingerprint("ITQHasher", *model) == fingerprint("ITQHasher", *model) != fingerprint("PCAHasher", *model)
    True
    """
    model = _encode_model(kind, parameters, state, lambda array: _describe(array)[0])
    return hashlib.sha256(json.dumps(model, sort_keys=True, allow_nan=False).encode("ascii")).hexdigest()


def _encode_model(kind: str, parameters: dict[str, Tree], state: Tree, store: Callable[..., Any]) -> dict[str, Any]:
    if not isinstance(kind, str) or not isinstance(parameters, dict):
        raise ParameterError(
            f"kind must be a str and parameters a dict, got {type(kind).__name__} and {type(parameters).__name__}; "
            "give the name of the class and its parameters."
        )
    trees = {"parameters": parameters, "state": state}
    return {"kind": kind, **{name: _encode(tree, name, store, 0) for name, tree in trees.items()}}


def _encode(node: Tree, place: str, store: Callable[..., Any], depth: int) -> Any:
    """The JSON form of a tree; `store` takes each array and returns what stands for it."""
    if depth > _MAX_DEPTH:
        raise ParameterError(f"{place[:60]}... must be nested at most {_MAX_DEPTH} deep, got more; flatten it.")
    node = node.item() if isinstance(node, np.generic) else node
    if node is None or isinstance(node, bool | str):
        return node
    if isinstance(node, int):
        return node if abs(node) < 2**53 else {"$int": hex(node)}
    if isinstance(node, float):
        return node if math.isfinite(node) else {"$float": str(node)}
    if type(node) in (np.ndarray, np.memmap) and node.dtype.str in _DTYPES:
        return {"$array": store(node)}
    if isinstance(node, list):
        return [_encode(value, f"{place}[{i}]", store, depth + 1) for i, value in enumerate(node)]
    if isinstance(node, dict) and all(isinstance(key, str) for key in node):
        return {
            "$" * key.startswith("$") + key: _encode(value, f"{place}[{key!r}]", store, depth + 1)
            for key, value in node.items()
        }
    raise ParameterError(
        f"{place} must be a dict with text keys, list, str, int, float, bool, None or numeric array, got "
        f"{type(node).__name__}{f' of {node.dtype}' if isinstance(node, np.ndarray) else ''}; convert it first."
    )


def _decode(node: Any, arrays: dict[str, npt.NDArray[Any]], depth: int) -> Tree:
    """Undo `_encode`, taking each array out of `arrays`."""
    _require(depth <= _MAX_DEPTH, "its manifest is nested too deep")
    if isinstance(node, list):
        return [_decode(value, arrays, depth + 1) for value in node]
    if not isinstance(node, dict):
        return node
    match list(node.items())[:2]:
        case [("$array", str(name))] if name in arrays:
            return arrays.pop(name)
        case [("$float", "nan" | "inf" | "-inf" as text)]:
            return float(text)
        case [("$int", str(text))]:
            return int(text, 16)
    wrong = [key for key in node if key.startswith("$") and not key.startswith("$$")]
    _require(not wrong, f"its manifest holds {wrong[:1]} that stands for nothing")
    return {key.removeprefix("$"): _decode(value, arrays, depth + 1) for key, value in node.items()}


def _array_name(number: int) -> str:
    return f"arrays/{number:04d}.npy"


def _describe(array: npt.NDArray[Any]) -> tuple[dict[str, Any], Parts]:
    """Manifest entry of an array and the parts of its .npy file; memory order is kept, products depend on it."""
    order: Any = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    entry = {"shape": list(array.shape), "dtype": array.dtype.str, "order": order}
    header, data = _npy_header(**entry), array.ravel(order=order).view(np.uint8).data
    digest = hashlib.sha256(header)
    digest.update(data)
    return {"sha256": digest.hexdigest(), **entry}, [header, data]


def _npy_header(shape: list[int], dtype: str, order: str) -> bytes:
    """Header of a .npy file, version 1.0; written here since NumPy's padding differs between its releases."""
    text = f"{{'descr': {dtype!r}, 'fortran_order': {order == 'F'}, 'shape': {tuple(shape)}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode("ascii")


def _signed_archive(members: dict[str, Parts]) -> memoryview:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.comment = bytes(_DIGEST_SIZE)
        for name, parts in members.items():
            info = zipfile.ZipInfo(name)
            info.create_system, info.external_attr = 3, 0o644 << 16  # the same bytes on every system
            info.file_size = sum(map(len, parts))
            with archive.open(info, "w") as member:
                for part in parts:
                    member.write(part)
    whole = buffer.getbuffer()
    whole[-_DIGEST_SIZE:] = hashlib.sha256(whole[:-_DIGEST_SIZE]).hexdigest().encode("ascii")
    return whole


def _require(condition: bool, reason: str) -> None:
    if not condition:
        raise ModelFileError(f"is damaged: {reason}; {_RESTORE}")


def _read_bytes(path: Path) -> bytes:
    if not path.exists():
        raise ModelFileError("does not exist; check the path")
    if not path.is_file():
        raise ModelFileError("is a folder or device; give the path of a file that save wrote")
    with path.open("rb") as file:
        start = file.read(30 + len(_MANIFEST))  # 30 bytes of ZIP header stand before the first name
        if not start:
            raise ModelFileError(f"is empty; {_RESTORE}")
        if start[:4] != b"PK\x03\x04" or start[30:] != _MANIFEST.encode("ascii"):
            raise ModelFileError("is no model file of quorumhash; give the path of a file that save wrote")
        file.seek(0)
        return file.read()


def _parse(data: bytes) -> ModelContent:
    digest = hashlib.sha256(memoryview(data)[:-_DIGEST_SIZE]).hexdigest()
    _require(data[-_DIGEST_SIZE:] == digest.encode("ascii"), "bytes were changed or cut off, the checksum is wrong")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        _require(archive.comment == data[-_DIGEST_SIZE:], "it does not end where its ZIP directory says")
        manifest = _read_manifest(archive, len(data))
        members = archive.infolist()[1:]
        _check_members(members, list(manifest["arrays"]), len(data))
        arrays = {info.filename: _read_array(archive, info, manifest["arrays"][info.filename]) for info in members}
    parameters, state = (_decode(manifest[name], arrays, 0) for name in ("parameters", "state"))
    _require(isinstance(parameters, dict) and not arrays, "its manifest does not fit its arrays")
    return ModelContent(manifest["kind"], parameters, state, manifest["library_version"], manifest["format_version"])


def _read_manifest(archive: zipfile.ZipFile, n_bytes: int) -> dict[str, Any]:
    """The manifest; its version is checked before anything that a later version may do otherwise."""
    first = archive.infolist()[0]
    _require(first.filename == _MANIFEST and first.header_offset == 0, "its manifest is not its first member")
    _require(_is_stored(first) and first.file_size < n_bytes, "its manifest is compressed or too large")
    try:
        manifest: Any = json.loads(archive.read(first), parse_constant=int)  # int refuses NaN and Infinity
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"is damaged: its manifest is no valid JSON; {_RESTORE}") from error
    _require(isinstance(manifest, dict) and manifest.get("format") == FORMAT, "its manifest is not quorumhash's")
    version = manifest.get("format_version")
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise ModelFileError(
            f"has format version {version}, but quorumhash {__version__} reads versions up to {FORMAT_VERSION}; "
            "upgrade quorumhash"
        )
    is_whole = manifest.keys() == _FIELDS.keys() and all(isinstance(manifest[key], _FIELDS[key]) for key in _FIELDS)
    _require(is_whole and version == FORMAT_VERSION, "its manifest has missing or wrong fields")
    return dict(manifest)


def _is_stored(member: zipfile.ZipInfo) -> bool:
    return member.compress_type == zipfile.ZIP_STORED and not member.flag_bits & 1


def _check_members(members: list[zipfile.ZipInfo], names: list[str], n_bytes: int) -> None:
    found, expected = [info.filename for info in members], [_array_name(number) for number in range(len(names))]
    _require(len(set(found)) == len(found), "it holds a member twice")
    _require(names == expected, f"its manifest names a file {sorted(set(names) - set(expected))[:1]} it may not hold")
    _require(found == names, f"its members are not those of its manifest, see {sorted(set(found) ^ set(names))[:1]}")
    _require(all(map(_is_stored, members)), "it holds a compressed or encrypted member")
    _require(sum(info.file_size for info in members) < n_bytes, "its members claim more bytes than it has")


def _read_array(archive: zipfile.ZipFile, info: zipfile.ZipInfo, entry: Any) -> npt.NDArray[Any]:
    """One array, allocated only once its size and its header are those of the manifest."""
    is_whole = isinstance(entry, dict) and entry.keys() == {"sha256", "shape", "dtype", "order"}
    _require(is_whole, f"what its manifest states of {info.filename} is incomplete")
    shape, dtype, order = entry["shape"], entry["dtype"], entry["order"]
    _require(dtype in _DTYPES and order in ("C", "F"), f"{info.filename} has a dtype or order that is not allowed")
    _require(all(type(n) is int and n >= 0 for n in shape) and len(shape) <= 64, f"{info.filename} has no valid shape")
    header, n_values = _npy_header(shape, dtype, order), math.prod(shape)
    stated = f"{info.filename} is not of the shape and dtype that the manifest states"
    _require(info.file_size == len(header) + n_values * np.dtype(dtype).itemsize, stated)
    with archive.open(info) as member:
        _require(member.read(len(header)) == header, stated)
        values, digest = np.empty(n_values, dtype), hashlib.sha256(header)
        data = values.view(np.uint8).data
        for start in range(0, len(data), _CHUNK_SIZE):
            chunk = member.read(min(_CHUNK_SIZE, len(data) - start))
            data[start : start + _CHUNK_SIZE] = chunk
            digest.update(chunk)
    _require(digest.hexdigest() == entry["sha256"], f"{info.filename} does not have the SHA-256 of the manifest")
    return values.reshape(shape, order=order)
