"""Opening PostgreSQL: what is made and migrated, what is refused, and how text and globs are kept."""

from __future__ import annotations

import re
import shlex
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from concord.cli.main import main
from concord.core.errors import BackendDown, BadValue, SchemaTooNew, StoreError
from contract.stored import embed, put, unit, vectors_of
from support.postgres_server import server_url
from support.recorders import write
from support.stores import postgres_store

psycopg = pytest.importorskip("psycopg", reason="psycopg comes with the dev extra")
from concord.store.postgres import migrations  # noqa: E402
from concord.store.postgres.store import PostgresStore  # noqa: E402

DOCS = Path(__file__).parent.parent / "docs"

store = pytest.fixture(postgres_store)


def test_a_newer_schema_is_refused_with_what_to_do(database: str):
    with closing(PostgresStore.open(database, "default")) as made:
        assert made.catalog.snapshot().sources == []
    with psycopg.connect(database) as connection:
        connection.execute("UPDATE kb_default.kb_meta SET value = value + 1 WHERE key = 'schema'")
    with pytest.raises(SchemaTooNew) as refusal:
        PostgresStore.open(database, "default")
    assert str(migrations.VERSION + 1) in refusal.value.message
    assert "upgrade" in (refusal.value.hint or "")


def test_several_may_open_a_new_database_at_once(database: str):
    failures: list[BaseException] = []

    def work() -> None:
        try:
            with closing(PostgresStore.open(database, "default")) as made:
                assert made.catalog.snapshot().sources == []
        except BaseException as fault:
            failures.append(fault)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []


@pytest.mark.parametrize("org", ["", "a/b", "x" * 65, "a'b"])
def test_an_organisation_has_a_name_that_every_backend_can_keep(org: str):
    with pytest.raises(BadValue):
        PostgresStore.open(server_url(), org)


def test_a_password_is_in_no_message():
    with pytest.raises(BackendDown) as refusal:
        PostgresStore.open("postgresql://someone:hunter2@localhost:1/base", "default")
    assert "localhost:1" in refusal.value.message
    assert refusal.value.hint
    assert "hunter2" not in f"{refusal.value.message} {refusal.value.hint}"


def test_a_pgvector_where_the_role_does_not_look_is_refused_before_anything_is_made(
    owned: str, administrator: Any
):
    name = psycopg.conninfo.conninfo_to_dict(owned)["user"]
    with psycopg.connect(owned.replace(f"{name}:@", "postgres:@"), autocommit=True) as connection:
        connection.execute("DROP EXTENSION vector; CREATE SCHEMA apart; CREATE EXTENSION vector SCHEMA apart")
        with pytest.raises(StoreError, match="does not see it") as refusal:
            PostgresStore.open(owned, "default").catalog.snapshot()
        assert "search_path" in (refusal.value.hint or "")
        assert connection.execute("SELECT to_regclass('kb_default.kb_meta')").fetchone() == (None,)
        connection.execute(f"GRANT USAGE ON SCHEMA apart TO {name}")
    administrator.execute(f'ALTER ROLE {name} SET search_path = "$user", public, apart')
    with closing(PostgresStore.open(owned, "default")) as made:
        (a,) = put(made, "docs/a.md", "text")
        embed(made, [(a, unit(1, 0, 0, 0))])
        assert vectors_of(made).fetch([a]) == {a: unit(1, 0, 0, 0)}


def test_a_pgvector_that_is_too_old_is_refused(database: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(migrations, "OLDEST_PGVECTOR", (99, 0))
    with pytest.raises(StoreError) as refusal:
        PostgresStore.open(database, "default").catalog.snapshot()
    assert "99.0" in refusal.value.message
    assert "ALTER EXTENSION" in (refusal.value.hint or "")


def test_the_commands_of_the_manual_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], database: str
):
    monkeypatch.chdir(tmp_path)
    for name, value in (
        ("HOME", str(tmp_path / "home")),
        ("EMBED_PROVIDER", "hashing"),
        ("STORE_URL", database),
    ):
        monkeypatch.setenv(f"KB_{name}", value)
    write(tmp_path / "docs" / "login.md", "# Login\n\nHow login works: by password.\n")
    page = (DOCS / "postgresql.md").read_text(encoding="utf-8")
    commands = re.findall(r"^\$ kb (.*)$", page, re.MULTILINE)
    assert len(commands) >= 5
    for command in commands:
        assert main(shlex.split(command)) == 0, capsys.readouterr().err
    assert "docs/login.md" in capsys.readouterr().out
