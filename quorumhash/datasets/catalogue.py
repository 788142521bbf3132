"""What datasets there are, in words, and whether their files are here."""

from __future__ import annotations

from quorumhash.datasets import cifar10, nuswide
from quorumhash.datasets.files import data_folders, own_folders
from quorumhash.datasets.idx import has_idx_pictures
from quorumhash.datasets.sources import SOURCES, find

WHAT = {
    "digits": "1,797 handwritten digits in four views; comes with scikit-learn",
    "mfeat": "2,000 handwritten digits in six views; mfeat.npz",
    "coco5": "15,925 photographs in five views of two sources; coco5.npz",
    "cifar10": "60,000 photographs of 32 x 32 pixels: gist, words, colour",
    "cifar10_mnist": "learned on CIFAR-10, searched in MNIST: gist, words; needs both",
    "mnist": "70,000 handwritten digits of 28 x 28 pixels: gist, words, pixels",
    "fashion_mnist": "70,000 pictures of clothes, 28 x 28 pixels: gist, words, pixels",
    "nuswide": "269,648 photographs in three views, 81 concepts; your own copy",
}


def listed() -> list[dict[str, str]]:
    """For every dataset its name, what it is, and its state: here, to get, or not here.

    >>> listed()[0]["state"]
    'here'
    """
    rows = []
    for name, what in WHAT.items():
        state = "here" if is_here(name) else "to get" if name in SOURCES else "not here"
        rows.append({"name": name, "state": state, "what": what})
    return rows


def is_here(name: str) -> bool:
    """Whether files of the dataset are found; they are not read."""
    if name == "digits":
        return True
    if name == "cifar10":
        folders = (f"{cifar10.FOLDER}/{cifar10.BATCHES[0]}.bin",)
        return find(name, *folders, cifar10.ARCHIVE, cifar10.PACKAGE) is not None
    if name == "cifar10_mnist":
        return is_here("cifar10") and is_here("mnist")
    if name == "nuswide":
        return any(path.is_dir() for own in own_folders(name) for path in (own, own.with_name(nuswide.OTHER_NAME)))
    if name in SOURCES:
        return has_idx_pictures(name)
    return any((folder / f"{name}.npz").is_file() for folder in data_folders())
