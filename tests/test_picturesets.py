"""Datasets of pictures from small files in the published layouts; splits, patches in three readings, refusals."""

import gzip
import io
import json
import tarfile

import numpy as np
import pytest

from quorumhash.datasets import cifar10_mnist, load_dataset, picturesets
from quorumhash.datasets.base import stratified_order
from quorumhash.datasets.catalogue import WHAT, listed
from quorumhash.datasets.cifar10 import ARCHIVE, BATCHES, FOLDER, LABEL_FILES, PACKAGE, read_cifar10
from quorumhash.datasets.idx import parse_idx, read_idx_pictures
from quorumhash.datasets.picturesets import patched
from quorumhash.datasets.sources import IDX_FILES, SOURCES
from quorumhash.errors import ParameterError, ViewsError
from quorumhash.features import extract_features, kept_vocabulary

RNG = np.random.default_rng(0)
PHOTOS = RNG.integers(0, 256, (120, 32, 32, 3)).astype(np.uint8)
LABELS = np.tile(np.arange(10), 12)
PLAIN = {"views": ["gist", "pixels"]}  # need no extra


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("QUORUMHASH_DATA", str(tmp_path))
    monkeypatch.setenv("QUORUMHASH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(SOURCES, "fashion_mnist", SOURCES["fashion_mnist"].__class__(SOURCES["fashion_mnist"].files))
    return tmp_path


def archive(path, contents, root="package"):
    with tarfile.open(path, "w:gz") as file:
        for name, content in contents.items():
            member = tarfile.TarInfo(f"{root}/{name}")
            member.size = len(content)
            file.addfile(member, io.BytesIO(content))


def records(images, labels):
    """The official layout: a label, then the planes of red, green and blue."""
    return b"".join(
        bytes([label]) + image.transpose(2, 0, 1).tobytes() for image, label in zip(images, labels, strict=True)
    )


def official_batches():
    return {f"{name}.bin": records(PHOTOS[i::6], LABELS[i::6]) for i, name in enumerate(BATCHES)}


IN_BATCHES = np.concatenate([np.arange(120)[i::6] for i in range(6)])


def idx(array):
    sizes = b"".join(int(n).to_bytes(4, "big") for n in array.shape)
    return bytes([0, 0, 8, array.ndim]) + sizes + array.astype(np.uint8).tobytes()


def idx_contents():
    grey = PHOTOS[..., 0, None][..., 0][:, :28, :28]
    return dict(zip(IDX_FILES, map(idx, (grey[:100], LABELS[:100], grey[100:], LABELS[100:])), strict=True))


# reading


def test_official_batches_are_read_from_archive_and_folder(folder):
    archive(folder / ARCHIVE, official_batches(), FOLDER)
    images, labels = read_cifar10()
    assert np.array_equal(images, PHOTOS[IN_BATCHES])
    assert np.array_equal(labels, LABELS[IN_BATCHES])
    (folder / ARCHIVE).unlink()
    own = folder / "cifar10" / FOLDER
    own.mkdir(parents=True)
    for name, content in official_batches().items():
        (own / name).write_bytes(content)
    assert np.array_equal(read_cifar10()[0], images)


@pytest.mark.extra
def test_the_package_gives_what_the_official_batches_give(folder):
    cv2 = pytest.importorskip("cv2")
    contents = {}
    for i, name in enumerate(BATCHES):
        rows = PHOTOS[i::6].reshape(20, 1024, 3)
        contents[f"{name}.png"] = cv2.imencode(".png", rows[:, :, ::-1])[1].tobytes()
    labels = LABELS[IN_BATCHES].tolist()
    contents |= dict(
        zip(LABEL_FILES, (json.dumps(part).encode() for part in (labels[:100], labels[100:])), strict=True)
    )
    archive(folder / PACKAGE, contents)
    found = read_cifar10()
    (folder / PACKAGE).unlink()
    archive(folder / ARCHIVE, official_batches(), FOLDER)
    for one, other in zip(found, read_cifar10(), strict=True):
        assert np.array_equal(one, other)
    contents[LABEL_FILES[0]] = b"[1, 2]"
    (folder / ARCHIVE).unlink()
    archive(folder / PACKAGE, contents)
    with pytest.raises(ViewsError, match="1024 pixels in every row and a label for it"):
        read_cifar10()


def test_broken_batches_are_refused(folder):
    with pytest.raises(ParameterError, match=r"cifar10 is not in .*do `quorumhash datasets get cifar10`"):
        read_cifar10()
    (folder / ARCHIVE).write_bytes(b"no archive")
    with pytest.raises(ViewsError, match="no readable archive"):
        read_cifar10()
    archive(folder / ARCHIVE, dict(list(official_batches().items())[:-1]), FOLDER)
    with pytest.raises(ViewsError, match=r"lacks test_batch.bin"):
        read_cifar10()
    archive(folder / ARCHIVE, official_batches() | {"test_batch.bin": b"123"}, FOLDER)
    with pytest.raises(ViewsError, match="records of 3073 bytes"):
        read_cifar10()


def test_idx_files_are_read_plain_gzipped_and_from_the_package(folder):
    contents, own = idx_contents(), folder / "mnist"
    archive(folder / SOURCES["mnist"].package.file_name, contents, "package/data")
    packed = read_idx_pictures("mnist")
    assert np.array_equal(packed[0], PHOTOS[:, :28, :28, 0])
    assert np.array_equal(packed[1], LABELS)
    own.mkdir()
    for name, content in contents.items():
        (own / f"{name}.gz").write_bytes(gzip.compress(content))
    (own / f"{IDX_FILES[1]}.gz").unlink()
    (own / IDX_FILES[1]).write_bytes(idx(LABELS[99::-1]))
    images, labels = read_idx_pictures("mnist")
    assert np.array_equal(images, packed[0])
    assert np.array_equal(labels[:100], LABELS[99::-1])  # the folder goes before the package


def test_digits_are_not_taken_for_clothes(folder):
    for name, content in idx_contents().items():
        (folder / name).write_bytes(content)  # in the folder of all datasets: whose are they?
    for name in ("mnist", "fashion_mnist"):
        with pytest.raises(ParameterError, match=f"do `quorumhash datasets get {name}`"):
            read_idx_pictures(name)


@pytest.mark.parametrize("content", [b"", idx(LABELS)[:-1], b"\0\0\x0d" + idx(LABELS)[3:], idx(LABELS) + b"1"])
def test_what_is_no_idx_file_is_refused(content):
    with pytest.raises(ViewsError, match="labels must be an idx file of unsigned bytes"):
        parse_idx(content, "labels")


def test_broken_idx_folders_are_refused(folder):
    own = folder / "mnist"
    own.mkdir()
    contents = idx_contents()
    for name, content in contents.items():
        (own / name).write_bytes(content)
    (own / IDX_FILES[3]).write_bytes(idx(LABELS[:3]))
    with pytest.raises(ViewsError, match="must be pictures with one label each"):
        read_idx_pictures("mnist")
    (own / IDX_FILES[3]).unlink()
    (own / f"{IDX_FILES[3]}.gz").write_bytes(gzip.compress(contents[IDX_FILES[3]])[:-5])
    with pytest.raises(ViewsError, match="is not readable"):
        read_idx_pictures("mnist")


# datasets


@pytest.fixture
def digits(folder):
    (folder / "mnist").mkdir()
    for name, content in idx_contents().items():
        (folder / "mnist" / name).write_bytes(content)


def test_rows_are_cut_in_proportion_and_by_split(digits):
    dataset = load_dataset("mnist", **PLAIN)
    assert dataset.views.widths == {"gist": 512, "pixels": 784}
    assert len(dataset.query_rows) == 20
    assert sorted([*dataset.query_rows, *dataset.database_rows]) == list(range(120))
    assert set(np.bincount(dataset.labels[dataset.query_rows])) == {2}
    assert not set(dataset.train_rows) & set(dataset.query_rows)
    assert np.array_equal(dataset.images, PHOTOS[:, :28, :28, 0])
    other = load_dataset("mnist", **PLAIN, split=1)
    assert set(other.query_rows) != set(dataset.query_rows)
    assert np.array_equal(other.views["gist"], dataset.views["gist"])


def test_training_rows_are_a_part_of_the_database(digits, monkeypatch):
    monkeypatch.setattr(picturesets, "N_TRAIN", 30)
    monkeypatch.setattr(picturesets, "N_QUERIES", 10)
    dataset = load_dataset("mnist", **PLAIN)
    assert (len(dataset.query_rows), len(dataset.train_rows), len(dataset.database_rows)) == (10, 30, 110)
    assert set(dataset.train_rows) < set(dataset.database_rows)


@pytest.mark.extra
def test_words_are_learned_on_training_pictures_alone(digits, monkeypatch):
    monkeypatch.setattr(picturesets, "N_TRAIN", 30)
    monkeypatch.setattr(picturesets, "N_WORDS", 9)
    seen = []
    monkeypatch.setattr(picturesets, "kept_vocabulary", lambda *given: seen.append(given) or kept_vocabulary(*given))
    dataset = load_dataset("mnist")
    assert dataset.views.widths == {"gist": 512, "words": 9, "pixels": 784}
    assert np.array_equal(seen[0][0], dataset.images[np.sort(dataset.train_rows)])
    again = load_dataset("mnist")
    assert np.array_equal(again.views["words"], dataset.views["words"])
    masked = load_dataset("mnist", damage="patch", reading="masked")
    assert seen[-1][2].shape == (30, 28, 28)
    assert not np.array_equal(masked.views["words"], dataset.views["words"])


@pytest.mark.extra
def test_all_pictures_have_their_views(folder, digits):
    archive(folder / ARCHIVE, official_batches(), FOLDER)
    (folder / "mnist").rename(folder / "fashion_mnist")
    assert load_dataset("cifar10").views.widths == {"gist": 512, "words": 300, "colour": 225}
    assert load_dataset("fashion_mnist").views.widths == {"gist": 512, "words": 300, "pixels": 784}


def test_patches_stand_at_the_same_places_in_every_reading():
    images = {reading: patched(PHOTOS, reading, 0.25, 3) for reading in ("black", "mean", "masked")}
    covered = images["masked"][1]
    assert (covered.sum(axis=(1, 2)) == 16 * 16).all()
    assert images["black"][1] is None
    assert images["mean"][1] is None
    for made, _ in images.values():
        assert np.array_equal(made[~covered], PHOTOS[~covered])
    assert not images["black"][0][covered].any()
    assert not images["masked"][0][covered].any()
    for row in (0, 119):
        mean = PHOTOS[row][~covered[row]].mean(axis=0)
        assert np.abs(images["mean"][0][row][covered[row]] - mean).max() <= 0.5
    assert not np.array_equal(patched(PHOTOS, "masked", 0.25, 4)[1], covered)
    grey = patched(PHOTOS[..., 0], "mean", 0.25, 3)[0]
    assert grey[0][covered[0]] == pytest.approx(PHOTOS[0, ..., 0][~covered[0]].mean(), abs=0.5)


def test_only_the_masked_reading_has_missing_values(digits):
    for reading in ("black", "mean", "masked"):
        dataset = load_dataset("mnist", **PLAIN, damage="patch", reading=reading)
        assert np.isnan(dataset.views["gist"]).any() == (reading == "masked")
        assert np.isnan(dataset.views["pixels"]).mean() == pytest.approx(0.25 if reading == "masked" else 0)
        assert f"({reading})" in dataset.description


@pytest.mark.parametrize(
    ("options", "words"),
    [({"damage": "noise"}, 'None or "patch", got \'noise\''), ({"reading": "white"}, "one of black, mean, masked"),
     ({"rate": 1.0}, "between 0 and 1, got 1.0"), ({"views": ["hog"]}, "views must be of gist"),
     ({"views": []}, "views must be of gist"), ({"patch": 1}, "got 'patch'; leave it out")],
)  # fmt: skip
def test_unknown_options_are_refused(options, words):
    with pytest.raises(ParameterError, match=words):
        load_dataset("mnist", **options)


def test_datasets_without_options_say_so():
    with pytest.raises(ParameterError, match=r"dataset digits has no such option .*'split'"):
        load_dataset("digits", split=1)


def test_the_catalogue_is_whole_and_knows_what_is_here(folder, digits):
    from quorumhash.datasets import DATASETS

    assert list(WHAT) == list(DATASETS)
    states = {row["name"]: row["state"] for row in listed()}
    assert states == {"digits": "here", "mfeat": "not here", "coco5": "not here", "cifar10": "to get", "mnist": "here",
                      "fashion_mnist": "to get", "cifar10_mnist": "not here", "nuswide": "not here"}  # fmt: skip
    (folder / PACKAGE).touch()
    (folder / "mfeat.npz").touch()
    (folder / "NUS-WIDE").mkdir()
    states = {row["name"]: row["state"] for row in listed()}
    assert states["cifar10"] == states["mfeat"] == states["nuswide"] == "here"


@pytest.mark.extra
def test_digits_are_searched_with_what_photographs_taught(folder, monkeypatch):
    pytest.importorskip("cv2")
    monkeypatch.setattr(cifar10_mnist, "N_WORDS", 10)
    archive(folder / ARCHIVE, official_batches(), FOLDER)
    own = folder / "mnist"
    own.mkdir()
    for name, content in idx_contents().items():
        (own / name).write_bytes(content)
    dataset = load_dataset("cifar10_mnist", split=1)
    assert (dataset.labels[dataset.train_rows] == -1).all()
    assert len(dataset.train_rows) == 100
    assert sorted(dataset.labels[np.r_[dataset.query_rows, dataset.database_rows]]) == sorted(LABELS)
    assert not set(dataset.query_rows) & set(dataset.database_rows)
    photographs = np.sort(stratified_order(LABELS[IN_BATCHES], 1)[20:])
    vocabulary = kept_vocabulary(PHOTOS[IN_BATCHES][photographs], 10)
    framed = np.pad(PHOTOS[:, :28, :28, 0], ((0, 0), (2, 2), (2, 2)))
    expected = extract_features(framed, ("gist", "words"), vocabulary=vocabulary)
    for name in ("gist", "words"):
        assert np.allclose(dataset.views[name][100:], expected[name])
