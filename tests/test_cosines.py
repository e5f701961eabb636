"""The cosines of one search: whose vectors are fetched, when, and what becomes of faults."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from concord.answering.cosines import Cosines
from concord.answering.deadline import Deadline
from concord.errors import BackendDown
from concord.strategies.semantic import Fetched
from concord.types import Candidate, ChunkId, Vector
from contract.stored import unit

DOWN = BackendDown("the store does not answer", hint="start it")
NORTH, EAST = unit(1, 0), unit(0, 1)


class Asked:
    """Vectors that remember who was asked for."""

    def __init__(self, vectors: Mapping[ChunkId, Vector]) -> None:
        self.vectors = vectors
        self.asked: list[list[ChunkId]] = []

    def fetch(self, chunk_ids: Sequence[ChunkId]) -> Mapping[ChunkId, Vector]:
        self.asked.append(list(chunk_ids))
        return {one: self.vectors[one] for one in chunk_ids if one in self.vectors}

    def fetch_ahead(self, chunk_ids: Sequence[ChunkId]) -> Mapping[ChunkId, Vector] | None:
        return self.fetch(chunk_ids)

    def remembered(self, text: str) -> Vector | None:
        return NORTH

    def forget(self) -> None: ...

    def known_words(self, text: str) -> float:
        return 1.0

    def is_word(self, word: str) -> bool:
        return True

    def compare(self, text: str, stored: Mapping[ChunkId, Vector], query: Vector | None = None) -> Fetched:
        return Fetched(query or NORTH, stored)


class Broken(Asked):
    """Vectors that nobody gets."""

    def fetch(self, chunk_ids: Sequence[ChunkId]) -> Mapping[ChunkId, Vector]:
        super().fetch(chunk_ids)
        raise DOWN


def votes(*chunk_ids: ChunkId, vector: Vector = b"") -> list[Candidate]:
    return [Candidate(one, "semantic", "semantic", at, 0.5, vector) for at, one in enumerate(chunk_ids, 1)]


def test_every_candidate_is_compared_and_only_those_without_a_vector_are_fetched():
    vectors = Asked({1: EAST, 2: NORTH})
    cosines = Cosines(vectors, Deadline(60_000))
    found = cosines.compare("query", [*votes(3, vector=NORTH), *votes(2, 1, 2, 9)])
    assert found.cosines() == {1: 0.0, 2: 1.0, 3: 1.0}
    moved = found.feedback_cosines
    assert moved({1: 1.0}, 0.6)[1] > moved({1: 1.0}, 0.1)[1] > 0
    assert moved({1: 1.0, 2: 1.0}, 0.6)[1] < moved({1: 1.0, 2: 0.1}, 0.6)[1]
    assert moved({7: 1.0}, 0.6) == found.cosines()
    assert vectors.asked == [[1, 2, 9]]


def test_what_was_foreseen_is_not_fetched_again():
    vectors = Asked({1: EAST, 2: NORTH})
    cosines = Cosines(vectors, Deadline(60_000))
    cosines.foresee([2, 2])
    assert cosines.compare("query", votes(1, 2)).cosines() == {1: 0.0, 2: 1.0}
    assert vectors.asked in ([[2], [1]], [[1], [2]])


def test_what_nobody_would_fetch_ahead_is_fetched_when_it_is_needed():
    class Careful(Asked):
        def fetch_ahead(self, chunk_ids: Sequence[ChunkId]) -> Mapping[ChunkId, Vector] | None:
            return None

    vectors = Careful({1: EAST, 2: NORTH})
    cosines = Cosines(vectors, Deadline(60_000))
    cosines.foresee([2, 3])
    assert cosines.compare("query", votes(1, 2)).cosines() == {1: 0.0, 2: 1.0}
    assert vectors.asked == [[1], [2]]
    assert cosines.degraded == ()


def test_a_query_that_has_to_be_embedded_again_is_waited_for_no_longer_than_the_search_may_take():
    come_back = threading.Event()

    class Forgetful(Asked):
        def remembered(self, text: str) -> Vector | None:
            return None

        def compare(
            self, text: str, stored: Mapping[ChunkId, Vector], query: Vector | None = None
        ) -> Fetched:
            come_back.wait()
            return super().compare(text, stored)

    late = Cosines(Forgetful({1: EAST}), Deadline(1))
    assert late.compare("query", votes(1)).cosines() == {}
    assert late.degraded
    come_back.set()
    assert Cosines(Forgetful({1: EAST}), Deadline(60_000)).compare("query", votes(1)).cosines() == {1: 0.0}


def test_cosines_that_fail_are_named_once_and_there_are_none_afterwards():
    vectors = Broken({})
    cosines = Cosines(vectors, Deadline(60_000))
    first = cosines.compare("query", votes(1))
    assert first.cosines() == first.feedback_cosines({1: 1.0}, 0.6) == {}
    assert cosines.compare("query", votes(2)).cosines() == {}
    assert [one.reason for one in cosines.degraded] == [DOWN.message]
    assert vectors.asked == [[1]]


def test_cosines_are_not_waited_for_beyond_the_deadline():
    come_back = threading.Event()

    class Late(Asked):
        def fetch(self, chunk_ids: Sequence[ChunkId]) -> Mapping[ChunkId, Vector]:
            come_back.wait()
            return {}

    cosines = Cosines(Late({}), Deadline(1))
    assert cosines.compare("query", votes(1)).cosines() == {}
    come_back.set()
    assert [one.strategy for one in cosines.degraded] == ["semantic"]
