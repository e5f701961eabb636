"""What an organisation's rows know of vectors that are kept outside: which are there, what is not told yet.

kb_pending says, as for vectors in the database, which chunks have none. kb_unsettled is filled by triggers,
in the transaction that changes a chunk or its document, so that a crash at any moment forgets nothing.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any

from msgspec.structs import astuple, replace
from psycopg import Cursor

from concord.backends.postgres.connections import Connection, Connections
from concord.backends.postgres.filters import ALLOWED, CHUNKS, condition
from concord.backends.postgres.hnsw import drop_if_emptied
from concord.backends.postgres.locks import Locks
from concord.backends.postgres.rows import loaded, stored
from concord.backends.postgres.schema import vector_table
from concord.backends.postgres.space_rows import find_space, lock_spaces
from concord.backends.postgres.unique_id import find_birthplace
from concord.store.birthplaces import is_copied
from concord.store.store_errors import kept_elsewhere
from concord.types import ChunkId, Filter, Home, Identity

_HOME = "SELECT home, home_key, birthplace FROM kb_orgs WHERE key = %s"
_HOME_URL = "SELECT home FROM kb_orgs WHERE key = %s"
_IS_EMPTY = """
SELECT NOT EXISTS (
    SELECT FROM kb_spaces AS s WHERE s.org = o.key
    AND o.chunks > (SELECT count(*) FROM kb_pending AS p WHERE p.org = s.org AND p.space = s.key))
FROM kb_orgs AS o WHERE o.key = %s"""
# Whoever puts a vector holds its space until it is there, and then it is deleted as well.
_LOCK_EVERY_SPACE = "SELECT dimension FROM kb_spaces WHERE org = %s ORDER BY key FOR UPDATE"
_ALL_WAIT = """
INSERT INTO kb_pending SELECT s.org, s.key, c.id
FROM kb_spaces AS s JOIN kb_chunks AS c ON c.org = s.org WHERE s.org = %s ON CONFLICT DO NOTHING"""
_MOVE = """
UPDATE kb_orgs SET home = %(url)s, left_behind = %(left)s,
    home_key = %(key)s, birthplace = %(here)s
WHERE key = %(org)s"""
_OWN = "UPDATE kb_orgs SET birthplace = %s WHERE key = %s"
_WAS = """
SELECT o.home, o.home_key, o.birthplace, o.left_behind,
    EXISTS (SELECT FROM kb_unsettled AS u WHERE u.org = o.key)
FROM kb_orgs AS o WHERE o.key = %s"""
_LEFT = "SELECT left_behind FROM kb_orgs WHERE key = %s"
_REMEMBER_LEFT = "UPDATE kb_orgs SET left_behind = %s WHERE key = %s"
_MARK = "DELETE FROM kb_pending WHERE org = %s AND space = %s AND chunk = ANY(%s)"
_UNMARK = f"""
INSERT INTO kb_pending SELECT c.org, %(space)s, c.id FROM {CHUNKS}
WHERE d.org = %(org)s AND d.source = %(source)s ON CONFLICT DO NOTHING"""
_UNSETTLED = "SELECT turn, chunk FROM kb_unsettled WHERE org = %s ORDER BY turn LIMIT %s"
_SETTLE = "DELETE FROM kb_unsettled WHERE org = %s AND turn = ANY(%s)"
_MATCHING = "SELECT d.id FROM kb_documents AS d WHERE d.org = %(org)s AND {condition} LIMIT %(most)s"


class PostgresLedger:
    """The ledger of one organisation."""

    def __init__(self, connections: Connections, locks: Locks) -> None:
        self._connections = connections
        self._locks = locks
        self._org = connections.org

    def home(self) -> Home:
        """Return where the vectors are kept."""
        ((url, key, drawn_in),) = self._rows(_HOME, (self._org,))
        return _home(url, key, drawn_in, self._here) if url else Home(url, key)

    def own(self) -> Home:
        """Return where the vectors are kept, under a key of these rows: in a copy, all is sent again."""
        ((url, key, drawn_in),) = self._rows(_HOME, (self._org,))
        if not url or (drawn_in and not is_copied(drawn_in, self._here)):
            return Home(url, key)
        if drawn_in:
            self._move(url, only_in_copy=True)
        else:
            with self._connections.transaction() as connection:
                connection.execute(_OWN, (self._here, self._org))
        return self.home()

    @cached_property
    def _here(self) -> str:
        """Where these rows are; only asked for while vectors are kept outside."""
        return self._connections.read(lambda connection: find_birthplace(connection, self._org))

    def is_empty(self) -> bool:
        """Whether no chunk has a vector in any space, wherever they are kept."""
        return self._connections.read(lambda connection: _is_empty(connection, self._org))

    def move(self, url: str) -> None:
        """Keep vectors there from now on: every chunk is pending in every space, and nothing is unsettled."""
        self._move(url)

    def _move(self, url: str, *, only_in_copy: bool = False) -> None:
        with self._connections.transaction() as connection:
            lock_spaces(connection, self._org)
            ((_, _, drawn_in),) = connection.execute(_HOME, (self._org,)).fetchall()
            if only_in_copy and not is_copied(drawn_in, self._here):
                return  # another process has just made it its own
            deleted = _move_home(connection, self._org, url, self._here)
        with self._connections.session() as connection:
            for table, count in deleted.items():
                drop_if_emptied(connection, table, count)

    def left(self) -> list[Home]:
        """Return the homes that vectors were moved away from and still lie in, the oldest first."""
        ((left,),) = self._rows(_LEFT, (self._org,))
        return _homes(left)

    def forget(self, home: Home) -> None:
        """Take note that nothing of this store is left there."""
        with self._connections.transaction() as connection:
            lock_spaces(connection, self._org)
            ((left,),) = connection.execute(_LEFT, (self._org,)).fetchall()
            kept = [one for one in _homes(left) if one != home]
            connection.execute(_REMEMBER_LEFT, (_written(kept), self._org))

    def mark(self, identity: Identity, chunk_ids: Sequence[ChunkId]) -> None:
        """Take note that these chunks' vectors have been acknowledged outside."""
        with self._connections.transaction() as connection:
            if space := find_space(connection, self._org, identity):
                connection.execute(_MARK, (self._org, space.key, list(chunk_ids)))

    def unmark(self, identity: Identity, source_id: str) -> int:
        """Make a source's chunks pending again in one space; return how many were not."""
        with self._connections.transaction() as connection:
            lock_spaces(connection, self._org)  # or a chunk that goes meanwhile would wait for ever
            space = find_space(connection, self._org, identity)
            values = {"org": self._org, "space": space and space.key, "source": stored(source_id)}
            return connection.execute(_UNMARK, values).rowcount if space else 0

    def unsettled(self, limit: int) -> list[tuple[int, ChunkId]]:
        """Return the oldest changes that were not told to the vector store outside, each with its turn."""
        return [(turn, chunk_id) for turn, chunk_id in self._rows(_UNSETTLED, (self._org, limit))]

    def settle(self, turns: Sequence[int]) -> None:
        """Take note that the vector store outside knows of the changes that had these turns."""
        with self._connections.transaction() as connection:
            connection.execute(_SETTLE, (self._org, list(turns)))

    def allowed(self, chunk_ids: Sequence[ChunkId], filter: Filter) -> set[ChunkId]:
        """Return those of the chunks that exist and that a filter lets through."""
        sql, values = condition(filter)
        statement = ALLOWED.format(condition=f"c.id = ANY(%(ids)s) AND {sql}")
        rows = self._rows(statement, {"org": self._org, "ids": list(chunk_ids), **values})
        return {chunk_id for (chunk_id,) in rows}

    def matching(self, filter: Filter, most: int) -> list[str] | None:
        """Return the ids of the documents that a filter lets through; None when they are more than `most`."""
        sql, values = condition(filter)
        rows = self._rows(_MATCHING.format(condition=sql), {"org": self._org, "most": most + 1, **values})
        return [loaded(document_id) for (document_id,) in rows] if len(rows) <= most else None

    def exclusive(self, *, wait_s: float) -> AbstractContextManager[None]:
        """Hold the right to change what is kept outside, across processes and machines.

        Raises:
            StoreBusy: somebody else holds it for longer than `wait_s`.
        """
        return self._locks.hold("vectors kept elsewhere", "changing the vectors", wait_s)

    def _rows(self, statement: str, values: Any) -> list[tuple[Any, ...]]:
        return self._connections.read(lambda connection: connection.execute(statement, values).fetchall())


def ask_home(connection: Connection, org: int) -> Cursor[tuple[Any, ...]]:
    """Ask where vectors are kept: empty when in the database."""
    return connection.execute(_HOME_URL, (org,))


def check_here(connection: Connection, org: int) -> None:
    """Refuse to use vectors of the database when they are kept outside.

    Raises:
        VectorsElsewhere: they are.
    """
    if home := _home_url(connection, org):
        raise kept_elsewhere(home, "")


def claim(connection: Connection, org: int) -> None:
    """Keep vectors in the database, unless there are some elsewhere.

    Raises:
        VectorsElsewhere: there are.
    """
    if _home_url(connection, org):
        lock_spaces(connection, org)
        if not _is_empty(connection, org):
            check_here(connection, org)
        _move_home(connection, org, "", find_birthplace(connection, org))


def _home_url(connection: Connection, org: int) -> str:
    row = ask_home(connection, org).fetchone()
    return str(row[0]) if row else ""


def _is_empty(connection: Connection, org: int) -> bool:
    return connection.execute(_IS_EMPTY, (org,)).fetchone() == (True,)


def _move_home(connection: Connection, org: int, url: str, here: str) -> dict[str, int]:
    """Forget all vectors, in every space, and keep those that come in another home; it is our turn to change.

    Returns how many were deleted from each table.
    """
    ((home, key, drawn_in, written, is_unsettled),) = connection.execute(_WAS, (org,)).fetchall()
    old, left = _home(home, key, drawn_in, here), _homes(written)
    is_left = old.url and (old.url != url or old.is_anothers)
    if is_left and (is_unsettled or not _is_empty(connection, org)):
        left.append(old)
    if old.is_anothers:
        left = [replace(one, is_anothers=True) for one in left]
    dimensions = {dimension for (dimension,) in connection.execute(_LOCK_EVERY_SPACE, (org,)).fetchall()}
    connection.execute("DELETE FROM kb_unsettled WHERE org = %s", (org,))
    tables = [vector_table(dimension) for dimension in dimensions if dimension]
    deleted = {
        table: connection.execute(f"DELETE FROM {table} WHERE org = %s", (org,)).rowcount for table in tables
    }
    connection.execute(_ALL_WAIT, (org,))
    drawn = secrets.token_hex(8) if url and (old.url != url or old.is_anothers) else key
    values = {"url": url, "key": drawn, "here": here, "left": _written(left)}
    connection.execute(_MOVE, {"org": org, **values})
    return deleted


def _home(url: str, key: str, drawn_in: str, here: str) -> Home:
    return Home(url, key, bool(url) and is_copied(drawn_in, here))


def _homes(written: str) -> list[Home]:
    return [Home(*home) for home in json.loads(written)]


def _written(homes: Sequence[Home]) -> str:
    # A flag only where it is set: older versions read two values.
    return json.dumps([astuple(home) if home.is_anothers else (home.url, home.key) for home in homes])
