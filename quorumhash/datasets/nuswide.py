"""nuswide: 269,648 photographs of the web with 81 concepts, in three low-level views (Chua and others, 2009).

    colour   225   CM55: block colour moments
    texture  128   WT: wavelet texture
    words    500   BoW: counts of visual words

Read from the user's copy, in the published layout, of a folder `nuswide` (or NUS-WIDE) in QUORUMHASH_DATA; sub-folders
may be nested as the archives have them:

    Low_Level_Features/Normalized_CM55.dat, Normalized_WT.dat, BoW_int.dat   with  Groundtruth/AllLabels/Labels_*.txt
    or Train_Normalized_CM55.dat, ..., BoW_Train_int.dat, Test_..., BoW_Test_int.dat
                                        with  Groundtruth/TrainTestLabels/Labels_*_Train.txt, Labels_*_Test.txt

A line is a photograph, its numbers apart by blanks; a line of a label file is 0 or 1. 1,000 queries among the
photographs with a concept, 100,000 training rows, all but the queries as database; another `split`, other ones. The
text is read once and kept in the cache.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import numpy.typing as npt

from quorumhash.cachefolder import cache_folder
from quorumhash.datasets.base import Dataset, stratified_order
from quorumhash.datasets.files import own_folders
from quorumhash.errors import ParameterError, ViewsError
from quorumhash.viewfiles import read_array, write_array
from quorumhash.views import Views

WHOLE = {"colour": "Normalized_CM55.dat", "texture": "Normalized_WT.dat", "words": "BoW_int.dat"}
PARTS = {
    "colour": ("Train_Normalized_CM55.dat", "Test_Normalized_CM55.dat"),
    "texture": ("Train_Normalized_WT.dat", "Test_Normalized_WT.dat"),
    "words": ("BoW_Train_int.dat", "BoW_Test_int.dat"),
}
OTHER_NAME = "NUS-WIDE"
N_QUERIES, QUERY_SHARE = 1_000, 6  # of a small file at most one row in so many is a query
N_TRAIN = 100_000


def load_nuswide(split: int = 0) -> Dataset:
    """The photographs, with three views and 81 concepts, several per photograph.

    >>> load_nuswide().views  # doctest: +SKIP
    Views(269648 rows: colour 225, texture 128, words 500)
    """
    folder = _folder()
    files = {path.name: path for path in sorted(folder.rglob("*.dat"))}
    is_whole = all(name in files for name in WHOLE.values())
    wanted = {view: (name,) for view, name in WHOLE.items()} if is_whole else PARTS
    lacking = [name for names in wanted.values() for name in names if name not in files]
    if lacking:
        raise ParameterError(f"{folder} must hold the low-level features of NUS-WIDE, it lacks {', '.join(lacking)}.")
    views = {view: np.concatenate([_numbers(files[name]) for name in names]) for view, names in wanted.items()}
    labels, concepts = _labels(folder, "" if is_whole else "_Train", "" if is_whole else "_Test")
    counts = {len(matrix) for matrix in views.values()} | {len(labels)}
    if len(counts) > 1:
        raise ViewsError(
            f"files of {folder} must have a line per photograph each, got {sorted(counts)}; get them anew."
        )
    order = stratified_order(np.asarray(labels.any(axis=1), dtype=np.int64), split)
    labelled, n_queries = order[labels[order].any(axis=1)], min(N_QUERIES, len(labels) // QUERY_SHARE)
    query_rows = labelled[:n_queries]
    others = order[~np.isin(order, query_rows)]
    return Dataset(
        name="nuswide",
        views=Views(views),
        labels=labels,
        train_rows=others[:N_TRAIN],
        database_rows=others,
        query_rows=query_rows,
        description=f"{len(labels):,} photographs with {len(concepts)} concepts (NUS-WIDE): colour moments, wavelet "
        "texture, visual words.",
    )


def _folder() -> Path:
    folders = own_folders("nuswide")
    for folder in (found for own in folders for found in (own, own.with_name(OTHER_NAME))):
        if folder.is_dir():
            return folder
    raise ParameterError(
        f"nuswide is not in {', '.join(map(str, folders))}: ask its authors for it, unpack it there; it is not fetched."
    )


def _labels(folder: Path, *endings: str) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Labels (n, n_concepts), 0 or 1, the parts with these endings one below the other; and the concepts, sorted."""
    place = "AllLabels" if not endings[0] else "TrainTestLabels"
    parts = []
    for ending in dict.fromkeys(endings):
        paths = sorted(path for path in folder.rglob(f"Labels_*{ending}.txt") if path.parent.name == place)
        concepts = [path.stem.removeprefix("Labels_").removesuffix(ending) for path in paths]
        columns = [_numbers(path)[:, 0] for path in paths]
        if not columns or len({len(column) for column in columns}) > 1:
            raise ViewsError(
                f"{folder} must hold one file Labels_CONCEPT{ending}.txt per concept in {place}, all equally long, got "
                f"{len(paths)} files; get them anew."
            )
        parts.append((concepts, np.stack(columns, axis=1)))
    if parts[0][0] != parts[-1][0]:
        raise ViewsError(f"{folder} must hold labels of the same concepts for training and test; get them anew.")
    labels = np.concatenate([part for _, part in parts]).astype(np.int64)
    if not np.isin(labels, (0, 1)).all():
        raise ViewsError(f"the label files of {folder} must hold 0 and 1 alone; get them anew.")
    return labels, parts[0][0]


def _numbers(path: Path) -> npt.NDArray[np.float32]:
    """The numbers of a text file, one row per line; parsed once, then read from the cache by the file's content."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    kept = cache_folder("nuswide") / f"{path.stem}-{digest[:40]}.npy"
    try:
        return np.asarray(read_array(kept))
    except ViewsError:  # not there yet, or damaged
        pass
    try:
        numbers = np.loadtxt(path, dtype=np.float32, ndmin=2)
    except ValueError as error:
        raise ViewsError(f"{path} must hold numbers apart by blanks, as many in every line: {error}.") from error
    write_array(kept, numbers)
    return numbers
