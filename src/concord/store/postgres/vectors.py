"""Vectors: a table for each model, keyed by the ids of kb_embeddings, and the search for the nearest.

From 2,000 vectors on a table has an HNSW index over cosine. It is walked on until enough of what it comes by
is let through. What a filter leaves few of is compared one by one, and so is all where a walk finds too few.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from struct import pack
from sys import byteorder
from typing import Any, NamedTuple

import psycopg
from psycopg import errors
from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.types.numeric import Int8

from concord.core.errors import Action, Hint, joined
from concord.core.reports import VectorIndexState
from concord.store.models import Model, active_model, all_models
from concord.store.postgres.database import DIALECT, PostgresSession, Rows
from concord.store.postgres.words import ALLOWED
from concord.store.rows import HAS_SUPERSEDED, condition
from concord.store.sql import Session, VectorTables, override
from concord.types import FLOAT_BYTES, ChunkId, Filter, Scored, Vector

EF_SEARCH = 64  # where nobody asks for another: recall@10 is above 0.95 (benchmarks/bench_postgres.py)
MOST_EF_SEARCH = 200
MOST_SCANNED = 20_000  # vectors that a walk looks at, as pgvector has it
# A filter that leaves so few is answered exactly: comparing a vector costs 2 µs, and a walk through a graph
# that has to pass by much else may miss the nearest (recall@10 was 0 to 0.8).
MOST_COMPARED = 20_000  # chunks
NARROW_SHARE = 0.05  # or of all chunks
INDEX_FROM = 2000  # vectors; fewer are compared one by one in 4 ms, and an index would slow every write
MOST_DIMENSIONS = 2000  # that pgvector can index
_BUILD_LOCK = 0x6B627678
_HEAD_BYTES = 4  # of a vector as pgvector sends it: two lengths, then the numbers, highest byte first

_COPY = "COPY {table} (id, embedding) FROM STDIN (FORMAT BINARY)"
# One row: to make and to take apart one for each vector takes as long as to read them.
_READ = """
SELECT array_agg(id), string_agg(vector_send(embedding), '') FROM {table} WHERE id IN (:ids...)"""
_IS_VALID = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(:index)"
_STATE = f"SELECT ({HAS_SUPERSEDED}), coalesce(({_IS_VALID}), false)"
_NEAREST = """
SELECT l.chunk, v.embedding <=> :vector::vector AS distance
FROM {table} AS v JOIN kb_chunk_vectors AS l ON l.embedding = v.id AND l.model = :model
WHERE {allowed} ORDER BY {order} LIMIT {limit:d}"""
_EXACT = "(v.embedding <=> :vector::vector) + 0.0, l.chunk"  # written with a sum, no index can answer it
_WALKED = "v.embedding <=> :vector::vector"
# In strict order, what is nearer than something walked past is lost. So order comes afterwards.
_EFFORT = """
SELECT set_config('hnsw.ef_search', :effort, true), set_config('hnsw.iterative_scan', 'relaxed_order', true),
    set_config('hnsw.max_scan_tuples', :scanned, true), set_config('enable_seqscan', 'off', true),
    set_config('enable_bitmapscan', 'off', true), set_config('enable_hashjoin', 'off', true),
    set_config('enable_mergejoin', 'off', true)"""
_CURRENT = f"l.chunk NOT IN ({ALLOWED.format(condition='d.superseded_by IS NOT NULL')})"
_LISTED = f"l.chunk IN ({ALLOWED})"
# A scalar sub-select stays where it is: it is asked of each vector that the graph comes by.
_IS_ALLOWED = """(
    SELECT TRUE FROM kb_chunks AS c JOIN kb_documents AS d ON d.key = c.document
    WHERE c.id = l.chunk AND {condition})"""
_IS_NARROW = f"""
WITH most AS (
    SELECT greatest(:most, :share * value)::bigint AS n FROM kb_meta WHERE key = 'chunks')
SELECT count(*) <= (SELECT n FROM most) FROM ({ALLOWED} LIMIT (SELECT n + 1 FROM most)) AS few"""

_SIZES = "SELECT count(*), pg_relation_size(to_regclass(:index)) FROM {table}"
_COUNT_MANY = "SELECT count(*) FROM (SELECT FROM {table} LIMIT :most) AS few"
CURE = Hint(Action.SYNC, "{sync} builds it, by the role that owns the tables, and so does {repair}")


class PostgresVectorTables(VectorTables):
    """The vectors of one organisation."""

    @override
    def create(self, session: Session, model: Model) -> None:
        table, dimension = table_of(model), model.identity.dimension
        session.run(
            f"CREATE TABLE {table} (id bigint PRIMARY KEY, embedding vector({dimension:d}) NOT NULL);"
            f"ALTER TABLE {table} ALTER embedding SET STORAGE PLAIN"
        )

    @override
    def drop(self, session: Session, model: Model) -> None:
        session.run(f"DROP TABLE IF EXISTS {table_of(model)}")

    @override
    def write(self, session: Session, model: Model, vectors: Mapping[int, Vector]) -> None:
        assert isinstance(session, PostgresSession)
        with session.connection.cursor().copy(_COPY.format(table=table_of(model))) as copy:
            for id, vector in vectors.items():
                copy.write_row((Int8(id), Embedding(vector)))

    @override
    def read(self, session: Session, model: Model, ids: list[int]) -> dict[int, Vector]:
        assert isinstance(session, PostgresSession)
        if not ids:
            return {}
        rows = session.execute(_READ.format(table=table_of(model)), {"ids": list(set(ids))}, binary=True)
        known, sent = rows.fetchone() or (None, b"")
        return dict(zip(known, from_wire(sent, model.identity.dimension), strict=True)) if known else {}

    @override
    def stored(self, session: Session, model: Model) -> str:
        return f"SELECT id FROM {table_of(model)}"

    @override
    def remove(self, session: Session, model: Model, ids: list[int]) -> None:
        if ids:
            session.run(f"DELETE FROM {table_of(model)} WHERE id IN (:ids...)", {"ids": ids})

    @override
    def nearest(
        self, session: Session, model: Model, vector: Vector, filter: Filter, limit: int, ef: int | None
    ) -> list[Scored]:
        assert isinstance(session, PostgresSession)
        table = table_of(model)
        ((has_superseded, is_indexed),) = session.rows(_STATE, {"index": f"{table}_hnsw"})
        walked = compared = _CURRENT if has_superseded and not filter.include_superseded else "TRUE"
        values: dict[str, Any] = {}
        if not filter.is_open:
            sql, values = condition(filter, DIALECT)
            walked, compared = _IS_ALLOWED.format(condition=sql), _LISTED.format(condition=sql)
            narrow = {"most": MOST_COMPARED, "share": NARROW_SHARE, **values}
            is_indexed = is_indexed and not session.value(_IS_NARROW.format(condition=sql), narrow)
        values |= {"vector": Embedding(vector), "model": model.key}

        def ask(allowed: str, order: str) -> Rows:
            statement = _NEAREST.format(table=table, allowed=allowed, order=order, limit=limit)
            return session.execute(statement, values, binary=True)

        if is_indexed:
            effort = min(ef or (EF_SEARCH if filter.is_open else MOST_EF_SEARCH), MOST_EF_SEARCH)
            with session.connection.pipeline():  # what it sends together is a transaction
                session.run(_EFFORT, {"effort": str(effort), "scanned": str(MOST_SCANNED)})
                rows = ask(walked, _WALKED)
            if len(found := rows.fetchall()) >= limit:
                return _scored(found)
        return _scored(ask(compared, _EXACT).fetchall())


class Embedding(NamedTuple):
    """A vector as a parameter of a statement."""

    vector: Vector


class _EmbeddingDumper(Dumper):
    """pgvector's binary form: two lengths, then the numbers, highest byte first. Ours is lowest first."""

    format = Format.BINARY

    def dump(self, obj: Embedding) -> bytes:
        numbers = array("f", obj.vector)
        if byteorder == "little":
            numbers.byteswap()
        return pack(">HH", len(numbers), 0) + numbers.tobytes()


# For every connection: the server knows the type from the statement.
psycopg.adapters.register_dumper(Embedding, _EmbeddingDumper)


def _scored(rows: Sequence[tuple[ChunkId, float]]) -> list[Scored]:
    """Return chunks nearest first, ties by id."""
    scored = [Scored(chunk, min(1.0, 1.0 - distance)) for chunk, distance in rows]
    return sorted(scored, key=lambda each: (-each.score, each.chunk_id))


def table_of(model: Model) -> str:
    """Return the name of a model's table of vectors; its index is called the same with `_hnsw`."""
    return f"kb_vectors_{model.key:d}"


def from_wire(sent: bytes, dimension: int) -> list[Vector]:
    """Return the vectors, all of one dimension, that `vector_send` has sent, one after the other."""
    import numpy as np

    items = np.frombuffer(sent, [("head", f"S{_HEAD_BYTES}"), ("numbers", ">f4", (dimension,))])
    together, size = items["numbers"].astype("<f4").tobytes(), dimension * FLOAT_BYTES
    return [together[start : start + size] for start in range(0, len(together), size)]


def index_state(session: Session) -> VectorIndexState:
    """Tell whether there is an index of the vectors that searches use, and if not, why."""
    why, model = f"from {INDEX_FROM:,} vectors on", active_model(session)
    if model is not None:
        table = table_of(model)
        if session.value(_IS_VALID, {"index": f"{table}_hnsw"}):
            ((count, size),) = session.rows(_SIZES.format(table=table), {"index": f"{table}_hnsw"})
            return VectorIndexState(count, size)
        if model.identity.dimension > MOST_DIMENSIONS:
            why = f"pgvector indexes up to {MOST_DIMENSIONS:,} dimensions"
        elif model in missing_indexes(session):
            why = joined(": ", "missing", CURE)
    return VectorIndexState(0, 0, why)


def missing_indexes(session: Session) -> list[Model]:
    """Return the models whose vectors should have an index and have none, or none that was finished."""

    def is_missing(table: str) -> bool:
        if session.value(_IS_VALID, {"index": f"{table}_hnsw"}):
            return False
        return bool(session.value(_COUNT_MANY.format(table=table), {"most": INDEX_FROM}) >= INDEX_FROM)

    indexable = (model for model in all_models(session) if model.identity.dimension <= MOST_DIMENSIONS)
    return [model for model in indexable if is_missing(table_of(model))]


def build_indexes(session: PostgresSession, memory_mb: int | None) -> None:
    """Index the vectors of each model once there are enough of them, while others read and write."""
    lock = {"lock": _BUILD_LOCK}
    if not missing_indexes(session) or not session.value("SELECT pg_try_advisory_lock(:lock)", lock):
        return  # or somebody else is building one
    try:
        if memory_mb:
            session.run(f"SET maintenance_work_mem = '{memory_mb:d}MB'")
        for model in missing_indexes(session):
            _build(session, table_of(model))
    except errors.InsufficientPrivilege:  # searches do without, as `kb stats` and `kb doctor` tell
        pass
    finally:
        session.run("RESET maintenance_work_mem")
        session.run("SELECT pg_advisory_unlock(:lock)", lock)


def _build(session: Session, table: str) -> None:
    session.run(f"DROP INDEX IF EXISTS {table}_hnsw")  # one that was not finished
    session.run(f"CREATE INDEX CONCURRENTLY {table}_hnsw ON {table} USING hnsw (embedding vector_cosine_ops)")
    session.run(f"ANALYZE {table}")
