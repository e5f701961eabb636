"""Meaning that misses what is near looks once more, when words bear witness to it."""

from __future__ import annotations

import threading

import pytest
from msgspec.structs import replace

from concord.answering.index_misses import NEAREST_WANTED, has_missed
from concord.answering.understand import MAX_EF_SEARCH
from concord.errors import BackendDown
from concord.knowledge import KnowledgeBase
from concord.ranking.ballots import merge_votes
from concord.search import search
from concord.strategies.semantic import Semantic
from concord.types import Answer, Candidate, Query, Request
from support.small_library import library, tools

NEAR = "The backup of the ledger runs at night"
NOTES = {f"Near {n}": f"{NEAR} in room {n}." for n in range(3)} | {
    f"Far {n}": f"Backup tapes number {n} were counted by the porter." for n in range(NEAREST_WANTED + 5)
}


class ShortSighted(Semantic):
    """Meaning that comes by the nearest only if it takes pains."""

    asked: list[int | None]
    trouble: Exception | threading.Event | None = None  # at the second look

    def candidates(self, query: Query) -> list[Candidate]:
        """Leave out what is nearest, at first."""
        self.asked.append(query.ef_search)
        if query.ef_search != MAX_EF_SEARCH:
            rest = super().candidates(query)[3:]
            return [replace(one, rank=rank) for rank, one in enumerate(rest, 1)]
        if isinstance(self.trouble, Exception):
            raise self.trouble
        if self.trouble:
            self.trouble.wait()
        return super().candidates(query)


@pytest.fixture
def kb() -> KnowledgeBase:
    return library(NOTES)


def short_sighted(kb: KnowledgeBase) -> ShortSighted:
    assert kb.embedder is not None
    strategy = ShortSighted(kb.store.vectors, kb.embedder)
    strategy.asked = []
    return strategy


def answered(
    kb: KnowledgeBase, strategy: Semantic, *, ef_search: int | None = None, deadline_ms: float | None = None
) -> Answer:
    usual = tools(kb)
    given = replace(usual, strategies=[*usual.strategies[:2], strategy], similarity=strategy)
    return search(Request(f"{NEAR} in room 1", ef_search=ef_search, deadline_ms=deadline_ms), given)


def by_meaning(answer: Answer) -> set[str]:
    return {hit.document.title for hit in answer.hits if "semantic" in hit.found_by}


def test_what_words_found_and_meaning_missed_is_looked_for_with_more_effort(kb: KnowledgeBase):
    strategy = short_sighted(kb)
    answer = answered(kb, strategy)
    assert strategy.asked == [64, MAX_EF_SEARCH]
    assert by_meaning(answer) >= {"Near 0", "Near 1", "Near 2"}
    assert answer.degraded == ()


def test_who_finds_the_nearest_is_asked_once(kb: KnowledgeBase):
    class Watched(ShortSighted):
        def candidates(self, query: Query) -> list[Candidate]:
            self.asked.append(query.ef_search)
            return Semantic.candidates(self, query)

    assert kb.embedder is not None
    strategy = Watched(kb.store.vectors, kb.embedder)
    strategy.asked = []
    answered(kb, strategy)
    assert strategy.asked == [64]


def test_all_effort_that_was_asked_for_cannot_be_raised(kb: KnowledgeBase):
    class Blind(ShortSighted):
        def candidates(self, query: Query) -> list[Candidate]:
            return super().candidates(replace(query, ef_search=1))

    assert kb.embedder is not None
    strategy = Blind(kb.store.vectors, kb.embedder)
    strategy.asked = []
    answered(kb, strategy, ef_search=MAX_EF_SEARCH)
    assert strategy.asked == [1]


@pytest.mark.parametrize("trouble", [BackendDown("gone", hint="wait"), threading.Event()])
def test_a_second_look_that_fails_or_is_late_leaves_the_first(
    kb: KnowledgeBase, trouble: Exception | threading.Event
):
    strategy = short_sighted(kb)
    strategy.trouble = trouble
    try:
        answer = answered(kb, strategy, deadline_ms=400)
    finally:
        if isinstance(trouble, threading.Event):
            trouble.set()
    assert strategy.asked == [64, MAX_EF_SEARCH]
    assert by_meaning(answer)
    assert (answer.degraded, answer.hits[0].document.title) == ((), "Near 1")


def test_among_fewer_than_ten_nothing_is_missed():
    by_words = Candidate(99, "fts_relaxed", "lexical", 1, 1.0)
    near = [Candidate(n, "semantic", "semantic", n, 0.5) for n in range(1, NEAREST_WANTED + 1)]
    assert has_missed(merge_votes([by_words, *near], cosine={99: 0.9}))
    assert not has_missed(merge_votes([by_words, *near[1:]], cosine={99: 0.9}))
    assert not has_missed(merge_votes([by_words, *near], cosine={99: 0.5}))
