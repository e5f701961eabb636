"""Which of these few is best, on a second look? The order after a reranker, or as it was if that fails."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from concord.core.errors import reason_of
from concord.search.deadline import run_within
from concord.search.fuse import stretched
from concord.types import ChunkId, Degraded, Passage, Query, Ranked

if TYPE_CHECKING:
    from concord.core.config import Paths
    from concord.core.protocols import Reranker

Similarity = Callable[[str, Sequence[ChunkId]], Mapping[ChunkId, float]]


def rerank(
    passages: Sequence[Passage], query: Query, reranker: Reranker | None, budget_ms: float
) -> tuple[list[Passage], list[Degraded]]:
    """Return the passages in a reranker's order; one that fails, is late or errs is named instead."""
    if reranker is None or not passages:
        return [*passages], []
    ranked = [passage.ranked for passage in passages]
    texts = {passage.chunk.id: passage.chunk.text for passage in passages}
    try:
        better = run_within(lambda: reranker.rerank(query.meaning, ranked, texts), budget_ms)
    except Exception as error:  # whatever a model's runtime raises is reported in the answer
        return [*passages], [Degraded("rerank", reason_of(error))]
    if better is None:
        return [*passages], [Degraded("rerank", f"no answer within {budget_ms:.0f} ms")]
    same = sorted(row.chunk_id for row in better) == sorted(row.chunk_id for row in ranked)
    if not same or not all(math.isfinite(row.score) for row in better):  # it may be anybody's
        reason = f"{reranker.name} returned other chunks than it was given"
        return [*passages], [Degraded("rerank", reason)]
    by_id = {passage.chunk.id: passage for passage in passages}
    return [replace(by_id[row.chunk_id], ranked=row) for row in better], []


class CosineReranker:
    """Reads `rerank.weight`; the cosines of a query and of chunks are asked of `similarity`."""

    name = "cosine"

    def __init__(self, options: Mapping[str, Any], paths: Paths, similarity: Similarity) -> None:
        self._weight = float(options["rerank.weight"])
        self._similarity = similarity

    def rerank(self, query: str, ranked: Sequence[Ranked], texts: Mapping[ChunkId, str]) -> list[Ranked]:
        """Return the chunks by weight × cosine + (1 − weight) × fused score, best first.

        A chunk without a vector counts as an average one: not to have been looked at speaks neither for nor
        against it. An angle beyond 90° says no more than 90°: the chunk has nothing to do with the query.
        """
        found = self._similarity(query, [row.chunk_id for row in ranked])
        cosines = {chunk_id: min(1.0, max(0.0, cosine)) for chunk_id, cosine in found.items()}
        if not cosines or not self._weight:
            return list(ranked)
        average = sum(cosines.values()) / len(cosines)
        fused = [row.score for row in ranked]
        blended = [
            replace(row, score=self._weight * cosines.get(row.chunk_id, average) + (1 - self._weight) * own)
            for row, own in zip(ranked, stretched(fused, min(fused)), strict=True)
        ]
        return sorted(blended, key=lambda row: -row.score)  # stable: what ties stays in its order

    def close(self) -> None:
        """There is nothing to free: the vectors are the store's, the model is the embedder's."""
