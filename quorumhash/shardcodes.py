"""Encoding a data set that lies in shards: one file of codes for each shard, written whole, never done twice.

    part-007.npz  ->  part-007.codes.npy       uint8 (n, n_bytes), as transform gives them
                      part-007.codes.json      what it was made from: model, shard, rows; and its checksum

The note is written last. A shard is finished when its note names this model and this content and the codes beside it
have the checksum that it states; so a run that was killed goes on where it was, two runs give the same files, and a
shard that has changed, or another model, is encoded again. Shards know nothing of each other: any of them may be
encoded on any machine.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from quorumhash.atomic import replacing
from quorumhash.engines import Engine, open_engine
from quorumhash.errors import ParameterError
from quorumhash.lancefiles import SUFFIX, lance_view_names
from quorumhash.shardedrows import shards as sharded
from quorumhash.viewfiles import read_array, read_shard, write_array
from quorumhash.views import Views

if TYPE_CHECKING:
    from quorumhash.index.adapters.base import Store

READ_BYTES = 1 << 22
FORMAT = 1


@dataclass(frozen=True)
class ShardNote:
    """What a file of codes was made from."""

    model: str  # fingerprint
    n_bits: int
    n_rows: int
    shard_bytes: int
    shard_time: int  # when it was last changed, nanoseconds: a shard of that size and time is not read to be skipped
    shard_sha256: str
    codes_sha256: str
    store: str = ""  # that the codes were put into, under ids from first_id on
    first_id: int = 0
    format: int = FORMAT


@dataclass(frozen=True)
class EncodedShard:
    """One shard and its codes."""

    shard: str
    codes: str
    n_rows: int
    first_id: int
    is_new: bool  # False: it was finished before


def encode_shards(
    hasher: Any,
    shards: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    engine: str | Engine = "threads",
    store: Store | None = None,
    first_id: int = 0,
    done: Callable[[EncodedShard], None] | None = None,
) -> list[EncodedShard]:
    """Codes of every shard, as files in a folder, and in a store where one is given.

    Parameters
    ----------
    hasher : fitted hasher
        What encodes; its fingerprint stands in every note.
    shards : sequence of paths
        Each holds all views of its rows: .npz, .parquet, .npy (one view, of the file's name), a .lance dataset, or a
        folder with a .npy for each view. The last two need not fit in memory: they are read block by block.
    out : path
        The folder for the codes, made where it is not there.
    engine : str or Engine
        Where the rows of a shard are walked.
    store : Store, optional
        A store that codes go into as well, under running numbers over the shards in the order given. What was put
        there before a run was killed is put there anew, not twice.
    first_id : int
        The first of those numbers, where other machines encode the shards before these.
    done : callable, optional
        Called with every shard that is finished.

    Examples
    --------
    >>> encode_shards(hasher, ["part-0.npz", "part-1.npz"], "codes")  # doctest: +SKIP
    """
    folder = Path(out)
    targets = _targets(shards, folder)
    folder.mkdir(parents=True, exist_ok=True)
    fingerprint = hasher.fingerprint()
    results, start = [], first_id
    for shard, target in targets:
        note = _finished(shard, target, fingerprint, store, start)
        is_new = note is None
        if note is None:
            note = _encode(hasher, fingerprint, shard, target, engine, store, start)
        result = EncodedShard(str(shard), str(target), note.n_rows, start, is_new)
        results.append(result)
        start += note.n_rows
        if done is not None:
            done(result)
    return results


def _targets(shards: Sequence[str | os.PathLike[str]], folder: Path) -> list[tuple[Path, Path]]:
    pairs = [(Path(shard), folder / f"{Path(shard).stem}.codes.npy") for shard in shards]
    if not pairs:
        raise ParameterError("there are no shards: give at least one file.")
    names = [target.name for _, target in pairs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ParameterError(f"two shards would both be encoded to {twice}: every shard must have a name of its own.")
    if folder.exists() and not folder.is_dir():
        raise ParameterError(f"{folder} must be a folder for the codes of shards, and is a file; give another path.")
    return pairs


def _note_path(target: Path) -> Path:
    return target.with_suffix(".json")


def _finished(shard: Path, target: Path, model: str, store: Store | None, first_id: int) -> ShardNote | None:
    """The note of a shard that is finished, else None."""
    try:
        note = ShardNote(**json.loads(_note_path(target).read_text()))
        is_same = note.format == FORMAT and note.model == model and _sha256(target) == note.codes_sha256
    except (OSError, ValueError, TypeError):  # not there, cut off, or of another format: made again
        return None
    if not is_same or (store is not None and (note.store, note.first_id) != (store.name, first_id)):
        return None
    n_bytes, changed = _size_and_time(shard)
    if (n_bytes, changed) == (note.shard_bytes, note.shard_time):
        return note
    return note if n_bytes == note.shard_bytes and _sha256(shard) == note.shard_sha256 else None


def _encode(
    hasher: Any, model: str, shard: Path, target: Path, engine: str | Engine, store: Store | None, first_id: int
) -> ShardNote:
    n_bytes, changed = _size_and_time(shard)
    digest = _sha256(shard)
    with open_engine(engine) as opened:
        codes = hasher.transform(_views(shard, opened), engine=opened)
    if (n_bytes, changed) != _size_and_time(shard):
        raise ParameterError(f"{shard} was changed while it was read; encode it again once it is whole.")
    write_array(target, codes)
    if store is not None:
        _put(store, codes, np.arange(first_id, first_id + len(codes), dtype=np.int64))
    note = ShardNote(
        model, int(hasher.n_bits_), len(codes), n_bytes, changed, digest, _sha256(target),
        "" if store is None else store.name, first_id if store is not None else 0,
    )  # fmt: skip
    with replacing(_note_path(target)) as file:
        file.write(json.dumps(asdict(note), indent=1).encode("ascii"))
    return note


def _views(shard: Path, engine: Engine) -> Views:
    if shard.suffix == SUFFIX:
        return Views({name: sharded(shard, name, engine=engine) for name in lance_view_names(shard)})
    return read_shard(shard)


def _put(store: Store, codes: npt.NDArray[np.uint8], ids: npt.NDArray[np.int64]) -> None:
    """Codes under ids of which some may be there, from a run that was killed or of another model."""
    known = ids[store.has(ids)]
    if len(known):
        store.remove(known)
    store.add(codes, ids)


def read_codes(encoded: Sequence[EncodedShard]) -> npt.NDArray[np.uint8]:
    """The codes of all shards, one below the other."""
    return np.concatenate([read_array(Path(shard.codes)) for shard in encoded])


def _files(path: Path) -> list[Path]:
    if path.suffix == SUFFIX and path.is_dir():
        return sorted(file for file in path.rglob("*") if file.is_file())  # rows, and which of them are deleted
    return sorted(path.glob("*.npy")) if path.is_dir() else [path]


def _size_and_time(path: Path) -> tuple[int, int]:
    try:
        facts = [file.stat() for file in _files(path)]
    except OSError as error:
        raise ParameterError(f"there is no shard {path}; give files that are there.") from error
    return sum(fact.st_size for fact in facts), max([0, *(fact.st_mtime_ns for fact in facts)])


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    for file in _files(path):
        digest.update(f"{file.relative_to(path).as_posix() if path.is_dir() else ''}\0".encode())
        with file.open("rb") as opened:
            while part := opened.read(READ_BYTES):
                digest.update(part)
    return digest.hexdigest()
