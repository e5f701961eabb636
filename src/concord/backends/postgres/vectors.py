"""Finding chunks by meaning: pgvector's HNSW over cosine, and exactly where that could lose anything."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from concord.backends.embeddings import check_identity, check_vector
from concord.backends.postgres.cache import identity_column, identity_of
from concord.backends.postgres.connections import Connection, Connections
from concord.backends.postgres.copying import move, staging
from concord.backends.postgres.filters import ALLOWED, CHUNKS, SUPERSEDED, condition
from concord.backends.postgres.rows import heading_of, loaded
from concord.backends.postgres.schema import vector_table, vectors
from concord.backends.postgres.vector_form import Embedding, from_wire
from concord.errors import BadValue
from concord.types import ChunkId, Filter, Identity, Pending, Scored, Vector

EF_SEARCH = 64  # where nobody asks for another: recall@10 is above 0.95 (benchmarks/bench_postgres.py)
# A filter that leaves few is answered exactly. Comparing one vector costs 2 µs; walking the graph costs 2 ms
# and more the rarer an allowed one is on the way.
ALWAYS_EXACT = 1000
MOST_EXACT = 10_000
NARROW_SHARE = 0.05  # of all vectors in the table, other organisations' among them: the graph holds them all

_STATE = """
SELECT o.identity, o.dimension, o.chunks,
    (SELECT greatest(c.reltuples, 0) FROM pg_class AS c
     WHERE c.oid = to_regclass('kb_vectors_' || o.dimension)),
    coalesce((SELECT i.indisvalid FROM pg_index AS i
              WHERE i.indexrelid = to_regclass('kb_vectors_' || o.dimension || '_hnsw')), false)
FROM kb_orgs AS o WHERE o.key = %s"""
_COUNT_ALLOWED = f"SELECT count(*) FROM ({ALLOWED} LIMIT %(most)s) AS few"
# Written with a sum, no index can answer it.
_EXACT = """
SELECT v.chunk, v.embedding <=> %(vector)s AS distance FROM {table} AS v WHERE v.org = %(org)s AND {allowed}
ORDER BY (v.embedding <=> %(vector)s) + 0.0, v.chunk LIMIT %(limit)s"""
_NEAREST = """
SELECT v.chunk, v.embedding <=> %(vector)s AS distance FROM {table} AS v WHERE v.org = %(org)s AND {allowed}
ORDER BY v.embedding <=> %(vector)s LIMIT {limit:d}"""  # planned for this limit: an unknown one looks large
_EFFORT = """
SELECT set_config('hnsw.ef_search', %s, true), set_config('hnsw.iterative_scan', 'strict_order', true),
    set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true)"""
# A scalar sub-select stays where it is: it is asked of each vector that the graph comes by.
_IS_ALLOWED = f"(SELECT TRUE FROM {CHUNKS} WHERE c.org = %(org)s AND c.id = v.chunk AND {{condition}})"

_PENDING = """
SELECT p.chunk, d.title, c.heading, c.content, CASE d.type WHEN 'note' THEN d.tags ELSE '{}' END
FROM kb_pending AS p JOIN kb_chunks AS c ON c.org = p.org AND c.id = p.chunk
JOIN kb_documents AS d ON d.org = c.org AND d.id = c.document
WHERE p.org = %(org)s AND p.chunk > %(after)s AND (%(source)s::text IS NULL OR d.source = %(source)s)
ORDER BY p.chunk LIMIT %(limit)s"""
_LOCK_CHUNKS = """
SELECT id FROM kb_chunks WHERE org = %s AND id = ANY(%s) ORDER BY id FOR KEY SHARE"""
_DELETE_VECTORS = "DELETE FROM {table} WHERE org = %s AND chunk = ANY(%s)"
_REMEMBER = "UPDATE kb_orgs SET identity = %s, dimension = %s WHERE key = %s"
_FIELDS = ("org", "chunk", "embedding")
_FETCH = "SELECT chunk, vector_send(embedding) FROM {table} WHERE org = %s AND chunk = ANY(%s)"
_DELETE_SOURCE = """
WITH gone AS (
    DELETE FROM {table} AS v USING kb_documents AS d, kb_chunks AS c
    WHERE d.org = %(org)s AND d.source = %(source)s AND c.org = %(org)s AND c.document = d.id
        AND v.org = %(org)s AND v.chunk = c.id
    RETURNING v.chunk)
INSERT INTO kb_pending SELECT %(org)s, chunk FROM gone"""


class _State(NamedTuple):
    """What there is to search; as _STATE returns it."""

    identity: str | None
    dimension: int | None
    chunks: int
    table_size: float  # about how many vectors all organisations have
    is_indexed: bool


class _Scope(NamedTuple):
    """Which vectors may be found, `v`: asked one by one and as a set, with the values and about how many."""

    each: str
    together: str
    values: dict[str, Any]
    size: int


class PostgresVectors:
    """The vectors of one organisation."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._org = connections.org

    def identity(self) -> Identity | None:
        """Return which embedder made the vectors; None before the first."""
        return identity_of(self._connections.read(self._state).identity)

    def prepare(self, identity: Identity) -> None:
        """Make ready for vectors of this identity, remembering it.

        Raises:
            ModelMismatch: vectors of another identity are stored.
        """
        if self.identity() == identity:
            return
        with self._connections.transaction() as connection:
            connection.execute("SELECT FROM kb_orgs WHERE key = %s FOR UPDATE", (self._org,))
            state = self._state(connection)
            if state.dimension is not None and self._has_vectors(connection, state.dimension):
                check_identity(identity_of(state.identity), identity)
            _make_table(connection, identity.dimension)
            values = (identity_column(identity), identity.dimension, self._org)
            connection.execute(_REMEMBER, values)

    def pending(self, after: ChunkId, limit: int, source_id: str | None = None) -> list[Pending]:
        """Return chunks without a vector whose id is greater than `after`, in order of id."""
        values = {"org": self._org, "after": after, "limit": max(limit, 0), "source": source_id}
        rows = self._connections.read(lambda connection: connection.execute(_PENDING, values).fetchall())
        return [
            Pending(chunk, loaded(title), heading_of(heading), loaded(text), tuple(map(loaded, tags)))
            for chunk, title, heading, text, tags in rows
        ]

    def put(self, vectors: Iterable[tuple[ChunkId, Vector]]) -> int:
        """Store vectors in one transaction, replacing any of the same chunk; return how many."""
        batch = dict(vectors)  # before a transaction begins: the iterable may be an embedder at work
        with self._connections.transaction() as connection:
            dimension = self._state(connection).dimension
            if dimension is None:
                raise BadValue(
                    "no embedder has been prepared for", hint="call prepare() with its identity first"
                )
            for vector in batch.values():
                check_vector(vector, dimension)
            alive = connection.execute(_LOCK_CHUNKS, (self._org, list(batch))).fetchall()
            rows = [(chunk_id, batch[chunk_id]) for (chunk_id,) in alive]
            _write(connection, self._org, vector_table(dimension), rows)
            return len(rows)

    def search(
        self, vector: Vector, filter: Filter, limit: int, *, ef_search: int | None = None
    ) -> list[Scored]:
        """Return the nearest chunks by cosine similarity, nearest first; ties by chunk id."""
        if limit < 1:
            return []
        rows = self._connections.read(
            lambda connection: self._search(connection, vector, filter, limit, ef_search or EF_SEARCH)
        )
        return [Scored(chunk_id, min(1.0, 1.0 - distance)) for chunk_id, distance in rows]

    def fetch(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, Vector]:
        """Return the vectors of those chunks that have one."""

        def work(connection: Connection) -> list[tuple[Any, ...]]:
            dimension = self._state(connection).dimension
            if dimension is None or not chunk_ids:
                return []
            statement = _FETCH.format(table=vector_table(dimension))
            cursor = connection.cursor(binary=True)
            return cursor.execute(statement, (self._org, list(chunk_ids))).fetchall()

        found = {chunk_id: from_wire(sent) for chunk_id, sent in self._connections.read(work)}
        return {chunk_id: found[chunk_id] for chunk_id in chunk_ids if chunk_id in found}

    def delete_source(self, source_id: str) -> int:
        """Delete the vectors of a source's chunks; return how many there were."""
        with self._connections.transaction() as connection:
            dimension = self._state(connection).dimension
            if dimension is None:
                return 0
            statement = _DELETE_SOURCE.format(table=vector_table(dimension))
            return connection.execute(statement, {"org": self._org, "source": source_id}).rowcount

    def _state(self, connection: Connection) -> _State:
        row = connection.execute(_STATE, (self._org,)).fetchone()
        return _State(*row) if row else _State(None, None, 0, 0.0, is_indexed=False)

    def _has_vectors(self, connection: Connection, dimension: int) -> bool:
        statement = f"SELECT FROM {vector_table(dimension)} WHERE org = %s LIMIT 1"
        return connection.execute(statement, (self._org,)).fetchone() is not None

    def _search(
        self, connection: Connection, vector: Vector, filter: Filter, limit: int, ef_search: int
    ) -> list[tuple[ChunkId, float]]:
        state = self._state(connection)
        if state.dimension is None:
            return []
        check_vector(vector, state.dimension)
        scope = self._scope(connection, filter, state)
        values = {"vector": Embedding(vector), "limit": limit, "org": self._org, **scope.values}
        table = vector_table(state.dimension)
        if state.is_indexed and not _is_narrow(scope.size, state.table_size):
            with connection.transaction():
                connection.execute(_EFFORT, (str(ef_search),))
                statement = _NEAREST.format(table=table, allowed=scope.each, limit=limit)
                found = connection.execute(statement, values).fetchall()
            if len(found) == min(limit, scope.size):
                return sorted(found, key=lambda row: (row[1], row[0]))
        return connection.execute(_EXACT.format(table=table, allowed=scope.together), values).fetchall()

    def _scope(self, connection: Connection, filter: Filter, state: _State) -> _Scope:
        if filter.is_open:
            current = "TRUE" if filter.include_superseded else f"v.chunk NOT IN ({SUPERSEDED})"
            return _Scope(current, current, {}, state.chunks)
        sql, values = condition(filter)
        together = f"v.chunk IN ({ALLOWED.format(condition=sql)})"
        if not state.is_indexed:
            return _Scope("", together, values, 0)
        count = _COUNT_ALLOWED.format(condition=sql)
        asked = {"org": self._org, "most": MOST_EXACT + 1, **values}
        (size,) = connection.execute(count, asked).fetchone() or (0,)
        return _Scope(_IS_ALLOWED.format(condition=sql), together, values, size)


def _make_table(connection: Connection, dimension: int) -> None:
    """Make the table for vectors of a dimension, where no organisation needed it before."""
    exists = "SELECT to_regclass(%s) IS NOT NULL"
    connection.execute("SELECT pg_advisory_xact_lock(hashtext('kb_vectors'))")  # two may need it at once
    if connection.execute(exists, (vector_table(dimension),)).fetchone() == (False,):
        connection.execute(vectors(dimension))


def _is_narrow(size: int, table_size: float) -> bool:
    """Whether so few may be found that comparing each is sure, and fast enough."""
    return size <= ALWAYS_EXACT or size <= min(MOST_EXACT, NARROW_SHARE * table_size)


def _write(connection: Connection, org: int, table: str, rows: Sequence[tuple[ChunkId, Vector]]) -> None:
    """Write vectors of chunks that exist; only those that had one already are deleted first."""
    ids = [chunk_id for chunk_id, _ in rows]
    waiting = connection.execute(_DELETE_VECTORS.format(table="kb_pending"), (org, ids)).rowcount
    if waiting < len(ids):
        connection.execute(_DELETE_VECTORS.format(table=table), (org, ids))
    with staging(connection, table, _FIELDS, binary=True) as copy:
        copy.set_types(["int4", "int8", "vector"])
        for chunk_id, vector in rows:
            copy.write_row((org, chunk_id, Embedding(vector)))
    move(connection, table, _FIELDS)
