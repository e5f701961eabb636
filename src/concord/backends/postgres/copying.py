"""COPY, the fastest way in. Where policies are in force it may write to no table itself, only beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import psycopg

from concord.backends.postgres.connections import Connection

# Emptied, because a transaction may COPY to one table several times.
_STAGE = """
CREATE TEMP TABLE IF NOT EXISTS stage_{table} (LIKE {table}) ON COMMIT DELETE ROWS;
DELETE FROM stage_{table}"""
_MOVE = "INSERT INTO {table} ({names}) SELECT {names} FROM stage_{table}"


@contextmanager
def staging(connection: Connection, table: str, columns: Sequence[str]) -> Iterator[psycopg.Copy]:
    """Lend a COPY for the block; `move` brings its rows into the table. The caller holds a transaction."""
    connection.execute(_STAGE.format(table=table))
    statement = f"COPY stage_{table} ({', '.join(columns)}) FROM STDIN"
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        yield copy


def move(connection: Connection, table: str, columns: Sequence[str]) -> None:
    """Bring what was staged into its table."""
    connection.execute(_MOVE.format(table=table, names=", ".join(columns)))
