"""Pictures and texts to views: one file per view, extract_features for pictures, embed_texts for texts."""

from quorumhash.features.extraction import EXTRACTORS, extract_features, kept_vocabulary
from quorumhash.features.text_embedding import embed_texts
from quorumhash.features.visual_words import Vocabulary, learn_vocabulary

__all__ = ["EXTRACTORS", "Vocabulary", "embed_texts", "extract_features", "kept_vocabulary", "learn_vocabulary"]
