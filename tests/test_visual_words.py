"""Visual words: nearest words counted, vocabularies of training pictures only, patches with missing pixels left out."""

import numpy as np
import pytest

from quorumhash.errors import ParameterError
from quorumhash.features import Vocabulary, extract_features, kept_vocabulary, learn_vocabulary
from quorumhash.features.opencv import read_png
from quorumhash.features.visual_words import _places, _seen, visual_words

pytestmark = pytest.mark.extra

RNG = np.random.default_rng(0)
PHOTOS = RNG.integers(0, 256, (6, 32, 32, 3)).astype(np.uint8)


@pytest.fixture(scope="module")
def vocabulary():
    return learn_vocabulary(PHOTOS, n_words=7)


def rooted(picture, x, y):
    """The descriptor of one patch, by OpenCV as its manual has it."""
    cv2 = pytest.importorskip("cv2")
    grey = np.rint(picture.astype(np.float64) @ [0.299, 0.587, 0.114]).astype(np.uint8)
    _, found = cv2.SIFT_create().compute(grey, [cv2.KeyPoint(float(x), float(y), 2.0, 0)])
    return np.sqrt(found[0] / found[0].sum())


def test_every_patch_counts_for_its_nearest_word(vocabulary):
    counts = visual_words(PHOTOS[:1], None, vocabulary)[0]
    expected = np.zeros(7)
    for y in range(11):
        for x in range(11):
            descriptor = rooted(PHOTOS[0], 0.5 + 3 * x, 0.5 + 3 * y)
            expected[((vocabulary.words - descriptor) ** 2).sum(axis=1).argmin()] += 1
    assert counts.sum() == 121
    assert np.abs(counts - expected).sum() <= 2  # brightness is rounded once more on the way


def test_a_picture_without_edges_has_no_words(vocabulary):
    assert not visual_words(np.full((1, 32, 32, 1), 90, dtype=np.uint8), None, vocabulary).any()


def test_vocabulary_is_seeded_and_of_the_size_asked_for(vocabulary):
    assert vocabulary.words.shape == (7, 128)
    assert np.array_equal(learn_vocabulary(PHOTOS, n_words=7).words, vocabulary.words)
    assert not np.array_equal(learn_vocabulary(PHOTOS, n_words=7, random_state=1).words, vocabulary.words)
    assert repr(vocabulary) == "Vocabulary(7 words, patches of 12 pixels every 3)"


def test_more_words_than_patches_are_refused():
    with pytest.raises(ParameterError, match=r"n_words must be at most the different patches .*, 121, got 122"):
        learn_vocabulary(PHOTOS[:1], n_words=122)
    with pytest.raises(ParameterError, match="of the pictures, 0, got 3"):
        learn_vocabulary(np.zeros((2, 32, 32)), n_words=3)
    with pytest.raises(ParameterError, match="at least 1 and patch 4"):
        learn_vocabulary(PHOTOS, n_words=0)


def test_patches_with_missing_pixels_are_not_looked_at():
    missing = np.zeros((1, 32, 32), dtype=bool)
    missing[0, :16, :16] = True
    seen, places = _seen(missing, 3, 12)[0], _places(32, 32, 3)
    for is_seen, (x, y) in zip(seen, places, strict=True):
        rows = np.arange(32)[:, None]
        window = (np.abs(rows - y) < 6) & (np.abs(rows.T - x) < 6)
        assert is_seen == (missing[0][window].mean() < 0.5), (x, y)
    assert 0 < seen.sum() < len(seen)


def test_counts_of_what_is_seen_are_scaled_up(vocabulary):
    missing = np.zeros((6, 32, 32), dtype=bool)
    missing[:, :12] = True
    missing[5] = True
    other = np.where(missing[..., None], 0, PHOTOS).astype(np.uint8)
    counts = visual_words(PHOTOS, missing, vocabulary)
    assert np.array_equal(counts, visual_words(other, missing, vocabulary), equal_nan=True)
    assert counts[:5].sum(axis=1) == pytest.approx(121)
    assert np.isnan(counts[5]).all()
    black = visual_words(other, None, vocabulary)
    clean = visual_words(PHOTOS, None, vocabulary)
    assert np.abs(counts - clean)[:5].sum() < np.abs(black - clean)[:5].sum()


def test_vocabulary_does_not_see_missing_pixels():
    missing = np.zeros((6, 32, 32), dtype=bool)
    missing[:, :12] = True
    learned = [learn_vocabulary(np.where(missing[..., None], grey, PHOTOS), 7, mask=missing) for grey in (0, 200)]
    assert np.array_equal(learned[0].words, learned[1].words)


def test_words_are_kept_by_vocabulary(vocabulary, tmp_path, monkeypatch):
    monkeypatch.setenv("QUORUMHASH_CACHE", str(tmp_path))
    first = extract_features(PHOTOS, ["words"], vocabulary=vocabulary)["words"]
    other = extract_features(PHOTOS, ["words"], vocabulary=Vocabulary(vocabulary.words[::-1], 3, 12))["words"]
    wider = extract_features(PHOTOS, ["words"], vocabulary=Vocabulary(vocabulary.words, 3, 16))["words"]
    assert np.array_equal(other[:, ::-1], first)
    assert not np.array_equal(wider, first)
    assert len(list((tmp_path / "features").iterdir())) == 3


def test_vocabularies_are_kept_by_content(tmp_path, monkeypatch, vocabulary):
    monkeypatch.setenv("QUORUMHASH_CACHE", str(tmp_path))
    assert np.array_equal(kept_vocabulary(PHOTOS, 7).words, vocabulary.words)
    (path,) = (tmp_path / "features").iterdir()
    np.save(path, -vocabulary.words)
    assert np.array_equal(kept_vocabulary(PHOTOS, 7).words, -vocabulary.words)  # from the file
    path.write_bytes(b"damaged")
    assert np.array_equal(kept_vocabulary(PHOTOS, 7).words, vocabulary.words)
    assert len(kept_vocabulary(PHOTOS, 6).words) == 6


def test_png_files_are_read_as_red_green_blue():
    cv2 = pytest.importorskip("cv2")
    content = cv2.imencode(".png", PHOTOS[0][:, :, ::-1])[1].tobytes()
    assert np.array_equal(read_png(content, "a.png"), PHOTOS[0])
    with pytest.raises(ValueError, match=r"a.png is no readable PNG"):
        read_png(content[:30], "a.png")
