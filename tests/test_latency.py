"""Latency: what is timed, and which figures are told of it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace

from concord import KnowledgeBase
from concord.answering.tools import SearchTools
from concord.embedders.hashing import HashingEmbedder
from concord.quality.collection import read_collection
from concord.quality.evaluate import MODES, evaluate
from concord.quality.latency import SAMPLE, by_mode
from concord.quality.percentiles import percentiles
from concord.strategies.semantic import Semantic
from concord.types import Vector
from support.folders import NOWHERE
from support.judged import things

pytestmark = pytest.mark.slow


class Counting(HashingEmbedder):
    """Notes which queries it is asked to embed."""

    def __init__(self) -> None:
        super().__init__({}, NOWHERE)
        self.queries: list[str] = []

    def embed_query(self, text: str) -> Vector:
        """Note the query."""
        self.queries.append(text)
        return super().embed_query(text)


def counting(tools: SearchTools) -> tuple[SearchTools, Counting]:
    """Return tools whose model notes what it is asked."""
    embedder = Counting()
    semantic = Semantic(tools.store.vectors, embedder)
    words = [one for one in tools.strategies if one.family == "lexical"]
    return replace(tools, strategies=[*words, semantic], similarity=semantic), embedder


@pytest.mark.promise("B.eval.latency")
def test_every_mode_and_every_query_type_has_its_latency(knowledge: KnowledgeBase, tmp_path: Path):
    found = knowledge.measuring.evaluate(things(tmp_path / "set"))
    assert list(found.latency_by_mode) == list(MODES)
    assert set(found.latency_by_kind) == set(found.kinds)
    for one in (found.latency_ms, *found.latency_by_mode.values(), *found.latency_by_kind.values()):
        assert 0 < one["p50"] <= one["p95"]


@pytest.mark.promise("B.eval.latency")
def test_the_model_is_loaded_before_anything_is_timed_and_every_mode_embeds_anew(
    knowledge: KnowledgeBase, tmp_path: Path
):
    collection = read_collection(things(tmp_path / "set")).sampled(9)
    with knowledge.measuring.indexed_apart(collection, lambda *_: None) as tools:
        noted, embedder = counting(tools)
        evaluate(collection, noted, lambda *_: None)
    texts = [*collection.judged.values()]
    assert embedder.queries[: 1 + len(texts)] == [texts[0], *texts]  # once for nobody, then for the figures
    times = Counter(embedder.queries)
    assert times[texts[1]] == len(MODES)  # once, and in all modes but bm25


def test_no_more_than_a_sample_is_timed_and_it_is_from_everywhere(knowledge: KnowledgeBase, tmp_path: Path):
    collection = read_collection(things(tmp_path / "set"))
    done: list[tuple[int, int | None]] = []
    with knowledge.measuring.indexed_apart(collection, lambda *_: None) as tools:
        noted, embedder = counting(tools)
        texts = [f"where is the {at}" for at in range(120)]
        by_mode(texts, noted, lambda stage, at, total: done.append((at, total)), 60_000)
    asked = set(embedder.queries)
    assert len(asked) <= SAMPLE
    assert {text.split()[-1] for text in asked} >= {"0", "60", "117"}
    assert done[-1] == (len(asked), len(asked))


def test_words_are_timed_without_a_model_and_meaning_only_where_there_is_one(
    knowledge: KnowledgeBase, tmp_path: Path
):
    with KnowledgeBase.open(embed__provider="none") as words:
        found = words.measuring.evaluate(things(tmp_path / "set"), limit=3)
    assert set(found.latency_by_mode) == set(MODES) - {"semantic"}
    assert found.model is None


def test_no_percentile_lies_beyond_what_was_measured():
    assert percentiles([5.0, 1.0, 3.0, 2.0, 4.0]) == {"p50": 3.0, "p95": pytest.approx(4.8)}
    assert percentiles([2.0]) == {"p50": 2.0, "p95": 2.0}
    assert percentiles([]) == {}


def test_a_server_tells_of_its_calls_by_the_same_percentiles():
    from concord.mcp.server_state import Latencies

    calls = Latencies()
    for took_ms in (5.0, 1.0, 3.0, 2.0, 4.0):
        calls.add("team", "kb_search", took_ms)
    assert calls.summary("team") == {"kb_search": {"calls": 5, "p50": 3.0, "p95": 4.8}}
