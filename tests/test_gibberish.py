"""Gibberish finds nothing in `auto`, though meaning has a nearest neighbour for everything."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from concord.knowledge import KnowledgeBase

TEXTS = (
    "The lantern is kept in the cellar, next to the door.",
    "Boil lentils with cumin until they are soft.",
    "A river carries sand to the sea, where it settles.",
)
GIBBERISH = "zxqvj wqpfg"


@pytest.fixture(scope="module")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    folder: Path = tmp_path_factory.mktemp("gibberish")
    docs = folder / "docs"
    docs.mkdir()
    for number, text in enumerate(TEXTS):
        (docs / f"{number}.md").write_text(text)
    with KnowledgeBase.open(
        store__url=f"sqlite:///{folder / 'store'}", embed__provider="bundled"
    ) as knowledge:
        knowledge.add(docs)
        yield knowledge


@pytest.mark.promise("B.gibberish")
def test_a_query_of_which_no_word_is_known_ends_in_no_results(bundled: KnowledgeBase):
    answer = bundled.search(GIBBERISH)
    assert (answer.hits, answer.confidence, answer.answerable) == ((), "no_results", False)


def test_who_asks_for_meaning_alone_gets_neighbours(bundled: KnowledgeBase):
    assert bundled.search(GIBBERISH, mode="semantic").hits


def test_a_paraphrase_without_a_shared_word_is_found(bundled: KnowledgeBase):
    assert bundled.search("how to cook legumes").hits[0].document.title.startswith("1")
