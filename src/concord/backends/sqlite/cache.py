"""Vectors by text, so that no text is embedded twice: also not after its file was moved or removed.

Each remembers how many look-ups there had been when it was last of use, so that the least recently used can
be told without a clock.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import astuple

from concord.backends.sql_values import list_column, list_of
from concord.backends.sqlite.connections import Connection, Readers, Writer
from concord.core.reports import CacheUsage
from concord.types import Identity, Vector

_GET = """
SELECT kb_embedding_cache.rowid, text_hash, vector FROM json_each(:keys) AS wanted
CROSS JOIN kb_embedding_cache ON text_hash = unhex(wanted.value)
WHERE embedder = (SELECT key FROM kb_embedders WHERE identity = :identity)"""
_PUT = """
INSERT INTO kb_embedding_cache (embedder, text_hash, vector, used)
VALUES ((SELECT key FROM kb_embedders WHERE identity = ?), ?, ?, ?)
ON CONFLICT (text_hash, embedder) DO UPDATE SET vector = excluded.vector, used = excluded.used"""
_USED = "UPDATE kb_embedding_cache SET used = ? WHERE rowid IN (SELECT value FROM json_each(?))"
_COUNT = "UPDATE kb_meta SET value = value + ? WHERE key = ?"
_LOOKUPS = "SELECT sum(value) FROM kb_meta WHERE key IN ('cache_hits', 'cache_misses')"
_COUNTERS = "SELECT substr(key, 7), value FROM kb_meta WHERE key LIKE 'cache\\_%' ESCAPE '\\'"
_ENTRIES = """
SELECT identity, text_hash, vector FROM kb_embedders JOIN kb_embedding_cache ON embedder = key
ORDER BY used, kb_embedding_cache.rowid"""
_TRIM = """
DELETE FROM kb_embedding_cache WHERE rowid IN (
    SELECT id FROM (
        SELECT rowid AS id, sum(length(vector)) OVER (ORDER BY used DESC, rowid DESC) AS together
        FROM kb_embedding_cache)
    WHERE together > ?)
RETURNING 1"""


class SQLiteCache:
    """The embedding cache of one file."""

    def __init__(self, readers: Readers, writer: Writer) -> None:
        self._readers = readers
        self._writer = writer

    def get(self, identity: Identity, keys: Sequence[bytes]) -> dict[bytes, Vector]:
        """Return the vectors known for these keys under this identity."""
        values = {"keys": list_column([key.hex() for key in set(keys)]), "identity": _column(identity)}
        with self._readers.connection() as connection:
            found: list[tuple[int, bytes, Vector]] = list(connection.execute(_GET, values))
        if found:
            with self._writer.transaction() as connection:
                used = _count(connection, "cache_hits", len(found))
                connection.execute(_USED, (used, list_column([row for row, _, _ in found])))
        return {key: vector for _, key, vector in found}

    def put(self, identity: Identity, vectors: Mapping[bytes, Vector]) -> None:
        """Remember vectors; each counts as a look-up that found nothing."""
        if not vectors:
            return
        made_by = _column(identity)
        with self._writer.transaction() as connection:
            connection.execute("INSERT OR IGNORE INTO kb_embedders (identity) VALUES (?)", (made_by,))
            used = _count(connection, "cache_misses", len(vectors))
            connection.executemany(_PUT, ((made_by, key, vector, used) for key, vector in vectors.items()))

    def entries(self) -> Iterator[tuple[Identity, bytes, Vector]]:
        """Yield all that is remembered, the least recently used first, as it was when the first was read."""
        with self._readers.connection() as connection:
            for identity, key, vector in connection.execute(_ENTRIES):
                yield Identity(*list_of(identity)), key, vector

    def usage(self) -> CacheUsage:
        """Return how much is kept and how often it was of use."""
        with self._readers.connection() as connection:
            known = dict(connection.execute(_COUNTERS))
        return CacheUsage(known["entries"], known["bytes"], known["hits"], known["misses"])

    def trim(self, max_bytes: int) -> int:
        """Forget the least recently used until the vectors fit; return how many were forgotten."""
        if self.usage().size_bytes <= max_bytes:
            return 0
        with self._writer.transaction() as connection:
            return len(connection.execute(_TRIM, (max_bytes,)).fetchall())


def _count(connection: Connection, counter: str, more: int) -> int:
    """Count look-ups; return how many there have been."""
    connection.execute(_COUNT, (more, counter))
    return int(connection.execute(_LOOKUPS).get)


def _column(identity: Identity) -> str:
    return json.dumps(astuple(identity))
