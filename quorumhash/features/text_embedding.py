"""embed_texts: texts in, a view out; in blocks on all cores, cached by the texts."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.engines.threads import run_together
from quorumhash.errors import ViewsError, ViewsTypeError
from quorumhash.features.keptarrays import kept_array
from quorumhash.features.minilm import TextNetwork, text_network
from quorumhash.progress import task_bar

VERSION = 1  # goes up with every change of the features, so that no old ones are taken from the cache
BLOCK_TEXTS = 16  # what one thread works on at a time
BLOCKS_PER_STEP = 16  # of the progress bar


def embed_texts(texts: Any, *, is_cached: bool = True, verbose: bool = False) -> npt.NDArray[np.float32]:
    """Embeddings of texts by MiniLM (extra "embeddings"), float32 (n, 384): texts of like meaning have like rows.

    Rows have length 1. A text that is None, NaN or without any word is a row of NaN, a missing view. A text is read up
    to its 256th word piece, which is some 200 words; the network was trained on English.

    Parameters
    ----------
    texts : list, tuple, array or pandas column of strings.
    is_cached : whether embeddings are kept in the cache folder (QUORUMHASH_CACHE) and read from there the next time.
    verbose : whether to show a progress bar.

    >>> rows = embed_texts(["a cat on a sofa", None])  # doctest: +SKIP
    >>> rows.shape, np.isnan(rows).all(axis=1).tolist()  # doctest: +SKIP
    ((2, 384), [False, True])
    """
    given = as_texts(texts)
    make = partial(_embedded, given, verbose)
    return kept_array("texts", _digest(given), len(given), make) if is_cached else make()


def as_texts(texts: Any) -> list[str]:
    """The gate: strings, "" for what is missing, or a refusal.

    >>> as_texts(("a", None, float("nan")))
    ['a', '', '']
    """
    values = texts.tolist() if hasattr(texts, "tolist") else texts
    if not isinstance(values, list | tuple):
        raise ViewsTypeError(f"texts must be a list of strings, got {type(texts).__name__}; put them into a list.")
    if not values:
        raise ViewsError("texts must be at least one, got an empty list; give some.")
    return [_as_text(value, i) for i, value in enumerate(values)]


def _as_text(value: Any, i: int) -> str:
    if value is None or (isinstance(value, float) and value != value):
        return ""
    if not isinstance(value, str):
        raise ViewsTypeError(
            f"texts must be strings, or None where they are missing, got {type(value).__name__} at {i}; convert it."
        )
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ViewsError(f"text {i} holds half of a character (a lone surrogate); decode it anew.") from error
    return value


def _embedded(texts: list[str], is_shown: bool) -> npt.NDArray[np.float32]:
    """Every distinct text is embedded once: products round by company, but equal texts must have equal rows."""
    places = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    return _in_blocks(text_network(), list(places), is_shown)[[places[text] for text in texts]]


def _in_blocks(network: TextNetwork, texts: list[str], is_shown: bool) -> npt.NDArray[np.float32]:
    step = BLOCK_TEXTS * BLOCKS_PER_STEP
    starts, parts = range(0, len(texts), step), []
    with task_bar(is_shown, len(starts), "texts") as done:
        for start in starts:
            part = texts[start : start + step]
            blocks = [part[first : first + BLOCK_TEXTS] for first in range(0, len(part), BLOCK_TEXTS)]
            parts += run_together(network.embedded, blocks)
            done(f"{start + len(part):,} texts")
    return np.concatenate(parts)


def _digest(texts: list[str]) -> str:
    seen = hashlib.sha256(f"{VERSION} {len(texts)}".encode())
    for text in texts:
        content = text.encode()
        seen.update(f" {len(content)} ".encode())
        seen.update(content)
    return seen.hexdigest()
