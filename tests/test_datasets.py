"""Datasets: shapes, fixed rows, and that every view of the digits is worth something."""

import doctest
import subprocess
import sys

import numpy as np
import pytest

from quorumhash import datasets
from quorumhash.datasets import Dataset, base, coco5, digits, files, load_dataset, mfeat, thinned, validation_cut
from quorumhash.errors import ParameterError, ViewsError
from quorumhash.evaluation import true_neighbours
from quorumhash.views import Views


@pytest.fixture(scope="module")
def loaded():
    return load_dataset("digits")


@pytest.fixture
def data_folder(tmp_path, monkeypatch):
    """Small files in the layout of the real ones."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(10), 8).astype(np.uint8)
    views = {name: rng.standard_normal((80, 3)).astype(np.float32) for name in mfeat.NAMES}
    np.savez(tmp_path / "mfeat.npz", **views, labels=labels)
    views = {name: rng.standard_normal((60, 4)).astype(np.float16) for name in coco5.NAMES}
    views["visual_words"] = rng.integers(0, 9, (60, 5)).astype(np.uint8)
    np.savez(tmp_path / "coco5.npz", **views, labels=rng.integers(0, 2, (60, 17)).astype(np.uint8))
    monkeypatch.setenv("QUORUMHASH_DATA", str(tmp_path))
    return tmp_path


def test_digits_have_four_views_and_labels(loaded):
    assert isinstance(loaded, Dataset)
    assert loaded.name == "digits"
    assert loaded.views.widths == {"pixels": 64, "gradients": 32, "frequencies": 45, "profiles": 46}
    assert len(loaded.views) == 1_797
    assert loaded.labels.shape == (1_797,)
    assert loaded.labels.dtype == np.int64
    assert set(loaded.labels.tolist()) == set(range(10))
    assert loaded.images.shape == (1_797, 8, 8)
    assert np.array_equal(loaded.images.reshape(1_797, 64), loaded.views["pixels"])
    assert all(np.isfinite(matrix).all() for _, matrix in loaded.views.items())


def test_rows_are_a_partition_in_proportion_to_the_labels(loaded):
    assert len(loaded.query_rows) == 297
    assert len(loaded.database_rows) == 1_500
    assert np.array_equal(loaded.train_rows, loaded.database_rows)
    assert sorted([*loaded.query_rows, *loaded.database_rows]) == list(range(1_797))
    shares = np.bincount(loaded.labels[loaded.query_rows]) / np.bincount(loaded.labels)
    assert shares == pytest.approx(297 / 1_797, abs=0.005)
    assert {rows.dtype for rows in (loaded.query_rows, loaded.database_rows)} == {np.dtype(np.int64)}


def test_rows_are_the_same_for_ever(loaded):
    assert loaded.query_rows[:8].tolist() == [269, 11, 850, 921, 1526, 1446, 403, 855]
    assert int((loaded.query_rows * np.arange(1, 298)).sum()) == 41_695_488


def test_every_view_of_the_digits_tells_most_of_them_apart(loaded):
    for matrix in (matrix for _, matrix in loaded.views.items()):
        neighbours = true_neighbours(matrix, matrix, 2)
        others = np.where(neighbours[:, 0] == np.arange(1_797), neighbours[:, 1], neighbours[:, 0])
        assert (loaded.labels[others] == loaded.labels).mean() > 0.95  # chance: 0.1


def test_gradients_of_an_edge_point_across_it():
    image = np.zeros((1, 8, 8))
    image[:, :, 4:] = 1.0
    histogram = digits._gradients(image).reshape(2, 2, 8)
    assert histogram[:, 0].argmax(axis=1).tolist() == [0, 0]  # brighter to the right
    turned = digits._gradients(image.transpose(0, 2, 1)).reshape(2, 2, 8)
    assert turned[0].argmax(axis=1).tolist() == [2, 2]  # brighter downwards: a quarter of the circle on
    framed = np.pad(image[0], 1)
    strength = np.hypot(framed[2:, 1:-1] - framed[:-2, 1:-1], framed[1:-1, 2:] - framed[1:-1, :-2])
    assert strength.sum() == pytest.approx(histogram.sum())  # every vote is shared, none is lost


def test_frequencies_do_not_see_a_shift():
    image = np.zeros((1, 8, 8))
    image[0, 1:4, 2:5] = np.arange(9).reshape(3, 3)
    assert digits._frequencies(np.roll(image, (3, 2), axis=(1, 2))) == pytest.approx(digits._frequencies(image))
    assert digits._frequencies(image)[0, 0] == pytest.approx(image.sum())


def test_profiles_are_sums_along_lines():
    image = np.random.default_rng(0).random((1, 8, 8))
    profiles = digits._profiles(image)[0]
    lines = [image[0, i].sum() for i in range(8)] + [image[0, :, i].sum() for i in range(8)]
    lines += [sum(image[0, i, i + o] for i in range(8) if 0 <= i + o < 8) for o in range(-7, 8)]
    lines += [sum(image[0, 7 - i, i + o] for i in range(8) if 0 <= i + o < 8) for o in range(-7, 8)]
    assert profiles == pytest.approx(lines)


def test_unknown_dataset_is_refused_with_the_known_names():
    with pytest.raises(ParameterError, match=r"one of .*digits.*, got 'letters'"):
        load_dataset("letters")


def test_import_does_not_load_scikit_learn():
    script = "import sys, quorumhash.datasets as d; d.DATASETS['digits']; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_every_stretch_of_the_order_has_every_label():
    labels = np.repeat([0, 1, 2], [60, 30, 10])
    order = base.stratified_order(labels, seed=4)
    assert sorted(order) == list(range(100))
    for start in range(0, 100, 20):
        assert np.bincount(labels[order[start : start + 20]], minlength=3) == pytest.approx([12, 6, 2], abs=1)
    assert not np.array_equal(order, base.stratified_order(labels, seed=5))


def test_mfeat_is_cut_in_proportion_to_the_labels(data_folder):
    dataset = load_dataset("mfeat")
    assert dataset.views.names == mfeat.NAMES
    assert len(dataset.query_rows) == 20
    assert sorted([*dataset.query_rows, *dataset.database_rows]) == list(range(80))
    assert np.bincount(dataset.labels[dataset.query_rows], minlength=10) == pytest.approx(2, abs=1)
    assert dataset.truth_views == ()
    assert dataset.sources == {}


def test_coco5_names_its_sources_and_the_views_of_the_truth(data_folder):
    dataset = load_dataset("coco5")
    assert dataset.labels.shape == (60, 17)
    assert dataset.truth_views == ("image", "caption")
    assert sorted(name for names in dataset.sources.values() for name in names) == sorted(dataset.views.names)
    assert dataset.views["image"].dtype == np.float32  # squares of float16 overflow
    assert len(dataset.query_rows) == 15
    assert not set(dataset.query_rows) & set(dataset.database_rows)


def test_coco5_can_be_had_in_other_views_and_splits(data_folder):
    low = load_dataset("coco5", views=["wavelet_texture", "visual_words"], split=1)
    assert low.views.names == ("wavelet_texture", "visual_words")
    assert low.truth_views == ()
    assert low.sources == {"photo": ["wavelet_texture", "visual_words"]}
    assert set(low.query_rows) != set(load_dataset("coco5").query_rows)
    with pytest.raises(ParameterError, match=r"views of coco5 must be of .*got .*sound"):
        load_dataset("coco5", views=["sound"])


def test_a_missing_folder_or_file_is_one_sentence(data_folder, monkeypatch):
    (data_folder / "mfeat.npz").unlink()
    with pytest.raises(ParameterError, match=r"there is no mfeat.npz in .*QUORUMHASH_DATA.*put it there"):
        load_dataset("mfeat")
    monkeypatch.delenv("QUORUMHASH_DATA")
    with pytest.raises(ParameterError, match=r"coco5.npz is looked for in .*QUORUMHASH_DATA.*not set: set it"):
        load_dataset("coco5")


def test_a_file_that_is_no_dataset_is_refused(data_folder):
    np.savez(data_folder / "mfeat.npz", fac=np.eye(3))
    with pytest.raises(ViewsError, match="lacks fou, kar, mor, pix, zer, labels"):
        load_dataset("mfeat")
    np.savez(data_folder / "mfeat.npz", **{name: np.eye(3) for name in mfeat.NAMES}, labels=np.arange(2))
    with pytest.raises(ViewsError, match="one row per item each"):
        load_dataset("mfeat")
    np.savez(data_folder / "mfeat.npz", labels=np.array([{}], dtype=object))
    with pytest.raises(ViewsError, match="no readable"):
        load_dataset("mfeat")


def test_thinning_keeps_a_sample_with_its_rows_labels_and_pictures(loaded):
    small = thinned(loaded, 600)
    assert len(small.views) == 600
    assert (len(small.query_rows), len(small.database_rows)) == (100, 500)
    assert np.array_equal(small.train_rows, small.database_rows)
    kept = np.concatenate([loaded.query_rows[:100], loaded.database_rows[:500]])
    rows = np.concatenate([small.query_rows, small.database_rows])
    assert np.array_equal(small.views["pixels"][rows], loaded.views["pixels"][kept])
    assert np.array_equal(small.labels[rows], loaded.labels[kept])
    assert np.array_equal(small.images[rows], loaded.images[kept])
    assert thinned(loaded, 5_000) is loaded
    with pytest.raises(ParameterError, match="max_rows must be"):
        thinned(loaded, 3)


def test_thinning_keeps_training_rows_that_are_not_in_the_database():
    rows = np.arange(100)
    dataset = Dataset("toy", Views(np.eye(100)), rows, rows[60:], rows[20:60], rows[:20], "Items.")
    small = thinned(dataset, 30)
    assert np.array_equal(small.views["view0"][small.train_rows].argmax(axis=1), rows[60:85])
    assert np.array_equal(small.views["view0"][small.query_rows].argmax(axis=1), rows[:5])


def test_dataset_is_described(loaded):
    assert "1,797" in loaded.description
    assert "1797 items" in repr(loaded)


@pytest.mark.parametrize("module", [datasets, base, digits, files])
def test_examples_in_the_docstrings_run(module):
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0


def test_validation_sees_training_rows_alone(loaded):
    cut = validation_cut(loaded)
    assert len(cut.views) == len(loaded.train_rows) == 1_500
    assert np.array_equal(cut.views["pixels"], loaded.views["pixels"][loaded.train_rows])
    assert np.array_equal(cut.labels, loaded.labels[loaded.train_rows])
    assert np.array_equal(cut.images, loaded.images[loaded.train_rows])
    assert sorted([*cut.query_rows, *cut.database_rows]) == list(range(1_500))
    assert np.array_equal(cut.train_rows, cut.database_rows)
    assert len(cut.query_rows) == 250
    assert np.bincount(cut.labels[cut.query_rows]).min() > 15  # every kind is asked for
