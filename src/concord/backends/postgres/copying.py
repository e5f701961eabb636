"""COPY, the fastest way in. Where policies are in force it may write to no table itself, only beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import psycopg

from concord.backends.postgres.connections import Connection

_STAGE = "CREATE TEMP TABLE IF NOT EXISTS stage_{table} (LIKE {table}) ON COMMIT DELETE ROWS"
_MOVE = "INSERT INTO {table} ({names}) SELECT {names} FROM stage_{table}"


@contextmanager
def copying(
    connection: Connection, table: str, columns: Sequence[str], *, binary: bool = False
) -> Iterator[psycopg.Copy]:
    """Lend a COPY for the block; its rows are in the table afterwards. The caller holds a transaction."""
    names = ", ".join(columns)
    connection.execute(_STAGE.format(table=table))
    connection.execute(f"DELETE FROM stage_{table}")  # of an earlier COPY of the same transaction
    statement = f"COPY stage_{table} ({names}) FROM STDIN{' (FORMAT binary)' if binary else ''}"
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        yield copy
    connection.execute(_MOVE.format(table=table, names=names))
