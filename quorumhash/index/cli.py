"""`quorumhash index` and `quorumhash search`: fill, look after and ask index files and stores; a thin coat."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorumhash.errors import ParameterError
from quorumhash.printing import JsonOption, say
from quorumhash.progress import begin_stage, count_bar, watching

if TYPE_CHECKING:
    from quorumhash.index.matches import Matches, Neighbourhoods

index = typer.Typer(name="index", help="Fill, check and look after index files and stores.", no_args_is_help=True)

FileArgument = Annotated[Path, typer.Argument(help="Index file, .qhx.", metavar="INDEX")]
PORTION = 1_000  # queries that are searched between two steps of the bar
StoreOption = Annotated[str, typer.Option("--store", help="URL of a store to use instead of an index file.")]


@index.command("add")
def add_codes(
    words: Annotated[
        list[str], typer.Argument(help="Index file (not with --store), then codes, .npy.", metavar="[INDEX] CODES")
    ],
    ids: Annotated[
        Path | None, typer.Option("--ids", help="Ids of the codes, .npy of whole numbers; else running numbers.")
    ] = None,
    bits: Annotated[
        int | None,
        typer.Option("--bits", help="Bits per code of a new index; else the model's, or those of whole bytes."),
    ] = None,
    model: Annotated[
        Path | None, typer.Option("--model", help="Model file that made the codes; an index file remembers it.")
    ] = None,
    store: StoreOption = "",
    as_json: JsonOption = False,
) -> None:
    """Add codes to an index file or a store; it is made when it is not there.

    Example: quorumhash index add items.qhx codes.npy --model items.qh
    """
    from quorumhash.codes import MOST_BITS
    from quorumhash.index.adapters import open_store
    from quorumhash.index.arguments import checked_codes, checked_ids, checked_number, running_ids
    from quorumhash.index.store import SegmentFile
    from quorumhash.viewfiles import read_array

    target, file = _target(words, store)
    codes = read_array(Path(file))
    if codes.ndim != 2:
        raise ParameterError(f"codes in {file} must be rows of bytes, got shape {codes.shape}; give what encode wrote.")
    names = None if ids is None else checked_ids(read_array(ids), len(codes))
    hasher = None if model is None else _load(model)
    wanted = hasher.n_bits if bits is None and hasher is not None else bits
    if store:
        with watching("index add"), open_store(store, wanted) as opened:
            opened.add(codes, range(len(opened), len(opened) + len(codes)) if names is None else names)
            target = opened.name  # a URL may hold a password
            facts = {"store": target, "added": len(codes), "items": len(opened)}
    else:
        if not _is_there(target):  # nothing is made for codes that cannot go into it
            wanted = checked_number(8 * codes.shape[1] if wanted is None else wanted, "n_bits", 1, MOST_BITS)
            checked_codes(codes, wanted, "codes")
        with count_bar(len(codes), "index add", "codes") as done, SegmentFile(target, wanted) as items:
            names = running_ids(items.next_id(), len(codes)) if names is None else names
            items.append(codes, names, hasher.fingerprint() if hasher else "", done=done)
            facts = {"index": target, "added": len(codes), "items": len(items)}
    say(as_json, facts, f"Added {len(codes)} codes to {target}: {facts['items']} items.")


@index.command("remove")
def remove_items(
    words: Annotated[
        list[str], typer.Argument(help="Index file (not with --store), then ids, .npy.", metavar="[INDEX] IDS")
    ],
    store: StoreOption = "",
    as_json: JsonOption = False,
) -> None:
    """Remove items by their ids, all or none.

    Example: quorumhash index remove items.qhx ids.npy
    """
    from quorumhash.index.adapters import open_store
    from quorumhash.index.arguments import checked_ids
    from quorumhash.index.store import SegmentFile
    from quorumhash.viewfiles import read_array

    target, file = _target(words, store)
    ids = checked_ids(read_array(Path(file)))
    if store:
        with watching("index remove"), open_store(store) as opened:
            opened.remove(ids)
            target, left = opened.name, len(opened)
    else:
        _require_index(target)
        with SegmentFile(target) as items:
            with count_bar(_ids_in(items), "index remove", "ids") as done:
                items.remove(ids, done=done)
            left = len(items)
    facts = {"store" if store else "index": target, "removed": len(ids), "items": left}
    say(as_json, facts, f"Removed {len(ids)} items from {target}: {left} items.")


@index.command("info")
def show_info(file: FileArgument, as_json: JsonOption = False) -> None:
    """Say what an index file holds, without reading the codes.

    Example: quorumhash index info items.qhx
    """
    from quorumhash.index.store import SegmentFile

    with SegmentFile(file, readonly=True) as segments:
        facts = segments.info()
    say(as_json, facts, "\n".join(f"{name:<18}{value}" for name, value in facts.items()))


@index.command("check")
def check_file(file: FileArgument, as_json: JsonOption = False) -> None:
    """Read an index file whole and compare every checksum; exit status 1 when something is wrong.

    Example: quorumhash index check items.qhx
    """
    from quorumhash.index.store import SegmentFile

    with SegmentFile(file, readonly=True) as segments:
        with count_bar(_ids_in(segments), "index check", "ids") as done:
            faults = segments.check(done=done)
        facts = {"index": str(file), "sound": not faults, "faults": faults}
    say(as_json, facts, "\n".join(faults) or f"{file} is sound.")
    if faults:
        raise typer.Exit(1)


@index.command("compact")
def compact_file(file: FileArgument, as_json: JsonOption = False) -> None:
    """Drop removed items from an index file and give their room back.

    Example: quorumhash index compact items.qhx
    """
    from quorumhash.index.store import SegmentFile

    _require_index(str(file))
    with SegmentFile(file) as segments:
        before = segments.info()
        with count_bar(_ids_in(segments) + before["items"], "index compact", "ids") as done:
            segments.compact(done=done)
        after = segments.info()
    saved = before["file_bytes"] + before["wal_bytes"] - after["file_bytes"]
    facts = {"index": str(file), "items": after["items"], "dropped": before["removed"], "saved_bytes": saved}
    sentence = f"{after['items']} items, {before['removed']} removed ones dropped, {saved} bytes saved"
    say(as_json, facts, f"{file}: {sentence}.")


def search(
    model: Annotated[Path, typer.Argument(help="Model file.", metavar="MODEL")],
    words: Annotated[
        list[str],
        typer.Argument(
            help="Index file (not with --store), then the queries: one .npz, .csv, .parquet or .lance with all "
            "views, or name=path for each view.",
            metavar="[INDEX] VIEWS...",
        ),
    ],
    k: Annotated[int | None, typer.Option("-k", help="How many of the nearest; 10 when no radius is given.")] = None,
    radius: Annotated[int | None, typer.Option("--radius", help="All items at most this many bits away.")] = None,
    store: StoreOption = "",
    as_json: JsonOption = False,
) -> None:
    """Find the items nearest to queries, or all within a radius: one line per query with id:distance.

    Example: quorumhash search items.qh items.qhx query.npz -k 10
    """
    from quorumhash.index.adapters import open_store
    from quorumhash.index.hamming import HammingIndex
    from quorumhash.viewfiles import read_views

    if k is not None and radius is not None:
        raise ParameterError("give -k or --radius, not both.")
    target, *sources = [store, *words] if store else words
    if not sources:
        raise ParameterError("search needs an index file and queries; with --store the queries alone.")
    hasher = _load(model)
    with watching("encode"):
        codes = hasher.transform(read_views(sources))
    with watching("search"), open_store(store) if store else HammingIndex.open(target, readonly=True) as opened:
        _require_same_model(getattr(opened, "model", ""), hasher.fingerprint(), target)
        most, rows, done = 10 if k is None else k, [], None
        for start in range(0, len(codes), PORTION):
            part = codes[start : start + PORTION]
            rows += _rows(opened.search(part, k=most) if radius is None else opened.within(part, radius=radius))
            done = done or begin_stage("queries", len(codes), "queries")  # the first ones read the index
            done(len(part))
    facts = {"queries": len(codes), "ids": [ids for ids, _ in rows], "distances": [d for _, d in rows]}
    lines = (" ".join(f"{name}:{d}" for name, d in zip(*row, strict=True)) or "-" for row in rows)
    say(as_json, facts, "\n".join(lines))


def _rows(found: Matches | Neighbourhoods) -> list[tuple[list[int], list[int]]]:
    """Ids and distances of each query."""
    pairs: Any = found if hasattr(found, "offsets") else zip(found.ids, found.distances, strict=True)
    return [(ids.tolist(), distances.tolist()) for ids, distances in pairs]


def _target(words: list[str], store: str) -> tuple[str, str]:
    """The index file or store, and the file to read."""
    if len(words) != (1 if store else 2):
        raise ParameterError("give an index file and a .npy file; with --store the .npy file alone.")
    return store or words[0], words[-1]


def _ids_in(segments: Any) -> int:
    """How many ids a reader of all segments meets: a removed item's twice."""
    facts = segments.info()
    return int(facts["items"] + 2 * facts["removed"])


def _is_there(target: str) -> bool:
    """Also where its folder may not be looked into: opening it then says so."""
    try:
        return Path(target).exists()
    except OSError:
        return True


def _require_index(target: str) -> None:
    if not _is_there(target):
        raise ParameterError(f"there is no index file {target}; quorumhash index add makes one.")


def _require_same_model(held: str, given: str, target: str) -> None:
    if held and held != given:
        raise ParameterError(
            f"{target} holds codes of the model {held[:12]}, and this model is {given[:12]}; give the one that made it."
        )


def _load(model: Path) -> Any:
    from quorumhash.hashers import load

    return load(model)
