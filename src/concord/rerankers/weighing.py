"""How much does a second opinion count? A reranker's scores against the fused ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from concord.ranking.lift import stretched
from concord.types import ChunkId, Ranked


def weighed(ranked: Sequence[Ranked], scores: Mapping[ChunkId, float], weight: float) -> list[Ranked]:
    """Return the chunks by weight × score + (1 − weight) × fused, best first; scores are within [0, 1].

    A chunk without a score counts as an average one: not to have been looked at speaks neither for nor
    against it. Where no chunk has a score, or they count for nothing, all stays as it is.
    """
    known = [scores[one.chunk_id] for one in ranked if one.chunk_id in scores]
    if not known or not weight:
        return list(ranked)
    average = sum(known) / len(known)
    fused = [one.score for one in ranked]
    blended = [
        replace(one, score=weight * scores.get(one.chunk_id, average) + (1 - weight) * own)
        for one, own in zip(ranked, stretched(fused, min(fused)), strict=True)
    ]
    return sorted(blended, key=lambda one: -one.score)  # stable: what ties stays in its order
