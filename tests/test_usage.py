"""Readings that lift a little where they are counted, and opinions that are evidence and move nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.errors import BadValue, NotFound
from concord.knowledge import KnowledgeBase
from concord.notes import Note
from concord.ranking.usage import HALF_LIFE_S, MOST_LIFT, habit, lifted
from concord.types import Access, Answer, Ranked
from support.judged import things
from support.kb_command import Kb
from support.recorders import write
from support.small_library import opened

DAY_S = 86_400.0


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


def order(answer: Answer) -> list[str]:
    return [hit.document.path for hit in answer.hits]


@pytest.mark.promise("004.working-set")
def test_what_was_read_comes_before_its_equals_and_not_before_its_betters(knowledge: KnowledgeBase):
    best, second, third, *_ = before = order(knowledge.search("shallow water"))
    assert best == "docs/best.md"
    for _ in range(20):
        knowledge.get(third)
    after = order(knowledge.search("shallow water"))
    assert after == [best, third, second, *before[3:]]


@pytest.mark.promise("004.working-set")
def test_the_lift_and_its_reason_are_explained(knowledge: KnowledgeBase):
    knowledge.get("docs/heron.md")
    knowledge.get("docs/heron.md")
    told = {
        hit.document.path: hit.explanation["usage"]
        for hit in knowledge.search("shallow water", mode="fts5", explain=True).hits
    }
    assert told["docs/crane.md"] is None
    assert told["docs/heron.md"]["times"] == 2
    assert told["docs/heron.md"]["added"] > 0


def test_reading_a_page_counts_and_being_found_does_not(knowledge: KnowledgeBase):
    knowledge.search("shallow water")
    knowledge.page("docs/heron.md", max_bytes=1000)
    ids = {document.id: document.path for document in knowledge.documents()}
    assert [ids[i] for i in knowledge.store.journal.accesses(list(ids))] == ["docs/heron.md"]


@pytest.mark.promise("004.working-set")
def test_nothing_is_counted_or_lifted_unless_it_is_wanted(docs: Path, tmp_path: Path):
    with opened(tmp_path, usage__enabled=False) as knowledge:
        knowledge.add(docs)
        before = knowledge.search("shallow water", mode="fts5", explain=True)
        knowledge.get(order(before)[-1])
        assert knowledge.store.journal.accesses([document.id for document in knowledge.documents()]) == {}
        knowledge.store.journal.record_access([hit.document.id for hit in before.hits[-1:]], 1e12)
        after = knowledge.search("shallow water", mode="fts5", explain=True)
        assert order(after) == order(before)
        assert {hit.explanation["usage"] for hit in after.hits} == {None}


ROUNDING = 1e-12  # what floating-point numbers may lose


@settings(max_examples=200)
@given(
    times=st.integers(1, 10**9),
    age=st.floats(-10 * DAY_S, 10_000 * DAY_S),
    more=st.integers(1, 100),
    later=st.floats(0, 100 * DAY_S),
)
def test_a_habit_is_bounded_grows_with_readings_and_fades_with_time(
    times: int, age: float, more: int, later: float
):
    now = 1e9
    found = habit(Access(times, now - age), now)
    assert 0 <= found <= 1
    assert habit(Access(times + more, now - age), now) >= found * (1 - ROUNDING)
    assert habit(Access(times, now - age), now + later) <= found * (1 + ROUNDING)


def test_a_habit_halves_in_its_half_life():
    assert habit(Access(3, 0.0), HALF_LIFE_S) == pytest.approx(habit(Access(3, 0.0), 0.0) / 2)


@settings(max_examples=100)
@given(st.lists(st.tuples(st.floats(0, 10), st.floats(0, 1)), min_size=1, max_size=8))
def test_no_habit_lifts_by_more_than_a_small_share_of_the_range(rows: list[tuple[float, float]]):
    ranked = [Ranked(at, score, ()) for at, (score, _) in enumerate(rows)]
    scores = [score for score, _ in rows]
    most = MOST_LIFT * ((max(scores) - min(scores)) or 1.0)
    after = lifted(ranked, {at: strength for at, (_, strength) in enumerate(rows)})
    assert sorted(one.chunk_id for one in after) == list(range(len(rows)))
    assert all(one.score - scores[one.chunk_id] <= most + 1e-9 for one in after)
    assert [one.score for one in after] == sorted((one.score for one in after), reverse=True)


@pytest.mark.promise("feedback.evidence")
def test_an_opinion_is_kept_with_its_citation_and_moves_nothing(knowledge: KnowledgeBase):
    before = order(knowledge.search("shallow water", mode="fts5"))
    given = knowledge.feedback(before[-1], "good", query=" shallow   water ")
    knowledge.feedback("docs/best.md:1-3", "bad", query="shallow water")
    assert (given.citation.split(":")[0], given.query) == (before[-1], "shallow water")
    assert order(knowledge.search("shallow water", mode="fts5")) == before
    assert dict(knowledge.stats().feedback) == {"good": 1, "bad": 1}


@pytest.mark.promise("feedback.evidence")
def test_a_review_tells_where_good_results_stand(knowledge: KnowledgeBase):
    knowledge.feedback("docs/best.md", "good", query="shallow water")
    knowledge.feedback("docs/crane.md", "bad", query="shallow water")
    knowledge.feedback("docs/heron.md", "good", query="the heron")
    gone = knowledge.note(Note("Soon gone."))
    knowledge.feedback(gone.id, "good", query="soon gone")
    knowledge.feedback("docs/stork.md", "good")
    knowledge.remove("notes", force=True)
    found = knowledge.measuring.review()
    assert found == (4, 1, 2, 2, 2)


def test_what_is_not_there_or_no_opinion_is_refused(knowledge: KnowledgeBase):
    with pytest.raises(NotFound):
        knowledge.feedback("docs/none.md", "good")
    with pytest.raises(BadValue, match="no opinion"):
        knowledge.feedback("docs/best.md", "superb")  # type: ignore[arg-type]
    assert knowledge.store.journal.feedback() == []


@pytest.mark.promise("feedback.evidence")
def test_calibration_learns_from_opinions_and_evaluation_shows_them(kb: Kb, docs: Path, tmp_path: Path):
    things(tmp_path / "set")
    kb("add", "docs")
    for at in range(4):
        status, _, _ = kb("feedback", "docs/best.md", "bad", "--query", f"shallow water {at}")
        assert status == 0
    kb("feedback", "docs/best.md", "good", "--query", "shallow water")
    _, out, _ = kb("calibrate", "set", "--json")
    told = json.loads(out)
    assert (told["queries"], told["feedback"]) == (60, 5)
    assert told["before"]["confidence_score"]["n"] == 65
    _, out, _ = kb("eval", "set", "--limit", "3")
    assert "1 good, 4 bad; of 1 queries with a good result, 1 have it in the first ten, 1 at the top" in out
    _, out, _ = kb("stats", "--json")
    assert json.loads(out)["feedback"] == {"good": 1, "bad": 4}


def test_the_command_answers_with_what_it_kept(kb: Kb, docs: Path):
    kb("add", "docs")
    status, out, _ = kb("feedback", "docs/heron.md", "good", "--query", "a bird", "--json")
    told = json.loads(out)
    assert (status, told["opinion"], told["query"], told["citation"]) == (
        0,
        "good",
        "a bird",
        "docs/heron.md:1-3",
    )
    status, out, err = kb("feedback", "docs/heron.md", "superb")
    assert (status, out) == (2, "")
    assert "good" in err
