"""Both scores of every candidate: what is compared and when."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

import pytest

from concord.core.errors import BackendDown
from concord.search.deadline import Deadline
from concord.search.legs import Comparison, Semantic, Tools
from concord.search.request import options_of
from concord.search.retrieve import Retrieved
from concord.search.scores import complete_scores
from concord.search.understand import understand
from concord.types import ChunkId, RankedList, Request, Scored, Vector
from contract.stored import unit
from support.small_library import library, tools, understood

DOWN = BackendDown("the store does not answer", hint="start it")
NORTH, EAST = unit(1, 0), unit(0, 1)


@pytest.mark.promise("000.candidates.forty", "001.vec.candidates")
def test_each_strategy_proposes_forty_or_three_times_as_many_as_are_asked_for():
    kb = library()
    asked = [Request("login", top=top) for top in (1, 13, 14, 50)]
    queries = [understand(request, options_of(request, kb.settings), tools(kb), ()) for request in asked]
    assert [query.candidates for query in queries] == [40, 40, 42, 150]


class Asked(Semantic):
    """Vectors that remember who was asked for."""

    def __init__(self, vectors: Mapping[ChunkId, Vector], fault: Exception | threading.Event | None = None):
        self.stored, self.fault = vectors, fault
        self.asked: list[list[ChunkId]] = []

    def fetch(self, chunk_ids: Sequence[ChunkId]) -> Mapping[ChunkId, Vector]:
        self.asked.append(list(chunk_ids))
        if isinstance(self.fault, Exception):
            raise self.fault
        if self.fault:
            self.fault.wait()
        return {i: self.stored[i] for i in chunk_ids if i in self.stored}

    def compare(self, text: str, stored: Mapping[ChunkId, Vector]) -> Comparison:
        return Comparison(NORTH, stored)


def completed(vectors: Asked, deadline_ms: float = 60_000):
    """Complete the scores of chunks 1, 2 and 9, found by words, and of 3, found by meaning."""
    kb = library()
    found = Retrieved(
        [
            RankedList("fts_relaxed", "lexical", [Scored(2, 3.0), Scored(1, 2.0), Scored(9, 1.0)]),
            RankedList("semantic", "semantic", [Scored(3, 0.9)]),
        ]
    )
    used = Tools(kb.store, (), kb.settings, "default", similarity=vectors)
    return complete_scores(found, understood(kb, "login"), used, Deadline(deadline_ms))


def test_cosines_that_fail_are_named_and_words_go_on():
    found = completed(Asked({}, DOWN))
    assert [(part.strategy, part.reason) for part in found.degraded] == [("semantic", DOWN.message)]
    assert {row.cosine for row in found.rows} == {None, 0.9}
