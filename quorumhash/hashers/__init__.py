"""The hashers: one short file per method; HASHERS holds them by name."""

from __future__ import annotations

import os

import numpy as np

from quorumhash.checks import check_widths, require
from quorumhash.errors import ModelFileError
from quorumhash.hashers.agh import AnchorGraphHasher
from quorumhash.hashers.base import BaseHasher
from quorumhash.hashers.chms import CHMSHasher
from quorumhash.hashers.ckh import CKHHasher
from quorumhash.hashers.epamh import EPAMHHasher
from quorumhash.hashers.gcca import GCCAHasher
from quorumhash.hashers.imh import InductiveManifoldHasher
from quorumhash.hashers.itq import ITQHasher
from quorumhash.hashers.kitq import KernelITQHasher
from quorumhash.hashers.klsh import KLSHHasher
from quorumhash.hashers.knn_repair import KnnRepairITQHasher
from quorumhash.hashers.lsh import LSHHasher
from quorumhash.hashers.mfh import MFHHasher
from quorumhash.hashers.mvlh import MVLHHasher
from quorumhash.hashers.pcah import PCAHasher
from quorumhash.hashers.plain import from_plain
from quorumhash.hashers.quorum import QuorumHasher
from quorumhash.hashers.repair import RepairITQHasher
from quorumhash.hashers.rmvh import ConsensusHasher
from quorumhash.hashers.rpca import RobustPCAHasher
from quorumhash.hashers.sh import SpectralHasher
from quorumhash.hashers.ssh import SSHHasher
from quorumhash.hashers.view_select import ViewSelectHasher
from quorumhash.hashers.vote import VoteHasher
from quorumhash.modelfile import read_model

__all__ = [
    "HASHERS",
    "AnchorGraphHasher",
    "BaseHasher",
    "CHMSHasher",
    "CKHHasher",
    "ConsensusHasher",
    "EPAMHHasher",
    "GCCAHasher",
    "ITQHasher",
    "InductiveManifoldHasher",
    "KLSHHasher",
    "KernelITQHasher",
    "KnnRepairITQHasher",
    "LSHHasher",
    "MFHHasher",
    "MVLHHasher",
    "PCAHasher",
    "QuorumHasher",
    "RepairITQHasher",
    "RobustPCAHasher",
    "SSHHasher",
    "SpectralHasher",
    "ViewSelectHasher",
    "VoteHasher",
    "load",
]

HASHERS: dict[str, type[BaseHasher]] = {
    "quorum": QuorumHasher,
    "rmvh": ConsensusHasher,
    "itq": ITQHasher,
    "lsh": LSHHasher,
    "klsh": KLSHHasher,
    "sh": SpectralHasher,
    "pcah": PCAHasher,
    "agh": AnchorGraphHasher,
    "imh": InductiveManifoldHasher,
    "kitq": KernelITQHasher,
    "epamh": EPAMHHasher,
    "mfh": MFHHasher,
    "chms": CHMSHasher,
    "ckh": CKHHasher,
    "ssh": SSHHasher,
    "mvlh": MVLHHasher,
    "vote": VoteHasher,
    "repair_itq": RepairITQHasher,
    "knn_repair_itq": KnnRepairITQHasher,
    "gcca_itq": GCCAHasher,
    "rpca_itq": RobustPCAHasher,
    "view_select": ViewSelectHasher,
}


def load(path: str | os.PathLike[str]) -> BaseHasher:
    """Read a model file that a hasher's `save` wrote.

    >>> import quorumhash, tempfile
    >>> hasher = quorumhash.LSHHasher(n_bits=8).fit([[0.0, 1.0], [2.0, 3.0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     hasher.save(f"{folder}/items.qh")
    ...     quorumhash.load(f"{folder}/items.qh")
    LSHHasher(n_bits=8)
    """
    content = read_model(path)
    kinds = {kind.__name__: kind for kind in HASHERS.values()}
    if content.kind not in kinds:
        raise ModelFileError(f"{path} holds a {content.kind}, which this version does not know: upgrade quorumhash.")
    kind = kinds[content.kind]
    needed = {"view_widths_", "n_features_in_", "n_bits_", *kind.learned}  # what is only told may be absent
    missing = needed - set(content.state)
    extra = set(content.state) - set(kind._state_names())
    if missing or extra:
        raise ModelFileError(f"{path} does not fit {content.kind}: missing {sorted(missing)}, unknown {sorted(extra)}.")
    try:
        hasher = kind(**content.parameters)
    except TypeError as error:
        raise ModelFileError(f"{path} has parameters {content.kind} does not know: {error}.") from error
    for name, tree in content.state.items():
        value = from_plain(tree, kind.parts)
        setattr(hasher, name, np.asarray(value, dtype=object) if name == "feature_names_in_" else value)
    try:
        check_widths(hasher.view_widths_, hasher.n_features_in_, hasher.n_bits_, getattr(hasher, "view_columns_", {}))
        require(len(getattr(hasher, "feature_names_in_", range(hasher.n_features_in_))) == hasher.n_features_in_)
        hasher._check_state()
    except (ModelFileError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(f"{path} does not fit {content.kind}: {error}") from error
    return hasher
