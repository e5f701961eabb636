"""Vectors by text, so that no text is embedded twice: also not after its file was moved or removed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from msgspec.structs import astuple

from concord.backends.postgres.connections import Connections
from concord.types import Identity, Vector

_GET = """
SELECT text_hash, vector FROM kb_embedding_cache
WHERE org = %s AND text_hash = ANY(%s) AND identity = %s"""
_PUT = """
INSERT INTO kb_embedding_cache (org, text_hash, identity, vector)
SELECT %s, text_hash, %s, vector FROM unnest(%s::bytea[], %s::bytea[]) AS given (text_hash, vector)
ORDER BY text_hash
ON CONFLICT (org, text_hash, identity) DO UPDATE SET vector = excluded.vector"""


class PostgresCache:
    """The embedding cache of one organisation."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def get(self, identity: Identity, keys: Sequence[bytes]) -> dict[bytes, Vector]:
        """Return the vectors known for these keys under this identity."""
        values = (self._connections.org, list(keys), identity_column(identity))
        return self._connections.read(
            lambda connection: dict(connection.cursor(binary=True).execute(_GET, values).fetchall())
        )

    def put(self, identity: Identity, vectors: Mapping[bytes, Vector]) -> None:
        """Remember vectors."""
        values = (self._connections.org, identity_column(identity), list(vectors), list(vectors.values()))
        with self._connections.transaction() as connection:
            connection.execute(_PUT, values)


def identity_column(identity: Identity) -> str:
    """Return an embedder's identity as columns keep it."""
    return json.dumps(astuple(identity))


def identity_of(column: str | None) -> Identity | None:
    """Return the identity in a column."""
    return None if column is None else Identity(*json.loads(column))
