"""How close do the words of a query stand in a text? Words that are neighbours in both mean the same thing.

Sequential dependence (Metzler and Croft 2005), as a lift of the few that were read: "barry warsaw" is not a
text with a Barry in one place and Warsaw in another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from concord.text.contains import neighbours
from concord.types import ChunkId

# Shares of the range of scores. Both were chosen on collections of questions, which they hardly change, and
# on pairs of rare words that had to be found where they stand together (`python -m benchmarks lookup`).
NEIGHBOURS = 0.2  # for a text in which all neighbours of the query stand close
VERBATIM = 1.6  # on top of it, for one that has the whole query in its order, if all its words are rare
# The share of a question all of whose significant words stand in their order: just below 1, which only bare
# queries reach.
SUBJECT = 0.99
MOST_PAIRS = 16  # that are looked for: more of a pasted page would take time and not improve the order

Pairs = Mapping[tuple[str, str], float]  # neighbouring words of a query, with their weights


def neighbouring(words: Sequence[str], weights: Mapping[str, float]) -> Pairs:
    """Return the neighbouring words of a query, each pair with the weight of its commoner word."""
    pairs = [pair for pair in pairwise(words[: MOST_PAIRS + 1]) if pair[0] != pair[1]]
    return {pair: min(weights.get(word, 0.0) for word in pair) for pair in pairs}


def closeness(pairs: Pairs, text: str, *, bare: bool) -> float:
    """Return the share of a query's neighbouring words that stand close in a text.

    Each pair counts by its weight. The share reaches 1 only for a bare query, one without stop words: a text
    rarely has more of a question than its subject.
    """
    close = neighbours(text, pairs)
    if not close:
        return 0.0
    if len(close) == len(pairs):
        return 1.0 if bare else SUBJECT
    return sum(pairs[pair] for pair in close) / (sum(pairs.values()) or 1.0)


def lifts(close: Mapping[ChunkId, float], rareness: float) -> dict[ChunkId, float]:
    """Return the lift of each chunk by how close the query's words stand in it, and how rare they are."""
    return {
        chunk_id: NEIGHBOURS * share + (VERBATIM * rareness if share == 1 else 0.0)
        for chunk_id, share in close.items()
        if share
    }
