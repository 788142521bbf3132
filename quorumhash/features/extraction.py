"""extract_features: pictures in, views out; in blocks on all cores, each view cached by what it was made of."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.engines.threads import ThreadsEngine
from quorumhash.errors import ParameterError
from quorumhash.features.colour_moments import colour_moments
from quorumhash.features.gist import gist
from quorumhash.features.keptarrays import kept_array
from quorumhash.features.picture_embedding import SIDE, embedding
from quorumhash.features.pictures import Block, Floats, Missing, Pictures, as_pictures
from quorumhash.features.visual_words import Vocabulary, learn_vocabulary, visual_words
from quorumhash.features.wavelet_texture import wavelet_texture
from quorumhash.progress import task_bar
from quorumhash.views import Views

Extractor = Callable[[Block, Missing | None], Floats]

VERSION = 1  # goes up with every change of any feature, so that no old ones are taken from the cache
BLOCK_PIXELS = 1 << 17  # 128 pictures of 32 x 32: what one thread works on at a time
BLOCKS_PER_STEP = 16  # of the progress bar


def _pixels(values: Block, missing: Missing | None) -> Floats:
    """The pixels themselves, (n, height * width * channels), NaN where they are missing."""
    pixels = values.astype(np.float32)
    if missing is not None:
        pixels[missing] = np.nan
    return pixels.reshape(len(values), -1)


EXTRACTORS: dict[str, Callable[..., Floats]] = {
    "gist": gist,
    "words": visual_words,
    "colour": colour_moments,
    "texture": wavelet_texture,
    "pixels": _pixels,
    "embedding": embedding,
}


def extract_features(
    images: Any,
    views: Sequence[str] = ("gist", "colour", "texture"),
    *,
    mask: Any = None,
    vocabulary: Vocabulary | None = None,
    is_cached: bool = True,
    verbose: bool = False,
) -> Views:
    """Views of pictures: gist 512, words (one feature per word), colour 225, texture 128, pixels, embedding 1280.

    Parameters
    ----------
    images : (n, height, width) grey or (n, height, width, 3) colour, from 0 to 255; a NaN pixel is missing.
    views : which views, of gist, words, colour, texture, pixels and embedding; words need the extra "bench", embedding
        the extra "embeddings".
    mask : bool (n, height, width), True where a pixel is known to be missing. Features that rest on missing pixels are
        missing values (NaN), not the edges of a hole.
    vocabulary : for "words"; learn it on training pictures with `learn_vocabulary`.
    is_cached : whether features are kept in the cache folder (QUORUMHASH_CACHE) and read from there the next time.
    verbose : whether to show a progress bar.

    >>> pictures = np.random.default_rng(0).integers(0, 256, (5, 32, 32, 3))
    >>> extract_features(pictures, ["gist", "colour"], is_cached=False)
    Views(5 rows: gist 512, colour 225)
    """
    names = [views] if isinstance(views, str) else list(views)
    unknown = [name for name in names if name not in EXTRACTORS]
    if unknown or not names:
        raise ParameterError(f"views must be of {', '.join(EXTRACTORS)}, got {names!r}; choose among them.")
    if "words" in names and not isinstance(vocabulary, Vocabulary):
        raise ParameterError(
            f'view "words" needs a vocabulary, got {vocabulary!r}: learn one with learn_vocabulary(training pictures).'
        )
    pictures = as_pictures(images, mask)
    content = _digest(pictures) if is_cached else ""
    return Views({name: _view(name, pictures, vocabulary, content, verbose) for name in names})


def kept_vocabulary(images: Any, n_words: int, mask: Any = None) -> Vocabulary:
    """What `learn_vocabulary` gives, read from the cache where the same pictures gave one before."""
    pictures = as_pictures(images, mask)
    key = hashlib.sha256(f"{VERSION} {n_words} {_digest(pictures)}".encode())
    make = partial(_learned_words, images, n_words, mask)
    return Vocabulary(np.array(kept_array("vocabulary", key.hexdigest(), n_words, make)))


def _learned_words(images: Any, n_words: int, mask: Any) -> Floats:
    return learn_vocabulary(images, n_words, mask=mask).words


def _view(
    name: str, pictures: Pictures, vocabulary: Vocabulary | None, content: str, is_shown: bool
) -> npt.NDArray[Any]:
    """One view, from the cache where `content`, the digest of the pictures, is given and the view is there."""
    extractor: Extractor = partial(EXTRACTORS[name], vocabulary=vocabulary) if name == "words" else EXTRACTORS[name]
    make = partial(_extracted, name, pictures, extractor, is_shown)
    return kept_array(name, _key(name, content, vocabulary), len(pictures), make) if content else make()


def _extracted(name: str, pictures: Pictures, extractor: Extractor, is_shown: bool) -> Floats:
    n_pixels = int(np.prod(pictures.values.shape[1:3]))
    block_rows = max(1, BLOCK_PIXELS // (max(n_pixels, SIDE**2) if name == "embedding" else n_pixels))
    step = block_rows * BLOCKS_PER_STEP
    starts, parts = range(0, len(pictures), step), []
    with ThreadsEngine(block_rows=block_rows) as engine, task_bar(is_shown, len(starts), name) as done:
        for start in starts:
            part = pictures[start : start + step]
            missing = None if part.missing is None else engine.put(part.missing)
            parts.append(engine.get(engine.map_rows(extractor, engine.put(part.values), missing)))
            done(f"{start + len(part):,} pictures")
    return np.concatenate(parts)


def _digest(pictures: Pictures) -> str:
    """SHA-256 of size, type, pixels and what is missing."""
    seen = hashlib.sha256(f"{pictures.values.shape} {pictures.values.dtype.str}".encode())
    seen.update(np.ascontiguousarray(pictures.values).data)
    if pictures.missing is not None:
        seen.update(b"missing")
        seen.update(np.packbits(pictures.missing).data)
    return seen.hexdigest()


def _key(name: str, content: str, vocabulary: Vocabulary | None) -> str:
    """SHA-256 of all that a view is made of."""
    key = hashlib.sha256(f"{VERSION} {name} {content}".encode())
    if name == "words" and vocabulary is not None:
        key.update(f"{vocabulary.step} {vocabulary.patch}".encode())
        key.update(np.ascontiguousarray(vocabulary.words).data)
    return key.hexdigest()
