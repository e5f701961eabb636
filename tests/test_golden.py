"""Searches over frozen texts answer as they did when the golden answers were made. See golden/README.md."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from concord import KnowledgeBase
from golden import answers, kept_vectors, queries, runs
from golden.differences import beyond, differences, table

pytestmark = pytest.mark.model  # chunks are measured in its tokens

ASKED = queries.written()
SETS = sorted({query.set for query in ASKED})
IS_WHOLE = os.environ.get("GOLDEN") == "all"


@pytest.fixture(scope="module")
def sqlite_library() -> Iterator[KnowledgeBase]:
    with runs.filled("sqlite") as knowledge:
        yield knowledge


@pytest.mark.parametrize("name", SETS)
def test_sqlite_answers_as_before(sqlite_library: KnowledgeBase, name: str):
    asked = [query for query in ASKED if query.set == name]
    # Few ask for what is excluded: of operators all are asked.
    assert_as_before("sqlite", sqlite_library, asked if name == "syntax" else sampled(asked))


@pytest.mark.server
@pytest.mark.parametrize("store", ["json", "postgresql", "qdrant"])
def test_other_stores_answer_as_before(store: str):
    with runs.filled(store) as knowledge:
        assert_as_before(store, knowledge, sampled(answers.asked_of(store, ASKED)))


def sampled(asked: list[queries.GoldenQuery]) -> list[queries.GoldenQuery]:
    """Return every third, but not always the same of six that vary one query, as those of the fusions do."""
    return [query for at, query in enumerate(asked) if IS_WHOLE or (at + at // 6) % 3 == 0]


def assert_as_before(store: str, knowledge: KnowledgeBase, asked: list[queries.GoldenQuery]) -> None:
    found = differences(asked, answers.read(store), runs.answers(knowledge, asked))
    assert beyond(store, found) == [], f"\n{table(asked, found)}"
    assert len(kept_vectors.EMBEDDED) == 0, "texts without a kept vector were embedded by the bundled model"
