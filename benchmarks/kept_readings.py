"""The reader with readings that are kept, so that benchmarks read no question with the same passage twice.

They lie in one file in KB_BENCH_CACHE, by the model, the question and the passage that made them.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from functools import cache

from msgspec import json
from msgspec.structs import astuple

from benchmarks.synthetic import cache_folder
from concord.search import reader_model
from concord.search.reader_model import DATA, ReaderModel, Text
from concord.types import Reading

_TABLE = "CREATE TABLE IF NOT EXISTS readings (key BLOB PRIMARY KEY, reading TEXT) WITHOUT ROWID"
_GET, _PUT = "SELECT reading FROM readings WHERE key = ?", "INSERT OR REPLACE INTO readings VALUES (?, ?)"
WAIT_S = 60.0  # for another benchmark that writes


class KeptModel(ReaderModel):
    """Reads only what no benchmark has read before."""

    def read(self, question: str, texts: Sequence[Text]) -> list[Reading]:
        """Return what the model makes of each passage."""
        keys = [hashlib.sha256("\0".join([_model(), question, *text]).encode()).digest() for text in texts]
        with closing(sqlite3.connect(cache_folder() / "readings.db", timeout=WAIT_S)) as file:
            file.execute(_TABLE)
            rows = {key: file.execute(_GET, (key,)).fetchone() for key in keys}
            missing = [at for at, key in enumerate(keys) if rows[key] is None]
            fresh = super().read(question, [texts[at] for at in missing]) if missing else []
            made = {keys[at]: reading for at, reading in zip(missing, fresh, strict=True)}
            file.executemany(_PUT, [(key, json.encode(astuple(one)).decode()) for key, one in made.items()])
            file.commit()
        return [made.get(key) or Reading(*json.decode(rows[key][0])) for key in keys]


@cache
def _model() -> str:
    return hashlib.sha256((DATA / "reader-int8.onnx").read_bytes()).hexdigest()


def keep() -> None:
    """Have every knowledge base of this process use it."""
    reader_model.shared_model = cache(KeptModel)
