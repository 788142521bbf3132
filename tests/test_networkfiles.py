"""Files of trained networks: only the one that is meant is read."""

import hashlib

import pytest

from quorumhash.errors import ModelFileError
from quorumhash.features.networkfiles import known_file


def test_a_file_with_its_checksum_is_read(tmp_path):
    (tmp_path / "network").write_bytes(b"learned")
    assert known_file(tmp_path / "network", hashlib.sha256(b"learned").hexdigest()) == b"learned"


def test_another_file_is_refused(tmp_path):
    (tmp_path / "network").write_bytes(b"learned otherwise")
    with pytest.raises(ModelFileError, match=r"must have the SHA-256 .*got .*install it anew"):
        known_file(tmp_path / "network", hashlib.sha256(b"learned").hexdigest())
    with pytest.raises(ModelFileError, match=r"cannot be read \(No such file"):
        known_file(tmp_path / "nothing", "")
