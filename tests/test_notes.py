"""Notes: kept, found, edited, superseded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from concord.core.errors import BadValue, NotFound
from concord.index.embedding import embed_pending
from concord.index.notes import Note, NoteTools, save_note
from concord.knowledge import KnowledgeBase
from concord.store.json_file import MemoryStore
from concord.text.chunk import ChunkSize
from support.recorders import RecordingEmbedder, write
from support.small_library import empty

kb = pytest.fixture(params=["memory", "sqlite"])(empty)


def titles(kb: KnowledgeBase, text: str, **options: Any) -> list[str]:
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


def test_details_and_tags_come_back_as_they_were_given(kb: KnowledgeBase):
    details = {"cpu": {"model": "386DX33", "cores": 1}, "tickets": [1, 2], "none": None, "☂": "ü"}
    kept = kb.note(Note("An old machine.", tags=(" ops ", "ops", "", "old"), details=details))
    read = kb.get(kept.id).document
    assert (dict(read.details), read.tags) == (details, ("ops", "old"))


def test_a_long_note_is_cut_into_chunks_and_read_whole(kb: KnowledgeBase):
    text = "\n\n".join(f"## Part {n}\n\n" + f"Sentence {n} of a long note. " * 40 for n in range(12))
    kept = kb.note(Note(text, title="long"))
    assert kb.stats().counts.chunks > 5
    assert kb.get(kept.id).text.split() == text.split()


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


@pytest.mark.parametrize("named_by", ["id", "path"])
def test_a_removed_note_is_gone_and_what_it_superseded_comes_back(kb: KnowledgeBase, named_by: str):
    oldest = kb.note(Note("The password changes on Mondays.", title="first"))
    middle = kb.note(Note("The password changes on Fridays.", title="second"), supersedes=oldest.id)
    kb.note(Note("The password changes on Sundays.", title="third"), supersedes=middle.id)
    removed = kb.remove_note(getattr(middle, named_by))
    assert (removed.document.title, removed.brought_back) == ("second", [])
    assert titles(kb, "password changes") == ["third"]
    (newest,) = (document for document in kb.documents() if document.title == "third")
    assert [note.id for note in kb.remove_note(newest.id).brought_back] == [oldest.id]
    assert titles(kb, "password changes") == ["first"]
    assert kb.stats().counts.documents == kb.stats().counts.vectors == 1


def test_a_file_is_not_removed_as_a_note_nor_is_what_is_not_there(kb: KnowledgeBase, tmp_path: Path):
    write(tmp_path / "docs" / "a.md", "# File\n\nThe password changes on Mondays.\n")
    kb.add(tmp_path / "docs")
    with pytest.raises(BadValue, match="is a file, not a note"):
        kb.remove_note("docs/a.md")
    with pytest.raises(NotFound):
        kb.remove_note("nothing")
    assert kb.stats().counts.documents == 1


@settings(max_examples=60)
@given(content=st.text(max_size=200), title=st.none() | st.text(max_size=60))
def test_any_text_is_kept_under_any_title(content: str, title: str | None):
    with KnowledgeBase.open(store__url="memory://", embed__provider="hashing") as kb:
        if not any(map(str.isprintable, content.strip())):
            return
        kept = kb.note(Note(content, title=title))
        assert kb.get(kept.path).document == kept
        assert kb.get(kept.id).document == kept


FULL = Note(
    "It boots from a floppy disk.",
    title="Workshop machine",
    tags=("hardware",),
    details={"cpu": {"model": "386DX33", "clock": [{"mhz": 33}]}, "russell_connection": True, "none": None},
    summary="An old computer in the cellar.",
    context="Found while moving house.",
    highlights=("still runs", "no network"),
    aliases=("beige box",),
)


@pytest.mark.promise("004.fts.fields", "004.details.recursive")
@pytest.mark.parametrize(
    "word",
    [
        *("workshop", "floppy", "hardware", "cellar", "moving", "network", "beige"),
        *("386DX33", "386", "33", "mhz", "russell_connection", "russell"),
    ],
)
def test_everything_in_a_note_is_found_by_its_words(kb: KnowledgeBase, word: str):
    kb.note(Note("Something else entirely, about gardens."))
    kept = kb.note(FULL)
    assert [hit.document.id for hit in kb.search(word, mode="fts5").hits] == [kept.id]


@pytest.mark.promise("004.embed.assembly")
def test_one_text_of_all_fields_is_embedded_in_the_order_of_reading():
    embedder = RecordingEmbedder()
    store = MemoryStore()
    save_note(FULL, NoteTools(store, embedder, ChunkSize.for_target(320, overlap=0)))
    embed_pending(store, embedder, lambda *_: None)
    (text,) = embedder.texts
    said = ["Workshop", "cellar", "floppy", "moving", "still runs", "beige box", "386DX33", "#hardware"]
    places = [text.index(part) for part in said]
    assert places == sorted(places)


def test_a_note_is_read_as_it_was_said_with_its_fields_around_its_content(kb: KnowledgeBase):
    text = kb.get(kb.note(FULL).id).text
    assert text.splitlines()[0] == FULL.summary
    assert "cpu model: 386DX33" in text.splitlines()
    assert "#hardware" not in text


def test_editing_changes_what_is_given_and_keeps_the_rest(kb: KnowledgeBase):
    kept = kb.note(FULL)
    edited = kb.edit_note(kept.id, content="It boots from a card.", tags=("museum",), summary="")
    assert (edited.id, edited.path, edited.title) == (kept.id, kept.path, kept.title)
    (note,) = kb.notes()
    assert note.note == replace(FULL, content="It boots from a card.", tags=("museum",), summary="")
    assert titles(kb, "floppy", mode="fts5") == []
    assert titles(kb, "card", mode="fts5") == titles(kb, "museum", mode="fts5") == ["Workshop machine"]
    assert titles(kb, "hardware", mode="fts5") == titles(kb, "cellar", mode="fts5") == []
    assert kb.stats().pending == 0


def test_history_tells_a_chain_from_any_of_its_links(kb: KnowledgeBase):
    first = kb.note(Note("The password changes on Mondays.", title="first"))
    second = kb.note(Note("The password changes on Tuesdays.", title="second"), supersedes=first.id)
    third = kb.note(Note("The password changes on Fridays.", title="third"), supersedes=second.id)
    kb.note(Note("Something else.", title="apart"))
    for link in (first, second, third):
        assert [document.title for document in kb.history(link.id)] == ["first", "second", "third"]
    with pytest.raises(NotFound):
        kb.history("nothing")
