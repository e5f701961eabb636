"""Shards of a Qdrant collection in this process: points are spread over them, and every one is asked.

The engine is Qdrant's own, from the `qdrant-edge-py` wheel; what a cluster adds is its network.
"""

from __future__ import annotations

from heapq import nlargest
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.synthetic import BATCH, DIMENSION, batches_of_texts, vectors_for

CANDIDATES = 40
ORG = "org"


class QdrantShards:
    """So many shards, with payloads such as ours."""

    def __init__(self, folder: Path, shards: int) -> None:
        import qdrant_edge as edge

        self._edge = edge
        self._shards = [self._made(folder / str(number)) for number in range(shards)]
        ours = edge.FieldCondition(ORG, match=edge.MatchValue(ORG))
        self._ours = edge.Filter(must=[ours])

    def fill(self, chunks: int) -> None:
        """Write points with their texts, batch by batch, each to its shard."""
        for number, texts in enumerate(batches_of_texts(chunks)):
            first = number * BATCH
            made = vectors_for(range(first, first + len(texts)), seed=number)
            points = [self._point(at, vector, text) for (at, vector), text in zip(made, texts, strict=True)]
            for at, shard in enumerate(self._shards):
                shard.update(self._edge.UpdateOperation.upsert_points(points[at :: len(self._shards)]))

    def optimize(self) -> None:
        """Let every shard build its index."""
        for shard in self._shards:
            shard.optimize()

    def nearest(self, vector: list[float]) -> list[tuple[float, int]]:
        """Ask every shard for the nearest and keep the best of them all."""
        request = self._edge.QueryRequest(
            CANDIDATES, query=self._edge.Query.Nearest(vector), filter=self._ours
        )
        found = ((point.score, point.id) for shard in self._shards for point in shard.query(request))
        return nlargest(CANDIDATES, found)

    def close(self) -> None:
        """Close all shards."""
        for shard in self._shards:
            shard.close()

    def _made(self, folder: Path) -> Any:
        folder.mkdir()
        params = self._edge.EdgeVectorParams(DIMENSION, self._edge.Distance.Cosine)
        shard = self._edge.EdgeShard.create(str(folder), self._edge.EdgeConfig(params))
        tenant = self._edge.KeywordIndexParams(is_tenant=True)
        shard.update(self._edge.UpdateOperation.create_field_index(ORG, tenant))
        return shard

    def _point(self, number: int, vector: bytes, text: str) -> Any:
        numbers = np.frombuffer(vector, dtype="<f4").tolist()
        return self._edge.Point(
            number, numbers, {ORG: ORG, "content": text, "path": f"synthetic/{number}.md"}
        )
