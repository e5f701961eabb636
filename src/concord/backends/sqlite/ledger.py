"""What this file knows of vectors that are kept outside: which are there, and what they are yet to be told.

kb_pending says, as for vectors of its own, which chunks have none. kb_unsettled is filled by triggers, in the
transaction that changes a chunk or its document, so that a crash at any moment forgets nothing. Both the
table and the triggers exist only while vectors are kept outside: nobody else pays for them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager

from msgspec.structs import astuple, replace

from concord.backends.birthplaces import COPY, file_birthplace, is_copied
from concord.backends.file_locks import file_lock
from concord.backends.sql_values import list_column
from concord.backends.sqlite.connections import Connection, Readers, Writer
from concord.backends.sqlite.filters import CHUNKS, condition
from concord.backends.sqlite.location import Location
from concord.backends.sqlite.vec_table import all_keys, count_vectors, create_vec, find_space, identity_of
from concord.backends.store_errors import kept_elsewhere
from concord.types import ChunkId, Filter, Home, Identity

_CHUNKS_OF = "INSERT INTO kb_unsettled (chunk) SELECT id FROM kb_chunks WHERE document ="
_FIELDS = ("source", "path", "type", "mtime_ns", "superseded_by")  # of a document, that filters ask for
_OLD, _NEW = (", ".join(f"{row}.{field}" for field in _FIELDS) for row in ("old", "new"))
_TRIGGERS = {
    "kb_unsettled_chunk_deleted": """AFTER DELETE ON kb_chunks
        BEGIN INSERT INTO kb_unsettled (chunk) VALUES (old.id); END""",
    "kb_unsettled_chunk_moved": """AFTER UPDATE OF position ON kb_chunks WHEN old.position <> new.position
        BEGIN INSERT INTO kb_unsettled (chunk) VALUES (new.id); END""",
    "kb_unsettled_document": f"""AFTER UPDATE ON kb_documents WHEN ({_OLD}) IS NOT ({_NEW})
        BEGIN {_CHUNKS_OF} new.key; END""",
    "kb_unsettled_tag_added": f"AFTER INSERT ON kb_document_tags BEGIN {_CHUNKS_OF} new.document; END",
    "kb_unsettled_tag_deleted": f"AFTER DELETE ON kb_document_tags BEGIN {_CHUNKS_OF} old.document; END",
}
_UNSETTLED = """
CREATE TABLE kb_unsettled (
    turn INTEGER PRIMARY KEY AUTOINCREMENT,
    chunk INTEGER NOT NULL
) STRICT"""
_HOME = "SELECT value FROM kb_vec_meta WHERE key = 'home'"
_KEY = "SELECT value FROM kb_vec_meta WHERE key = 'key'"
_BIRTHPLACE = "SELECT value FROM kb_vec_meta WHERE key = 'birthplace'"
_LEFT = "SELECT value FROM kb_vec_meta WHERE key = 'left'"
_HAS_UNSETTLED = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'kb_unsettled')"
_MARK = "DELETE FROM kb_pending WHERE space = ? AND chunk IN (SELECT value FROM json_each(?))"
_UNMARK = f"""
INSERT INTO kb_pending SELECT :space, c.id FROM {CHUNKS}
WHERE d.source = (SELECT key FROM kb_sources WHERE id = :source)
    AND c.id NOT IN (SELECT chunk FROM kb_pending WHERE space = :space) RETURNING 1"""
_REMEMBER = "INSERT OR REPLACE INTO kb_vec_meta VALUES (?, ?)"
_NAMED_SPACES = "SELECT key, identity FROM kb_spaces WHERE identity IS NOT NULL"
_ALLOWED = """
SELECT c.id FROM json_each(:chunks) AS wanted CROSS JOIN kb_chunks AS c ON c.id = wanted.value
CROSS JOIN kb_documents AS d ON d.key = c.document WHERE {condition}"""


class SQLiteLedger:
    """The ledger of one file."""

    def __init__(self, location: Location, readers: Readers, writer: Writer) -> None:
        self._location = location
        self._readers = readers
        self._writer = writer

    def home(self) -> Home:
        """Return where the vectors are kept."""
        with self._readers.connection() as connection:
            return _home(connection)

    def own(self) -> Home:
        """Return where the vectors are kept, under a key of this file: in a copy, all is sent again."""
        with self._readers.connection() as connection:
            home, is_known = _home(connection), connection.execute(_BIRTHPLACE).get
        if not home.url or (is_known and not home.is_anothers):
            return home
        with self._writer.transaction() as connection:
            if _home(connection).is_anothers:
                move_home(connection, home.url)
            connection.execute(_REMEMBER, ("birthplace", _here(connection)))
        return self.home()

    def is_empty(self) -> bool:
        """Whether no chunk has a vector in any space, wherever they are kept."""
        with self._readers.connection() as connection:
            return _is_empty(connection)

    def move(self, url: str) -> None:
        """Keep vectors there from now on: every chunk is pending in every space, and nothing is unsettled."""
        with self._writer.transaction() as connection:
            move_home(connection, url)

    def left(self) -> list[Home]:
        """Return the homes that vectors were moved away from and still lie in, the oldest first."""
        with self._readers.connection() as connection:
            return _left(connection)

    def forget(self, home: Home) -> None:
        """Take note that nothing of this store is left there."""
        with self._writer.transaction() as connection:
            _remember_left(connection, [one for one in _left(connection) if one != home])

    def mark(self, identity: Identity, chunk_ids: Sequence[ChunkId]) -> None:
        """Take note that these chunks' vectors have been acknowledged outside."""
        with self._writer.transaction() as connection:
            if space := find_space(connection, identity):
                connection.execute(_MARK, (space.key, list_column(chunk_ids)))

    def unmark(self, identity: Identity, source_id: str) -> int:
        """Make a source's chunks pending again in one space; return how many were not."""
        with self._writer.transaction() as connection:
            space = find_space(connection, identity)
            values = {"space": space.key if space else 0, "source": source_id}
            return len(connection.execute(_UNMARK, values).fetchall()) if space else 0

    def unsettled(self, limit: int) -> list[tuple[int, ChunkId]]:
        """Return the oldest changes that were not told to the vector store outside, each with its turn."""
        with self._readers.connection() as connection:
            if not connection.execute(_HAS_UNSETTLED).get:
                return []
            rows = connection.execute("SELECT turn, chunk FROM kb_unsettled ORDER BY turn LIMIT ?", (limit,))
            return list(rows)

    def settle(self, turns: Sequence[int]) -> None:
        """Take note that the vector store outside knows of the changes that had these turns."""
        with self._writer.transaction() as connection:
            connection.executemany("DELETE FROM kb_unsettled WHERE turn = ?", ((turn,) for turn in turns))

    def allowed(self, chunk_ids: Sequence[ChunkId], filter: Filter) -> set[ChunkId]:
        """Return those of the chunks that exist and that a filter lets through."""
        sql, values = condition(filter)
        values["chunks"] = list_column(chunk_ids)
        with self._readers.connection() as connection:
            rows = connection.execute(_ALLOWED.format(condition=sql), values)
            return {chunk_id for (chunk_id,) in rows}

    def matching(self, filter: Filter, most: int) -> list[str] | None:
        """Return the ids of the documents that a filter lets through; None when they are more than `most`."""
        sql, values = condition(filter)
        values["most"] = most + 1
        statement = f"SELECT d.id FROM kb_documents AS d WHERE {sql} LIMIT :most"
        with self._readers.connection() as connection:
            found = [document_id for (document_id,) in connection.execute(statement, values)]
        return found if len(found) <= most else None

    def exclusive(self, *, wait_s: float) -> AbstractContextManager[None]:
        """Hold the right to change what is kept outside, across processes."""
        self._writer.make_file()
        return file_lock(self._location.path, "vectors kept elsewhere", "changing the vectors", wait_s)


def home_url(connection: Connection) -> str:
    """Return where vectors are kept; empty when that is here."""
    return str(connection.execute(_HOME).get or "")


def check_here(connection: Connection) -> None:
    """Refuse to use vectors of this file when they are kept outside.

    Raises:
        VectorsElsewhere: they are.
    """
    if home := home_url(connection):
        raise kept_elsewhere(home, "")


def claim(connection: Connection) -> None:
    """Keep vectors in this file, unless there are some elsewhere.

    Raises:
        VectorsElsewhere: there are.
    """
    if home_url(connection):
        if not _is_empty(connection):
            check_here(connection)
        move_home(connection, "")


def part_from_original(connection: Connection) -> None:
    """Give a copy of a store a key of its own; the vectors outside are the original's, so all are pending."""
    if url := home_url(connection):
        connection.execute(_REMEMBER, ("birthplace", COPY))
        move_home(connection, url)
        connection.execute(_REMEMBER, ("birthplace", COPY))  # `move_home` has drawn one for this file


def move_home(connection: Connection, url: str) -> None:
    """Forget all vectors, in every space, and keep new ones at `url`; empty is this file."""
    old = _home(connection)
    is_left = old.url and (old.url != url or old.is_anothers)
    if is_left and not (_is_empty(connection) and _is_settled(connection)):
        _remember_left(connection, [*_left(connection), old])
    if old.is_anothers:
        _remember_left(connection, [replace(one, is_anothers=True) for one in _left(connection)])
    for key, identity in list(connection.execute(_NAMED_SPACES)):
        made_by = identity_of(identity)
        assert made_by is not None  # rows without one are not selected
        create_vec(connection, key, made_by.dimension)  # empty
        connection.execute("DELETE FROM kb_pending WHERE space = ?", (key,))
        connection.execute("INSERT INTO kb_pending SELECT ?, id FROM kb_chunks", (key,))
    connection.execute("".join(f"DROP TRIGGER IF EXISTS {name};" for name in _TRIGGERS))
    connection.execute("DROP TABLE IF EXISTS kb_unsettled; DELETE FROM kb_vec_meta WHERE key = 'home'")
    if url:
        import secrets  # late: a search by words needs no random key

        key = old.key if old.url == url and not old.is_anothers else secrets.token_hex(8)
        drawn = (("home", url), ("key", key), ("birthplace", _here(connection)))
        connection.executemany(_REMEMBER, drawn)
        connection.execute(_UNSETTLED)
        connection.execute("".join(f"CREATE TRIGGER {name} {body};" for name, body in _TRIGGERS.items()))


def _home(connection: Connection) -> Home:
    url, key = home_url(connection), connection.execute(_KEY).get or ""
    return Home(
        url, key, bool(url) and is_copied(connection.execute(_BIRTHPLACE).get or "", _here(connection))
    )


def _here(connection: Connection) -> str:
    return file_birthplace(connection.filename)


def _left(connection: Connection) -> list[Home]:
    return [Home(*home) for home in json.loads(connection.execute(_LEFT).get or "[]")]


def _remember_left(connection: Connection, homes: Sequence[Home]) -> None:
    # A flag only where it is set: older versions read two values.
    written = json.dumps([astuple(home) if home.is_anothers else (home.url, home.key) for home in homes])
    connection.execute(_REMEMBER, ("left", written))


def _is_settled(connection: Connection) -> bool:
    return not connection.execute("SELECT EXISTS (SELECT 1 FROM kb_unsettled)").get


def _is_empty(connection: Connection) -> bool:
    return not any(count_vectors(connection, key) for key in all_keys(connection))
