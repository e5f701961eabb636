"""A SQLite store that is restored, deleted or replaced beneath a process that has it open."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from concord.core.errors import BackendDown, BadValue, CorruptStore
from concord.index.notes import Note
from concord.knowledge import KnowledgeBase
from support.recorders import write
from support.small_library import opened

OSTRICH, PENGUIN = "The ostrich runs on Mondays.", "The penguin swims on Fridays."
SEARCHES = 10  # more than it takes until a process keeps the vectors in memory


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def server(folder: Path) -> Iterator[KnowledgeBase]:
    """A knowledge base that stays open, in use by searches and writes."""
    with opened(f"sqlite://{folder}") as kb:
        kb.note(Note(OSTRICH))
        kb.note(Note(PENGUIN))
        for _ in range(SEARCHES):
            kb.search("ostrich")
        yield kb


def titles(kb: KnowledgeBase) -> list[str]:
    return sorted(document.title for document in kb.documents())


def restore(backup: Path, folder: Path) -> None:
    """Do what a user does: put a copy in the place of the whole folder."""
    shutil.rmtree(folder)
    folder.mkdir()
    shutil.copy(backup, folder / "default.db")


def test_what_is_kept_after_a_restore_is_in_the_restored_store(
    server: KnowledgeBase, folder: Path, tmp_path: Path
):
    server.backup(tmp_path / "backup.db")
    server.note(Note("The emu came after the backup."))
    restore(tmp_path / "backup.db", folder)
    server.note(Note("The cassowary came after the restore."))
    expected = ["The cassowary came after the restore.", OSTRICH, PENGUIN]
    assert titles(server) == expected
    with opened(f"sqlite://{folder}") as other:
        assert titles(other) == expected


def test_nothing_is_kept_or_found_in_a_store_that_was_deleted(server: KnowledgeBase, folder: Path):
    shutil.rmtree(folder)
    with pytest.raises(BackendDown, match="is gone: it was moved or deleted while it was open"):
        server.note(Note("The emu came too late."))
    with pytest.raises(BackendDown, match="is gone"):
        server.stats()
    assert not folder.exists()


def test_a_sync_whose_store_is_deleted_meanwhile_says_so(server: KnowledgeBase, folder: Path, tmp_path: Path):
    write(tmp_path / "docs" / "rota.md", "# Rota\n\nThe penguin rota is on Mondays.\n")
    with pytest.raises(BackendDown, match="is gone"):
        server.add(
            tmp_path / "docs", progress=lambda stage, done, total: shutil.rmtree(folder, ignore_errors=True)
        )


def test_what_is_no_store_of_ours_is_refused_in_its_place(
    server: KnowledgeBase, folder: Path, tmp_path: Path
):
    with opened(f"sqlite://{tmp_path}/other", org="team") as other:
        other.note(Note(PENGUIN))
        other.backup(tmp_path / "team.db")
    connection = apsw.Connection(str(tmp_path / "foreign.db"))
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    restore(tmp_path / "team.db", folder)
    with pytest.raises(BadValue, match="belongs to the organisation 'team'"):
        server.note(Note("The emu came too late."))
    restore(tmp_path / "foreign.db", folder)
    with pytest.raises(CorruptStore, match="another program"):
        server.note(Note("The emu came too late."))
