"""Datasets by name: one file per dataset, read when it is asked for."""

from collections.abc import Callable

from quorumhash.datasets.base import Dataset, thinned, validation_cut
from quorumhash.datasets.coco5 import load_coco5
from quorumhash.datasets.digits import load_digits
from quorumhash.datasets.mfeat import load_mfeat
from quorumhash.errors import ParameterError

__all__ = ["DATASETS", "Dataset", "load_dataset", "thinned", "validation_cut"]

DATASETS: dict[str, Callable[[], Dataset]] = {"digits": load_digits, "mfeat": load_mfeat, "coco5": load_coco5}


def load_dataset(name: str) -> Dataset:
    """The dataset of this name, one of DATASETS.

    >>> len(load_dataset("digits").query_rows)
    297
    """
    if name not in DATASETS:
        raise ParameterError(f"dataset must be one of {', '.join(DATASETS)}, got {name!r}; choose one of them.")
    return DATASETS[name]()
