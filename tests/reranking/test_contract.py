"""What every reranker promises."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from concord.core import plugins
from concord.core.protocols import Reranker
from concord.embed.hashing import HashingEmbedder
from concord.types import ChunkId
from reranking.tiny_model import FUSED, QUERY, TEXTS, options
from support.folders import NOWHERE

WILD = ["", " ", "\0", "\ud800", "[SEP] [CLS]", "?!", "日本語", "login " * 5000]

Open = Callable[[float], Reranker]


def cosines_of(texts: Mapping[ChunkId, str]):
    embedder = HashingEmbedder({}, NOWHERE)

    def similarity(query: str, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, float]:
        asked = np.frombuffer(embedder.embed_query(query), "<f4")
        vectors = embedder.embed_documents([texts[i] for i in chunk_ids])
        return {i: float(np.frombuffer(v, "<f4") @ asked) for i, v in zip(chunk_ids, vectors, strict=True)}

    return similarity


@pytest.fixture(scope="module", params=["cosine", "cross_encoder"])
def open_reranker(request: pytest.FixtureRequest, model: Path) -> Open:
    """Opens a reranker with a weight."""
    part = plugins.load("rerankers", request.param)
    similarity = cosines_of(TEXTS)
    return lambda weight: part(options(weight, model), NOWHERE, similarity)


def test_the_same_chunks_come_back_best_first(open_reranker: Open):
    better = open_reranker(0.5).rerank(QUERY, FUSED, TEXTS)
    assert {row.chunk_id: row.candidate for row in better} == {row.chunk_id: row.candidate for row in FUSED}
    assert [row.score for row in better] == sorted((row.score for row in better), reverse=True)
    assert all(0 <= row.score <= 1 for row in better)


def test_chunks_that_fit_the_query_rise(open_reranker: Open):
    assert {row.chunk_id for row in open_reranker(1.0).rerank(QUERY, FUSED, TEXTS)[:2]} == {2, 4}


@pytest.mark.promise("000.rerank.blend")
def test_the_weight_divides_the_score_between_the_second_look_and_fusion(open_reranker: Open):
    alone = {row.chunk_id: row.score for row in open_reranker(1.0).rerank(QUERY, FUSED, TEXTS)}
    fused = {row.chunk_id: (row.score - 0.0164) / (0.0325 - 0.0164) for row in FUSED}
    for weight in (0.25, 0.8):
        for row in open_reranker(weight).rerank(QUERY, FUSED, TEXTS):
            expected = weight * alone[row.chunk_id] + (1 - weight) * fused[row.chunk_id]
            assert row.score == pytest.approx(expected, abs=1e-5)


def test_nothing_to_rerank_gives_nothing(open_reranker: Open):
    assert open_reranker(0.5).rerank(QUERY, [], {}) == []


@pytest.mark.parametrize("query", WILD, ids=range(len(WILD)))
def test_no_query_is_too_strange_to_rerank_for(open_reranker: Open, query: str):
    assert len(open_reranker(0.5).rerank(query, FUSED, TEXTS)) == len(FUSED)


@pytest.mark.parametrize("name", ["cosine", "cross_encoder"])
def test_opening_a_reranker_loads_nothing_heavy(name: str, model: Path):
    script = """
import sys
from concord.core import plugins
from concord.core.config import Paths
options = {"rerank.weight": 0.5, "rerank.model": sys.argv[2]}
plugins.load("rerankers", sys.argv[1])(options, Paths("", "", ""), None)
assert not {"onnxruntime", "numpy", "tokenizers"} & set(sys.modules)
"""
    path = str(Path(plugins.__file__).parents[2])
    subprocess.run([sys.executable, "-c", script, name, str(model)], check=True, env={"PYTHONPATH": path})
