"""One schema an organisation on PostgreSQL: what keeps organisations and knowledge bases apart."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from concord.core.errors import StoreError
from contract.stored import embed, faults, put, unit
from support.postgres_server import fresh_org

psycopg = pytest.importorskip("psycopg", reason="psycopg comes with the dev extra")
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
