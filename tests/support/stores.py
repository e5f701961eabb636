"""Stores for tests of one engine, made a fixture where they are wanted: `pytest.fixture(sqlite_store)`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from concord.store.sqlite.store import SQLiteStore
from support.postgres_server import fresh_org, server_url

if TYPE_CHECKING:
    from concord.store.postgres.store import PostgresStore


def sqlite_store(tmp_path: Path) -> Iterator[SQLiteStore]:
    """Lend an empty store in a file."""
    with closing(SQLiteStore.open(f"sqlite://{tmp_path}", "default")) as made:
        yield made


def postgres_store() -> Iterator[PostgresStore]:
    """Lend an organisation of its own on the server of all tests."""
    from concord.store.postgres.store import PostgresStore  # needs an extra

    with closing(PostgresStore.open(server_url(), fresh_org())) as made:
        yield made
