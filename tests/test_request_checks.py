"""What the library is asked with: anything may be passed, and what is no request is refused in words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from concord import KBError, KnowledgeBase, Note, Request
from concord.core.errors import BadValue
from support.small_library import library, titles

WRONG: dict[str, list[Any]] = {
    "mode": [5, ["auto"]],
    "top": ["3", 2.5, True, float("nan")],
    "threshold": ["0.1", True],
    "tags": [5, [5], [None], {"ops": 1, 2: 3}],
    "type": [5],
    "source": [5, b"docs"],
    "path": [5, b"docs/**", ["docs/**"]],
    "since": ["yesterday", True, float("nan"), 10**400],
    "until": ["2026-01-01", float("nan")],
    "include_superseded": ["no", 1],
    "fusion": [5],
    "ef_search": ["8", 0, -1],
    "deadline_ms": ["100", True],
    "max_tokens": ["100", 1.5],
    "min_generation": ["1"],
    "explain": ["yes"],
}


@pytest.fixture(scope="module")
def kb() -> KnowledgeBase:
    return library()


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in WRONG.items() for value in values], ids=str
)
def test_an_option_of_the_wrong_kind_is_refused_with_its_name_and_a_hint(
    kb: KnowledgeBase, name: str, value: Any
):
    for asked in (kb.search, kb.search_progressive, _explained(kb)):
        with pytest.raises(BadValue) as fault:
            asked("login", **{name: value})
        assert name in fault.value.message
        assert fault.value.hint


def _explained(kb: KnowledgeBase) -> Callable[..., Any]:
    return lambda text, **options: kb.explain(text, next(kb.documents()).id, **options)


@pytest.mark.parametrize("text", [None, 5, b"login", ["login"]])
def test_a_query_that_is_no_text_is_refused(kb: KnowledgeBase, text: Any):
    with pytest.raises(BadValue, match="the query cannot be"):
        kb.search(text)
    with pytest.raises(BadValue, match="the query cannot be"):
        kb.ask(Request(text))


def test_an_option_that_does_not_exist_is_answered_with_the_nearest(kb: KnowledgeBase):
    with pytest.raises(BadValue, match="no option 'treshold'") as fault:
        kb.search("login", treshold=0.1)
    assert fault.value.hint == "did you mean threshold?"


@pytest.mark.parametrize("tags", [5, [5]])
def test_tags_that_are_no_text_are_refused_wherever_they_are_given(tmp_path: Path, tags: Any):
    kb = library({})
    note = kb.note(Note("The password is rotated."))
    attempts: list[Callable[[], object]] = [
        lambda: kb.add(tmp_path, tags=tags),
        lambda: kb.note(Note("Another.", tags=tags)),
        lambda: kb.edit_note(note.id, tags=tags),
    ]
    for attempt in attempts:
        with pytest.raises(KBError, match="tags"):
            attempt()


def test_a_path_and_a_source_may_be_given_as_paths(tmp_path: Path):
    kb = library({})
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# Pool\n\nTen connections.\n", encoding="utf-8")
    kb.add(tmp_path / "docs")
    assert titles(kb.search("connections", path=tmp_path / "docs")) == ["Pool"]
    assert titles(kb.search("connections", source=tmp_path / "docs")) == ["Pool"]
