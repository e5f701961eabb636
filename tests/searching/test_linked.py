"""What stands beside the results: passages that the hits point to, for questions that need two of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from concord import KnowledgeBase
from concord.mcp.packing import pack_answer
from concord.types import Answer
from concord.wire import answer_to_json
from support.small_library import secluded

FILES = {
    "films/harbour.md": "# Night Harbour\n\nNight Harbour is a film of 1961, directed by Mirela Dostoy.\n",
    "people/mirela.md": "# Mirela Dostoy\n\nShe was born in the town of Oradea, and painted all her life.\n",
    "films/index.md": "# All films\n\n[Night Harbour](harbour.md), [tickets](../tickets.md#prices).\n",
    "tickets.md": "# Tickets\n\nSold at the door.\n\n## Prices\n\nA seat costs nine crowns.\n",
    "old.md": "---\nsuperseded_by: tickets.md\n---\n# Ticket Office Rules\n\nGone.\n",
    "door.md": "# Doorkeeper\n\nThe doorkeeper reads the Ticket Office Rules and knows Mirela Dostoy.\n",
}


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[KnowledgeBase]:
    for name, text in FILES.items():
        path = tmp_path / "archive" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    with secluded(tmp_path / "home", "memory://", ingest__chunk_tokens=64) as kb:
        kb.add(str(tmp_path / "archive"))
        yield kb


def beside(answer: Answer) -> list[tuple[str, str]]:
    return [(row.title, row.kind) for row in answer.linked]


def test_a_question_of_two_hops_has_both_passages(archive: KnowledgeBase):
    answer = archive.search("night harbour film 1961", top=1, mode="fts5")
    assert [hit.document.title for hit in answer.hits] == ["Night Harbour"]
    assert beside(answer) == [("Mirela Dostoy", "mention")]
    (row,) = answer.linked
    assert row.via == answer.hits[0].citation
    assert "Oradea" in row.snippet
    assert archive.get(row.citation).document.title == "Mirela Dostoy"


def test_what_is_among_the_results_is_not_beside_them(archive: KnowledgeBase):
    answer = archive.search("Night Harbour Mirela Dostoy", top=10)
    shown = {hit.document.id for hit in answer.hits}
    assert shown.isdisjoint(row.document_id for row in answer.linked)


def test_a_link_leads_to_the_part_that_it_names(archive: KnowledgeBase):
    answer = archive.search("all films", top=1, mode="fts5", path="**/index.md")
    assert not answer.linked  # the filter holds for links, too
    answer = archive.search('"all films"', top=1, mode="fts5")
    assert ("Tickets", "link") in beside(answer)
    (row,) = [row for row in answer.linked if row.title == "Tickets"]
    assert "nine crowns" in archive.get(row.citation).text


def test_superseded_documents_and_excluded_words_are_not_linked(archive: KnowledgeBase):
    assert beside(archive.search("doorkeeper", top=1, mode="fts5")) == [("Mirela Dostoy", "mention")]
    assert not archive.search("doorkeeper -Oradea", top=1, mode="fts5").linked


def test_a_link_to_a_file_that_is_gone_is_not_shown(archive: KnowledgeBase, tmp_path: Path):
    (tmp_path / "archive" / "people" / "mirela.md").unlink()
    assert not archive.search("doorkeeper", top=1, mode="fts5").linked


def test_links_come_last_in_a_budget(archive: KnowledgeBase):
    answer = archive.search("night harbour film 1961", top=1, mode="fts5")
    assert answer_to_json(answer, max_tokens=2_000)["linked"]
    tight = answer_to_json(answer, max_tokens=450)
    assert tight["results"]
    assert not tight["linked"]
    reply = pack_answer(answer, 2_000)
    assert reply.structured["linked"][0]["title"] == "Mirela Dostoy"
    assert "Linked from these" in reply.text
    assert "| She was born" in reply.text
    assert not pack_answer(answer, 400).structured["linked"]
