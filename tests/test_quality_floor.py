"""Sixty judged queries over the golden texts find what they should, by words, by meaning and by both."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import pytest

from concord import KnowledgeBase
from concord.types import Mode
from golden import queries, runs

pytestmark = pytest.mark.model  # chunks are measured in its tokens

DEPTH = 10
JUDGED = queries.judged()
FLOORS: Mapping[Mode, float] = {
    "fts5": 0.66,
    "semantic": 0.653,
    "auto": 0.775,
}  # 0.01 below what was measured


@pytest.fixture(scope="module")
def library() -> Iterator[KnowledgeBase]:
    with runs.filled("sqlite") as knowledge:
        yield knowledge


@pytest.mark.parametrize("mode", FLOORS)
def test_what_answers_a_query_is_found_near_the_top(library: KnowledgeBase, mode: Mode):
    gains = {text: ndcg(documents(library, text, mode), right) for text, right in JUDGED.items()}
    assert math.fsum(gains.values()) / len(gains) >= FLOORS[mode], worst(gains)


def test_every_judged_document_is_indexed(library: KnowledgeBase):
    known = {document.path for document in library.documents()}
    assert [path for right in JUDGED.values() for path in right if path not in known] == []


def documents(library: KnowledgeBase, text: str, mode: Mode) -> list[str]:
    """Return the first documents that are found, each once."""
    answer = library.search(text, mode=mode, top=2 * DEPTH)
    return [*dict.fromkeys(hit.document.path for hit in answer.hits)][:DEPTH]


def ndcg(ranked: Sequence[str], right: Sequence[str]) -> float:
    """Return the discounted gain of a ranking as a share of the best one (Järvelin and Kekäläinen 2002)."""
    gain = math.fsum(1 / math.log2(place + 2) for place, path in enumerate(ranked) if path in right)
    return gain / math.fsum(1 / math.log2(place + 2) for place in range(min(len(right), DEPTH)))


def worst(gains: Mapping[str, float]) -> str:
    """Return the queries that are answered worst."""
    return "; ".join(f"{text} {gains[text]:.2f}" for text in sorted(gains, key=gains.__getitem__)[:15])
