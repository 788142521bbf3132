"""Datasets by name: one file per dataset, read when it is asked for."""

import inspect
from collections.abc import Callable
from typing import Any

from quorumhash.datasets.base import Dataset, thinned, validation_cut
from quorumhash.datasets.cifar10 import load_cifar10
from quorumhash.datasets.cifar10_mnist import load_cifar10_mnist
from quorumhash.datasets.coco5 import load_coco5
from quorumhash.datasets.digits import load_digits
from quorumhash.datasets.fashion_mnist import load_fashion_mnist
from quorumhash.datasets.mfeat import load_mfeat
from quorumhash.datasets.mnist import load_mnist
from quorumhash.datasets.nuswide import load_nuswide
from quorumhash.errors import ParameterError

__all__ = ["DATASETS", "Dataset", "load_dataset", "thinned", "validation_cut"]

DATASETS: dict[str, Callable[..., Dataset]] = {
    "digits": load_digits,
    "mfeat": load_mfeat,
    "coco5": load_coco5,
    "cifar10": load_cifar10,
    "cifar10_mnist": load_cifar10_mnist,
    "mnist": load_mnist,
    "fashion_mnist": load_fashion_mnist,
    "nuswide": load_nuswide,
}


def load_dataset(name: str, **options: Any) -> Dataset:
    """The dataset of this name, one of DATASETS, with the options that it knows: none, most of them.

    cifar10, mnist and fashion_mnist know views, damage, reading, rate, random_state and split; coco5 knows views
    and split, cifar10_mnist and nuswide know split.

    >>> len(load_dataset("digits").query_rows)
    297
    """
    if name not in DATASETS:
        raise ParameterError(f"dataset must be one of {', '.join(DATASETS)}, got {name!r}; choose one of them.")
    try:
        inspect.signature(DATASETS[name]).bind(**options)
    except TypeError as error:
        raise ParameterError(f"dataset {name} has no such option ({error}); leave it out.") from error
    return DATASETS[name](**options)
