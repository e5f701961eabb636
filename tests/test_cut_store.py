"""A SQLite store whose file was cut to nothing: refused and left as it is, never taken for a new one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from concord.core.errors import CorruptStore
from concord.store.sqlite.store import SQLiteStore
from contract.stored import put
from support.kb_command import Kb
from support.recorders import write

LOG = b"what was written last"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A store of one document that nobody has open."""
    fill(tmp_path)
    return tmp_path / "default.db"


def fill(folder: Path, options: str = "") -> None:
    store = SQLiteStore.open(f"sqlite://{folder}{options}", "default")
    try:
        put(store, "docs/heron.md", "A heron stands in the water.")
    finally:
        store.close()


def documents(folder: Path) -> int:
    store = SQLiteStore.open(f"sqlite://{folder}", "default")
    try:
        return store.catalog.count().documents
    finally:
        store.close()


def test_a_store_that_was_cut_is_refused_and_its_log_is_kept(file: Path):
    os.truncate(file, 0)
    log = file.with_name("default.db-wal")
    log.write_bytes(LOG)
    for use in (documents, fill):
        with pytest.raises(CorruptStore, match="is empty, and held a store before") as refused:
            use(file.parent)
        assert "restore it from a backup" in str(refused.value.hint)
    assert (file.read_bytes(), log.read_bytes()) == (b"", LOG)


def test_a_store_that_was_deleted_is_begun_anew(file: Path):
    file.unlink()
    assert documents(file.parent) == 0
    fill(file.parent)
    assert documents(file.parent) == 1
    os.truncate(file, 0)
    with pytest.raises(CorruptStore, match="is empty"):
        documents(file.parent)


def test_commands_say_what_to_do_about_it(kb: Kb, tmp_path: Path):
    kb("add", write(tmp_path / "docs" / "a.md", "# A\n\nThe heron waits.\n").parent)
    (file,) = (tmp_path / "home").rglob("default.db")
    os.truncate(file, 0)
    for args in (("search", "heron"), ("sync",), ("note", "text"), ("stats",), ("list",), ("doctor",)):
        ran = kb(*args)
        assert ran.status != 0, args
        assert "is empty, and held a store before" in ran.out + ran.err
        assert "restore it from a backup" in ran.out + ran.err
    assert file.read_bytes() == b""
