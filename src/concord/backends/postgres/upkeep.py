"""What is done after many changes so that searches stay fast: merging segments, building the vector index.

Segments are merged like the runs of a log-structured tree: many small ones become one of the next size, so
that a posting is rewritten a handful of times in its life.
"""

from __future__ import annotations

import logging
from functools import cache

from psycopg import errors, sql

from concord.backends.postgres.changes import find_unknown_types
from concord.backends.postgres.connections import Connection, Connections
from concord.backends.postgres.hnsw import hnsw_state
from concord.backends.postgres.schema import vector_table

_TIERS = (256, 4096, 65536)  # chunks in a segment
_MANY = 32  # segments of a tier
_STALE_SHARE = 0.2  # of all chunks: so many deleted ones are worth a merge of everything

_GROWN = 1.5  # times what the server knows of: then it is made to look

INDEX_FROM = 2000  # vectors; fewer are compared one by one in 4 ms, and an index would slow every write
MOST_DIMENSIONS = 2000  # that pgvector can index
_BUILD_LOCK = 0x6B627678

_ORG = "SELECT chunks, stale FROM kb_orgs WHERE key = %s"
_DIMENSIONS = "SELECT DISTINCT dimension FROM kb_spaces WHERE org = %s AND dimension <= %s"
_SMALL = "SELECT segment FROM kb_segments WHERE org = %s AND chunks < %s ORDER BY segment"
_EVERY = "SELECT segment FROM kb_segments WHERE org = %s ORDER BY segment"
_MERGE = """
WITH old AS (DELETE FROM kb_postings WHERE org = %(org)s AND segment = ANY(%(segments)s) RETURNING *)
INSERT INTO kb_postings (org, segment, term, size, chunks, packed)
SELECT %(org)s, %(merged)s, o.term, count(*), array_agg(e.chunk), array_agg(e.packed)
FROM old AS o CROSS JOIN LATERAL unnest(o.chunks, o.packed) AS e (chunk, packed) {living}
GROUP BY o.term ORDER BY o.term"""
_LIVING = "JOIN kb_chunks AS c ON c.org = %(org)s AND c.id = e.chunk"
_FORGET_SEGMENTS = (
    "DELETE FROM kb_segments WHERE org = %(org)s AND segment = ANY(%(segments)s) RETURNING chunks"
)
_PUT_SEGMENT = "INSERT INTO kb_segments VALUES (%s, %s, %s)"
_FORGET_STALE = "UPDATE kb_orgs SET stale = 0 WHERE key = %s"
_FORGET_GONE = "DELETE FROM kb_gone WHERE org = %s"

# The server looks at new rows by itself, but only after a minute; until then it plans for an empty table.
_KNOWN_SIZE = "SELECT reltuples FROM pg_class WHERE oid = 'kb_chunks'::regclass"
_ANALYZE = "ANALYZE kb_documents, kb_chunks, kb_postings, kb_pending"

_SIZE = "SELECT count(*) FROM (SELECT FROM {table} LIMIT %s) AS few"
_INDEX = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)"


def tidy_up(connections: Connections) -> None:
    """Do what the last changes call for; most call for nothing."""
    with connections.transaction() as connection:
        connection.execute("SELECT FROM kb_orgs WHERE key = %s FOR UPDATE", (connections.org,))
        chunks, stale = connection.execute(_ORG, (connections.org,)).fetchone() or (0, 0)
        if stale > _STALE_SHARE * chunks:
            _merge_everything(connection, connections.org)
        else:
            _merge_small(connection, connections.org)
        find_unknown_types(connection, connections.org)
    with connections.session() as connection:
        (known,) = connection.execute(_KNOWN_SIZE).fetchone() or (0,)
        if chunks > _GROWN * max(known, 0):
            connection.execute(_ANALYZE)
        dimensions = connection.execute(_DIMENSIONS, (connections.org, MOST_DIMENSIONS)).fetchall()
        for (dimension,) in dimensions:
            try:
                _build_index(connection, vector_table(dimension), connections.index_memory_mb)
            except errors.InsufficientPrivilege:  # searches do without: each vector is compared
                _warn_of_missing_index(connection, vector_table(dimension))


def _warn_of_missing_index(connection: Connection, table: str) -> None:
    if index := hnsw_state(connection, table):
        _warn(f"no vector index could be built, so searches compare every vector: {index.cure}")


@cache  # once a process: a sync of many sources would say it of each
def _warn(said: str) -> None:
    logging.getLogger(__name__).warning(said)


def _merge_small(connection: Connection, org: int) -> None:
    for tier in _TIERS:
        segments = [number for (number,) in connection.execute(_SMALL, (org, tier)).fetchall()]
        if len(segments) >= _MANY:
            _merge(connection, org, segments, _MERGE.format(living=""))


def _merge_everything(connection: Connection, org: int) -> None:
    """Leave out what was deleted; only a merge of everything can tell that nothing of it is left."""
    segments = [number for (number,) in connection.execute(_EVERY, (org,)).fetchall()]
    _merge(connection, org, segments, _MERGE.format(living=_LIVING))
    connection.execute(_FORGET_STALE, (org,))
    connection.execute(_FORGET_GONE, (org,))


def _merge(connection: Connection, org: int, segments: list[int], statement: str) -> None:
    """Make one segment of several, under the number of the last."""
    if not segments:
        return
    values = {"org": org, "segments": segments, "merged": segments[-1]}
    connection.execute(statement, values)
    sizes = connection.execute(_FORGET_SEGMENTS, values).fetchall()
    connection.execute(_PUT_SEGMENT, (org, segments[-1], sum(size for (size,) in sizes)))


def _build_index(connection: Connection, table: str, memory_mb: int | None) -> None:
    """Index the vectors once there are enough of them, while others read and write."""
    if not _is_due(connection, table):
        return
    (is_ours,) = connection.execute("SELECT pg_try_advisory_lock(%s)", (_BUILD_LOCK,)).fetchone() or (False,)
    if not is_ours:
        return  # somebody else is building it
    try:
        if _is_due(connection, table):  # or somebody had built it before the lock was ours
            _build(connection, table, memory_mb)
    finally:
        connection.execute("RESET maintenance_work_mem")
        connection.execute("SELECT pg_advisory_unlock(%s)", (_BUILD_LOCK,))


def _is_due(connection: Connection, table: str) -> bool:
    (valid,) = connection.execute(_INDEX, (f"{table}_hnsw",)).fetchone() or (None,)
    (size,) = connection.execute(_SIZE.format(table=table), (INDEX_FROM,)).fetchone() or (0,)
    return not valid and size >= INDEX_FROM


def _build(connection: Connection, table: str, memory_mb: int | None) -> None:
    index = f"{table}_hnsw"
    if memory_mb:
        connection.execute("SELECT set_config('maintenance_work_mem', %s, false)", (f"{memory_mb}MB",))
    connection.execute(sql.SQL("DROP INDEX IF EXISTS {}").format(sql.Identifier(index)))  # a broken one
    connection.execute(
        f"CREATE INDEX CONCURRENTLY {index} ON {table} USING hnsw (embedding vector_cosine_ops)"
    )
    connection.execute(f"ANALYZE {table}")
