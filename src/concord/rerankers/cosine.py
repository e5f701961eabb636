"""A second look by meaning: how near is each chunk's vector to the query's?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from concord.rerankers.weighing import weighed
from concord.types import ChunkId, Ranked

if TYPE_CHECKING:
    from concord.config import Paths

Similarity = Callable[[str, Sequence[ChunkId]], Mapping[ChunkId, float]]


class CosineReranker:
    """Reads `rerank.weight`; the cosines of a query and of chunks are asked of `similarity`."""

    name = "cosine"

    def __init__(self, options: Mapping[str, Any], paths: Paths, similarity: Similarity) -> None:
        self._weight = float(options["rerank.weight"])
        self._similarity = similarity

    def rerank(self, query: str, ranked: Sequence[Ranked], texts: Mapping[ChunkId, str]) -> list[Ranked]:
        """Return the chunks in the order of cosine and fused score together."""
        cosines = self._similarity(query, [one.chunk_id for one in ranked])
        # An angle beyond 90° says no more than 90° does: the chunk has nothing to do with the query.
        return weighed(ranked, {i: min(1.0, max(0.0, c)) for i, c in cosines.items()}, self._weight)

    def close(self) -> None:
        """There is nothing to free: the vectors are the store's, the model is the embedder's."""
