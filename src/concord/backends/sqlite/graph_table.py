"""What a database knows of the graphs beside it: which one a space has, and which vectors it lacks.

A graph is derived, and trusted only where the database names it: the name is written in a transaction once
its file is whole and on the disk, and every build has a new name. So a file left over by a crash, an older or
a newer one, or one beside a database that came back from a backup is simply not the one that is meant.

kb_unindexed has the chunks whose vectors were put since, each with the version of its space at that moment.
It exists only where a graph was ever wanted: nobody else pays for it. Vectors that were taken out need no
row: whatever a graph proposes is looked up among the vectors.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import DecodeError, Struct
from msgspec.structs import astuple

from concord.backends.sql_values import list_column, list_of
from concord.backends.sqlite.connections import Connection
from concord.types import ChunkId

_TABLE = """
CREATE TABLE IF NOT EXISTS kb_unindexed (
    space INTEGER NOT NULL,
    chunk INTEGER NOT NULL,
    version INTEGER NOT NULL,
    PRIMARY KEY (space, chunk)
) STRICT, WITHOUT ROWID"""
_IS_THERE = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'kb_unindexed')"
_NOTE = """
INSERT OR REPLACE INTO kb_unindexed SELECT key, ?, version FROM kb_spaces WHERE key = ?"""
_COUNT = "SELECT count(*) FROM kb_unindexed WHERE space = ? AND version > ?"
_ROW = "SELECT value FROM kb_vec_meta WHERE key = ?"
_ROWS = "SELECT value FROM kb_vec_meta WHERE key GLOB 'graph *'"


class GraphRow(Struct, frozen=True):
    """The graph of a space, as its database knows it."""

    form: str  # what wrote it, and how
    file: str  # its name, in the folder of the database
    version: int  # of the space, whose vectors it holds
    vectors: int  # in it, dead ones included: none is ever taken out
    alive: int  # of these, when it was written
    size: int
    mtime_ns: int  # with the size: whether anybody has touched it
    checksum: int

    @property
    def stamp(self) -> tuple[int, int]:
        """How its file looked when it was finished."""
        return self.size, self.mtime_ns


def graph_row(connection: Connection, key: int) -> GraphRow | None:
    """Return the graph of a space; None if there is none, or if an earlier version has made it."""
    return _graph(connection.execute(_ROW, (_name(key),)).get)


def graph_files(connection: Connection) -> set[str]:
    """Return the names of all files that are graphs of this database."""
    return {row.file for (value,) in connection.execute(_ROWS) if (row := _graph(value))}


def put_graph(connection: Connection, key: int, row: GraphRow) -> None:
    """Let a space have this graph from now on."""
    values = (_name(key), list_column(astuple(row)))
    connection.execute("INSERT OR REPLACE INTO kb_vec_meta VALUES (?, ?)", values)
    connection.execute("DELETE FROM kb_unindexed WHERE space = ? AND version <= ?", (key, row.version))


def forget_graph(connection: Connection, key: int) -> None:
    """Let a space have no graph; the file is for `sweep` to delete."""
    connection.execute("DELETE FROM kb_vec_meta WHERE key = ?", (_name(key),))


def begin_noting(connection: Connection) -> None:
    """Note from now on which vectors are stored, so that none is missed while a graph is built."""
    connection.execute(_TABLE)


def end_noting(connection: Connection) -> None:
    """Stop noting if no graph is left. The caller holds the lock under which graphs are built."""
    if not graph_files(connection):
        connection.execute("DROP TABLE IF EXISTS kb_unindexed")


def note_unindexed(connection: Connection, key: int, chunk_ids: Iterable[ChunkId]) -> None:
    """Note that these vectors are in no graph yet, where there is any."""
    if connection.execute(_IS_THERE).get:
        connection.executemany(_NOTE, ((chunk_id, key) for chunk_id in chunk_ids))


def forget_unindexed(connection: Connection, key: int) -> None:
    """Forget what was noted about a space that has gone."""
    if connection.execute(_IS_THERE).get:
        connection.execute("DELETE FROM kb_unindexed WHERE space = ?", (key,))


def count_unindexed(connection: Connection, key: int, row: GraphRow) -> int:
    """Return how many vectors were stored since the graph was built."""
    return int(connection.execute(_COUNT, (key, row.version)).get)


def _name(key: int) -> str:
    return f"graph {key:d}"


def _graph(value: object) -> GraphRow | None:
    try:
        return GraphRow(*list_of(value)) if isinstance(value, str) else None
    except (TypeError, DecodeError):
        return None
