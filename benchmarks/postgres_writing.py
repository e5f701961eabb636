"""How quickly PostgreSQL is written to, beside bare COPY of the same rows."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import psycopg

from benchmarks.measure import Clock, Cost, Row, at_least, cost_of, sized, together
from benchmarks.postgres_lab import ORG, VECTORS, points, session
from benchmarks.server_time import clock_with_server
from benchmarks.stored import keyed, vectors_of
from benchmarks.synthetic import SEED, batches_of_texts, documents_of
from concord.embed.bundled import BundledEmbedder
from concord.index.documents import is_full
from concord.index.embedding import EMBED_BATCH
from concord.store.contract import Store
from concord.store.postgres.store import PostgresStore
from concord.types import Document, Piece, Source, silent

ROUNDS = sized(5, 2)  # of writing a part of the chunks
LEAST_WRITE = 0.5
SOURCE = Source("synthetic", "synthetic", None, "notes", "synthetic")

_WRITTEN = ("kb_documents", "kb_chunks", "kb_chunk_words", "kb_postings", VECTORS)
_OPTIONS = "SELECT unnest(reloptions) FROM pg_class WHERE oid = %(table)s::regclass"
_BUILD = """
SET maintenance_work_mem = '256MB'; CREATE INDEX ON {table} USING hnsw (embedding vector_cosine_ops)"""


class _Load(NamedTuple):
    """What is written: documents in groups as a sync forms them that reads quickly, and all vectors."""

    groups: list[list[tuple[Document, Sequence[Piece]]]]
    vectors: list[bytes]


def _load(chunks: int) -> _Load:
    documents = [
        document
        for n, texts in enumerate(batches_of_texts(chunks))
        for document in documents_of(SOURCE, n, texts)
    ]
    groups: list[list[tuple[Document, Sequence[Piece]]]] = [[]]
    for document in documents:
        if is_full([pieces for _, pieces in groups[-1]]):
            groups.append([])
        groups[-1].append(document)
    return _Load(groups, [row.tobytes() for row in points(chunks, SEED)])


def writing(url: str, chunks: int) -> Iterator[Row]:
    """Write to organisations of their own, and the same rows by COPY, in turn."""
    load = _load(chunks // ROUNDS)
    clock = _clock(url)
    rounds = [_written(url, f"writing-{turn}", load, clock) for turn in range(ROUNDS)]
    ratio = median(copied.elapsed / ours.elapsed for ours, copied in rounds)
    taken = [[cost.elapsed for cost in costs] for costs in zip(*rounds, strict=True)]
    rate, bare_rate = (f"{len(load.vectors) / median(spent):,.0f}" for spent in taken)
    row = "chunks written a second before the vector index is built, beside COPY of the same rows"
    yield at_least(row, rate, bare_rate, ratio, LEAST_WRITE)
    ours, copied = (together(costs).cpu / ROUNDS / len(load.vectors) for costs in zip(*rounds, strict=True))
    row = "processor time of that a chunk, client and server, beside COPY's"
    yield Row(row, f"{ours * 1e6:.0f} µs", f"{copied * 1e6:.0f} µs", copied / ours)


def _clock(url: str) -> Clock:
    """Return a clock of our processor time and the server's, if that is on this machine."""
    with psycopg.connect(url) as connection:
        process = connection.info.backend_pid
        return clock_with_server(process) if Path(f"/proc/{process}").exists() else time.process_time


def _written(url: str, org: str, load: _Load, clock: Clock) -> tuple[Cost, Cost]:
    """Return how long it takes to write something, and to COPY the rows that this makes."""
    with closing(PostgresStore.open(url, org)) as store:
        store.catalog.put_source(SOURCE)
        store.models.add(BundledEmbedder.identity, {})
        spent = cost_of(lambda: _write(store, load), clock), _copy_cost(url, org, clock=clock)
        store.catalog.remove_source(SOURCE.id)  # or its vectors would be in the index that is built later
        return spent


def filling(store: PostgresStore, url: str, chunks: int) -> Iterator[Row]:
    """Write everything, until the vector index is there."""
    load = _load(chunks)
    store.catalog.put_source(SOURCE)
    store.models.add(BundledEmbedder.identity, {})
    ours = cost_of(lambda: _write(store, load)).elapsed + cost_of(lambda: settle(store)).elapsed
    theirs = _copy_cost(url, ORG).elapsed + _index_time(url, ORG)
    row = "chunks written a second until all indexes are there, beside COPY of the same rows"
    yield at_least(row, f"{chunks / ours:,.0f}", f"{chunks / theirs:,.0f}", theirs / ours, LEAST_WRITE)


def growing(url: str, chunks: int) -> Row:
    """Write more to a server that has all its indexes, as every sync but the first does."""
    load = _load(chunks // ROUNDS)
    with closing(PostgresStore.open(url, "growing")) as store:
        store.catalog.put_source(SOURCE)
        store.models.add(BundledEmbedder.identity, {})
        ours = cost_of(lambda: _write(store, load)).elapsed
        with _bare(url, ORG, VECTORS) as (connection, bare):
            connection.execute(f"INSERT INTO {bare} SELECT -id, embedding FROM {VECTORS}")
            connection.execute(_BUILD.format(table=bare))
            vectors = cost_of(partial(_copy, connection, bare, _rows(url, "growing", VECTORS))).elapsed
        theirs = vectors + _copy_cost(url, "growing", _WRITTEN[:-1]).elapsed
        store.catalog.remove_source(SOURCE.id)
    row = "chunks written a second where all indexes are there already, beside COPY of the same rows"
    rate, bare_rate = (f"{len(load.vectors) / spent:,.0f}" for spent in (ours, theirs))
    return at_least(row, rate, bare_rate, theirs / ours, LEAST_WRITE)


def settle(store: Store) -> None:
    """Let the vector index be built, as at the end of every sync."""
    store.maintain(silent)


def _write(store: Store, load: _Load) -> None:
    for group in load.groups:
        store.catalog.put_documents(group)
    waiting = vectors_of(store).pending(0, len(load.vectors))
    made = [(one.chunk_id, vector) for one, vector in zip(waiting, load.vectors, strict=True)]
    for start in range(0, len(made), EMBED_BATCH):
        vectors_of(store).put(keyed(made[start : start + EMBED_BATCH]))


def _copy_cost(
    url: str, org: str, tables: Sequence[str] = _WRITTEN, clock: Clock = time.process_time
) -> Cost:
    """Return what a bare COPY of an organisation's rows takes, into tables with the same indexes."""
    spent: list[Cost] = []
    for table in tables:
        rows = _rows(url, org, table)
        with _bare(url, org, table) as (connection, bare):
            spent.append(cost_of(partial(_copy, connection, bare, rows), clock))
    return together(spent)


def _rows(url: str, org: str, table: str) -> list[bytes]:
    """Return an organisation's rows of a table as COPY takes them."""
    statement = f"COPY (SELECT * FROM {table}) TO STDOUT (FORMAT binary)"
    with session(url, org) as connection, connection.cursor() as cursor, cursor.copy(statement) as copy:
        return [bytes(block) for block in copy]


def _index_time(url: str, org: str) -> float:
    """Return how long indexing an organisation's vectors takes, once they are there."""
    with _bare(url, org, VECTORS) as (connection, bare):
        connection.execute(f"INSERT INTO {bare} SELECT * FROM {VECTORS}")
        return cost_of(partial(connection.execute, _BUILD.format(table=bare))).elapsed


@contextmanager
def _bare(url: str, org: str, table: str) -> Iterator[tuple[psycopg.Connection[Any], str]]:
    """Lend a connection, and a table like one of ours without a vector index."""
    with session(url, org) as connection:
        connection.execute(f"CREATE TABLE bare_{table} (LIKE {table} INCLUDING INDEXES INCLUDING STORAGE)")
        options = connection.execute(_OPTIONS, {"table": table}).fetchall()
        for (option,) in options:  # or it would compress more
            connection.execute(f"ALTER TABLE bare_{table} SET ({option})")
        connection.execute(f"DROP INDEX IF EXISTS bare_{table}_embedding_idx")
        yield connection, f"bare_{table}"
        connection.execute(f"DROP TABLE bare_{table}")


def _copy(connection: psycopg.Connection[Any], table: str, rows: Sequence[bytes]) -> None:
    with connection.cursor() as cursor, cursor.copy(f"COPY {table} FROM STDIN (FORMAT binary)") as copy:
        for block in rows:
            copy.write(block)
