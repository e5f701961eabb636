"""Vectors by text, so that no text is embedded twice: also not after its file was moved or removed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import astuple

from concord.backends.sqlite.connections import Readers, Writer
from concord.types import Identity, Vector

_GET = """
SELECT text_hash, vector FROM json_each(:keys) AS wanted
CROSS JOIN kb_embedding_cache ON text_hash = unhex(wanted.value)
WHERE embedder = (SELECT key FROM kb_embedders WHERE identity = :identity)"""
_PUT = """
INSERT OR REPLACE INTO kb_embedding_cache (embedder, text_hash, vector)
VALUES ((SELECT key FROM kb_embedders WHERE identity = ?), ?, ?)"""
_ENTRIES = """
SELECT identity, text_hash, vector FROM kb_embedding_cache JOIN kb_embedders ON key = embedder"""


class SQLiteCache:
    """The embedding cache of one file."""

    def __init__(self, readers: Readers, writer: Writer) -> None:
        self._readers = readers
        self._writer = writer

    def get(self, identity: Identity, keys: Sequence[bytes]) -> dict[bytes, Vector]:
        """Return the vectors known for these keys under this identity."""
        values = {"keys": json.dumps([key.hex() for key in keys]), "identity": _column(identity)}
        with self._readers.connection() as connection:
            return dict(connection.execute(_GET, values))

    def put(self, identity: Identity, vectors: Mapping[bytes, Vector]) -> None:
        """Remember vectors."""
        made_by = _column(identity)
        with self._writer.transaction() as connection:
            connection.execute("INSERT OR IGNORE INTO kb_embedders (identity) VALUES (?)", (made_by,))
            connection.executemany(_PUT, ((made_by, key, vector) for key, vector in vectors.items()))

    def entries(self) -> Iterator[tuple[Identity, bytes, Vector]]:
        """Yield all that is remembered, as it was when the first was read."""
        with self._readers.connection() as connection:
            for identity, key, vector in connection.execute(_ENTRIES):
                yield Identity(*json.loads(identity)), key, vector


def _column(identity: Identity) -> str:
    return json.dumps(astuple(identity))
