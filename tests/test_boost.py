"""What lifts a passage: words that stand together, a mention of a name, frequent reading where it counts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from concord.knowledge import KnowledgeBase
from concord.search.passages import boost
from concord.types import Answer, Candidate, Ranked
from support.judged import things
from support.kb_command import Kb
from support.recorders import write
from support.small_library import library, opened, passages, understood


def order(
    texts: Sequence[str], scores: Sequence[float], asked: str, found_by: str = "fts_relaxed"
) -> list[int]:
    """Return the places of texts with these fused scores after they have been boosted."""
    rows = [
        Ranked(Candidate(at, {found_by: at}, None if found_by == "semantic" else at), score)
        for at, score in enumerate(scores, 1)
    ]
    query = understood(library({str(at): text for at, text in enumerate(texts)}), asked)
    given = passages(rows, dict(enumerate(texts, 1)))
    return [passage.chunk.id for passage in boost(given, query)]


@pytest.mark.promise("B.lexical.proximity")
def test_words_that_stand_together_count_for_more_but_not_where_only_meaning_was_asked():
    texts = ("A crane is in the harbour.", "There is a harbour crane.", "Somebody saw a ship.")
    assert order(texts, (1.0, 0.95, 0.0), "harbour crane") == [2, 1, 3]
    assert order(texts, (1.0, 0.95, 0.0), "harbour crane", found_by="semantic") == [1, 2, 3]


@pytest.mark.promise("000.entity.boost")
def test_a_mention_of_the_querys_name_lifts_past_near_ties_only():
    texts = ("Pine trees", "Oak trees", "All of Oak Ridge", "Ridge")
    assert order(texts, (1.0, 0.55, 0.5, 0.0), "where lies Oak Ridge", found_by="semantic") == [1, 3, 2, 4]
    assert order(texts, (1.0, 0.55, 0.5, 0.0), "where lies Elm Street", found_by="semantic") == [1, 2, 3, 4]


def test_of_a_passage_that_says_a_whole_message_the_message_is_shown():
    """Its words stand elsewhere, too, and closer together."""
    before = "ErrLeader: the node leads, and a leader node answers. " + "It goes on about other things. " * 12
    with library({"Errors": f"{before}ErrNotLeader: Node is not the leader. {before}"}) as kb:
        (hit,) = kb.search("node is not the leader", top=1).hits
    assert "Node is not the leader." in hit.snippet


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    for name in ("crane", "heron", "stork"):
        write(folder / f"{name}.md", f"# Bird\n\nThe {name} stands in shallow water and waits for fish.\n")
    write(folder / "best.md", "# Shallow water\n\nShallow water, shallow water, and more shallow water.\n")
    far = "Some water runs through a wide country far away, where nobody has ever seen a bird of any kind."
    write(folder / "far.md", f"# Elsewhere\n\n{far}\n")
    return folder


@pytest.fixture
def knowledge(docs: Path, tmp_path: Path) -> Iterator[KnowledgeBase]:
    with opened(tmp_path, usage__enabled=True) as knowledge:
        knowledge.add(docs)
        yield knowledge


def paths(answer: Answer) -> list[str]:
    return [hit.document.path for hit in answer.hits]


@pytest.mark.promise("004.working-set")
def test_what_was_read_comes_before_its_equals_and_not_before_its_betters(knowledge: KnowledgeBase):
    best, second, third, *_ = before = paths(knowledge.search("shallow water"))
    assert best == "docs/best.md"
    for _ in range(20):
        knowledge.get(third)
    assert paths(knowledge.search("shallow water")) == [best, third, second, *before[3:]]


@pytest.mark.promise("004.working-set")
def test_nothing_is_counted_or_lifted_unless_it_is_wanted(docs: Path, tmp_path: Path):
    with opened(tmp_path, usage__enabled=False) as knowledge:
        knowledge.add(docs)
        before = knowledge.search("shallow water", mode="fts5")
        knowledge.get(paths(before)[-1])
        assert knowledge.store.journal.accesses([document.id for document in knowledge.documents()]) == {}
        knowledge.store.journal.record_access([hit.document.id for hit in before.hits[-1:]], 1e12)
        assert paths(knowledge.search("shallow water", mode="fts5")) == paths(before)


@pytest.mark.promise("feedback.evidence")
def test_an_opinion_is_kept_with_its_citation_and_moves_nothing(knowledge: KnowledgeBase):
    before = paths(knowledge.search("shallow water", mode="fts5"))
    given = knowledge.feedback(before[-1], "good", query=" shallow   water ")
    knowledge.feedback("docs/best.md:1-3", "bad", query="shallow water")
    assert (given.citation.split(":")[0], given.query) == (before[-1], "shallow water")
    assert paths(knowledge.search("shallow water", mode="fts5")) == before
    assert dict(knowledge.stats().feedback) == {"good": 1, "bad": 1}


@pytest.mark.promise("feedback.evidence")
def test_calibration_learns_from_opinions_and_evaluation_shows_them(kb: Kb, docs: Path, tmp_path: Path):
    things(tmp_path / "set")
    kb("add", "docs")
    for at in range(4):
        assert kb("feedback", "docs/best.md", "bad", "--query", f"shallow water {at}").status == 0
    kb("feedback", "docs/best.md", "good", "--query", "shallow water")
    told = json.loads(kb("calibrate", "set", "--json").out)
    assert (told["queries"], told["feedback"]) == (60, 5)
    assert told["before"]["confidence_score"]["n"] == 65
    out = kb("eval", "set", "--limit", "3").out
    assert "1 good, 4 bad; of 1 queries with a good result, 1 have it in the first ten, 1 at the top" in out
    assert json.loads(kb("stats", "--json").out)["feedback"] == {"good": 1, "bad": 4}
