"""BM25 as FTS5 computes it: its parameters, and what a word is worth."""

from __future__ import annotations

import math
from collections.abc import Mapping

K1 = 1.2  # FTS5's, and so is B: a term's weight saturates at k1 + 1
B = 0.75  # how far a chunk's length counts
LEAST_IDF = 1e-6  # of words that more than half of all chunks hold: they must not count against a chunk


def idf(chunks: int, holding: int) -> float:
    """Return BM25's inverse document frequency of a term that `holding` of `chunks` hold."""
    if chunks < holding:
        return LEAST_IDF
    return max(LEAST_IDF, math.log((chunks - holding + 0.5) / (holding + 0.5)))


def idfs(chunks: int, frequencies: Mapping[str, int]) -> dict[str, float]:
    """Return the idf of each word; a word that nothing holds weighs most."""
    return {word: idf(chunks, holding) for word, holding in frequencies.items()}
