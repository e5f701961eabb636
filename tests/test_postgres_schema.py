"""Opening PostgreSQL: what is made and migrated, what is refused, and how text and globs are kept."""

from __future__ import annotations

import random
import re
import shlex
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from concord.cli.main import main
from concord.core.errors import BackendDown, BadValue, CorruptStore, SchemaTooNew, StoreError
from concord.store.globs import glob_matches
from concord.types import Feedback, Word, silent
from contract.stored import EVERYTHING, embed, faults, put, source, unit
from support.postgres_server import server_url
from support.recorders import write

psycopg = pytest.importorskip("psycopg", reason="psycopg comes with the dev extra")
from concord.backends.postgres import migrations  # noqa: E402
from concord.backends.postgres.filters import _pattern  # noqa: E402
from concord.backends.postgres.rows import loaded, stored  # noqa: E402
from concord.backends.postgres.store import PostgresStore  # noqa: E402

# A document of one chunk, as the first version of the program wrote it.
AS_FIRST_WRITTEN = """
INSERT INTO kb_documents SELECT key, 'docs/a.md', 'docs', 'docs/a.md', 'markdown', '', '{}', '{}', 'f', 'c',
    4, 0, NULL, 0, '{}' FROM kb_orgs;
INSERT INTO kb_chunks SELECT key, 1, 'docs/a.md', 0, 0, 4, 1, 1, 7, 1, '[]', 'text', 'text:2B' FROM kb_orgs;
INSERT INTO kb_pending SELECT key, 1, 1 FROM kb_orgs;
INSERT INTO kb_postings SELECT key, 1, 'text', 1, '{1}', ARRAY[(1::bigint << 32) + (1 << 8)] FROM kb_orgs;
INSERT INTO kb_segments SELECT key, 1, 1 FROM kb_orgs;
UPDATE kb_orgs SET chunks = 1, tokens = 1, last_chunk = 1, generation = generation + 1"""

DOCS = Path(__file__).parent.parent / "docs"


def test_a_newer_schema_is_refused_with_what_to_do(database: str):
    PostgresStore.open(database, "default").close()
    with psycopg.connect(database) as connection:
        connection.execute("UPDATE kb_schema SET version = version + 1")
    with pytest.raises(SchemaTooNew) as refusal:
        PostgresStore.open(database, "default")
    assert str(migrations.VERSION + 1) in refusal.value.message
    assert "upgrade" in (refusal.value.hint or "")


def test_tables_of_another_program_are_left_alone(database: str):
    with psycopg.connect(database) as connection:
        connection.execute("CREATE TABLE kb_chunks (whatever text)")
    with pytest.raises(CorruptStore):
        PostgresStore.open(database, "default")


def test_a_migration_that_fails_leaves_nothing_behind(database: str, monkeypatch: pytest.MonkeyPatch):
    def fails(connection: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(migrations, "STEPS", (*migrations.STEPS, fails))
    monkeypatch.setattr(migrations, "VERSION", migrations.VERSION + 1)
    with pytest.raises(KeyboardInterrupt):
        PostgresStore.open(database, "default")
    monkeypatch.undo()
    with closing(PostgresStore.open(database, "default")) as made:
        assert put(made, "docs/a.md", "text") == [1]


def test_a_database_of_the_first_schema_is_brought_up_to_date_with_all_that_it_holds(
    database: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(migrations, "STEPS", migrations.STEPS[:1])
    monkeypatch.setattr(migrations, "VERSION", 1)
    a = 1
    with closing(PostgresStore.open(database, "default")) as old, psycopg.connect(database) as connection:
        old.catalog.put_source(source("docs"))
        connection.execute(AS_FIRST_WRITTEN)
    monkeypatch.undo()
    with closing(PostgresStore.open(database, "default")) as made:
        assert [found.chunk_id for found in made.lexical.search(Word("text"), EVERYTHING, 9)] == [a]
        assert faults(made) == []
        assert made.glance().types is None
        made.tend(silent)
        assert made.glance().types == {"markdown"}
        assert [chunk.pages for chunk in made.catalog.chunks_of("docs/a.md")] == [(7, 7)]
        made.ledger.move("http://elsewhere")
        made.catalog.delete_documents(["docs/a.md"])
        assert [chunk_id for _, chunk_id in made.ledger.unsettled(9)] == [a]


def test_a_database_from_before_names_opens_at_once_and_has_them_once_it_is_indexed_anew(
    database: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(migrations, "STEPS", migrations.STEPS[:10])
    monkeypatch.setattr(migrations, "VERSION", 10)
    with closing(PostgresStore.open(database, "default")) as old, psycopg.connect(database) as connection:
        old.catalog.put_source(source("docs"))
        connection.execute(AS_FIRST_WRITTEN)
        connection.execute("UPDATE kb_chunks SET content = '--text'")
    monkeypatch.undo()
    with closing(PostgresStore.open(database, "default")) as made:
        (chunk,) = made.catalog.chunks_of("docs/a.md")
        assert (chunk.start_column, chunk.end_column) == (None, None)
        assert made.lexical.search_names(["--text"], EVERYTHING, 9) == []
        assert made.catalog.reindex(["docs/a.md"]) == 1
        assert [found.chunk_id for found in made.lexical.search_names(["--text"], EVERYTHING, 9)] == [1]
        assert made.catalog.reindex(["docs/a.md"]) == 0
        assert faults(made) == []


def test_a_path_that_no_index_has_room_for_is_named(database: str):
    chance = random.Random(5)
    path = "docs/deep-" + "/".join(f"{chance.getrandbits(800):x}" for _ in range(20))  # not to be compressed
    with closing(PostgresStore.open(database, "default")) as made:
        put(made, "docs/a.md", "text")
        with pytest.raises(BadValue, match="docs/deep-") as refusal:
            put(made, path, "text")
        assert str(len(path)) in refusal.value.message
        assert refusal.value.hint


def test_opinions_are_still_there_and_still_one_a_query_after_a_migration(
    database: str, monkeypatch: pytest.MonkeyPatch
):
    given = Feedback("docs/a.md", "docs/a.md:1-1", "good", "login", 1.0)
    monkeypatch.setattr(migrations, "STEPS", migrations.STEPS[:7])
    monkeypatch.setattr(migrations, "VERSION", 7)
    with closing(PostgresStore.open(database, "default")) as old:
        assert old.catalog.sources() == []
    with psycopg.connect(database) as connection:
        values = "'login', 'docs/a.md', 'docs/a.md:1-1', 'good', 1"
        connection.execute(f"INSERT INTO kb_feedback SELECT key, {values} FROM kb_orgs")
    monkeypatch.undo()
    with closing(PostgresStore.open(database, "default")) as made:
        assert made.journal.feedback() == [given]
        made.journal.record_feedback(replace(given, opinion="bad"))
        assert made.journal.feedback() == [replace(given, opinion="bad")]


def test_a_type_is_noted_whoever_writes_the_document(database: str):
    """Also by a process of an older version that is still running, which knows nothing of it."""
    with closing(PostgresStore.open(database, "default")) as made, psycopg.connect(database) as connection:
        put(made, "docs/a.md", "text")
        connection.execute("""
            INSERT INTO kb_documents SELECT org, id || '2', source, path || '.py', 'code', title, tags,
                details, file_hash, content_hash, size, mtime_ns, NULL, indexed_at, fields
            FROM kb_documents""")
        connection.commit()
        assert made.glance().types == {"markdown", "code"}


def test_several_may_open_a_new_database_at_once(database: str):
    failures: list[BaseException] = []

    def work() -> None:
        try:
            PostgresStore.open(database, "default").close()
        except BaseException as fault:
            failures.append(fault)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []


@pytest.mark.parametrize("url", ["postgresql://h/x?nonsense=1", "postgresql://[h/x"])
def test_a_url_that_means_nothing_is_refused(url: str):
    with pytest.raises(BadValue):
        PostgresStore.open(url, "default")


@pytest.mark.parametrize("org", ["", "a/b", "x" * 65, "a'b"])
def test_an_organisation_has_a_name_that_every_backend_can_keep(org: str):
    with pytest.raises(BadValue):
        PostgresStore.open(server_url(), org)


@given(st.text(alphabet="a\0\x1be0é"))
def test_any_text_comes_back_as_it_was_stored(text: str):
    assert loaded(stored(text)) == text
    assert "\0" not in stored(text)


GLOBS = st.lists(
    st.sampled_from(["a", "b", "/", "*", "**", "**/", "?", ".", "[", "\\", "+"]), max_size=7
).map("".join)


@given(st.lists(st.tuples(GLOBS, st.text(alphabet="ab/.[\\+", max_size=6)), min_size=20, max_size=40))
@settings(max_examples=20)
def test_a_glob_means_the_same_to_postgresql(cases: list[tuple[str, str]]):
    with psycopg.connect(server_url()) as connection:
        statement = "SELECT path ~ pattern FROM unnest(%s::text[], %s::text[]) AS given (path, pattern)"
        values = [path for _, path in cases], [_pattern(glob) for glob, _ in cases]
        found = [matched for (matched,) in connection.execute(statement, values)]
    assert found == [glob_matches(glob, path) for glob, path in cases]


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
        with pytest.raises(StoreError, match="apart") as refusal:
            PostgresStore.open(owned, "default")
        assert "search_path" in (refusal.value.hint or "")
        assert connection.execute("SELECT to_regclass('kb_schema')").fetchone() == (None,)
        connection.execute(f"GRANT USAGE ON SCHEMA apart TO {name}")
    administrator.execute(f'ALTER ROLE {name} SET search_path = "$user", public, apart')
    with closing(PostgresStore.open(owned, "default")) as made:
        (a,) = put(made, "docs/a.md", "text")
        embed(made, [(a, unit(1, 0, 0, 0))])
        assert made.vectors.fetch([a]) == {a: unit(1, 0, 0, 0)}


def test_a_pgvector_that_is_too_old_is_refused(database: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(migrations, "OLDEST_PGVECTOR", (99, 0))
    with pytest.raises(StoreError) as refusal:
        PostgresStore.open(database, "default")
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
