"""Features of pictures: each against a textbook form, turned and constant pictures, missing pixels, the cache."""

import hashlib
import sys

import numpy as np
import pytest

from quorumhash import Views, cachefolder, damage
from quorumhash.errors import MissingExtraError, ParameterError, ViewsError
from quorumhash.features import EXTRACTORS, Vocabulary, extract_features, extraction
from quorumhash.features.colour_moments import colour_moments, to_lab
from quorumhash.features.gist import even_contrast, filters, gist
from quorumhash.features.pictures import as_pictures, brightness, cell_counts, cell_sums, filled
from quorumhash.features.wavelet_texture import sub_bands, wavelet_texture

RNG = np.random.default_rng(0)
PHOTOS = RNG.integers(0, 256, (6, 32, 32, 3)).astype(np.uint8)
PLAIN = ["gist", "colour", "texture", "pixels"]  # need no extra


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("QUORUMHASH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def smooth_pictures(n, side=32):
    """Pictures with large forms, as photographs have them."""
    y, x = np.mgrid[:side, :side] / side
    waves = RNG.uniform(-9, 9, (n, 3, 4))
    values = np.sin(waves[..., :1, None] * x + waves[..., 1:2, None] * y + waves[..., 2:3, None])
    return np.moveaxis(127 + 120 * values, 1, 3).astype(np.uint8)


def hole(n, side=32, size=16):
    """A square of missing pixels in the upper left corner of every picture."""
    missing = np.zeros((n, side, side), dtype=bool)
    missing[:, :size, :size] = True
    return missing


# gist


def test_gist_is_the_mean_strength_of_spatial_filters():
    """Filters as sums of waves, applied by convolution in the plane, against the product in the Fourier domain."""
    picture = PHOTOS[:1, :16, :12]
    grey = np.pad(even_contrast(brightness(picture))[0], ((4, 4), (3, 3)), mode="symmetric").astype(np.float64)
    height, width = grey.shape
    features = gist(picture).reshape(4, 8, 4, 4)
    y, x = np.mgrid[:height, :width]
    for scale, orientation in [(0, 0), (1, 3), (2, 6), (3, 7)]:
        response = np.zeros(grey.shape, dtype=complex)
        kernel = np.zeros(grey.shape, dtype=complex)
        for v in range(-(height // 2) + 1, (height + 1) // 2):
            for u in range(-(width // 2) + 1, (width + 1) // 2):
                f, a = np.hypot(v / height, u / width), np.arctan2(v / height, u / width)
                turn = min(abs(a - np.pi * orientation / 8 + k * 2 * np.pi) for k in (-1, 0, 1))
                gain = np.exp(-3.5 * (f / (0.3 / 1.85**scale) - 1) ** 2 - np.pi * turn**2) if f else 0
                kernel += gain * np.exp(2j * np.pi * (v * y / height + u * x / width)) / grey.size
        for i in range(height):
            for j in range(width):
                response += grey[i, j] * np.roll(kernel, (i, j), axis=(0, 1))
        strength = np.abs(response)[4:-4, 3:-3]
        assert features[scale, orientation] == pytest.approx(strength.reshape(4, 4, 4, 3).mean(axis=(1, 3)), rel=1e-4)


def test_gist_of_a_turned_picture_has_its_orientations_and_cells_turned():
    pictures = PHOTOS[:3]
    before = gist(pictures).reshape(3, 4, 8, 4, 4)
    after = gist(np.rot90(pictures, axes=(1, 2))).reshape(3, 4, 8, 4, 4)
    turned = np.rot90(np.roll(before, 4, axis=2), axes=(3, 4))  # a quarter is four of eight orientations
    assert after == pytest.approx(turned, rel=1e-3, abs=1e-6)
    assert not np.allclose(after, np.rot90(before, axes=(3, 4)), rtol=0.05)


def test_gist_finds_the_orientation_and_scale_of_a_wave():
    y, x = np.mgrid[:64, :64]
    across = np.sin(2 * np.pi * 0.16 * x)  # light and dark from left to right: angle 0
    slanted = np.sin(2 * np.pi * 0.3 * (x + y) / np.sqrt(2))  # angle 45 degrees, the finest scale
    features = gist((127 + 100 * np.stack([across, slanted]))[..., None]).reshape(2, 4, 8, 16).mean(axis=3)
    assert np.unravel_index(features[0].argmax(), (4, 8)) == (1, 0)
    assert np.unravel_index(features[1].argmax(), (4, 8)) == (0, 2)


@pytest.mark.parametrize("size", [(28, 28), (33, 41), (8, 8)])
def test_gist_takes_any_size(size):
    assert gist(RNG.integers(0, 256, (2, *size, 1))).shape == (2, 512)


def test_gist_of_a_constant_picture_is_zero():
    assert not gist(np.full((2, 32, 32, 3), 201, dtype=np.uint8)).any()


def test_filters_are_one_sided_and_leave_out_the_mean():
    bank = filters(16, 16)
    assert bank.shape == (32, 16, 16)
    assert not bank[:, 0, 0].any()
    assert not bank[:, 8].any()  # the highest frequency has no partner
    opposite = np.roll(bank[:, ::-1, ::-1], 1, axis=(1, 2))
    assert (bank * opposite).max() < 0.01  # a frequency and its opposite are never both let through


# missing pixels


def test_gist_cells_without_half_of_their_pixels_are_missing():
    features = gist(PHOTOS, hole(6)).reshape(6, 32, 4, 4)
    assert np.isnan(features[:, :, :2, :2]).all()
    assert not np.isnan(features[:, :, 2:]).any()
    assert not np.isnan(features[:, :, :, 2:]).any()
    partly = gist(PHOTOS, hole(6, size=11)).reshape(6, 32, 4, 4)  # 3 of 8 pixel rows of the next cells
    assert np.isnan(partly[0, 0]).sum() == 1


def test_gist_of_a_cell_is_the_mean_over_the_pixels_that_are_there():
    missing = hole(1, size=11)
    grey = np.pad(even_contrast(filled(brightness(PHOTOS[:1]), missing))[0], 8, mode="symmetric")
    response = np.fft.ifft2(np.fft.fft2(grey) * filters(48, 48)[5])
    strength = np.where(missing[0], np.nan, np.abs(response)[8:-8, 8:-8])
    expected = np.nanmean(strength[:8, 8:16]), np.nanmean(strength[8:16, 8:16])
    assert gist(PHOTOS[:1], missing).reshape(32, 4, 4)[5, :2, 1] == pytest.approx(expected, rel=1e-4)


def test_gist_cells_far_from_missing_pixels_hardly_change_and_those_of_a_black_hole_do():
    pictures = smooth_pictures(20)
    clean, masked = (gist(pictures, mask).reshape(20, 32, 16) for mask in (None, hole(20)))
    black = gist(np.where(hole(20)[..., None], 0, pictures)).reshape(20, 32, 16)
    there = ~np.isnan(masked)
    error, rival = (np.abs(found - clean)[there].mean() for found in (masked, black))
    assert error < 0.5 * rival


def test_missing_pixels_have_no_say():
    """Whatever stands where a pixel is missing, the features are the same."""
    other = np.where(hole(6)[..., None], RNG.integers(0, 256, PHOTOS.shape), PHOTOS).astype(np.uint8)
    for name in PLAIN:
        found = [EXTRACTORS[name](pictures, hole(6)) for pictures in (PHOTOS, other)]
        assert np.array_equal(found[0], found[1], equal_nan=True), name
        assert np.isnan(found[0]).any() == (name != "texture"), name


def test_filling_has_no_edges():
    ramp = np.tile(np.linspace(0, 1, 32, dtype=np.float32), (1, 32, 1))
    missing = np.zeros((1, 32, 32), dtype=bool)
    missing[:, 10:20, 10:20] = True
    steps = np.abs(np.diff(filled(ramp, missing), axis=2))
    black = np.abs(np.diff(np.where(missing, 0, ramp), axis=2))
    assert steps.max() < 0.15 < black.max()
    assert np.array_equal(filled(ramp, missing)[~missing], ramp[~missing])


def test_nan_pixels_are_missing():
    holed = damage(PHOTOS.astype(np.float32), "patch", rate=0.25, fill="missing")["view0"].reshape(PHOTOS.shape)
    found = extract_features(holed, PLAIN, is_cached=False)
    same = extract_features(np.nan_to_num(holed), PLAIN, mask=np.isnan(holed).any(axis=3), is_cached=False)
    for name in PLAIN:
        assert np.array_equal(found[name], same[name], equal_nan=True)
    assert np.isnan(found["gist"]).any()


# colour


def moments_of(pixels):
    mean = pixels.mean()
    return mean, pixels.std(), np.cbrt(((pixels - mean) ** 3).mean())


def test_colour_moments_are_those_of_every_block():
    picture = PHOTOS[:1, :27, :25]
    features = colour_moments(picture).reshape(5, 5, 3, 3)
    lab = to_lab(picture)[0]
    edges = [0, 5, 10, 16, 21, 27]
    for i in range(5):
        for j in range(5):
            block = lab[edges[i] : edges[i + 1], 5 * j : 5 * j + 5]
            expected = [moments_of(block[..., channel]) for channel in range(3)]
            assert features[i, j] == pytest.approx(np.array(expected), rel=1e-4, abs=1e-4)


def test_colour_moments_leave_missing_pixels_out():
    missing = np.zeros((1, 25, 25), dtype=bool)
    missing[0, :5, :2] = True  # 10 of 25 pixels of the first block
    missing[0, :5, 5:8] = True  # 15 of the second
    features = colour_moments(PHOTOS[:1, :25, :25], missing).reshape(25, 3, 3)
    lightness = to_lab(PHOTOS[:1, :25, :25])[0, :5, 2:5, 0]
    assert features[0, 0] == pytest.approx(moments_of(lightness), rel=1e-4)
    assert np.isnan(features[1]).all()
    assert not np.isnan(features[2:]).any()


@pytest.mark.parametrize(
    ("colour", "lab"),
    [((255, 255, 255), (100, 0, 0)), ((0, 0, 0), (0, 0, 0)), ((0, 0, 255), (32.30, 79.19, -107.86)),
     ((0, 255, 0), (87.73, -86.18, 83.18)), ((3, 3, 3), (0.82, 0, 0))],
)  # fmt: skip
def test_lab_is_that_of_the_standard(colour, lab):
    assert to_lab(np.array([[[colour]]]))[0, 0, 0] == pytest.approx(lab, abs=0.03)


def test_grey_pictures_have_no_colour():
    moments = colour_moments(PHOTOS[..., :1]).reshape(6, 25, 3, 3)
    assert np.abs(moments[:, :, 1:, :2]).max() < 1e-4
    assert (moments[:, :, 0, 1] > 1).all()


# texture


def test_sub_bands_keep_the_energy_and_end_with_the_finest_change():
    grey = RNG.random((2, 16, 24)).astype(np.float32)
    bands = sub_bands(grey)
    assert bands.shape == (2, 64, 6)
    assert (bands**2).sum() == pytest.approx((grey**2).sum(), rel=1e-5)
    assert bands[0, 0, 0] == pytest.approx(grey[0, :8, :8].sum() / 8, rel=1e-5)
    checks = np.indices((8, 8)).sum(axis=0) % 2
    assert np.flatnonzero(np.abs(sub_bands(checks[None].astype(np.float32))[0, :, 0]) > 1e-6).tolist() == [0, 48]


@pytest.mark.extra
def test_sub_bands_are_those_of_pywavelets():
    pywt = pytest.importorskip("pywt")
    grey = RNG.random((16, 24)).astype(np.float32)
    packet = pywt.WaveletPacket2D(grey, "haar", mode="periodization", maxlevel=3)
    nodes = packet.get_level(3, order="natural")
    expected = {node.path: np.abs(node.data).ravel() for node in nodes}
    found = sub_bands(grey[None])[0]
    paths = [a + b + c for a in "ahvd" for b in "ahvd" for c in "ahvd"]
    for path, band in zip(paths, found, strict=True):
        assert np.abs(band) == pytest.approx(expected[path], abs=1e-5), path


def test_texture_is_mean_and_spread_of_the_bands():
    bands = sub_bands(brightness(PHOTOS))
    expected = np.stack([np.abs(bands).mean(axis=2), bands.std(axis=2)], axis=2).reshape(6, 128)
    assert wavelet_texture(PHOTOS) == pytest.approx(expected, rel=1e-4, abs=1e-6)
    assert wavelet_texture(PHOTOS[:, :29, :31]).shape == (6, 128)


def test_texture_leaves_blocks_with_missing_pixels_out():
    cut = np.concatenate([PHOTOS[:, 16:, :16], PHOTOS[:, 16:, 16:]], axis=1)  # the blocks below the hole, in any order
    missing = hole(6)
    missing[:, :16, 16:] = True
    assert wavelet_texture(PHOTOS, missing) == pytest.approx(wavelet_texture(cut), rel=1e-4, abs=1e-6)
    assert np.isnan(wavelet_texture(PHOTOS, np.ones((6, 32, 32), dtype=bool))).all()


# pictures


def test_cells_are_as_equal_as_may_be_and_lose_no_pixel():
    values = RNG.random((2, 13, 9, 2))
    assert cell_sums(values, 4).sum(axis=(1, 2)) == pytest.approx(values.sum(axis=(1, 2)))
    assert cell_counts(values.shape, 4).sum() == 13 * 9
    assert cell_sums(np.ones((1, 13, 9)), 4)[0] == pytest.approx(cell_counts(values.shape, 4))


@pytest.mark.parametrize(
    ("images", "words"),
    [(np.zeros((4, 16)), "must be numbers of shape"), (np.zeros((2, 16, 16, 2)), "must be numbers of shape"),
     (np.full((1, 9, 9), "x"), "must be numbers"), (np.zeros((1, 7, 9)), "8 pixels"), (np.zeros((0, 9, 9)), "at least"),
     (np.full((1, 9, 9), 256.0), "from 0 to 255, got 256"), (np.full((1, 9, 9), -1), "from 0 to 255")],
)  # fmt: skip
def test_what_is_no_picture_is_refused(images, words):
    with pytest.raises(ViewsError, match=words):
        as_pictures(images)


def test_a_mask_of_another_shape_is_refused():
    with pytest.raises(ParameterError, match=r"mask must be bool of shape \(6, 32, 32\)"):
        extract_features(PHOTOS, ["gist"], mask=np.zeros((6, 32, 32, 3), dtype=bool))


# the front door


def test_views_come_by_name_in_the_order_asked_for():
    views = extract_features(PHOTOS, ["texture", "gist"])
    assert isinstance(views, Views)
    assert views.widths == {"texture": 128, "gist": 512}
    assert extract_features(PHOTOS[..., 0], ["pixels"]).widths == {"pixels": 1024}


def test_blocks_and_threads_do_not_change_features(monkeypatch):
    whole = extract_features(PHOTOS, PLAIN, is_cached=False)
    monkeypatch.setattr(extraction, "BLOCK_PIXELS", 1024)
    monkeypatch.setattr(extraction, "BLOCKS_PER_STEP", 2)
    monkeypatch.setenv("QUORUMHASH_THREADS", "2")
    cut = extract_features(PHOTOS, PLAIN, mask=np.zeros((6, 32, 32), dtype=bool), is_cached=False, verbose=True)
    for name in PLAIN:
        assert cut[name] == pytest.approx(whole[name], rel=1e-4, abs=1e-5), name


def test_unknown_views_and_words_without_vocabulary_are_refused():
    with pytest.raises(ParameterError, match="must be of gist, words, colour, texture, pixels, embedding, got"):
        extract_features(PHOTOS, ["hog"])
    with pytest.raises(ParameterError, match="learn one with learn_vocabulary"):
        extract_features(PHOTOS, ["words"])


def test_features_are_kept_by_content(cache, monkeypatch):
    first = extract_features(PHOTOS, ["gist"])["gist"]
    assert len(list((cache / "features").iterdir())) == 1
    monkeypatch.setattr(extraction, "_extracted", lambda *_: pytest.fail("made again"))
    assert np.array_equal(extract_features(PHOTOS.copy(), ["gist"])["gist"], first)
    for other in (PHOTOS[::-1], PHOTOS[:5]):
        with pytest.raises(pytest.fail.Exception):
            extract_features(other, ["gist"])
    with pytest.raises(pytest.fail.Exception):
        extract_features(PHOTOS, ["gist"], mask=hole(6))


def test_another_mask_is_another_content(cache):
    one, other = (extract_features(PHOTOS, ["colour"], mask=hole(6, size=size))["colour"] for size in (10, 20))
    assert np.isnan(one).sum() < np.isnan(other).sum()
    assert len(list((cache / "features").iterdir())) == 2


def test_damaged_files_of_the_cache_are_made_again(cache):
    first = np.array(extract_features(PHOTOS, ["texture"])["texture"])
    (path,) = (cache / "features").iterdir()
    path.write_bytes(path.read_bytes()[:300])
    assert np.array_equal(extract_features(PHOTOS, ["texture"])["texture"], first)
    assert np.array_equal(np.load(path), first)


def test_nothing_is_kept_where_it_is_not_wanted(cache):
    extract_features(PHOTOS, ["texture"], is_cached=False)
    assert not cache.exists()


def test_cache_folder_is_that_of_the_variable_or_the_platform(cache, monkeypatch, tmp_path):
    assert cachefolder.cache_folder("a") == cache / "a"
    assert (cache / "a").is_dir()
    (tmp_path / "file").touch()
    monkeypatch.setenv("QUORUMHASH_CACHE", str(tmp_path / "file"))
    with pytest.raises(ParameterError, match=r"cannot be made .*set QUORUMHASH_CACHE"):
        cachefolder.cache_folder("a")
    monkeypatch.delenv("QUORUMHASH_CACHE")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cachefolder.cache_folder(is_made=False) == tmp_path / "xdg" / "quorumhash"


def test_without_opencv_words_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'quorumhash\[bench\]'"):
        extract_features(PHOTOS, ["words"], vocabulary=Vocabulary(np.eye(3, 128, dtype=np.float32), 3, 12))


def test_digest_depends_on_type_and_shape():
    pictures = [np.zeros((2, 8, 16), np.uint8), np.zeros((2, 16, 8), np.uint8), np.zeros((1, 16, 16), np.uint8)]
    digests = {extraction._digest(as_pictures(part)) for part in pictures}
    assert len(digests) == 3
    assert all(len(digest) == hashlib.sha256().digest_size * 2 for digest in digests)
