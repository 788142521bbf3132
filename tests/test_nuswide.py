"""NUS-WIDE from small files written in its published layout."""

import numpy as np
import pytest

from quorumhash.datasets import load_dataset, nuswide
from quorumhash.errors import ParameterError, ViewsError

RNG = np.random.default_rng(0)
WIDTHS = {"colour": 225, "texture": 128, "words": 500}
N_ROWS, N_TRAINING = 60, 36
VALUES = {name: RNG.integers(0, 99, (N_ROWS, width)) / (1 if name == "words" else 8) for name, width in WIDTHS.items()}
CONCEPTS = ["animal", "sky", "water"]
LABELS = RNG.integers(0, 2, (N_ROWS, 3))
LABELS[::3] = 0  # no concept at all


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("QUORUMHASH_DATA", str(tmp_path))
    monkeypatch.setenv("QUORUMHASH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "nuswide" / "NUS_WID_Low_Level_Features" / "Low_Level_Features").mkdir(parents=True)
    return tmp_path / "nuswide"


def write(path, rows):
    """Numbers apart by blanks, one more at the end of the line, as the published files have it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(" ".join(f"{value:g}" for value in np.atleast_1d(row)) + " \n" for row in rows))


def write_parts(folder):
    features = folder / "NUS_WID_Low_Level_Features" / "Low_Level_Features"
    parts = {"Train": slice(0, N_TRAINING), "Test": slice(N_TRAINING, None)}
    for i, (part, rows) in enumerate(parts.items()):
        for view, names in nuswide.PARTS.items():
            write(features / names[i], VALUES[view][rows])
        for concept, column in zip(CONCEPTS, LABELS.T, strict=True):
            write(folder / "Groundtruth" / "TrainTestLabels" / f"Labels_{concept}_{part}.txt", column[rows])


def write_whole(folder):
    for view, name in nuswide.WHOLE.items():
        write(folder / "NUS_WID_Low_Level_Features" / "Low_Level_Features" / name, VALUES[view])
    for concept, column in zip(CONCEPTS, LABELS.T, strict=True):
        write(folder / "Groundtruth" / "AllLabels" / f"Labels_{concept}.txt", column)


@pytest.mark.parametrize("write_files", [write_parts, write_whole])
def test_features_and_concepts_are_those_of_the_files(folder, write_files):
    write_files(folder)
    for _ in range(2):  # parsed, then from the cache
        dataset = load_dataset("nuswide")
        assert dataset.views.widths == WIDTHS
        for name, values in VALUES.items():
            assert dataset.views[name] == pytest.approx(values)
        assert np.array_equal(dataset.labels, LABELS)
    assert "3 concepts" in dataset.description


def test_queries_have_a_concept_and_are_not_in_the_database(folder):
    write_whole(folder)
    dataset = load_dataset("nuswide")
    assert len(dataset.query_rows) == 10
    assert dataset.labels[dataset.query_rows].any(axis=1).all()
    assert sorted([*dataset.query_rows, *dataset.database_rows]) == list(range(N_ROWS))
    assert set(load_dataset("nuswide", split=1).query_rows) != set(dataset.query_rows)


def test_training_rows_are_a_part_of_the_database(folder, monkeypatch):
    write_whole(folder)
    monkeypatch.setattr(nuswide, "N_TRAIN", 20)
    dataset = load_dataset("nuswide")
    assert len(dataset.train_rows) == 20
    assert set(dataset.train_rows) < set(dataset.database_rows)


def test_the_folder_may_bear_the_published_name(folder):
    write_whole(folder)
    folder.rename(folder.with_name("NUS-WIDE"))
    assert len(load_dataset("nuswide").views) == N_ROWS


def test_changed_files_are_read_again(folder):
    write_whole(folder)
    load_dataset("nuswide")
    features = folder / "NUS_WID_Low_Level_Features" / "Low_Level_Features"
    write(features / nuswide.WHOLE["texture"], VALUES["texture"][::-1])
    assert load_dataset("nuswide").views["texture"] == pytest.approx(VALUES["texture"][::-1])


def test_what_is_not_whole_is_refused(folder):
    with pytest.raises(ParameterError, match=r"lacks Train_Normalized_CM55.dat, .*BoW_Test_int.dat"):
        load_dataset("nuswide")
    write_parts(folder)
    labels = folder / "Groundtruth" / "TrainTestLabels"
    (labels / "Labels_sky_Test.txt").rename(labels / "Labels_sea_Test.txt")
    with pytest.raises(ViewsError, match="the same concepts for training and test"):
        load_dataset("nuswide")
    (labels / "Labels_sea_Test.txt").rename(labels / "Labels_sky_Test.txt")
    write(labels / "Labels_sky_Test.txt", [2] * (N_ROWS - N_TRAINING))
    with pytest.raises(ViewsError, match="0 and 1 alone"):
        load_dataset("nuswide")
    write(labels / "Labels_sky_Test.txt", [1, 0])
    with pytest.raises(ViewsError, match="all equally long"):
        load_dataset("nuswide")


def test_rows_that_do_not_match_and_text_are_refused(folder):
    write_whole(folder)
    features = folder / "NUS_WID_Low_Level_Features" / "Low_Level_Features"
    write(features / nuswide.WHOLE["texture"], VALUES["texture"][:-1])
    with pytest.raises(ViewsError, match="a line per photograph each, got"):
        load_dataset("nuswide")
    (features / nuswide.WHOLE["texture"]).write_text("1 2\n1 x\n")
    with pytest.raises(ViewsError, match="must hold numbers apart by blanks"):
        load_dataset("nuswide")


def test_without_a_folder_it_says_where_it_looked(folder, monkeypatch):
    monkeypatch.setenv("QUORUMHASH_DATA", str(folder / "nowhere"))
    with pytest.raises(ParameterError, match=r"nuswide is not in .*nowhere.*ask its authors"):
        load_dataset("nuswide")
