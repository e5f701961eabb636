"""Reranking by cosine: how much nearness counts."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from concord.search.rerank import CosineReranker
from concord.types import ChunkId
from reranking.tiny_model import QUERY, options, ranking
from support.folders import NOWHERE


def by_cosine(cosines: Mapping[ChunkId, float], weight: float = 0.5) -> dict[ChunkId, float]:
    reranker = CosineReranker(options(weight), NOWHERE, lambda query, chunk_ids: cosines)
    return {one.chunk_id: one.score for one in reranker.rerank(QUERY, ranking({1: 0.3, 2: 0.2, 3: 0.1}), {})}


@pytest.mark.promise("000.rerank.cosine")
def test_the_nearer_chunk_overtakes_by_as_much_as_its_cosine_counts():
    assert by_cosine({1: 0.2, 2: 0.9, 3: 0.4}, 0.75) == pytest.approx({2: 0.8, 1: 0.4, 3: 0.3})
    assert next(iter(by_cosine({1: 0.2, 2: 0.9, 3: 0.4}, 0.75))) == 2


def test_a_chunk_without_a_vector_counts_as_an_average_one():
    assert by_cosine({1: 0.2, 3: 0.6}, 1.0) == pytest.approx({3: 0.6, 2: 0.4, 1: 0.2})
