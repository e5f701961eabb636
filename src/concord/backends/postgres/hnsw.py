"""Has a table of vectors its HNSW index, and who may build one? Its owner alone may, for everybody."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from psycopg import errors

from concord.backends.postgres.connections import Connection
from concord.core.errors import Action, Hint

_LOOK = """
SELECT pg_get_userbyid(t.relowner),
    pg_has_role(t.relowner, 'USAGE') AND has_schema_privilege(t.relnamespace, 'CREATE'),
    (SELECT i.indisvalid FROM pg_index AS i WHERE i.indexrelid = to_regclass(%(index)s)),
    coalesce(pg_relation_size(to_regclass(%(index)s)), 0)
FROM pg_class AS t WHERE t.oid = to_regclass(%(table)s)"""
# Of a table: in a graph of deleted vectors new ones are found worse than in a new graph.
_EMPTIED_SHARE = 0.75
_KNOWN_SIZE = "SELECT reltuples FROM pg_class WHERE oid = to_regclass(%s)"
_COUNT = "SELECT count(*) FROM (SELECT FROM {table} WHERE org = %s LIMIT %s) AS few"


class HnswState(NamedTuple):
    """The index of a table of vectors, or that there is none."""

    owner: str  # of the table
    is_ours_to_build: bool
    is_valid: bool | None  # None: there is none
    size_bytes: int

    @property
    def cure(self) -> str:
        """Who builds it, and how."""
        if self.is_ours_to_build:
            return Hint(Action.SYNC, "{sync} builds it, and so does {repair}")
        return Hint(
            Action.SYNC, f"the tables belong to the role {self.owner}: {{sync}} as that role builds it"
        )


def hnsw_state(connection: Connection, table: str) -> HnswState | None:
    """Return what there is of an index; None when there is not even the table."""
    row = connection.execute(_LOOK, {"table": table, "index": f"{table}_hnsw"}).fetchone()
    return HnswState(*row) if row else None


def has_vectors(connection: Connection, table: str, org: int, least: int) -> bool:
    """Whether an organisation has so many vectors in a table."""
    return connection.execute(_COUNT.format(table=table), (org, least)).fetchone() == (least,)


def drop_if_emptied(connection: Connection, table: str, deleted: int) -> None:
    """Drop the index of a table that has lost nearly all of its vectors: with new ones it is built anew.

    How many it had is what the server knows, because policies hide what others have. Who does not own the
    table leaves the index as it is.
    """
    (known,) = connection.execute(_KNOWN_SIZE, (table,)).fetchone() or (0,)
    if deleted and deleted >= _EMPTIED_SHARE * known:
        with suppress(errors.InsufficientPrivilege):
            connection.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {table}_hnsw")
