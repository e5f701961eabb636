"""Our models with vectors that outlive every store, so that benchmarks embed no text twice.

A store's own cache goes with the store: with its schema, and with the collection that it was made for. These
vectors lie in one file in KB_BENCH_CACHE, by the text and the model that made them.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence
from contextlib import closing

from msgspec.structs import astuple

from benchmarks.synthetic import cache_folder
from concord.embed.bundled import BundledEmbedder
from concord.embed.multilingual import MultilingualEmbedder
from concord.types import Vector

_TABLE = """CREATE TABLE IF NOT EXISTS vectors (
    model TEXT, text BLOB, vector BLOB, PRIMARY KEY (model, text)) WITHOUT ROWID"""
_GET = "SELECT vector FROM vectors WHERE model = ? AND text = ?"
_PUT = "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)"
WAIT_S = 60.0  # for another benchmark that writes


class KeptEmbedder(BundledEmbedder):
    """Embeds only texts that no benchmark has embedded before; queries are embedded each time."""

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector a text, in order."""
        model = "/".join(map(str, astuple(self.identity)))
        keys = [hashlib.sha256(text.encode("utf-8", "replace")).digest() for text in texts]
        with closing(sqlite3.connect(cache_folder() / "vectors.db", timeout=WAIT_S)) as file:
            file.execute(_TABLE)
            found = {key: row[0] for key in keys if (row := file.execute(_GET, (model, key)).fetchone())}
            missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
            fresh = super().embed_documents([*missing.values()]) if missing else []
            made = dict(zip(missing, fresh, strict=True))
            file.executemany(_PUT, [(model, key, vector) for key, vector in made.items()])
            file.commit()
        return [{**found, **made}[key] for key in keys]


class KeptMultilingual(KeptEmbedder, MultilingualEmbedder):
    """The same for the model of other languages."""
