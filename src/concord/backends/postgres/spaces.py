"""The spaces of an organisation: the vectors of each model, and which of them searches use."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from concord.backends.postgres.cache import identity_of
from concord.backends.postgres.connections import Connection, Connections
from concord.backends.postgres.space_rows import (
    SpaceRow,
    add_space,
    find_space,
    forget_space,
    lock_spaces,
    make_active,
)
from concord.backends.postgres.vectors import PostgresVectors
from concord.store.store_errors import space_in_use, unknown_space
from concord.types import Identity, Json, Space

SPACE_COLUMNS = "s.identity, s.recipe, s.is_active, s.was_active"
_SPACES = f"""
SELECT {SPACE_COLUMNS} FROM kb_spaces AS s WHERE s.org = %(org)s AND s.identity IS NOT NULL ORDER BY s.key"""
_REMEMBER = "UPDATE kb_spaces SET recipe = %s WHERE org = %s AND key = %s"


class PostgresSpaces:
    """The spaces of one organisation."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._org = connections.org

    def all(self) -> list[Space]:
        """Return every space, in the order in which they were added."""
        return spaces_of(self._connections.rows(_SPACES))

    def active(self) -> Space | None:
        """Return the space that searches use; None before the first embedder."""
        return active_of(self.all())

    def of(self, identity: Identity) -> PostgresVectors:
        """Return the index bound to one identity, whether or not there is such a space yet."""
        return PostgresVectors(self._connections, identity)

    def add(self, identity: Identity, recipe: Mapping[str, Json]) -> None:
        """Make an empty space beside the others; of one that is there, only the recipe is written anew."""
        with self._connections.transaction() as connection:
            lock_spaces(connection, self._org)
            known = find_space(connection, self._org, identity)
            key = known.key if known else add_space(connection, self._org, identity)
            connection.execute(_REMEMBER, (json.dumps(dict(recipe)), self._org, key))

    def activate(self, identity: Identity) -> None:
        """Let searches use this space from now on, in every process.

        Raises:
            NotFound: there is no such space.
        """
        with self._connections.transaction() as connection:
            lock_spaces(connection, self._org)
            make_active(connection, self._org, self._known(connection, identity).key)

    def drop(self, identity: Identity) -> int:
        """Delete a space with its vectors; return how many there were.

        Raises:
            NotFound: there is no such space.
            BadValue: it is the active one.
        """
        with self._connections.transaction() as connection:
            lock_spaces(connection, self._org)
            space = self._known(connection, identity)
            if space.is_active:
                raise space_in_use(identity)
            return forget_space(connection, self._org, space)

    def _known(self, connection: Connection, identity: Identity) -> SpaceRow:
        space = find_space(connection, self._org, identity)
        if space is None:
            raise unknown_space(identity)
        return space


def spaces_of(rows: Sequence[tuple[Any, ...]]) -> list[Space]:
    """Return the spaces in rows of SPACE_COLUMNS."""
    return [_space(*row) for row in rows]


def active_of(spaces: Iterable[Space]) -> Space | None:
    """Return the space that searches use."""
    return next((space for space in spaces if space.is_active), None)


@lru_cache(maxsize=8)  # every search looks at the active one
def _space(identity: str, recipe: str, is_active: bool, was_active: bool) -> Space:
    known = identity_of(identity)
    assert known is not None  # rows without one are not selected
    return Space(known, json.loads(recipe), is_active, was_active)
