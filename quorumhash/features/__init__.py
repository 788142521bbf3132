"""Pictures to views: one file per view, and extract_features for all of them."""

from quorumhash.features.extraction import EXTRACTORS, extract_features, kept_vocabulary
from quorumhash.features.visual_words import Vocabulary, learn_vocabulary

__all__ = ["EXTRACTORS", "Vocabulary", "extract_features", "kept_vocabulary", "learn_vocabulary"]
