"""Notes as files: what is written is read back the same, and what others wrote is understood."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.core.errors import BadValue
from concord.index.note_files import (
    note_from_markdown,
    note_to_json,
    note_to_markdown,
    read_notes,
    write_notes,
)
from concord.index.notes import KeptNote, Note
from concord.knowledge import KnowledgeBase
from support.small_library import opened

NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
LEAVES = st.none() | st.booleans() | NUMBERS | st.text(max_size=20)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
)
LINES = st.lists(st.text(max_size=20), max_size=3).map(tuple)
NOTES = st.builds(
    Note,
    content=st.text(max_size=80),
    title=st.text(min_size=1, max_size=20),
    tags=LINES,
    details=st.dictionaries(st.text(max_size=8), JSON, max_size=3),
    summary=st.text(max_size=20),
    context=st.text(max_size=20),
    highlights=LINES,
    aliases=LINES,
)
KEPT = st.builds(
    KeptNote,
    id=st.text("0123456789abcdef", min_size=16, max_size=16),
    note=NOTES,
    changed_at=st.integers(0, 4 * 10**15).map(lambda microseconds: microseconds / 1e6),
    superseded_by=st.none() | st.text("0123456789abcdef", min_size=16, max_size=16),
)


@pytest.fixture
def kb() -> Iterator[KnowledgeBase]:
    with opened("memory://") as made:
        yield made


@pytest.mark.promise("004.note.round-trip")
@pytest.mark.parametrize("name", ["notes.json", "notes.jsonl", "folder"])
@settings(max_examples=60)
@given(notes=st.lists(KEPT, max_size=4, unique_by=lambda kept: kept.id))
def test_any_notes_are_read_back_as_they_were_written(name: str, notes: list[KeptNote]):
    with TemporaryDirectory() as folder:
        path = Path(folder, name)
        assert write_notes(notes, path) == len(notes)
        read = read_notes(path) if notes or path.exists() else []
    assert sorted(map(said, read)) == sorted(map(said, notes))


@pytest.mark.promise("004.note.round-trip")
@settings(max_examples=150)
@given(kept=KEPT)
def test_any_note_survives_being_markdown(kept: KeptNote):
    assert said(note_from_markdown(note_to_markdown(kept), "test", 0.0)) == said(kept)


def said(kept: KeptNote) -> str:
    return json.dumps(note_to_json(kept), sort_keys=True)


@pytest.mark.promise("004.note.round-trip")
@pytest.mark.parametrize("name", ["notes.json", "notes.jsonl", "folder"])
def test_another_knowledge_base_keeps_exported_notes_as_they_were(
    kb: KnowledgeBase, tmp_path: Path, name: str
):
    old = kb.note(
        Note("  spaces and\r\nlines \n", title="old", tags=("a", "b"), details={"n": [1, {"x": None}]})
    )
    kb.note(Note("newer", summary="s", context="c", highlights=("h",), aliases=("i",)), supersedes=old.id)
    kb.export_notes(tmp_path / name)
    with opened("memory://") as other:
        assert other.import_notes(tmp_path / name) == (2, 0, 0)
        assert sorted(map(said, other.notes())) == sorted(map(said, kb.notes()))
        found = other.search("spaces", mode="fts5", include_superseded=True).hits
        assert [hit.document.id for hit in found] == [old.id]
        assert other.search("spaces", mode="fts5").hits == ()
        assert other.stats().pending == 0
        assert other.import_notes(tmp_path / name) == (0, 0, 2)


def test_markdown_that_others_wrote_is_a_note_with_its_keys_as_details(kb: KnowledgeBase, tmp_path: Path):
    head = "title: Key rotation\ntags: [ops, red]\naliases: rotation\ncpu:\n  model: 386DX33\n"
    text = f"---\n{head}---\n\nOn Mondays.\n"
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.md").write_text(text, encoding="utf-8")
    (tmp_path / "b.md").write_text("# A heading\n\nNo head at all.\n", encoding="utf-8")
    (tmp_path / "c.txt").write_text("not a note", encoding="utf-8")
    assert kb.import_notes(tmp_path).added == 2
    first, second = sorted((kept.note for kept in kb.notes()), key=lambda note: note.title or "")
    assert (first.title, first.content) == ("A heading", "# A heading\n\nNo head at all.\n")
    assert (second.title, second.tags, second.aliases) == ("Key rotation", ("ops", "red"), ("rotation",))
    assert (second.content, second.details) == ("On Mondays.\n", {"cpu": {"model": "386DX33"}})
    assert kb.search("386", mode="fts5").hits[0].document.title == "Key rotation"
    assert kb.import_notes(tmp_path) == (0, 0, 2)


def test_json_of_other_programs_is_understood(kb: KnowledgeBase, tmp_path: Path):
    memory = {"id": 7, "name": "Russell", "text": "A friend.", "tags": "people", "since": 1998}
    (tmp_path / "one.json").write_text(json.dumps(memory), encoding="utf-8")
    kb.import_notes(tmp_path / "one.json")
    (kept,) = kb.notes()
    assert (kept.id, kept.note.title, kept.note.content) == ("7", "Russell", "A friend.")
    assert (kept.note.tags, kept.note.details) == (("people",), {"since": 1998})


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", "{", "not JSON"),
        ("a.jsonl", '{"content": "fine"}\n{"content": ["no"]}\n', r"line 2 .* at `\$.content`"),
        ("a.json", '{"content": "x", "id": "two\\nlines"}', "cannot be one"),
        ("a.md", "---\ntitle: nothing else\n---\n", "some text"),
    ],
)
def test_one_bad_note_keeps_all_of_them_out(
    kb: KnowledgeBase, tmp_path: Path, name: str, text: str, message: str
):
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(BadValue, match=message) as failure:
        kb.import_notes(tmp_path / name)
    assert failure.value.hint
    assert kb.stats().counts.documents == 0


def test_a_note_cannot_take_the_id_of_a_file(kb: KnowledgeBase, tmp_path: Path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# A file\n", encoding="utf-8")
    kb.add(tmp_path / "docs")
    (document,) = kb.documents()
    (tmp_path / "a.json").write_text(json.dumps({"id": document.id, "content": "x"}), encoding="utf-8")
    with pytest.raises(BadValue, match="id of a file"):
        kb.import_notes(tmp_path / "a.json")
    assert kb.get(document.id).text == "# A file"
