"""Datasets: shapes, fixed rows, and that every view of the digits is worth something."""

import doctest
import subprocess
import sys

import numpy as np
import pytest

from quorumhash import datasets
from quorumhash.datasets import Dataset, base, digits, load_dataset
from quorumhash.errors import ParameterError
from quorumhash.evaluation import true_neighbours


@pytest.fixture(scope="module")
def loaded():
    return load_dataset("digits")


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


def test_dataset_is_described(loaded):
    assert "1,797" in loaded.description
    assert "1797 items" in repr(loaded)


@pytest.mark.parametrize("module", [datasets, base, digits])
def test_examples_in_the_docstrings_run(module):
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0
