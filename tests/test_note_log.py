"""The copies of notes beside a SQLite store: what is in them, and what `kb recover` makes of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from concord import KnowledgeBase, Note
from concord.core.errors import NotFound, UnknownName
from concord.store.sqlite.note_log import paths
from support.faulty_disk import FaultyDisk, disk_full
from support.kb_command import Kb
from support.recorders import write
from support.small_library import opened

PENGUIN, OSTRICH = "The penguin swims on Fridays.", "The ostrich runs on Mondays."


def beside(folder: Path) -> list[str]:
    """Return what the copies say."""
    return [Path(path).read_text(encoding="utf-8") for path in paths(str(folder / "default.db"))]


def kept(kb: KnowledgeBase) -> list[str]:
    return sorted(each.note.content for each in kb.notes())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A closed store of two notes."""
    with opened(f"sqlite://{tmp_path}/data") as kb:
        kb.note(Note(PENGUIN, tags=("zoo",), details={"day": "Friday"}))
        kb.note(Note(OSTRICH))
    return tmp_path / "data"


def test_what_a_note_said_leaves_the_copies_when_it_is_changed_or_deleted(folder: Path):
    assert all(PENGUIN in copy and OSTRICH in copy for copy in beside(folder))
    with opened(f"sqlite://{folder}") as kb:
        ids = {each.note.content: each.id for each in kb.notes()}
        kb.edit_note(ids[OSTRICH], content="It rests.")
        kb.remove_note(ids[PENGUIN])
    for copy in beside(folder):
        assert OSTRICH not in copy
        assert PENGUIN not in copy
        assert "It rests." in copy
    with opened(f"sqlite://{folder}") as kb:
        assert kb.recover().notes == 0
        kb.remove("notes", force=True)
    assert not any("It rests." in copy for copy in beside(folder))


KILLED = """
import os, sys
from concord.store.sqlite.note_log import NoteLog
from concord import KnowledgeBase, Note

keep = NoteLog.keep

def killed(log, connection):
    keep(log, connection)
    os.kill(os.getpid(), 9)

kb = KnowledgeBase.open(store__url=f"sqlite://{sys.argv[1]}", embed__provider="hashing")
NoteLog.keep = killed
kb.note(Note("The emu was on its way."))
"""


def test_a_note_that_a_killed_process_had_not_kept_yet_can_be_brought_back(folder: Path):
    done = subprocess.run([sys.executable, "-c", KILLED, str(folder)], check=False)
    assert done.returncode == -9
    assert all("emu" in copy for copy in beside(folder))
    with opened(f"sqlite://{folder}") as kb:
        assert kept(kb) == [OSTRICH, PENGUIN]
        (finding,) = (each for each in kb.doctor().findings if each.fault == "notes")
        assert "1 notes" in finding.message
        assert kb.recover().notes == 1
        assert kept(kb) == ["The emu was on its way.", OSTRICH, PENGUIN]


def test_a_note_that_could_not_be_kept_is_in_no_copy(folder: Path):
    disk = FaultyDisk("refusing")
    try:
        with opened(f"sqlite://{folder}?vfs=refusing") as kb:
            kb.sources()
            disk.fails(disk_full)
            with pytest.raises(Exception, match="full"):
                kb.note(Note("The emu came too late."))
            disk.fails(None)
            assert kept(kb) == [OSTRICH, PENGUIN]
    finally:
        disk.unregister()
    assert not any("emu" in copy for copy in beside(folder))


def test_an_interrupted_note_is_in_no_copy(folder: Path, monkeypatch: pytest.MonkeyPatch):
    written: list[int] = []

    def interrupted(file: int) -> None:
        written.append(file)
        if len(written) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with opened(f"sqlite://{folder}") as kb, pytest.raises(KeyboardInterrupt):
        kb.note(Note("The emu was stopped."))
    assert not any("emu" in copy for copy in beside(folder))


def test_a_note_that_is_deleted_while_a_copy_is_missing_leaves_the_other_too(folder: Path):
    os.unlink(paths(str(folder / "default.db"))[0])
    with opened(f"sqlite://{folder}") as kb:
        kb.remove_note(next(each.id for each in kb.notes() if each.note.content == PENGUIN))
        assert not any(PENGUIN in copy for copy in beside(folder))
        assert [each for each in kb.doctor().findings if each.fault == "notes"] == []


def test_a_line_end_that_is_damaged_costs_no_note(folder: Path):
    for path in map(Path, paths(str(folder / "default.db"))):
        path.write_bytes(path.read_bytes()[:-1].replace(b"\n", b"\0"))
    (folder / "default.db").write_bytes(b"damaged")
    with opened(f"sqlite://{folder}") as kb:
        assert kb.recover().notes == 2
        assert kept(kb) == [OSTRICH, PENGUIN]


def test_notes_of_after_a_backup_come_back_into_it_and_deleted_ones_do_not(folder: Path, tmp_path: Path):
    with opened(f"sqlite://{folder}") as kb:
        kb.backup(tmp_path / "backup.db")
        kb.note(Note("The emu came after the backup."))
    shutil.copy(tmp_path / "backup.db", folder / "default.db")
    with opened(f"sqlite://{folder}") as kb:
        (finding,) = (each for each in kb.doctor().findings if each.fault == "notes")
        assert "1 notes" in finding.message
        assert "recover" in finding.hint
        assert kb.recover().notes == 1
        assert kept(kb) == ["The emu came after the backup.", OSTRICH, PENGUIN]
        assert not [each for each in kb.doctor().findings if each.fault == "notes"]


def test_copies_that_are_gone_are_made_anew(folder: Path):
    for path in paths(str(folder / "default.db")):
        os.unlink(path)
    with opened(f"sqlite://{folder}") as kb:
        kb.doctor()
    assert all(PENGUIN in copy and OSTRICH in copy for copy in beside(folder))


def test_a_damaged_copy_is_found_and_written_anew(folder: Path):
    path = Path(paths(str(folder / "default.db"))[1])
    path.write_bytes(path.read_bytes().replace(b"penguin", b"pinguin"))
    with opened(f"sqlite://{folder}") as kb:
        assert [each.fault for each in kb.doctor().findings if each.fault == "notes"] == ["notes"]
        assert [each.fault for each in kb.doctor(fix=True).fixed] == ["notes"]
    assert all(PENGUIN in copy for copy in beside(folder))


def test_a_store_that_is_no_database_any_more_is_moved_away_and_its_notes_are_in_a_new_one(
    kb: Kb, tmp_path: Path
):
    write(tmp_path / "docs" / "heron.md", "# Heron\n\nThe heron waits.\n")
    kb("add", tmp_path / "docs", "--tags", "zoo")
    kb("note", PENGUIN)
    (file,) = (tmp_path / "home").rglob("default.db")
    data = file.read_bytes()
    file.write_bytes(bytes(100) + data[100:])
    assert "`kb recover`" in kb("search", "heron").err
    ran = kb("recover")
    assert (ran.status, ran.out.startswith("notes brought back  1\n")) == (0, True), ran
    (moved,) = file.parent.glob("default.db-damaged-*")
    assert moved.read_bytes()[100:] == data[100:]
    kb("sync")
    assert "penguin" in kb("search", "penguin").out
    assert "docs/heron.md" in kb("search", "heron", "--tags", "zoo").out
    assert kb("doctor").out == ""


def test_where_nothing_of_a_store_is_left_nothing_is_moved(kb: Kb, tmp_path: Path):
    file = tmp_path / "theirs.db"
    file.write_bytes(b"This is a text, not a database. " * 300)
    ran = kb("--store", f"sqlite://{file}", "recover")
    assert (ran.status, "nothing of a store" in ran.err) == (2, True)
    assert [path.name for path in tmp_path.glob("theirs*")] == ["theirs.db"]


def test_other_stores_say_that_they_cannot_do_that(tmp_path: Path):
    with opened("memory://") as kb, pytest.raises(UnknownName, match="brought back"):
        kb.recover()


def test_nothing_at_all_is_not_damaged(tmp_path: Path):
    with opened(tmp_path) as kb:
        assert kb.recover().notes == 0
        with pytest.raises(NotFound):
            kb.get("notes/penguin")
