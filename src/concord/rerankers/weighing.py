"""How much does a second opinion count? A reranker's scores against the fused ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

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
    blended = [
        replace(one, score=weight * scores.get(one.chunk_id, average) + (1 - weight) * fused)
        for one, fused in zip(ranked, _stretched([one.score for one in ranked]), strict=True)
    ]
    return sorted(blended, key=lambda one: -one.score)  # stable: what ties stays in its order


def _stretched(scores: Sequence[float]) -> list[float]:
    """Bring fused scores to [0, 1] within their list: each fusion has a scale of its own."""
    low, high = min(scores), max(scores)
    return [(score - low) / (high - low) if high > low else 1.0 for score in scores]
