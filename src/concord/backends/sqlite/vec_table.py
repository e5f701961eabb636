"""The tables of vectors, one for each space: making them, taking vectors out, and what is remembered of them.

The sentinel is the row `distance_metric = cosine` of `kb_vec_meta`. A table without it measures some other
distance, L2 by default, which would pass for a similarity and rank by nonsense; such a table is rebuilt from
its vectors. Only the first space's can be so old.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import astuple

from concord.backends.sql_values import list_column, list_of
from concord.backends.sqlite.connections import Connection
from concord.backends.sqlite.graph_table import forget_graph
from concord.backends.sqlite.opened_file import FileId
from concord.types import FLOAT_BYTES, ChunkId, Identity

FIRST = 1  # the key of the space that every store has from the start
_METRIC = "cosine"
# How many vectors sqlite-vec keeps in one value. With its default, 1024, reading or deleting one by its id
# takes up to 5 times as long, because SQLite walks there from the start of the value; scans do not care.
_VECTORS_A_VALUE = 128
_SENTINEL = "distance_metric"

_ROWS = "SELECT key, identity, version FROM kb_spaces"
_ACTIVE = f"{_ROWS} WHERE key = (SELECT value FROM kb_meta WHERE key = 'active_space')"
_OF_IDENTITY = f"{_ROWS} WHERE identity = ?"
_COUNT_CHANGE = "UPDATE kb_spaces SET version = version + 1 WHERE key = ?"
_EXISTS = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = ?)"
_COUNT = """
SELECT (SELECT value FROM kb_meta WHERE key = 'chunks')
    - (SELECT count(*) FROM kb_pending WHERE space = ?)"""
# A vector of length 0 has no direction: normalised it is NaN, and its distance, being NaN, is NULL in SQL.
_MOVE_OUT = """
CREATE TEMP TABLE kb_moved AS
SELECT rowid AS chunk, vec_normalize(embedding) AS embedding FROM kb_vec
WHERE rowid IN (SELECT id FROM kb_chunks)
    AND vec_distance_l2(vec_normalize(embedding), embedding) IS NOT NULL"""
_MOVE_BACK = "INSERT INTO kb_vec (rowid, embedding) SELECT chunk, embedding FROM kb_moved"
_RECKON_PENDING = f"""
DELETE FROM kb_pending WHERE space = {FIRST};
INSERT INTO kb_pending SELECT {FIRST}, id FROM kb_chunks WHERE id NOT IN (SELECT chunk FROM kb_moved)"""


class SpaceRow(Struct, frozen=True):
    """A space as a file knows it. Its key and version change whenever its vectors in that file do."""

    key: int
    identity: Identity | None  # None before the first embedder, and when nobody wrote it down
    version: int
    file: FileId | None

    @property
    def table(self) -> str:
        """The name of its table of vectors."""
        return vec_name(self.key)


def vec_name(key: int) -> str:
    """Return the name of a space's table of vectors."""
    return "kb_vec" if key == FIRST else f"kb_vec_{key:d}"


def find_space(connection: Connection, identity: Identity | None) -> SpaceRow | None:
    """Return the space of an identity, or with None the active one."""
    asked = (_ACTIVE, ()) if identity is None else (_OF_IDENTITY, (identity_column(identity),))
    row = connection.execute(*asked).fetchone()
    return None if row is None else SpaceRow(row[0], identity_of(row[1]), row[2], connection.file)


def make_active(connection: Connection, key: int) -> None:
    """Let searches use a space."""
    connection.execute("UPDATE kb_spaces SET was_active = 1 WHERE key = ?", (key,))
    connection.execute("UPDATE kb_meta SET value = ? WHERE key = 'active_space'", (key,))


def all_spaces(connection: Connection) -> list[SpaceRow]:
    """Return all spaces, in the order in which they were added."""
    rows = connection.execute(f"{_ROWS} ORDER BY key")
    return [SpaceRow(key, identity_of(made_by), version, connection.file) for key, made_by, version in rows]


def all_keys(connection: Connection) -> list[int]:
    """Return the keys of all spaces."""
    return [key for (key,) in connection.execute("SELECT key FROM kb_spaces ORDER BY key")]


def identity_column(identity: Identity) -> str:
    """Return an identity as it is stored; like JSON that SQLite itself makes, without spaces."""
    return list_column(astuple(identity))


def identity_of(column: str | None) -> Identity | None:
    """Return an identity as it was stored."""
    return None if column is None else Identity(*list_of(column))


def count_change(connection: Connection, key: int) -> None:
    """Make the version of a space another."""
    connection.execute(_COUNT_CHANGE, (key,))


def count_vectors(connection: Connection, key: int) -> int:
    """Return how many vectors a space has."""
    return int(connection.execute(_COUNT, (key,)).get)


def vec_exists(connection: Connection, key: int) -> bool:
    """Whether vectors were ever prepared for in a space."""
    return bool(connection.execute(_EXISTS, (vec_name(key),)).get)


def create_vec(connection: Connection, key: int, dimension: int) -> None:
    """Make a space's table, empty, with the sentinel; an earlier one goes."""
    connection.load_vec0()
    connection.execute(f"DROP TABLE IF EXISTS {vec_name(key)}")
    column = f"embedding float[{dimension:d}] distance_metric={_METRIC}"
    options = f"{column}, chunk_size={_VECTORS_A_VALUE}"
    connection.execute(f"CREATE VIRTUAL TABLE {vec_name(key)} USING vec0({options})")
    connection.execute("INSERT OR REPLACE INTO kb_vec_meta VALUES (?, ?)", (_SENTINEL, _METRIC))
    forget_graph(connection, key)
    count_change(connection, key)


def forget_vectors(connection: Connection, chunk_ids: Sequence[ChunkId]) -> None:
    """Take the vectors of chunks out of every space."""
    for key in all_keys(connection):
        forget_in(connection, key, chunk_ids)


def forget_in(connection: Connection, key: int, chunk_ids: Sequence[ChunkId]) -> None:
    """Take vectors out of a space. One by one, because sqlite-vec would scan the whole table for a list."""
    if vec_exists(connection, key):
        connection.load_vec0()
        statement = f"DELETE FROM {vec_name(key)} WHERE rowid = ?"
        connection.executemany(statement, ((chunk_id,) for chunk_id in chunk_ids))
        count_change(connection, key)


def lacks_sentinel(connection: Connection) -> bool:
    """Whether there is a table of vectors that is not known to measure cosine distance."""
    sentinel = connection.execute("SELECT value FROM kb_vec_meta WHERE key = ?", (_SENTINEL,)).get
    return sentinel != _METRIC and vec_exists(connection, FIRST)


def rebuild_as_cosine(connection: Connection) -> None:
    """Replace the table by one that measures cosine distance, with the same vectors made of length 1."""
    connection.load_vec0()
    connection.execute(_MOVE_OUT)
    size = connection.execute("SELECT length(embedding) FROM kb_moved LIMIT 1").get
    if size:
        create_vec(connection, FIRST, size // FLOAT_BYTES)
        connection.execute(_MOVE_BACK)
    else:  # nothing worth keeping; the next embedder makes its own
        connection.execute("DROP TABLE kb_vec")
        count_change(connection, FIRST)
    connection.execute(_RECKON_PENDING)
    connection.execute("DROP TABLE kb_moved")
