"""Short binary codes for items seen through several views, some of them damaged or missing.

The public names, each imported when it is first used; `import quorumhash` itself loads next to nothing.
"""

import importlib
from typing import TYPE_CHECKING, Any

from quorumhash._version import __version__

if TYPE_CHECKING:
    from quorumhash.auditing import audit as audit
    from quorumhash.auditreport import AuditReport as AuditReport
    from quorumhash.codeforms import convert_codes as convert_codes
    from quorumhash.codes import hamming_distances as hamming_distances
    from quorumhash.corruption import damage as damage
    from quorumhash.datasets import DATASETS as DATASETS
    from quorumhash.datasets import Dataset as Dataset
    from quorumhash.datasets import load_dataset as load_dataset
    from quorumhash.errors import EngineError as EngineError
    from quorumhash.errors import IndexFileError as IndexFileError
    from quorumhash.errors import IndexLockedError as IndexLockedError
    from quorumhash.errors import MissingExtraError as MissingExtraError
    from quorumhash.errors import ModelFileError as ModelFileError
    from quorumhash.errors import ParameterError as ParameterError
    from quorumhash.errors import QuorumHashError as QuorumHashError
    from quorumhash.errors import RankWarning as RankWarning
    from quorumhash.errors import RefusedError as RefusedError
    from quorumhash.errors import StoreError as StoreError
    from quorumhash.errors import ViewsError as ViewsError
    from quorumhash.evaluation import lookup_precision as lookup_precision
    from quorumhash.evaluation import mean_average_precision as mean_average_precision
    from quorumhash.evaluation import nearest_rows as nearest_rows
    from quorumhash.evaluation import neighbour_recall as neighbour_recall
    from quorumhash.evaluation import precision_recall as precision_recall
    from quorumhash.evaluation import shared_labels as shared_labels
    from quorumhash.features import embed_texts as embed_texts
    from quorumhash.features import extract_features as extract_features
    from quorumhash.features import learn_vocabulary as learn_vocabulary
    from quorumhash.hashers import HASHERS as HASHERS
    from quorumhash.hashers import AnchorGraphHasher as AnchorGraphHasher
    from quorumhash.hashers import CHMSHasher as CHMSHasher
    from quorumhash.hashers import CKHHasher as CKHHasher
    from quorumhash.hashers import ConsensusHasher as ConsensusHasher
    from quorumhash.hashers import EPAMHHasher as EPAMHHasher
    from quorumhash.hashers import GCCAHasher as GCCAHasher
    from quorumhash.hashers import InductiveManifoldHasher as InductiveManifoldHasher
    from quorumhash.hashers import ITQHasher as ITQHasher
    from quorumhash.hashers import KernelITQHasher as KernelITQHasher
    from quorumhash.hashers import KLSHHasher as KLSHHasher
    from quorumhash.hashers import KnnRepairITQHasher as KnnRepairITQHasher
    from quorumhash.hashers import LSHHasher as LSHHasher
    from quorumhash.hashers import MFHHasher as MFHHasher
    from quorumhash.hashers import MVLHHasher as MVLHHasher
    from quorumhash.hashers import PCAHasher as PCAHasher
    from quorumhash.hashers import QuorumHasher as QuorumHasher
    from quorumhash.hashers import RepairITQHasher as RepairITQHasher
    from quorumhash.hashers import RobustPCAHasher as RobustPCAHasher
    from quorumhash.hashers import SpectralHasher as SpectralHasher
    from quorumhash.hashers import SSHHasher as SSHHasher
    from quorumhash.hashers import ViewSelectHasher as ViewSelectHasher
    from quorumhash.hashers import VoteHasher as VoteHasher
    from quorumhash.hashers import load as load
    from quorumhash.index.adapters import open_store as open_store
    from quorumhash.index.hamming import HammingIndex as HammingIndex
    from quorumhash.index.matches import Matches as Matches
    from quorumhash.index.matches import Neighbourhoods as Neighbourhoods
    from quorumhash.shardcodes import encode_shards as encode_shards
    from quorumhash.shardedrows import shards as shards
    from quorumhash.views import Views as Views

_HOMES = {
    "AnchorGraphHasher": "hashers",
    "AuditReport": "auditreport",
    "CHMSHasher": "hashers",
    "CKHHasher": "hashers",
    "ConsensusHasher": "hashers",
    "DATASETS": "datasets",
    "Dataset": "datasets",
    "EPAMHHasher": "hashers",
    "EngineError": "errors",
    "GCCAHasher": "hashers",
    "HASHERS": "hashers",
    "HammingIndex": "index.hamming",
    "ITQHasher": "hashers",
    "IndexFileError": "errors",
    "IndexLockedError": "errors",
    "InductiveManifoldHasher": "hashers",
    "KLSHHasher": "hashers",
    "KernelITQHasher": "hashers",
    "KnnRepairITQHasher": "hashers",
    "LSHHasher": "hashers",
    "MFHHasher": "hashers",
    "MVLHHasher": "hashers",
    "Matches": "index.matches",
    "MissingExtraError": "errors",
    "ModelFileError": "errors",
    "Neighbourhoods": "index.matches",
    "PCAHasher": "hashers",
    "ParameterError": "errors",
    "QuorumHashError": "errors",
    "QuorumHasher": "hashers",
    "RankWarning": "errors",
    "RefusedError": "errors",
    "RepairITQHasher": "hashers",
    "RobustPCAHasher": "hashers",
    "SSHHasher": "hashers",
    "SpectralHasher": "hashers",
    "StoreError": "errors",
    "ViewSelectHasher": "hashers",
    "Views": "views",
    "ViewsError": "errors",
    "VoteHasher": "hashers",
    "audit": "auditing",
    "convert_codes": "codeforms",
    "damage": "corruption",
    "embed_texts": "features",
    "encode_shards": "shardcodes",
    "extract_features": "features",
    "hamming_distances": "codes",
    "learn_vocabulary": "features",
    "load": "hashers",
    "load_dataset": "datasets",
    "lookup_precision": "evaluation",
    "mean_average_precision": "evaluation",
    "nearest_rows": "evaluation",
    "neighbour_recall": "evaluation",
    "open_store": "index.adapters",
    "precision_recall": "evaluation",
    "shards": "shardedrows",
    "shared_labels": "evaluation",
}

__all__ = [*_HOMES, "__version__"]  # tests/test_public_names.py checks that it is sorted and whole


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'quorumhash' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"quorumhash.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
