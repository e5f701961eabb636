"""The `kb_vec` table: making it, taking vectors out of it, and what `kb_vec_meta` remembers of it.

The sentinel is the row `distance_metric = cosine`. A table without it measures some other distance, L2 by
default, which would pass for a similarity and rank by nonsense; such a table is rebuilt from its vectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from concord.backends.sqlite.connections import Connection
from concord.types import FLOAT_BYTES, ChunkId, Identity

_METRIC = "cosine"
# How many vectors sqlite-vec keeps in one value. With its default, 1024, reading or deleting one by its id
# takes up to 5 times as long, because SQLite walks there from the start of the value; scans do not care.
_VECTORS_A_VALUE = 128
_SENTINEL = "distance_metric"

_VERSION = "SELECT value FROM kb_vec_meta WHERE key = 'version'"
_COUNT_CHANGE = """
INSERT INTO kb_vec_meta VALUES ('version', 1) ON CONFLICT (key) DO UPDATE SET value = value + 1"""
_EXISTS = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'kb_vec')"
# A vector of length 0 has no direction: normalised it is NaN, and its distance, being NaN, is NULL in SQL.
_MOVE_OUT = """
CREATE TEMP TABLE kb_moved AS
SELECT rowid AS chunk, vec_normalize(embedding) AS embedding FROM kb_vec
WHERE rowid IN (SELECT id FROM kb_chunks)
    AND vec_distance_l2(vec_normalize(embedding), embedding) IS NOT NULL"""
_MOVE_BACK = "INSERT INTO kb_vec (rowid, embedding) SELECT chunk, embedding FROM kb_moved"
_RECKON_PENDING = """
DELETE FROM kb_pending;
INSERT INTO kb_pending SELECT id FROM kb_chunks WHERE id NOT IN (SELECT chunk FROM kb_moved)"""


def version_of(connection: Connection) -> int:
    """Return a number that grows with every change to the vectors."""
    return int(connection.execute(_VERSION).get or 0)


def count_change(connection: Connection) -> None:
    """Make the version another."""
    connection.execute(_COUNT_CHANGE)


def vec_exists(connection: Connection) -> bool:
    """Whether vectors were ever prepared for."""
    return bool(connection.execute(_EXISTS).get)


def create_vec(connection: Connection, dimension: int) -> None:
    """Make the table, empty, with its sentinel; an earlier one goes."""
    connection.load_vec0()
    connection.execute("DROP TABLE IF EXISTS kb_vec")
    column = f"embedding float[{dimension:d}] distance_metric={_METRIC}"
    connection.execute(f"CREATE VIRTUAL TABLE kb_vec USING vec0({column}, chunk_size={_VECTORS_A_VALUE})")
    remember(connection, {_SENTINEL: _METRIC})
    count_change(connection)


def drop_vec(connection: Connection) -> None:
    """Take the table away, with all vectors in it."""
    if vec_exists(connection):
        connection.load_vec0()
        connection.execute("DROP TABLE kb_vec")
        count_change(connection)


def forget_vectors(connection: Connection, chunk_ids: Iterable[ChunkId]) -> None:
    """Take vectors out. One by one, because sqlite-vec would scan the whole table for a list."""
    if vec_exists(connection):
        connection.load_vec0()
        connection.executemany("DELETE FROM kb_vec WHERE rowid = ?", ((chunk_id,) for chunk_id in chunk_ids))
        count_change(connection)


def stored_identity(connection: Connection) -> Identity | None:
    """Return which embedder made the vectors; None before the first, and when nobody wrote it down."""
    known = dict(connection.execute("SELECT key, value FROM kb_vec_meta"))
    if not {"provider", "model", "dimension"} <= known.keys():
        return None
    prefix_version = known.get("prefix_version", "")
    return Identity(known["provider"], known["model"], known["dimension"], prefix_version, _METRIC)


def remember_identity(connection: Connection, identity: Identity) -> None:
    """Write down which embedder makes the vectors."""
    remember(
        connection,
        {
            "provider": identity.provider,
            "model": identity.model,
            "dimension": identity.dimension,
            "prefix_version": identity.prefix_version,
        },
    )


def lacks_sentinel(connection: Connection) -> bool:
    """Whether there is a table of vectors that is not known to measure cosine distance."""
    sentinel = connection.execute("SELECT value FROM kb_vec_meta WHERE key = ?", (_SENTINEL,)).get
    return sentinel != _METRIC and vec_exists(connection)


def rebuild_as_cosine(connection: Connection) -> None:
    """Replace the table by one that measures cosine distance, with the same vectors made of length 1."""
    connection.load_vec0()
    connection.execute(_MOVE_OUT)
    size = connection.execute("SELECT length(embedding) FROM kb_moved LIMIT 1").get
    if size:
        create_vec(connection, size // FLOAT_BYTES)
        connection.execute(_MOVE_BACK)
    else:  # nothing worth keeping; the next embedder makes its own
        drop_vec(connection)
    connection.execute(_RECKON_PENDING)
    connection.execute("DROP TABLE kb_moved")


def remember(connection: Connection, rows: Mapping[str, str | int]) -> None:
    """Write down facts about the vectors."""
    connection.executemany("INSERT OR REPLACE INTO kb_vec_meta VALUES (?, ?)", rows.items())
