"""Strategies are asked side by side; vectors of queries are kept, results never."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from concord.core import plugins
from concord.embed.hashing import HashingEmbedder
from concord.search.legs import CACHE_ENTRIES, CACHE_SECONDS, QueryVectors
from concord.types import Vector
from searching.pages import BACKENDS, opened, paths, plant
from support.folders import NOWHERE
from support.recorders import write


class Meeting(HashingEmbedder):
    """An embedder that goes on only once both word searches have begun as well."""

    barrier = threading.Barrier(3)

    def embed_query(self, text: str) -> Vector:
        if text == "deploy":
            self.barrier.wait(30)
        return super().embed_query(text)


@pytest.mark.promise("000.parallel")
def test_the_strategies_run_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Each of the three waits until all have begun: one after the other they would wait for ever."""
    monkeypatch.setitem(plugins.TABLES["embedders"], "meeting", "searching.test_strategies:Meeting")
    with opened("memory", tmp_path, embed__provider="meeting", search__deadline_ms=60_000.0) as kb:
        kb.add(plant(tmp_path / "docs"))
        lexical = kb.store.words
        search = lexical.search

        def meet(*args: Any, **options: Any) -> Any:
            Meeting.barrier.wait(30)
            return search(*args, **options)

        lexical.search = meet  # type: ignore[method-assign]
        answer = kb.search("deploy")
    assert answer.degraded == ()
    assert set(answer.strategies_matched) >= {"fts_exact", "fts_relaxed", "semantic"}


class Counting(HashingEmbedder):
    queries: list[str]

    def embed_query(self, text: str) -> Vector:
        self.queries.append(text)
        return super().embed_query(text)


@pytest.mark.promise("002.cache")
def test_query_vectors_are_kept_for_a_minute_fifty_of_them():
    embedder = Counting({}, NOWHERE)
    embedder.queries = []
    now = [0.0]
    vectors = QueryVectors(embedder, clock=lambda: now[0])
    assert vectors.vector("q") == vectors.vector("q")
    assert embedder.queries == ["q"]
    now[0] = CACHE_SECONDS
    vectors.vector("q")
    assert embedder.queries == ["q", "q"]
    for n in range(CACHE_ENTRIES):
        vectors.vector(str(n))
    embedder.queries.clear()
    vectors.vector("q")
    vectors.vector(str(CACHE_ENTRIES - 1))
    assert embedder.queries == ["q"]
    assert (CACHE_ENTRIES, CACHE_SECONDS) == (50, 60)


@pytest.mark.promise("002.cache")
@pytest.mark.parametrize("backend", BACKENDS)
def test_results_are_never_kept(tmp_path: Path, backend: str):
    with opened(backend, tmp_path) as kb:
        kb.add(plant(tmp_path / "docs"))
        assert "new.md" not in paths(kb.search("deploy"))
        write(tmp_path / "docs" / "new.md", "# Deploy\n\nA new way to deploy.\n")
        kb.sync()
        assert "new.md" in paths(kb.search("deploy"))
        kb.remove("docs")
        assert kb.search("deploy").hits == ()
