"""`kb backup`: a copy of everything, made while it is in use, that can be put back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from concord.core.errors import BackendDown, BadValue, CorruptStore, UsageError
from concord.index.notes import Note
from concord.knowledge import KnowledgeBase
from concord.types import Document
from support.kb_command import Kb
from support.kb_process import assert_sound
from support.recorders import write
from support.small_library import opened


@pytest.fixture
def base(tmp_path: Path) -> Iterator[KnowledgeBase]:
    write(tmp_path / "docs" / "rota.md", "# Rota\n\nThe penguin rota is on Mondays.\n")
    with opened(tmp_path) as made:
        made.add(tmp_path / "docs")
        made.note(Note("The emu is in the log."))
        yield made


def documents(path: Path) -> list[Document]:
    with opened(f"sqlite://{path}") as copy:
        return list(copy.documents())


def test_a_backup_of_a_store_in_use_holds_what_its_log_holds(base: KnowledgeBase, tmp_path: Path):
    assert (tmp_path / "store" / "default.db-wal").stat().st_size > 0
    done = base.backup(tmp_path / "backup.db")
    assert documents(tmp_path / "backup.db") == list(base.documents())
    assert (done.counts, done.size_bytes) == (base.stats().counts, (tmp_path / "backup.db").stat().st_size)
    assert_sound(tmp_path / "backup.db")
    with opened(f"sqlite://{tmp_path}/backup.db") as copy:
        assert copy.search("penguin rota").hits[0].citation == "docs/rota.md:1-3"
        assert copy.stats().pending == 0


def test_a_backup_holds_one_moment_although_others_write_meanwhile(base: KnowledgeBase, tmp_path: Path):
    before = list(base.documents())

    def write_meanwhile(stage: str, done: int, total: int | None) -> None:
        base.note(Note(f"A note at page {done}."))

    base.backup(tmp_path / "backup.db", progress=write_meanwhile)
    assert len(list(base.documents())) > len(before)
    assert documents(tmp_path / "backup.db") == before


def test_a_backup_is_for_its_owner_alone_and_leaves_nothing_else(base: KnowledgeBase, tmp_path: Path):
    (tmp_path / "backups").mkdir()
    base.backup(tmp_path / "backups" / "kb.db")
    assert [path.name for path in (tmp_path / "backups").iterdir()] == ["kb.db"]
    assert (tmp_path / "backups" / "kb.db").stat().st_mode & 0o777 == 0o600


def test_a_damaged_store_does_not_take_the_place_of_a_good_backup(tmp_path: Path, base: KnowledgeBase):
    for number in range(60):
        base.note(Note(f"Note {number}: " + "words that fill pages " * 40), embed=False)
    base.backup(tmp_path / "backup.db")
    good = documents(tmp_path / "backup.db")
    base.close()
    _damage(tmp_path / "store" / "default.db")
    with opened(tmp_path) as damaged, pytest.raises(CorruptStore, match="left as it is"):
        damaged.backup(tmp_path / "backup.db")
    assert documents(tmp_path / "backup.db") == good


def _damage(path: Path) -> None:
    """Overwrite the pages of the texts, which no start of a program reads."""
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "delete")  # the log is written back
    page = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'kb_chunks'").get
    size = connection.pragma("page_size")
    connection.close()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)


def test_nothing_else_is_overwritten(base: KnowledgeBase, tmp_path: Path):
    theirs = write(tmp_path / "thesis.txt", "years of work")
    for path, why in [
        (theirs, "is no copy of a store"),
        (tmp_path / "docs", "is a folder"),
        (tmp_path / "store" / "default.db", "is the store itself"),
    ]:
        with pytest.raises(BadValue, match=why):
            base.backup(path)
    assert theirs.read_text(encoding="utf-8") == "years of work"
    with opened(f"sqlite://{tmp_path}/other.db") as other:
        other.note(Note("Somebody writes here."))
        with pytest.raises(BadValue, match="is a store that is written to"):
            base.backup(tmp_path / "other.db")


def test_a_folder_that_is_not_there_is_named(base: KnowledgeBase, tmp_path: Path):
    with pytest.raises(BackendDown, match="cannot be written: No such file or directory"):
        base.backup(tmp_path / "nowhere" / "kb.db")


@pytest.mark.parametrize("scheme", ["json", "memory"])
def test_a_store_that_is_not_in_sqlite_says_what_to_do_instead(tmp_path: Path, scheme: str):
    with opened(f"{scheme}://{tmp_path}/store") as base, pytest.raises(UsageError) as refused:
        base.backup(tmp_path / "backup.db")
    assert "`kb migrate --to sqlite:///folder`" in (refused.value.hint or "")


def test_the_command_tells_what_was_copied(kb: Kb, tmp_path: Path):
    kb("note", "The emu is kept.")
    said = kb("backup", "kb.db")
    assert (said.status, said.out.startswith(f"path       {tmp_path / 'kb.db'}\n")) == (0, True)
    told = json.loads(kb("backup", "kb.db", "--json").out)
    assert (told["path"], told["documents"], told["vectors"]) == (str(tmp_path / "kb.db"), 1, 1)
    assert told["size_bytes"] == (tmp_path / "kb.db").stat().st_size
