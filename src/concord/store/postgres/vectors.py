"""Vectors: a table for each model, keyed by the ids of kb_embeddings, and the search for the nearest.

From 2,000 vectors on a table has an HNSW index over cosine. It is walked on until enough of what it comes by
is let through. What a filter leaves few of is compared one by one, and so is all where a walk finds too few.
"""

from __future__ import annotations

import logging
from array import array
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
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
from concord.store.embeddings import is_intact
from concord.store.models import Model, active_model, all_models
from concord.store.postgres.database import DIALECT, PostgresSession, Rows
from concord.store.postgres.words import SUPERSEDED, Scope, Scopes
from concord.store.rows import condition
from concord.store.sql import Session, VectorTables, override
from concord.types import FLOAT_BYTES, ChunkId, Filter, Scored, Vector

EF_SEARCH = 64  # where nobody asks for another: recall@10 is above 0.95 (benchmarks/bench_postgres.py)
MOST_EF_SEARCH = 200
MOST_SCANNED = 20_000  # vectors that a walk looks at, as pgvector has it
INDEX_FROM = 2000  # vectors; fewer are compared one by one in 4 ms, and an index would slow every write
MOST_DIMENSIONS = 2000  # that pgvector can index
_BUILD_LOCK = 0x6B627678
_HEAD_BYTES = 4  # of a vector as pgvector sends it: two lengths, then the numbers, highest byte first

_COPY = "COPY {table} (id, embedding) FROM STDIN (FORMAT BINARY)"
# One row: to make and to take apart one for each vector takes as long as to read them.
_READ = """
SELECT array_agg(id), string_agg(vector_send(embedding), '') FROM {table} WHERE id IN (:ids...)"""
_STATE = """
SELECT (SELECT value FROM kb_meta WHERE key = 'generation'), (SELECT value FROM kb_meta WHERE key = 'chunks'),
    coalesce((SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(:index)), false)"""
# The vectors themselves come along, of the nearest only, to be compared with their checksums.
_NEAREST = """
SELECT n.chunk, n.distance, e.crc, vector_send(w.embedding) FROM (
    SELECT l.chunk, v.id, v.embedding <=> :vector::vector AS distance
    FROM {table} AS v JOIN kb_chunk_vectors AS l ON l.embedding = v.id AND l.model = :model
    WHERE {allowed} ORDER BY {order} LIMIT {limit:d}
) AS n JOIN {table} AS w ON w.id = n.id JOIN kb_embeddings AS e ON e.id = n.id"""
_EXACT = "(v.embedding <=> :vector::vector) + 0.0, l.chunk"  # written with a sum, no index can answer it
_WALKED = "v.embedding <=> :vector::vector"
# In strict order, what is nearer than something walked past is lost. So order comes afterwards.
_EFFORT = """
SELECT set_config('hnsw.ef_search', :effort, true), set_config('hnsw.iterative_scan', 'relaxed_order', true),
    set_config('hnsw.max_scan_tuples', :scanned, true), set_config('enable_seqscan', 'off', true),
    set_config('enable_bitmapscan', 'off', true), set_config('enable_hashjoin', 'off', true),
    set_config('enable_mergejoin', 'off', true)"""
# A scalar sub-select stays where it is: it is asked of each vector that the graph comes by.
_IS_ALLOWED = """(
    SELECT TRUE FROM kb_chunks AS c JOIN kb_documents AS d ON d.key = c.document
    WHERE c.id = l.chunk AND {condition})"""

# What others may do with chunks, they may do with the vectors of a model that comes later.
_GRANTS = """
SELECT format('GRANT %s ON %I TO %s', string_agg(DISTINCT a.privilege_type, ', '), :table::text,
    CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END)
FROM pg_class AS c CROSS JOIN LATERAL aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) AS a
WHERE c.oid = 'kb_chunks'::regclass AND pg_get_userbyid(a.grantee) <> current_user GROUP BY a.grantee"""
_LOOK = """
SELECT (SELECT i.indisvalid FROM pg_index AS i WHERE i.indexrelid = to_regclass(:index)),
    coalesce(pg_relation_size(to_regclass(:index)), 0),
    (SELECT count(*) FROM (SELECT FROM {table} LIMIT :least) AS few)"""
CURE = Hint(Action.SYNC, "{sync} builds it, by the role that owns the tables, and so does {repair}")


class HnswState(NamedTuple):
    """The index of a model's vectors, or that there is none."""

    is_valid: bool | None  # None: there is none
    size_bytes: int
    vectors: int  # up to INDEX_FROM

    @property
    def is_missing(self) -> bool:
        """Whether there should be one and is none, or none that was finished."""
        return self.is_valid is False or (self.is_valid is None and self.vectors >= INDEX_FROM)


class PostgresVectorTables(VectorTables):
    """The vectors of one organisation."""

    def __init__(self, scopes: Scopes) -> None:
        self._scopes = scopes

    @override
    def create(self, session: Session, model: Model) -> None:
        table, dimension = table_of(model), model.identity.dimension
        session.run(
            f"CREATE TABLE {table} (id bigint PRIMARY KEY, embedding vector({dimension:d}) NOT NULL);"
            f"ALTER TABLE {table} ALTER embedding SET STORAGE PLAIN"
        )
        for (grant,) in session.rows(_GRANTS, {"table": table}):
            session.run(grant)

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
        state = {"index": f"{table_of(model)}_hnsw"}
        ((generation, chunks, is_indexed),) = session.rows(_STATE, state)
        scope = self._scopes.of(session, filter, generation, chunks)
        search = _Search(session, model, limit, *_allowed(scope, filter))
        search.values.update(vector=Embedding(vector), model=model.key)
        if is_indexed and (scope is None or scope.is_all_but):
            effort = ef or (EF_SEARCH if filter.is_open else MOST_EF_SEARCH)  # past what is left out
            walked = search.walked(min(effort, MOST_EF_SEARCH))
            if len(walked) >= limit:
                return walked
        return search.compared()


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


class _Search(NamedTuple):
    """A search for the nearest of what a condition allows."""

    session: PostgresSession
    model: Model
    limit: int
    allowed: str
    values: dict[str, Any]

    def compared(self) -> list[Scored]:
        """Return the nearest after comparing each vector; in place of damaged ones, others."""
        wanted = self.limit
        while True:
            rows = self._rows(_EXACT, wanted).fetchall()
            intact = self._intact(rows)
            if len(intact) >= self.limit or len(rows) < wanted:
                return intact[: self.limit]
            wanted += len(rows) - len(intact)

    def walked(self, effort: int) -> list[Scored]:
        """Return the nearest that the graph leads to, which may be fewer than there are."""
        with self.session.connection.pipeline():  # what it sends together is a transaction
            self.session.run(_EFFORT, {"effort": str(effort), "scanned": str(MOST_SCANNED)})
            rows = self._rows(_WALKED, self.limit)
        return self._intact(rows.fetchall())

    def _rows(self, order: str, limit: int) -> Rows:
        table = table_of(self.model)
        statement = _NEAREST.format(table=table, allowed=self.allowed, order=order, limit=limit)
        return self.session.execute(statement, self.values, binary=True)

    def _intact(self, rows: Sequence[tuple[ChunkId, float, int, bytes]]) -> list[Scored]:
        """Return those whose vectors are as they were written, nearest first, ties by id."""
        vectors = from_wire(b"".join([sent for *_, sent in rows]), self.model.identity.dimension)
        scored = [
            Scored(chunk, min(1.0, 1.0 - distance))
            for (chunk, distance, crc, _), vector in zip(rows, vectors, strict=True)
            if is_intact(vector, crc)
        ]
        return sorted(scored, key=lambda each: (-each.score, each.chunk_id))


def table_of(model: Model) -> str:
    """Return the name of a model's table of vectors; its index is called the same with `_hnsw`."""
    return f"kb_vectors_{model.key:d}"


def _allowed(scope: Scope | None, filter: Filter) -> tuple[str, dict[str, Any]]:
    """Return what a chunk must satisfy, and the values in it."""
    if scope is None:
        sql, values = condition(filter, DIALECT)
        return _IS_ALLOWED.format(condition=sql), values
    if not scope.is_all_but:
        return "l.chunk = ANY(:allowed::bigint[])", {"allowed": scope.array}
    return ("TRUE" if scope.is_everything else f"l.chunk NOT IN ({SUPERSEDED})"), {}


def from_wire(sent: bytes, dimension: int) -> list[Vector]:
    """Return the vectors, all of one dimension, that `vector_send` has sent, one after the other."""
    import numpy as np

    items = np.frombuffer(sent, [("head", f"S{_HEAD_BYTES}"), ("numbers", ">f4", (dimension,))])
    together, size = items["numbers"].astype("<f4").tobytes(), dimension * FLOAT_BYTES
    return [together[start : start + size] for start in range(0, len(together), size)]


def hnsw_state(session: Session, model: Model) -> HnswState:
    """Return what there is of an index."""
    table = table_of(model)
    values = {"table": table, "index": f"{table}_hnsw", "least": INDEX_FROM}
    return HnswState(*session.rows(_LOOK.format(table=table), values)[0])


def index_state(session: Session) -> VectorIndexState:
    """Tell whether there is an index of the vectors that searches use, and if not, why."""
    why, model = f"from {INDEX_FROM:,} vectors on", active_model(session)
    if model is not None:
        state = hnsw_state(session, model)
        if state.is_valid:
            count = session.value(f"SELECT count(*) FROM {table_of(model)}")
            return VectorIndexState(count, state.size_bytes)
        if model.identity.dimension > MOST_DIMENSIONS:
            why = f"pgvector indexes up to {MOST_DIMENSIONS:,} dimensions"
        elif state.is_missing:
            why = joined(": ", "missing", CURE)
    return VectorIndexState(0, 0, why)


def missing_indexes(session: Session) -> Iterator[tuple[Model, HnswState]]:
    """Yield the models whose vectors should have an index and have none, or none that was finished."""
    for model in all_models(session):
        state = hnsw_state(session, model)
        if model.identity.dimension <= MOST_DIMENSIONS and state.is_missing:
            yield model, state


def build_indexes(session: PostgresSession, memory_mb: int | None) -> None:
    """Index the vectors of each model once there are enough of them, while others read and write."""
    lock = {"lock": _BUILD_LOCK}
    if not [*missing_indexes(session)] or not session.value("SELECT pg_try_advisory_lock(:lock)", lock):
        return  # or somebody else is building one
    try:
        if memory_mb:
            session.run(f"SET maintenance_work_mem = '{memory_mb:d}MB'")
        for model, _ in missing_indexes(session):
            _build(session, table_of(model))
    except errors.InsufficientPrivilege:  # searches do without: each vector is compared
        _warn(f"no vector index could be built, so searches compare every vector: {CURE}")
    finally:
        session.run("RESET maintenance_work_mem")
        session.run("SELECT pg_advisory_unlock(:lock)", lock)


def _build(session: Session, table: str) -> None:
    session.run(f"DROP INDEX IF EXISTS {table}_hnsw")  # one that was not finished
    session.run(f"CREATE INDEX CONCURRENTLY {table}_hnsw ON {table} USING hnsw (embedding vector_cosine_ops)")
    session.run(f"ANALYZE {table}")


@cache  # once a process: a sync of many sources would say it of each
def _warn(message: str) -> None:
    logging.getLogger(__name__).warning(message)
