"""How is a chunk lifted in the order? Its score grows by a share of the range of all scores.

So a lift means the same whichever fusion made the scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from concord.ranking.share import ordered
from concord.types import ChunkId, Ranked


def lifted(ranked: Sequence[Ranked], shares: Mapping[ChunkId, float]) -> list[Ranked]:
    """Lift chunks, each by its share of the range of scores, and order anew."""
    reach = score_range(ranked)
    return ordered(
        replace(one, score=one.score + reach * shares[one.chunk_id]) if one.chunk_id in shares else one
        for one in ranked
    )


def stretched(scores: Sequence[float], low: float) -> list[float]:
    """Bring scores to [0, 1], from `low` to the best of them: each fusion has a scale of its own."""
    high = max(scores, default=low)
    return [(score - low) / (high - low) if high > low else 1.0 for score in scores]


def score_range(ranked: Sequence[Ranked]) -> float:
    """Return how far apart the best and the worst score are; 1 if they are equal, so that a lift counts."""
    scores = [one.score for one in ranked]
    return (max(scores) - min(scores) if scores else 0.0) or 1.0
