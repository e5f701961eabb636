"""A second look at what was found: by cosine, and what happens when a reranker fails."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence

import pytest
from msgspec.structs import replace

from concord.core.errors import Unavailable
from concord.search.rerank import CosineReranker, rerank
from concord.types import Candidate, ChunkId, Degraded, Ranked
from support.folders import NOWHERE
from support.small_library import library, passages, titles, understood

TEXTS: dict[ChunkId, str] = {
    1: "the pool holds ten connections",
    2: "login hands out a token after the password",
    3: "backups are kept for a month",
    4: "a token expires after login",
}
NOTES = {str(i): text for i, text in TEXTS.items()}
QUERY = "login token"
SCORES = {3: 0.0325, 1: 0.0317, 2: 0.0310, 4: 0.0164}
FUSED = [Ranked(Candidate(chunk_id, {"fts_exact": 1}, 1), score) for chunk_id, score in SCORES.items()]
COSINES: dict[ChunkId, float] = {1: -0.2, 2: 0.9, 3: 0.1, 4: 0.8}


def by_cosine(weight: float, cosines: Mapping[ChunkId, float]) -> dict[ChunkId, float]:
    """Return the scores of chunks after a second look, in their order."""
    reranker = CosineReranker({"rerank.weight": weight}, NOWHERE, lambda query, chunk_ids: cosines)
    return {row.chunk_id: row.score for row in reranker.rerank(QUERY, FUSED, TEXTS)}


@pytest.mark.promise("000.rerank.blend")
def test_the_weight_divides_the_score_between_cosine_and_fusion():
    assert by_cosine(1.0, COSINES) == {2: 0.9, 4: 0.8, 3: 0.1, 1: 0.0}
    fused = {chunk_id: (score - 0.0164) / (0.0325 - 0.0164) for chunk_id, score in SCORES.items()}
    for weight in (0.25, 0.8):
        for chunk_id, score in by_cosine(weight, COSINES).items():
            expected = weight * max(0.0, COSINES[chunk_id]) + (1 - weight) * fused[chunk_id]
            assert score == pytest.approx(expected, abs=1e-9)


def test_what_has_no_vector_counts_as_average_and_without_any_the_order_stays():
    assert by_cosine(1.0, {2: 0.9, 4: 0.5})[1] == pytest.approx(0.7)
    assert by_cosine(0.5, {}) == SCORES


@pytest.mark.promise("000.rerank.cosine")
def test_a_search_can_be_reranked_by_cosine():
    with library(NOTES, rerank__provider="cosine", rerank__weight=1) as kb:
        answer = kb.search(QUERY)
    assert answer.degraded == ()
    assert [hit.scores["fused"] for hit in answer.hits] == pytest.approx(
        [max(0.0, hit.scores["cosine"] or 0.0) for hit in answer.hits], abs=1e-5
    )


def test_without_vectors_cosine_leaves_the_order_that_words_gave():
    plain = library(NOTES, embed__provider="none").search(QUERY)
    reranked = library(NOTES, embed__provider="none", rerank__provider="cosine").search(QUERY)
    assert titles(reranked) == titles(plain)
    assert [part.strategy for part in reranked.degraded] == ["semantic"]


class Outsider:
    """A reranker of somebody else's, which does what it is told to."""

    name = "outsider"

    def __init__(self, act: Callable[[list[Ranked]], list[Ranked]]) -> None:
        self._act = act

    def rerank(self, query: str, ranked: Sequence[Ranked], texts: Mapping[ChunkId, str]) -> list[Ranked]:
        return self._act(list(ranked))

    def close(self) -> None:
        """Nothing is open."""


def fail(fault: Exception) -> Callable[[list[Ranked]], list[Ranked]]:
    def act(ranked: list[Ranked]) -> list[Ranked]:
        raise fault

    return act


def reranked(
    act: Callable[[list[Ranked]], list[Ranked]], budget_ms: float
) -> tuple[list[Ranked], list[Degraded]]:
    query = understood(library({}), QUERY)
    better, degraded = rerank(passages(FUSED, TEXTS), query, Outsider(act), budget_ms)
    return [passage.ranked for passage in better], degraded


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (fail(Unavailable("the model went away")), "the model went away"),
        (fail(ZeroDivisionError("by nothing")), "ZeroDivisionError: by nothing"),
        (lambda ranked: ranked[1:], "other chunks"),
        (lambda ranked: [*ranked, ranked[0]], "other chunks"),
        (lambda ranked: [replace(row, score=math.nan) for row in ranked], "other chunks"),
    ],
    ids=["down", "bug", "lost", "doubled", "no-number"],
)
def test_a_reranker_that_fails_leaves_the_order_and_is_named(act, said: str):
    order, (failed,) = reranked(act, 60_000)
    assert (order, failed.strategy) == (FUSED, "rerank")
    assert said in failed.reason


def test_nobody_waits_for_a_reranker_that_is_late():
    go_on = threading.Event()

    def act(ranked: list[Ranked]) -> list[Ranked]:
        go_on.wait()
        return ranked[::-1]

    order, (late,) = reranked(act, 1)
    go_on.set()
    assert (order, late.reason) == (FUSED, "no answer within 1 ms")
