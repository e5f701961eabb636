"""Notes: kept, found, superseded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.errors import BadValue, NotFound
from concord.knowledge import KnowledgeBase
from concord.notes import Note
from recorders import write


@pytest.fixture(params=["memory", "sqlite"])
def kb(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KnowledgeBase]:
    url = "memory://" if request.param == "memory" else f"sqlite://{tmp_path}/store"
    with KnowledgeBase.open(store__url=url, embed__provider="hashing") as opened:
        yield opened


def titles(kb: KnowledgeBase, text: str, **options: object) -> list[str]:
    return sorted(hit.document.title for hit in kb.search(text, **options).hits)


@pytest.mark.promise("004.fields")
@pytest.mark.parametrize("word", ["rotation", "Mondays", "production"])
def test_a_note_is_found_by_its_title_its_text_and_its_tags(kb: KnowledgeBase, word: str):
    note = Note("The password changes on Mondays.", title="Key rotation", tags=("ops", "production"))
    kept = kb.note(note)
    (hit,) = kb.search(word, mode="fts5").hits
    assert hit.document == kept
    assert (hit.document.type, hit.source.kind, hit.source.name) == ("note", "notes", "notes")


def test_a_note_is_found_by_meaning_at_once(kb: KnowledgeBase):
    kb.note(Note("The password changes on Mondays."))
    assert kb.search("passwords changed", mode="semantic").hits[0].found_by == ("semantic",)
    assert kb.stats().pending == 0


def test_a_note_that_is_not_embedded_waits_for_the_next_sync(kb: KnowledgeBase):
    kb.note(Note("The password changes on Mondays."), embed=False)
    assert titles(kb, "password", mode="fts5") == ["The password changes on Mondays."]
    assert kb.stats().pending == 1
    (report,) = kb.sync()
    assert (report.embedded, report.unchanged, report.pending) == (1, 1, 0)


def test_details_and_tags_come_back_as_they_were_given(kb: KnowledgeBase):
    details = {"cpu": {"model": "386DX33", "cores": 1}, "tickets": [1, 2], "none": None, "☂": "ü"}
    kept = kb.note(Note("An old machine.", tags=(" ops ", "ops", "", "old"), details=details))
    read = kb.get(kept.id).document
    assert (dict(read.details), read.tags) == (details, ("ops", "old"))


@pytest.mark.parametrize(
    ("content", "title"),
    [
        ("short text", "short text"),
        ("# A heading\n\nand more", "A heading"),
        ("many words " * 20, "many words many words many words many words many words many…"),
        ("first line\nsecond line", "first line"),
    ],
)
def test_the_first_words_stand_in_for_a_title(kb: KnowledgeBase, content: str, title: str):
    assert kb.note(Note(content)).title == title


@pytest.mark.parametrize("content", ["", "  \n\t ", "\x00\x00"])
def test_an_empty_note_is_refused_and_leaves_nothing(kb: KnowledgeBase, content: str):
    with pytest.raises(BadValue) as failure:
        kb.note(Note(content))
    assert failure.value.hint
    assert kb.sources() == []


def test_notes_of_one_title_are_documents_of_their_own(kb: KnowledgeBase):
    first, second = kb.note(Note("one thing", title="same")), kb.note(Note("another", title="same"))
    assert first.path != second.path
    assert [kb.get(note.path).text for note in (first, second)] == ["one thing", "another"]
    assert len(kb.sources()) == 1


def test_a_long_note_is_cut_into_chunks_and_read_whole(kb: KnowledgeBase):
    text = "\n\n".join(f"## Part {n}\n\n" + f"Sentence {n} of a long note. " * 40 for n in range(12))
    kept = kb.note(Note(text, title="long"))
    assert kb.stats().counts.chunks > 5
    assert kb.get(kept.id).text.split() == text.split()


@pytest.mark.promise("002.supersede")
@pytest.mark.parametrize("mode", ["auto", "hybrid", "semantic", "fts5"])
def test_a_superseded_note_is_left_out_unless_it_is_asked_for(kb: KnowledgeBase, mode: str):
    old = kb.note(Note("The password changes on Mondays.", title="old"))
    new = kb.note(Note("The password changes on Fridays.", title="new"), supersedes=old.id)
    assert titles(kb, "password changes", mode=mode) == ["new"]
    assert titles(kb, "password changes", mode=mode, include_superseded=True) == ["new", "old"]
    assert kb.get(old.id).document.superseded_by == new.id


@pytest.mark.promise("002.supersede")
def test_a_chain_of_notes_shows_its_last(kb: KnowledgeBase):
    first = kb.note(Note("The password changes on Mondays.", title="first"))
    second = kb.note(Note("The password changes on Tuesdays.", title="second"), supersedes=first.id)
    kb.note(Note("The password changes on Fridays.", title="third"), supersedes=second.id)
    assert titles(kb, "password changes") == ["third"]
    assert len(titles(kb, "password changes", include_superseded=True)) == 3


@pytest.mark.promise("002.supersede")
def test_a_note_can_supersede_a_file_and_that_survives_its_changes(kb: KnowledgeBase, tmp_path: Path):
    write(tmp_path / "docs" / "a.md", "# File\n\nThe password changes on Mondays.\n")
    kb.add(tmp_path / "docs")
    (document,) = kb.documents()
    kb.note(Note("The password changes on Fridays.", title="note"), supersedes=document.id)
    write(tmp_path / "docs" / "a.md", "# File\n\nThe password changes on Sundays.\n", days_old=0.5)
    kb.sync()
    assert titles(kb, "password changes") == ["note"]
    (tmp_path / "docs" / "a.md").rename(tmp_path / "docs" / "b.md")
    kb.sync()
    assert titles(kb, "password changes") == ["note"]


def test_superseding_what_does_not_exist_is_refused_and_keeps_nothing(kb: KnowledgeBase):
    with pytest.raises(NotFound, match="to supersede"):
        kb.note(Note("text"), supersedes="nothing")
    assert kb.stats().counts.documents == 0


def test_a_folder_called_notes_and_the_notes_are_told_apart(kb: KnowledgeBase, tmp_path: Path):
    write(tmp_path / "notes" / "a.md", "# A\n\nfrom the folder\n")
    kb.add(tmp_path / "notes")
    kept = kb.note(Note("from the keyboard"))
    assert kept.path.startswith("notes-2/")
    assert {s.source.name for s in kb.sources()} == {"notes", "notes-2"}
    assert kb.get("notes/a.md").text.endswith("from the folder")


def test_notes_can_be_removed_like_any_source(kb: KnowledgeBase):
    kb.note(Note("one thing"))
    kb.note(Note("another"))
    removal = kb.remove("notes")
    assert (removal.documents_deleted, removal.vectors_deleted) == (2, 2)
    assert kb.note(Note("a new beginning")).path.startswith("notes/")


@settings(deadline=None, max_examples=60)
@given(content=st.text(max_size=200), title=st.none() | st.text(max_size=60))
def test_any_text_is_kept_under_any_title(content: str, title: str | None):
    with KnowledgeBase.open(store__url="memory://", embed__provider="hashing") as kb:
        if not any(map(str.isprintable, content.strip())):
            return
        kept = kb.note(Note(content, title=title))
        assert kb.get(kept.path).document == kept
        assert kb.get(kept.id).document == kept
