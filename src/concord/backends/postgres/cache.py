"""Vectors by text, so that no text is embedded twice: also not after its file was moved or removed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import astuple

from concord.backends.postgres.connections import Connections
from concord.core.reports import CacheUsage
from concord.types import Identity, Vector

# Each remembers how many look-ups there had been when it was last of use: so the least recently used are
# told without a clock.
_GET = """
UPDATE kb_embedding_cache SET used = %s
WHERE org = %s AND text_hash = ANY(%s) AND identity = %s RETURNING text_hash, vector"""
_KNOWN = """
SELECT count(*) FROM kb_embedding_cache WHERE org = %s AND text_hash = ANY(%s) AND identity = %s"""
_PUT = """
INSERT INTO kb_embedding_cache (org, text_hash, identity, vector, used)
SELECT %s, text_hash, %s, vector, %s FROM unnest(%s::bytea[], %s::bytea[]) AS given (text_hash, vector)
ORDER BY text_hash
ON CONFLICT (org, text_hash, identity) DO UPDATE SET vector = excluded.vector, used = excluded.used"""
_COUNT = """
INSERT INTO kb_cache_usage AS u VALUES (%s, %s, %s) ON CONFLICT (org) DO UPDATE
SET hits = u.hits + excluded.hits, misses = u.misses + excluded.misses RETURNING hits + misses"""
_ENTRIES = """
SELECT identity, text_hash, vector FROM kb_embedding_cache WHERE org = %s
ORDER BY used, text_hash, identity"""
_USAGE = """
SELECT (SELECT count(*) FROM kb_embedding_cache WHERE org = %(org)s),
    (SELECT coalesce(sum(length(vector)), 0) FROM kb_embedding_cache WHERE org = %(org)s),
    coalesce((SELECT hits FROM kb_cache_usage WHERE org = %(org)s), 0),
    coalesce((SELECT misses FROM kb_cache_usage WHERE org = %(org)s), 0)"""
_TRIM = """
DELETE FROM kb_embedding_cache AS c USING (
    SELECT text_hash, identity,
        sum(length(vector)) OVER (ORDER BY used DESC, text_hash, identity) AS together
    FROM kb_embedding_cache WHERE org = %(org)s) AS kept
WHERE c.org = %(org)s AND c.text_hash = kept.text_hash AND c.identity = kept.identity
    AND kept.together > %(most)s"""


class PostgresCache:
    """The embedding cache of one organisation."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._org = connections.org

    def get(self, identity: Identity, keys: Sequence[bytes]) -> dict[bytes, Vector]:
        """Return the vectors known for these keys under this identity, counting what was known."""
        asked = (self._org, list(set(keys)), identity_column(identity))
        (known,) = self._connections.read(lambda c: c.execute(_KNOWN, asked).fetchone()) or (0,)
        if not known:
            return {}
        with self._connections.transaction() as connection:
            (used,) = connection.execute(_COUNT, (self._org, known, 0)).fetchone() or (0,)
            return dict(connection.cursor(binary=True).execute(_GET, (used, *asked)).fetchall())

    def put(self, identity: Identity, vectors: Mapping[bytes, Vector]) -> None:
        """Remember vectors; each was missed by somebody who looked for it."""
        if not vectors:
            return
        with self._connections.transaction() as connection:
            (used,) = connection.execute(_COUNT, (self._org, 0, len(vectors))).fetchone() or (0,)
            made_by = identity_column(identity)
            connection.execute(_PUT, (self._org, made_by, used, list(vectors), list(vectors.values())))

    def entries(self) -> Iterator[tuple[Identity, bytes, Vector]]:
        """Yield all that is remembered, the least recently used first, as it was when the first was read."""
        with (
            self._connections.transaction() as connection,
            connection.cursor(name="kb_entries") as cursor,  # the server keeps what has not been asked for
        ):
            for identity, key, vector in cursor.execute(_ENTRIES, (self._org,), binary=True):
                yield Identity(*json.loads(identity)), key, vector

    def usage(self) -> CacheUsage:
        """Return how much is kept and how often it was of use."""
        row = self._connections.read(lambda c: c.execute(_USAGE, {"org": self._org}).fetchone())
        return CacheUsage(*map(int, row or (0, 0, 0, 0)))

    def trim(self, max_bytes: int) -> int:
        """Forget the least recently used until the vectors fit; return how many were forgotten."""
        with self._connections.transaction() as connection:
            return connection.execute(_TRIM, {"org": self._org, "most": max_bytes}).rowcount


def identity_column(identity: Identity) -> str:
    """Return an embedder's identity as columns keep it."""
    return json.dumps(astuple(identity))


def identity_of(column: str | None) -> Identity | None:
    """Return the identity in a column."""
    return None if column is None else Identity(*json.loads(column))
