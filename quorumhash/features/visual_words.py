"""words: which small structures a picture is made of; counts of visual words (Sivic and Zisserman, 2003).

SIFT descriptors of upright patches on a grid (by default 12 x 12 pixels, every 3 pixels) are rooted, so that their
Euclidean distance is Hellinger's (Arandjelovic and Zisserman, 2012), and each is counted as the nearest word of a
vocabulary. The vocabulary is the centres of k-means over descriptors of training pictures, and of no others. A patch
without any edge is no word.

Missing pixels are filled without edges. Patches that lack half of their pixels or more are not looked at, and counts
are scaled up to the whole grid. A picture with no patch left has no words: its row is missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.errors import ParameterError
from quorumhash.features.opencv import sift_descriptors
from quorumhash.features.pictures import Block, Floats, Missing, as_pictures, brightness, filled
from quorumhash.landmarks import ROWS_PER_LANDMARK, distinct_rows, k_means

STEP, PATCH = 3, 12  # pixels
PATCHES_PER_PICTURE = 10  # of the training pictures, so that many pictures have a say


@dataclass(frozen=True)
class Vocabulary:
    """Visual words: centres (n_words, 128) of rooted descriptors, and the grid of patches that they were learned on.

    Attributes
    ----------
    words : float32 (n_words, 128)
    step : int
        Pixels from one patch of the grid to the next.
    patch : int
        Side of a patch in pixels.
    """

    words: npt.NDArray[np.float32]
    step: int = STEP
    patch: int = PATCH

    def __repr__(self) -> str:
        return f"Vocabulary({len(self.words)} words, patches of {self.patch} pixels every {self.step})"


def learn_vocabulary(
    images: Any, n_words: int = 300, *, mask: Any = None, step: int = STEP, patch: int = PATCH, random_state: int = 0
) -> Vocabulary:
    """A vocabulary from training pictures (n, height, width[, 3]), 0 to 255; `mask` marks their missing pixels.

    >>> textures = np.random.default_rng(0).integers(0, 256, (4, 32, 32))
    >>> learn_vocabulary(textures, n_words=5)  # doctest: +SKIP
    Vocabulary(5 words, patches of 12 pixels every 3)
    """
    pictures = as_pictures(images, mask)
    if n_words < 1 or step < 1 or patch < 4:
        raise ParameterError(
            f"n_words and step must be at least 1 and patch 4, got {n_words}, {step} and {patch}; give larger ones."
        )
    rng = np.random.default_rng(random_state)
    n_wanted = 2 * ROWS_PER_LANDMARK * n_words  # twice what k-means takes: some patches are flat, some alike
    chosen = rng.permutation(len(pictures))[: -(-n_wanted // PATCHES_PER_PICTURE)]
    pictures = pictures[np.sort(chosen)]
    descriptors, counted = _described(pictures.values, pictures.missing, step, patch)
    found = descriptors[counted]
    if len(found) > n_wanted:
        found = found[np.sort(rng.choice(len(found), n_wanted, replace=False))]
    words = k_means(distinct_rows(found), n_words, random_state) if len(found) else found
    if len(words) < n_words:
        raise ParameterError(
            f"n_words must be at most the different patches of the pictures, {len(words)}, got {n_words}; give fewer."
        )
    return Vocabulary(words, step, patch)


def visual_words(values: Block, missing: Missing | None, vocabulary: Vocabulary) -> Floats:
    """Counts (n, n_words) of words in pictures (n, height, width, channels); a row of NaN where none can be seen."""
    descriptors, counted = _described(values, missing, vocabulary.step, vocabulary.patch)
    rows = np.nonzero(counted)[0]
    n_words = len(vocabulary.words)
    # the nearest word: |d|^2 is the same for all words of a descriptor
    nearest = (descriptors[counted] @ vocabulary.words.T - (vocabulary.words**2).sum(axis=1) / 2).argmax(axis=1)
    counts = np.bincount(rows * n_words + nearest, minlength=len(values) * n_words).reshape(-1, n_words)
    if missing is None:
        return counts.astype(np.float32)
    n_seen = _seen(missing, vocabulary.step, vocabulary.patch).sum(axis=1, keepdims=True)
    scale = np.where(n_seen > 0, counted.shape[1] / np.maximum(n_seen, 1), np.nan)
    return (counts * scale).astype(np.float32)


def _described(
    values: Block, missing: Missing | None, step: int, patch: int
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
    """Rooted descriptors (n, n_places, 128), and bool (n, n_places) where they count: seen, and not flat."""
    grey = np.rint(filled(brightness(values), missing).clip(0, 1) * 255).astype(np.uint8)
    descriptors = sift_descriptors(grey, _places(grey.shape[1], grey.shape[2], step), patch)
    total = descriptors.sum(axis=2, keepdims=True)
    np.sqrt(np.divide(descriptors, total, out=descriptors, where=total > 0), out=descriptors)
    counted = total[..., 0] > 0
    return descriptors, counted if missing is None else counted & _seen(missing, step, patch)


def _places(height: int, width: int, step: int) -> npt.NDArray[np.float32]:
    """Centres (m, 2), x and y, of the patches: a grid in the middle of the picture, row by row."""
    y, x = ((side - 1) % step / 2 + np.arange(0, side, step) for side in (height, width))
    return np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2).astype(np.float32)


def _seen(missing: Missing, step: int, patch: int) -> npt.NDArray[np.bool_]:
    """Which patches (n, n_places) lack less than half of their pixels."""
    n, height, width = missing.shape
    until = np.zeros((n, height + 1, width + 1), dtype=np.int64)  # missing pixels above and to the left
    until[:, 1:, 1:] = missing.cumsum(axis=1).cumsum(axis=2)
    x, y = _places(height, width, step).T
    left, right = (np.clip(np.rint(x + 0.5 + sign * patch / 2), 0, width).astype(np.intp) for sign in (-1, 1))
    top, bottom = (np.clip(np.rint(y + 0.5 + sign * patch / 2), 0, height).astype(np.intp) for sign in (-1, 1))
    lacking = until[:, bottom, right] - until[:, top, right] - until[:, bottom, left] + until[:, top, left]
    return np.asarray(2 * lacking < (bottom - top) * (right - left))
