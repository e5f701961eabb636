"""Rerankers in a search: the order that they give, and what happens when they fail."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from concord.core.errors import Unavailable
from concord.search.rerank import rerank
from concord.types import ChunkId, Degraded, Ranked
from reranking.tiny_model import DOUBT, FUSED, NOTES, QUERY, TEXTS, sigmoid
from support.small_library import library, passages, titles, understood


@pytest.mark.promise("B.rerank.cross-encoder")
def test_a_search_comes_in_the_order_of_the_cross_encoder(model: Path):
    notes = {"Wordy": "login login pool", "Apt": "login month token pool"}
    with library(notes, rerank__provider="cross_encoder", rerank__weight=1, rerank__model=str(model)) as kb:
        answer = kb.search("login token", explain=True)
    assert titles(answer)[0] == "Apt"
    assert answer.degraded == ()
    told = answer.hits[0].explanation
    assert told["ranked"] == answer.hits[0].scores["fused"] == pytest.approx(sigmoid(2 - DOUBT), abs=1e-6)
    assert told["fused"] != told["ranked"]


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


def test_a_missing_model_is_named_in_the_answer_and_costs_nothing_else(tmp_path: Path):
    plain = library(NOTES).search(QUERY)
    given = {"rerank__provider": "cross_encoder", "rerank__model": str(tmp_path / "nowhere")}
    answer = library(NOTES, **given).search(QUERY)
    assert titles(answer) == titles(plain)
    assert [part.strategy for part in answer.degraded] == ["rerank"]
    assert "nowhere" in answer.degraded[0].reason


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
