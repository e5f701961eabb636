"""Finding chunks by meaning: pgvector's HNSW over cosine, and exactly where that could lose anything."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from concord.backends.embeddings import check_identity, check_vector, refuse_elsewhere
from concord.backends.postgres.cache import identity_column, identity_of
from concord.backends.postgres.connections import Connection, Connections
from concord.backends.postgres.copying import move, staging
from concord.backends.postgres.filters import ALLOWED, CHUNKS, SUPERSEDED, condition
from concord.backends.postgres.ledger import check_here, claim
from concord.backends.postgres.rows import loaded
from concord.backends.postgres.schema import vector_table
from concord.backends.postgres.space_rows import take_over
from concord.backends.postgres.vector_form import Embedding, from_wire
from concord.backends.sql_values import list_of
from concord.errors import BadValue, ModelMismatch
from concord.types import ChunkId, Filter, Identity, Pending, Scored, Vector

EF_SEARCH = 64  # where nobody asks for another: recall@10 is above 0.95 (benchmarks/bench_postgres.py)
# A filter that leaves few is answered exactly. Comparing one vector costs 2 µs; walking the graph costs 2 ms
# and more the rarer an allowed one is on the way.
ALWAYS_EXACT = 1000
MOST_EXACT = 10_000
NARROW_SHARE = 0.05  # of all vectors in the table, other organisations' among them: the graph holds them all

_STATE = """
SELECT s.key, s.identity, s.dimension, o.home, o.chunks,
    (SELECT greatest(c.reltuples, 0) FROM pg_class AS c
     WHERE c.oid = to_regclass('kb_vectors_' || s.dimension)),
    coalesce((SELECT i.indisvalid FROM pg_index AS i
              WHERE i.indexrelid = to_regclass('kb_vectors_' || s.dimension || '_hnsw')), false)
FROM kb_orgs AS o JOIN kb_spaces AS s ON s.org = o.key WHERE o.key = %(org)s AND {which}"""
_ACTIVE = _STATE.format(which="s.is_active")
_BOUND = _STATE.format(which="s.identity = %(identity)s")
_COUNT_ALLOWED = f"SELECT count(*) FROM ({ALLOWED} LIMIT %(most)s) AS few"
# Written with a sum, no index can answer it.
_EXACT = """
SELECT v.chunk, v.embedding <=> %(vector)s AS distance FROM {table} AS v
WHERE v.org = %(org)s AND v.space = %(space)s AND {allowed}
ORDER BY (v.embedding <=> %(vector)s) + 0.0, v.chunk LIMIT %(limit)s"""
_NEAREST = """
SELECT v.chunk, v.embedding <=> %(vector)s AS distance FROM {table} AS v
WHERE v.org = %(org)s AND v.space = %(space)s AND {allowed}
ORDER BY v.embedding <=> %(vector)s LIMIT {limit:d}"""  # planned for this limit: an unknown one looks large
_EFFORT = """
SELECT set_config('hnsw.ef_search', %s, true), set_config('hnsw.iterative_scan', 'strict_order', true),
    set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true)"""
# A scalar sub-select stays where it is: it is asked of each vector that the graph comes by.
_IS_ALLOWED = f"(SELECT TRUE FROM {CHUNKS} WHERE c.org = %(org)s AND c.id = v.chunk AND {{condition}})"

# Of a model that has no space, every chunk waits.
_WAITING = """
FROM kb_chunks AS c JOIN kb_documents AS d ON d.org = c.org AND d.id = c.document
WHERE c.org = %(org)s AND (%(source)s::text IS NULL OR d.source = %(source)s) AND (%(space)s::int IS NULL
    OR EXISTS (SELECT FROM kb_pending AS p WHERE p.org = c.org AND p.space = %(space)s AND p.chunk = c.id))"""
_COUNT_WAITING = f"SELECT count(*) {_WAITING}"
_PENDING = f"""
SELECT c.id, d.title, c.heading, c.content, CASE d.type WHEN 'note' THEN d.tags ELSE '{{}}' END
{_WAITING} AND c.id > %(after)s ORDER BY c.id LIMIT %(limit)s"""
_LOCK_SPACE = " FOR KEY SHARE OF s"  # whoever drops the space waits until the vectors are in it
_LOCK_CHUNKS = """
SELECT id FROM kb_chunks WHERE org = %s AND id = ANY(%s) ORDER BY id FOR KEY SHARE"""
_DELETE_VECTORS = "DELETE FROM {table} WHERE org = %s AND space = %s AND chunk = ANY(%s)"
_FIELDS = ("org", "space", "chunk", "embedding")
_FETCH = "SELECT chunk, vector_send(embedding) FROM {table} WHERE org = %s AND space = %s AND chunk = ANY(%s)"
_IS_MARKED = f"""
SELECT EXISTS (SELECT FROM {CHUNKS} WHERE d.org = %(org)s AND d.source = %(source)s AND NOT EXISTS (
    SELECT FROM kb_pending AS p WHERE p.org = c.org AND p.space = %(space)s AND p.chunk = c.id))"""
_DELETE_SOURCE = """
WITH gone AS (
    DELETE FROM {table} AS v USING kb_documents AS d, kb_chunks AS c
    WHERE d.org = %(org)s AND d.source = %(source)s AND c.org = %(org)s AND c.document = d.id
        AND v.org = %(org)s AND v.space = %(space)s AND v.chunk = c.id
    RETURNING v.chunk)
INSERT INTO kb_pending SELECT %(org)s, %(space)s, chunk FROM gone"""


class _State(NamedTuple):
    """What there is to search; as _STATE returns it."""

    space: int
    identity: str | None
    dimension: int | None
    home: str
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
    """The vectors of one organisation: those of an identity, or without one those of the active space."""

    def __init__(self, connections: Connections, identity: Identity | None = None) -> None:
        self._connections = connections
        self._org = connections.org
        self._bound = identity

    def identity(self) -> Identity | None:
        """Return which embedder made the vectors; None before the first, or when the space is not there."""
        state = self._connections.read(self._state)
        return identity_of(state.identity) if state else None

    def prepare(self, identity: Identity) -> None:
        """Make ready for vectors of this identity, remembering it.

        Raises:
            ModelMismatch: vectors of another identity are stored, or the index is bound to another.
        """
        if self._bound:
            check_identity(self._bound, identity)
        if self.identity() == identity:
            return
        with self._connections.transaction() as connection:
            take_over(connection, self._org, identity)

    def waiting(self, source_id: str | None = None) -> int:
        """Return how many chunks have no vector, of all or of one source."""
        ((count,),) = self._waiting(_COUNT_WAITING, source=source_id)
        return int(count)

    def pending(self, after: ChunkId, limit: int, source_id: str | None = None) -> list[Pending]:
        """Return chunks without a vector whose id is greater than `after`, in order of id."""
        rows = self._waiting(_PENDING, after=after, limit=max(limit, 0), source=source_id)
        return [
            Pending(chunk, loaded(title), list_of(heading), loaded(text), tuple(map(loaded, tags)))
            for chunk, title, heading, text, tags in rows
        ]

    def put(self, vectors: Iterable[tuple[ChunkId, Vector]]) -> int:
        """Store vectors in one transaction, replacing any of the same chunk; return how many."""
        batch = dict(vectors)  # before a transaction begins: the iterable may be an embedder at work
        with self._connections.transaction() as connection:
            claim(connection, self._org)
            state = self._state(connection, _LOCK_SPACE)
            check_here(connection, self._org)  # who moves them needs the lock, and may have had it meanwhile
            if state is None or state.dimension is None:
                raise BadValue(
                    "no embedder has been prepared for", hint="call prepare() with its identity first"
                )
            for vector in batch.values():
                check_vector(vector, state.dimension)
            alive = connection.execute(_LOCK_CHUNKS, (self._org, list(batch))).fetchall()
            rows = [(chunk_id, batch[chunk_id]) for (chunk_id,) in alive]
            _write(connection, self._org, state.space, vector_table(state.dimension), rows)
            return len(rows)

    def search(
        self, vector: Vector, filter: Filter, limit: int, *, ef_search: int | None = None
    ) -> list[Scored]:
        """Return the nearest chunks by cosine similarity, nearest first; ties by chunk id.

        Raises:
            ModelMismatch: the vectors of the model that this index is bound to are gone.
        """
        if limit < 1:
            return []
        rows = self._connections.read(
            lambda connection: self._search(connection, vector, filter, limit, ef_search or EF_SEARCH)
        )
        return [Scored(chunk_id, min(1.0, 1.0 - distance)) for chunk_id, distance in rows]

    def fetch(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, Vector]:
        """Return the vectors of those chunks that have one."""

        def work(connection: Connection) -> list[tuple[Any, ...]]:
            state = self._state(connection)
            if state is None or state.dimension is None or not chunk_ids:
                return []
            _check_here(state)
            statement = _FETCH.format(table=vector_table(state.dimension))
            cursor = connection.cursor(binary=True)
            return cursor.execute(statement, (self._org, state.space, list(chunk_ids))).fetchall()

        found = {chunk_id: from_wire(sent) for chunk_id, sent in self._connections.read(work)}
        return {chunk_id: found[chunk_id] for chunk_id in chunk_ids if chunk_id in found}

    def delete_source(self, source_id: str) -> int:
        """Delete the vectors of a source's chunks; return how many there were."""
        with self._connections.transaction() as connection:
            state = self._state(connection)
            if state is None or state.dimension is None:
                return 0
            values = {"org": self._org, "space": state.space, "source": source_id}
            if state.home and connection.execute(_IS_MARKED, values).fetchone() == (True,):
                _check_here(state)
            statement = _DELETE_SOURCE.format(table=vector_table(state.dimension))
            return connection.execute(statement, values).rowcount

    def _state(self, connection: Connection, locked: str = "") -> _State | None:
        """Return what there is of the space that this index is about; None when there is no such space."""
        values = {"org": self._org, "identity": self._bound and identity_column(self._bound)}
        row = connection.execute((_BOUND if self._bound else _ACTIVE) + locked, values).fetchone()
        return _State(*row) if row else None

    def _waiting(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        def work(connection: Connection) -> list[tuple[Any, ...]]:
            state = self._state(connection)
            known = {"org": self._org, "space": state.space if state else None, **values}
            return connection.execute(statement, known).fetchall()

        return self._connections.read(work)

    def _search(
        self, connection: Connection, vector: Vector, filter: Filter, limit: int, ef_search: int
    ) -> list[tuple[ChunkId, float]]:
        state = self._state(connection)
        if state is None:
            name = self._bound.name if self._bound else "the model"
            raise ModelMismatch(
                f"the index holds no vectors of {name}, or not any more", hint="`kb models list`"
            )
        if state.dimension is None:
            return []
        check_vector(vector, state.dimension)
        _check_here(state)
        scope = self._scope(connection, filter, state)
        known = {"vector": Embedding(vector), "limit": limit, "org": self._org, "space": state.space}
        values = {**known, **scope.values}
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


def _check_here(state: _State) -> None:
    if state.home:
        refuse_elsewhere(state.home, "")


def _is_narrow(size: int, table_size: float) -> bool:
    """Whether so few may be found that comparing each is sure, and fast enough."""
    return size <= ALWAYS_EXACT or size <= min(MOST_EXACT, NARROW_SHARE * table_size)


def _write(
    connection: Connection, org: int, space: int, table: str, rows: Sequence[tuple[ChunkId, Vector]]
) -> None:
    """Write vectors of chunks that exist; only those that had one already are deleted first."""
    ids = [chunk_id for chunk_id, _ in rows]
    waiting = connection.execute(_DELETE_VECTORS.format(table="kb_pending"), (org, space, ids)).rowcount
    if waiting < len(ids):
        connection.execute(_DELETE_VECTORS.format(table=table), (org, space, ids))
    with staging(connection, table, _FIELDS, binary=True) as copy:
        copy.set_types(["int4", "int4", "int8", "vector"])
        for chunk_id, vector in rows:
            copy.write_row((org, space, chunk_id, Embedding(vector)))
    move(connection, table, _FIELDS)
