"""Sources: what they are called, what their citations begin with, and what removing one leaves behind."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from concord.core import plugins
from concord.core.arguments import Search
from concord.core.errors import BackendDown, BadValue, NotFound, UsageError
from concord.index.sources import notes_source, register
from concord.knowledge import KnowledgeBase
from concord.operations import OPERATIONS
from concord.store.json_file import MemoryStore
from concord.types import Counts, silent
from support.recorders import FrailStore, write
from support.small_library import empty, opened

kb = pytest.fixture(params=["memory", "sqlite"])(empty)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    write(tmp_path / "docs" / "auth.md", "# Auth\n\nTokens are checked at the door.\n")
    write(tmp_path / "docs" / "ops" / "deploy.md", "# Deploy\n\nDeploy with care, tokens in hand.\n")
    return tmp_path / "docs"


def citations(kb: KnowledgeBase, text: str, **options: Any) -> set[str]:
    return {hit.citation for hit in kb.search(text, mode="fts5", **options).hits}


def test_an_empty_path_is_not_the_folder_where_one_happens_to_be(kb: KnowledgeBase):
    with pytest.raises(NotFound, match="empty path"):
        kb.add("")
    assert kb.sources() == []


def test_what_a_source_is_about_stays_until_something_else_is_said(kb: KnowledgeBase, docs: Path):
    for about, kept in (
        (" How we\nwork ", "How we work"),
        (None, "How we work"),
        ("Rules", "Rules"),
        ("", ""),
    ):
        kb.add(docs, about=about)
        assert kb.source("docs").source.about == kept
    with pytest.raises(BadValue, match="301 characters"):
        kb.add(docs, about="x" * 301)


@pytest.mark.promise("A.search.citations")
def test_two_folders_of_one_name_have_names_and_citations_of_their_own(kb: KnowledgeBase, tmp_path: Path):
    for project in ("blue", "red"):
        write(tmp_path / project / "docs" / "a.md", f"# A\n\nThe {project} page.\n")
        kb.add(tmp_path / project / "docs")
    assert {(s.source.name, s.source.prefix) for s in kb.sources()} == {
        ("docs", "docs"),
        ("red/docs", "red/docs"),
    }
    assert citations(kb, "page") == {"docs/a.md:1-3", "red/docs/a.md:1-3"}
    assert "blue" in kb.get("docs/a.md:1-3").text
    assert "red" in kb.get("red/docs/a.md:1-3").text


def test_a_name_can_be_given_and_must_be_free(kb: KnowledgeBase, docs: Path, tmp_path: Path):
    assert kb.add(docs, name="Project Docs").source.name == "Project Docs"
    write(tmp_path / "more" / "a.md", "# A\n")
    with pytest.raises(BadValue, match="Project Docs"):
        kb.add(tmp_path / "more", name="Project Docs")
    assert len(kb.sources()) == 1


@pytest.mark.parametrize(
    ("path", "options"), [("~/.ssh", {}), ("docs/.env", {}), ("docs", {"patterns": ["!"]}), ("pipe", {})]
)
def test_what_may_not_be_indexed_is_refused_and_leaves_no_source(
    kb: KnowledgeBase,
    docs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    options: dict[str, Any],
):
    monkeypatch.setenv("HOME", str(tmp_path))
    write(tmp_path / ".ssh" / "id_rsa", "a key")
    write(docs / ".env", "SECRET=1")
    os.mkfifo(tmp_path / "pipe")
    given = path if path.startswith("~") else tmp_path / path
    with pytest.raises(UsageError) as failure:
        kb.add(given, **options)
    assert failure.value.hint
    assert kb.sources() == []
    assert kb.sync() == []


@pytest.mark.parametrize(
    "path", ["nowhere", "docs/nothing.md", "loop", "docs/auth.md/below", "x" * 5000, "a\0b", "\ud800"]
)
def test_a_path_that_is_not_there_is_an_error_with_a_hint(
    kb: KnowledgeBase, docs: Path, tmp_path: Path, path: str
):
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(NotFound) as failure:
        kb.add(tmp_path / path)
    assert failure.value.hint
    assert kb.sources() == []


def test_whoever_adds_the_same_folder_at_the_same_time_gets_the_same_source(docs: Path):
    catalog = MemoryStore().catalog
    barrier = threading.Barrier(8)
    ids: list[str] = []

    def add() -> None:
        barrier.wait(10)
        ids.append(register(docs, catalog).id)
        ids.append(notes_source(catalog).id)

    threads = [threading.Thread(target=add) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(ids) == 16
    assert {source.id for source in catalog.snapshot().sources} == set(ids)
    assert [source.name for source in catalog.snapshot().sources] == ["docs", "notes"]


def test_a_new_folder_is_indexed_and_a_changed_one_brought_up_to_date(kb: KnowledgeBase, docs: Path):
    scope = kb.ensure(docs)
    assert scope.path is None
    write(docs / "new.md", "# New\n\nnew tokens\n")
    kb.ensure(docs)
    assert len(citations(kb, "tokens", source=scope.source)) == 3


def test_a_search_in_a_folder_does_not_wait_for_another_sync_of_it(tmp_path: Path, docs: Path):
    with opened(tmp_path / "home") as kb:
        scope = kb.ensure(docs)
        with kb.store.lock(scope.source, "syncing this source", wait_s=0):  # as who embeds what it has stored
            assert kb.ensure(docs / "ops").source == scope.source
            found = OPERATIONS["search"].run(kb, Search("tokens", within=str(docs)), silent)
        assert found["returned"] == 2
        assert "may be missing: another process is syncing this source" in found["note"]


def test_a_search_in_a_folder_waits_for_who_indexes_it_for_the_first_time(tmp_path: Path, docs: Path):
    with opened(tmp_path / "home") as kb:
        source = register(docs, kb.store.catalog)
        with kb.store.lock(source.id, "syncing this source", wait_s=0):
            search = threading.Thread(target=kb.ensure, args=[docs])
            search.start()
            search.join(0.3)
            assert search.is_alive()
        search.join(30)
        assert len(citations(kb, "tokens", source=source.id)) == 2


@pytest.mark.promise("A.search.in-path")
@pytest.mark.parametrize(
    "held",
    [None, b"", b"\x7fELF\x02\x01\x01\x00" + bytes(range(256))],
    ids=["nothing", "an empty file", "a program"],
)
def test_a_folder_without_text_is_searched_within_its_source_which_finds_what_comes_later(
    kb: KnowledgeBase, docs: Path, held: bytes | None
):
    kb.add(docs)
    (docs / "later").mkdir()
    if held is not None:
        write(docs / "later" / "program", held)
    scope = kb.ensure(docs / "later")
    assert citations(kb, "tokens", source=scope.source, path=scope.path) == set()
    write(docs / "later" / "new.md", "# New\n\nnew tokens\n")
    assert kb.ensure(docs / "later") == scope
    assert citations(kb, "tokens", source=scope.source, path=scope.path) == {"docs/later/new.md:1-3"}
    assert [summary.source.name for summary in kb.sources()] == ["docs"]


@pytest.mark.promise("000.remove.order")
def test_a_vector_store_that_is_down_leaves_everything_whole_and_the_removal_can_be_tried_again(
    docs: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(plugins.TABLES["backends"], "frail", "support.recorders:FrailStore")
    with KnowledgeBase.open(store__url="frail://", embed__provider="hashing") as kb:
        kb.add(docs)
        whole = kb.stats()
        store = FrailStore.last
        store.frail.is_down = True
        with pytest.raises(BackendDown):
            kb.remove("docs")
        store.frail.is_down = False
        assert kb.stats() == whole
        assert citations(kb, "tokens") == {"docs/auth.md:1-3", "docs/ops/deploy.md:1-3"}
        assert kb.get("docs/auth.md").document.title == "Auth"
        removal = kb.remove("docs")
        assert (removal.documents_deleted, removal.vectors_deleted) == (2, 2)
        assert kb.stats().counts == Counts(0, 0, 0, 0)
