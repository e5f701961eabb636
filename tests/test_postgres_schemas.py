"""One schema an organisation on PostgreSQL: what keeps organisations and knowledge bases apart."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from concord.core.errors import StoreError
from contract.stored import EVERYTHING, IDENTITY, active_model, embed, faults, put, unit, vectors_of
from support.postgres_server import fresh_org, server_url

psycopg = pytest.importorskip("psycopg", reason="psycopg comes with the dev extra")
from concord.store.postgres.connections import schema_of  # noqa: E402
from concord.store.postgres.store import PostgresStore  # noqa: E402

TABLES = "SELECT format('%%I.%%I', schemaname, tablename) FROM pg_tables WHERE schemaname = %s"


@pytest.fixture
def team(database: str, administrator: Any) -> Iterator[str]:
    """A role that may make schemas in a database, and owns nothing there yet."""
    role = fresh_org().replace("-", "_")
    administrator.execute(f"CREATE ROLE {role} LOGIN")
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            f"CREATE EXTENSION vector; GRANT CREATE ON DATABASE {connection.info.dbname} TO {role}"
        )
    yield database.replace("postgres:@", f"{role}:@")
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f"DROP OWNED BY {role} CASCADE")
    administrator.execute(f"DROP ROLE {role}")


@pytest.mark.promise("design.organisations-apart")
def test_a_role_that_may_use_one_schema_cannot_read_another(database: str, team: str):
    with closing(PostgresStore.open(database, "theirs")) as theirs:
        (a,) = put(theirs, "docs/a.md", "secret text")
        embed(theirs, [(a, unit(1, 0, 0, 0))])
    with closing(PostgresStore.open(team, "own")) as own:
        put(own, "docs/a.md", "own text")
        assert own.words.frequencies(["secret", "own"]) == (1, {"secret": 0, "own": 1})
        assert faults(own) == []
    with psycopg.connect(team, autocommit=True) as connection:
        tables = [name for (name,) in connection.execute(TABLES, ("kb_theirs",))]
        assert "kb_theirs.kb_chunks" in tables
        for table in tables:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(f"SELECT FROM {table}")
        assert connection.execute("SELECT content FROM kb_own.kb_chunks").fetchall() == [("own text",)]
    with pytest.raises(StoreError):
        PostgresStore.open(team, "theirs").catalog.snapshot()


@pytest.mark.promise("design.organisations-apart")
def test_two_bases_that_only_a_search_path_tells_apart_do_not_share_a_schema(database: str):
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector; CREATE SCHEMA first; CREATE SCHEMA second")
    first, second = (f"{database}&options=-c%20search_path%3D{name},public" for name in ("first", "second"))
    with closing(PostgresStore.open(first, "default")) as store:
        put(store, "docs/a.md", "of the first")
    for other in (second, database):
        with pytest.raises(StoreError, match="made in the schema first") as refusal:
            PostgresStore.open(other, "default")
        assert "another organisation" in (refusal.value.hint or "")
    with closing(PostgresStore.open(first, "default")) as store:
        assert store.catalog.count().documents == 1


def test_a_damaged_vector_is_not_found_and_changes_nobody_elses_rank():
    org = fresh_org()
    with closing(PostgresStore.open(server_url(), org)) as store:
        chunks = put(store, "docs/a.md", *(f"text {n}" for n in range(4)))
        embed(store, [(chunk, unit(1, n, 0, 0)) for n, chunk in enumerate(chunks)])
        query = unit(1, 0.1, 0, 0)
        before = vectors_of(store).search(query, EVERYTHING, 4)
        with psycopg.connect(server_url(), autocommit=True) as connection:
            connection.execute(
                f"UPDATE \"{schema_of(org)}\".kb_vectors_1 SET embedding = '[1,0.1,0,0.001]' WHERE id = 2"
            )
        assert vectors_of(store).search(query, EVERYTHING, 3) == [before[0], *before[2:]]
        assert [finding.fault for finding in faults(store)] == ["damaged-vectors"]
        store.repair(faults(store))
        assert [each.chunk_id for each in vectors_of(store).pending(0, 9)] == [chunks[1]]
        assert active_model(store) == IDENTITY
