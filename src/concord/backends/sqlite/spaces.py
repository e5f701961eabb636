"""The spaces of a file: a table of vectors for each model, and which one searches use."""

from __future__ import annotations

import json
from collections.abc import Mapping

from concord.backends.sqlite.connections import Connection, Readers, Writer
from concord.backends.sqlite.graph_search import Plan
from concord.backends.sqlite.graph_table import forget_graph, forget_unindexed
from concord.backends.sqlite.vec_table import (
    SpaceRow,
    count_vectors,
    create_vec,
    find_space,
    identity_column,
    identity_of,
    make_active,
    vec_exists,
)
from concord.backends.sqlite.vectors import SQLiteVectors
from concord.backends.store_errors import space_in_use, unknown_space
from concord.types import Identity, Json, Space

_SPACES = """
SELECT s.identity, s.recipe, s.key = m.value, s.was_active
FROM kb_spaces AS s JOIN kb_meta AS m ON m.key = 'active_space' WHERE s.identity IS NOT NULL"""
_REMEMBER = "UPDATE kb_spaces SET recipe = ? WHERE key = ?"
_ADD = "INSERT INTO kb_spaces (identity, recipe) VALUES (?, ?) RETURNING key"


class SQLiteSpaces:
    """The spaces of one file."""

    def __init__(self, readers: Readers, vec_readers: Readers, writer: Writer, plan: Plan) -> None:
        self._plan = plan
        self._readers = readers
        self._vec_readers = vec_readers
        self._writer = writer

    def all(self) -> list[Space]:
        """Return every space, in the order in which they were added."""
        with self._readers.connection() as connection:
            return [_space(*row) for row in connection.execute(f"{_SPACES} ORDER BY s.key")]

    def active(self) -> Space | None:
        """Return the space that searches use; None before the first embedder."""
        with self._readers.connection() as connection:
            row = connection.execute(f"{_SPACES} AND s.key = m.value").fetchone()
            return _space(*row) if row else None

    def of(self, identity: Identity) -> SQLiteVectors:
        """Return the index bound to one identity, whether or not there is such a space yet."""
        return SQLiteVectors(self._readers, self._vec_readers, self._writer, self._plan, identity)

    def add(self, identity: Identity, recipe: Mapping[str, Json]) -> None:
        """Make an empty space beside the others; if it is there already, only its recipe is replaced."""
        self.of(identity).ensure_cosine()  # or an old table would pass for one that has been migrated
        with self._writer.transaction() as connection:
            known = find_space(connection, identity) or _first(connection, identity)
            if known is None:
                _add(connection, identity, recipe)
            else:
                connection.execute(_REMEMBER, (json.dumps(dict(recipe)), known.key))

    def activate(self, identity: Identity) -> None:
        """Let searches use this space from now on, in every process.

        Raises:
            NotFound: there is no such space.
        """
        with self._writer.transaction() as connection:
            make_active(connection, _known(connection, identity).key)

    def drop(self, identity: Identity) -> int:
        """Delete a space with its vectors; return how many there were.

        Raises:
            NotFound: there is no such space.
            BadValue: it is the active one.
        """
        with self._writer.transaction() as connection:
            space = _known(connection, identity)
            if space == find_space(connection, None):
                raise space_in_use(identity)
            dropped = count_vectors(connection, space.key) if vec_exists(connection, space.key) else 0
            connection.load_vec0()
            connection.execute(f"DROP TABLE IF EXISTS {space.table}")
            connection.execute("DELETE FROM kb_pending WHERE space = ?", (space.key,))
            connection.execute("DELETE FROM kb_spaces WHERE key = ?", (space.key,))
            forget_graph(connection, space.key)
            forget_unindexed(connection, space.key)
            return dropped


def _space(identity: str, recipe: str, is_active: int, was_active: int) -> Space:
    known = identity_of(identity)
    assert known is not None  # rows without one are not selected
    return Space(known, json.loads(recipe), bool(is_active), bool(was_active))


def _known(connection: Connection, identity: Identity) -> SpaceRow:
    space = find_space(connection, identity)
    if space is None:
        raise unknown_space(identity)
    return space


def _first(connection: Connection, identity: Identity) -> SpaceRow | None:
    """Give the space that a store has from the start to its first embedder."""
    space = find_space(connection, None)
    if space is None or space.identity is not None or vec_exists(connection, space.key):
        return None
    values = (identity_column(identity), space.key)
    connection.execute("UPDATE kb_spaces SET identity = ? WHERE key = ?", values)
    create_vec(connection, space.key, identity.dimension)
    return space


def _add(connection: Connection, identity: Identity, recipe: Mapping[str, Json]) -> None:
    values = (identity_column(identity), json.dumps(dict(recipe)))
    key = int(connection.execute(_ADD, values).get)
    connection.execute("INSERT INTO kb_pending SELECT ?, id FROM kb_chunks", (key,))
    create_vec(connection, key, identity.dimension)
