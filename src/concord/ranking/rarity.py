"""What is a word of the query worth? BM25's idf and parameters, and what follows from them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping

K1 = 1.2  # FTS5's, and so is B: a term's weight saturates at k1 + 1
B = 0.75  # how far a chunk's length counts
# Logarithmic: of 10,000 chunks 630 hold such a word. Link texts, whose words stand everywhere, are about so.
COMMON = 0.3
OTHERS = 20  # texts added for smoothing: they matter in a small store, and not at all in a large one
LEAST_IDF = 1e-6  # of words that more than half of all chunks hold: they must not count against a chunk


def idf(chunks: int, holding: int) -> float:
    """Return BM25's inverse document frequency of a term that `holding` of `chunks` hold."""
    if chunks < holding:
        return LEAST_IDF
    return max(LEAST_IDF, math.log((chunks - holding + 0.5) / (holding + 0.5)))


def idfs(chunks: int, frequencies: Mapping[str, int]) -> dict[str, float]:
    """Return the idf of each word; a word that nothing holds weighs most."""
    return {word: idf(chunks, holding) for word, holding in frequencies.items()}


def worths(chunks: int, frequencies: Mapping[str, int]) -> dict[str, float]:
    """Return what each word of a query is worth as evidence: its idf, smoothed.

    It is computed as if the store had a few more texts, none of which holds the word. Otherwise, in a store
    of few texts, a word would be worth nothing if all hold it, and everything if none does.
    """
    return {word: worth(chunks, holding) for word, holding in frequencies.items()}


def worth(chunks: int, holding: int) -> float:
    """Return what a word that so many chunks hold is worth as evidence."""
    return idf(chunks + OTHERS, holding)


def ceiling(weights: Iterable[float]) -> float:
    """Return the most that BM25 could score for terms of these idfs: each saturated."""
    return math.fsum(weight * (K1 + 1) for weight in weights)


def coverage(found: Collection[str], weights: Mapping[str, float]) -> float:
    """Return the share, by idf, of the query's words that are among `found`; 0 where there are no words."""
    total = math.fsum(weights.values())
    return math.fsum(weight for word, weight in weights.items() if word in found) / total if total else 0.0


def rareness(chunks: int, frequencies: Mapping[str, int]) -> float:
    """Return how rare the words of a query are on average: 0 if many chunks hold each, 1 if one does."""
    if chunks < 2 or not frequencies:
        return 0.0
    total = math.fsum(math.log(chunks / max(1, holding)) for holding in frequencies.values())
    return max(0.0, total / len(frequencies) / math.log(chunks) - COMMON) / (1 - COMMON)


def unknown(chunks: int, frequencies: Mapping[str, int]) -> float:
    """Return the share of the query's words that no chunk holds; 0 where nothing is indexed or asked."""
    if not frequencies or not chunks:
        return 0.0
    return sum(1 for holding in frequencies.values() if not holding) / len(frequencies)
