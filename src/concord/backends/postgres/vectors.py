"""Finding chunks by meaning: pgvector's HNSW over cosine, and exactly where that could lose anything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import psycopg

from concord.backends.postgres.cache import identity_column, identity_of
from concord.backends.postgres.connections import Connection, Connections
from concord.backends.postgres.filters import CHUNKS
from concord.backends.postgres.ledger import check_here, claim
from concord.backends.postgres.rows import array_of, loaded, stored, stored_name
from concord.backends.postgres.schema import vector_table
from concord.backends.postgres.scope import Scope, Scopes, open_scope, uncounted
from concord.backends.postgres.space_rows import take_over
from concord.backends.postgres.vector_form import Embedding, Embeddings, from_wire
from concord.store.sql_values import list_of
from concord.store.store_errors import kept_elsewhere, unprepared, vectors_gone
from concord.store.vector_checks import check_identity, check_vector, check_vectors, is_sound
from concord.types import FLOAT_BYTES, ChunkId, Filter, Identity, Pending, Scored, Vector

Cursor = psycopg.Cursor[tuple[Any, ...]]

MOST_EF_SEARCH = 200
_OVER_FETCHED = 4  # times what is wanted: the nearest of these were found up to 1.4 times as often
EF_SEARCH = 64  # where nobody asks for another: recall@10 is above 0.95 (benchmarks/bench_postgres.py)
_FETCHED_AT_ONCE = 10_000  # vectors in one value, which may have a gigabyte: 16,000 dimensions fit

_STATE = """
SELECT s.key, s.identity, s.dimension, o.home,
    coalesce((SELECT i.indisvalid FROM pg_index AS i
              WHERE i.indexrelid = to_regclass('kb_vectors_' || s.dimension || '_hnsw')), false),
    o.chunks,
    (SELECT greatest(c.reltuples, 0) FROM pg_class AS c
     WHERE c.oid = to_regclass('kb_vectors_' || s.dimension)),
    o.generation {more}
FROM kb_orgs AS o JOIN kb_spaces AS s ON s.org = o.key WHERE o.key = %(org)s AND {which}"""
_IS_ACTIVE, _IS_BOUND = "s.is_active", "s.identity = %(identity)s"
# Written with a sum, no index can answer it.
_EXACT = "(v.embedding <=> %(vector)s) + 0.0, v.chunk LIMIT %(limit)s"
_WALKED = "v.embedding <=> %(vector)s LIMIT {limit:d}"  # planned for this limit: an unknown one looks large
_NEAREST = """
SELECT array_agg(n.chunk), array_agg(n.distance), {sent}, {passed} FROM (
    SELECT v.chunk, v.embedding <=> %(vector)s AS distance, v.embedding FROM {table} AS v
    WHERE v.org = %(org)s AND v.space = %(space)s AND {allowed} ORDER BY {order}
) AS n"""
_WITH_VECTORS, _WITHOUT_VECTORS = "string_agg(vector_send(n.embedding), '')", "NULL::bytea"
# Vectors that the graph has led to, also those that a policy or a filter then hid, as the server counts them
# for its statistics: since some moment before the transaction, so only the difference of two tells anything.
_PASSED = "coalesce(pg_stat_get_xact_tuples_fetched(to_regclass({index})), 0)"
# How the graph is walked in the rest of a transaction; asked with the state, it takes no time of its own. In
# strict order, what is nearer than something walked past is lost, be that another organisation's: where four
# collections shared the graph, 22 of 150 searches missed all the nearest ten. So order comes afterwards.
_EFFORT = f""",
    set_config('hnsw.ef_search', %(effort)s, true), set_config('hnsw.iterative_scan', 'relaxed_order', true),
    set_config('hnsw.max_scan_tuples', %(scanned)s, true),
    set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
    {_PASSED.format(index="'kb_vectors_' || s.dimension || '_hnsw'")}"""

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
_HOLD_SPACE = f"SELECT FROM kb_spaces AS s WHERE s.org = %(org)s AND {{which}}{_LOCK_SPACE}"
# A chunk that waits for a vector is there until somebody takes it off the list: whoever deletes it does so
# first, too. Where others are among them, each is looked up and held, in order: of `= ANY` a planner that
# knows little of the organisation thought it best to read all its chunks. Those that are gone get no vector.
# Nothing is written unless the space, which is held by then, is here and as it is thought to be.
_PUT = """
WITH here AS MATERIALIZED (
    SELECT FROM kb_orgs AS o JOIN kb_spaces AS s ON s.org = o.key
    WHERE o.key = %(org)s AND o.home = '' AND s.key = %(space)s AND s.dimension = %(dimension)s
        AND s.identity IS NOT DISTINCT FROM %(seen)s AND {which}),
waiting AS (
    DELETE FROM kb_pending WHERE org = %(org)s AND space = %(space)s AND chunk = ANY(%(ids)s::bigint[])
        AND EXISTS (SELECT FROM here) RETURNING chunk),
alive AS (
    SELECT c.id FROM (SELECT unnest(%(ids)s::bigint[]) AS id ORDER BY 1) AS wanted CROSS JOIN LATERAL (
        SELECT id FROM kb_chunks WHERE org = %(org)s AND id = wanted.id FOR KEY SHARE) AS c
    WHERE EXISTS (SELECT FROM here)),
stored AS (
    INSERT INTO {table} (org, space, chunk, embedding)
    SELECT %(org)s, %(space)s, given.id, given.embedding
    FROM (SELECT unnest(%(ids)s::bigint[]) AS id, unnest(%(vectors)s) AS embedding) AS given
    WHERE (SELECT count(*) FROM waiting) = cardinality(%(ids)s::bigint[])
        OR given.id IN (SELECT id FROM alive)
    ON CONFLICT (org, space, chunk) DO UPDATE SET embedding = excluded.embedding RETURNING 1)
SELECT EXISTS (SELECT FROM here), (SELECT count(*) FROM stored)"""
# One row: to make and to take apart one for each vector takes as long as to read them.
_FETCH = """
SELECT array_agg(v.chunk), string_agg(vector_send(v.embedding), '') FROM {table} AS v
WHERE v.org = %(org)s AND v.chunk = ANY(%(ids)s::bigint[]) AND v.space = (
    SELECT s.key FROM kb_orgs AS o JOIN kb_spaces AS s ON s.org = o.key
    WHERE o.key = %(org)s AND o.home = '' AND s.dimension = %(dimension)s AND {which})"""
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
    """What there is to search; as _STATE returns it, the last four as they are about now."""

    space: int
    identity: str | None
    dimension: int | None
    home: str
    is_indexed: bool
    chunks: int
    table_size: float  # how many vectors all organisations have
    generation: int

    def is_like(self, other: _State) -> bool:
        """Whether what is asked of the one can be asked of the other in the same words."""
        return self[:5] == other[:5]


class _Wanted(NamedTuple):
    """What is searched for."""

    vector: Vector
    filter: Filter
    limit: int
    ef_search: int
    with_vectors: bool

    def with_all_effort(self) -> _Wanted:
        """Return the same for a walk that looks further than it must."""
        return self._replace(limit=_OVER_FETCHED * self.limit, ef_search=MOST_EF_SEARCH)


class _Walked(NamedTuple):
    """What the graph has led to, and whether that may be other than the nearest: it led past much else."""

    found: list[Scored]
    is_astray: bool


class PostgresVectors:
    """The vectors of one organisation: those of an identity, or without one those of the active space."""

    def __init__(self, connections: Connections, identity: Identity | None = None) -> None:
        self._connections = connections
        self._org = connections.org
        self._bound = identity
        self._identity = identity_column(identity) if identity else None
        self._which = _IS_BOUND if identity else _IS_ACTIVE
        self._seen: _State | None = None  # when somebody asked last
        self._scopes = Scopes(self._org)

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

    def count_pending(self, source_id: str | None = None) -> int:
        """Return how many chunks have no vector, of all or of one source."""
        ((count,),) = self._waiting(_COUNT_WAITING, source=stored_name(source_id))
        return int(count)

    def pending(self, after: ChunkId, limit: int, source_id: str | None = None) -> list[Pending]:
        """Return chunks without a vector whose id is greater than `after`, in order of id."""
        asked = stored_name(source_id)
        rows = self._waiting(_PENDING, after=after, limit=max(limit, 0), source=asked)
        return [
            Pending(chunk, loaded(title), list_of(heading), loaded(text), tuple(map(loaded, tags)))
            for chunk, title, heading, text, tags in rows
        ]

    def put(self, vectors: Iterable[tuple[ChunkId, Vector]]) -> int:
        """Store vectors in one transaction, replacing any of the same chunk; return how many."""
        batch = dict(vectors)  # before a transaction begins: the iterable may be an embedder at work
        stored = self._put_as_seen(batch)
        if stored is not None:
            return stored
        with self._connections.transaction() as connection:
            claim(connection, self._org)
            state = self._state(connection, _LOCK_SPACE)
            check_here(connection, self._org)  # who moves them needs the lock, and may have had it meanwhile
            if state is None or state.dimension is None:
                raise unprepared()
            check_vectors(batch.values(), state.dimension)
            self._seen = state
            return _stored(self._put(connection, state, batch)) or 0

    def search(
        self,
        vector: Vector,
        filter: Filter,
        limit: int,
        *,
        ef_search: int | None = None,
        with_vectors: bool = False,
    ) -> list[Scored]:
        """Return the nearest chunks by cosine similarity, nearest first; ties by chunk id.

        Raises:
            ModelMismatch: the vectors of the model that this index is bound to are gone.
        """
        if limit < 1:
            return []
        wanted = _Wanted(vector, filter, limit, ef_search or EF_SEARCH, with_vectors)
        return self._connections.read(lambda connection: self._search(connection, wanted))

    def fetch(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, Vector]:
        """Return the vectors of those chunks that have one."""
        found: dict[ChunkId, Vector] = {}
        for start in range(0, len(chunk_ids), _FETCHED_AT_ONCE):
            found |= self._fetch(chunk_ids[start : start + _FETCHED_AT_ONCE])
        return {chunk_id: found[chunk_id] for chunk_id in chunk_ids if chunk_id in found}

    def delete_source(self, source_id: str) -> int:
        """Delete the vectors of a source's chunks; return how many there were."""
        with self._connections.transaction() as connection:
            state = self._state(connection)
            if state is None or state.dimension is None:
                return 0
            values = {"org": self._org, "space": state.space, "source": stored(source_id)}
            if state.home and connection.execute(_IS_MARKED, values).fetchone() == (True,):
                _check_here(state)
            statement = _DELETE_SOURCE.format(table=vector_table(state.dimension))
            return connection.execute(statement, values).rowcount

    def _put_as_seen(self, batch: Mapping[ChunkId, Vector]) -> int | None:
        """Store vectors in one trip and return how many; None if the space is not as it was last seen."""
        seen = self._seen
        if seen is None or seen.home or not is_sound(batch.values(), seen.dimension):
            return None
        with self._connections.session() as connection:
            with connection.pipeline():  # what it sends together is a transaction
                connection.execute(_HOLD_SPACE.format(which=self._which), self._whose())
                stored = self._put(connection, seen, batch)
            return _stored(stored)

    def _put(self, connection: Connection, state: _State, batch: Mapping[ChunkId, Vector]) -> Cursor:
        statement = _PUT.format(table=vector_table(state.dimension or 0), which=self._which)
        space = {"space": state.space, "dimension": state.dimension, "seen": state.identity}
        values = {"ids": array_of(batch), "vectors": Embeddings(list(batch.values()))}
        return connection.execute(statement, {**self._whose(), **space, **values})

    def _fetch(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, Vector]:
        def work(connection: Connection) -> dict[ChunkId, Vector]:
            return self._fetched(connection, self._seen, chunk_ids) or self._fetched(
                connection, self._state(connection), chunk_ids
            )

        return self._connections.read(work)

    def _fetched(
        self, connection: Connection, state: _State | None, chunk_ids: Sequence[ChunkId]
    ) -> dict[ChunkId, Vector]:
        """Return vectors of chunks, if they are where a state says."""
        if state is None or state.dimension is None:
            return {}
        _check_here(state)
        statement = _FETCH.format(table=vector_table(state.dimension), which=self._which)
        asked = {**self._whose(), "ids": array_of(chunk_ids), "dimension": state.dimension}
        ids, sent = connection.cursor(binary=True).execute(statement, asked).fetchone() or (None, b"")
        return dict(zip(ids, from_wire(sent, state.dimension), strict=True)) if ids else {}

    def _state(self, connection: Connection, locked: str = "") -> _State | None:
        """Return what there is of the space that this index is about; None when there is no such space."""
        return _state_of(self._ask_state(connection, locked).fetchone())

    def _ask_state(self, connection: Connection, locked: str = "", more: str = "", **values: Any) -> Cursor:
        statement = _STATE.format(which=self._which, more=more) + locked
        return connection.execute(statement, {**self._whose(), **values})

    def _whose(self) -> dict[str, Any]:
        return {"org": self._org, "identity": self._identity}

    def _waiting(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        def work(connection: Connection) -> list[tuple[Any, ...]]:
            state = self._state(connection)
            known = {"org": self._org, "space": state.space if state else None, **values}
            return connection.execute(statement, known).fetchall()

        return self._connections.read(work)

    def _search(self, connection: Connection, wanted: _Wanted) -> list[Scored]:
        vector, filter, limit = wanted.vector, wanted.filter, wanted.limit
        values: dict[str, Any] = {"vector": Embedding(vector), "limit": limit, "org": self._org}
        walk = partial(self._walk, connection, values)
        seen, walked = self._seen, None
        if seen is not None and _is_walked(seen, filter, vector):
            state, walked = walk(wanted, seen, open_scope(filter, seen.chunks))
        else:
            state = self._seen = self._state(connection)
        if state is None:
            raise vectors_gone(self._bound)
        if state.dimension is None:
            return []
        if walked is None:  # or it was checked before
            check_vector(vector, state.dimension)
        _check_here(state)
        scope = self._scope(connection, filter, state)
        values |= scope.values
        if state.is_indexed and not scope.is_narrow(state.table_size):
            walked = walk(wanted, state, scope)[1] if walked is None else walked
            if walked and walked.is_astray and not scope.is_comparable:
                walked = walk(wanted.with_all_effort(), state, scope)[1]
            elif walked and walked.is_astray:
                walked = None
            if walked and len(walked.found) >= min(limit, scope.size):
                return _in_order(walked.found)[:limit]
        statement = _nearest(wanted, state, scope.together, _EXACT)
        compared = connection.cursor(binary=True).execute(statement, {**values, "space": state.space})
        return _in_order(_scored(compared.fetchone(), state.dimension))

    def _walk(
        self, connection: Connection, values: Mapping[str, Any], wanted: _Wanted, seen: _State, scope: Scope
    ) -> tuple[_State | None, _Walked | None]:
        """Walk the graph and look at the state anew, in one trip; nothing is found if that is another now."""
        in_view = wanted.limit + wanted.ef_search, seen.table_size
        effort = {"effort": str(wanted.ef_search), "scanned": str(scope.most_scanned(*in_view))}
        statement = _nearest(wanted, seen, scope.each, _WALKED.format(limit=wanted.limit))
        with connection.pipeline():
            asked = self._ask_state(connection, more=_EFFORT, **effort)
            walked = connection.cursor(binary=True).execute(statement, {**values, "space": seen.space})
        now, row = asked.fetchone(), walked.fetchone()
        state = self._seen = _state_of(now)
        if not (now and row and state and state.is_like(seen)):
            return state, None
        is_astray = row[-1] - now[-1] > scope.most_passed(*in_view)
        return state, _Walked(_scored(row, seen.dimension or 0), is_astray)

    def _scope(self, connection: Connection, filter: Filter, state: _State) -> Scope:
        if filter.is_open:
            return open_scope(filter, state.chunks)
        if not state.is_indexed:
            return uncounted(filter)
        return self._scopes.counted(connection, filter, state.generation)


def _nearest(wanted: _Wanted, state: _State, allowed: str, order: str) -> str:
    """Return the statement that finds the nearest, in an order that decides how."""
    table = vector_table(state.dimension or 0)
    return _NEAREST.format(
        sent=_WITH_VECTORS if wanted.with_vectors else _WITHOUT_VECTORS,
        passed=_PASSED.format(index=f"'{table}_hnsw'"),
        table=table,
        allowed=allowed,
        order=order,
    )


def _in_order(found: list[Scored]) -> list[Scored]:
    return sorted(found, key=lambda one: (-one.score, one.chunk_id))


def _scored(row: tuple[Any, ...] | None, dimension: int) -> list[Scored]:
    """Return what was found, about nearest first."""
    ids, distances, sent, _ = row or (None, None, None, 0)
    if not ids:
        return []
    vectors = from_wire(sent, dimension) if sent else [b""] * len(ids)
    return list(map(Scored, ids, map(_cosine, distances), vectors))


def _cosine(distance: float) -> float:
    return min(1.0, 1.0 - distance)


def _stored(cursor: Cursor) -> int | None:
    """Return how many vectors were stored; None where their space is not what it was taken for."""
    is_here, number = cursor.fetchone() or (False, 0)
    return int(number) if is_here else None


def _state_of(row: tuple[Any, ...] | None) -> _State | None:
    return _State(*row[: len(_State._fields)]) if row else None


def _is_walked(seen: _State, filter: Filter, vector: Vector) -> bool:
    """Whether a search for this vector most likely walks the graph; one that cannot be sent is refused."""
    if not filter.is_open or seen.dimension is None or not seen.is_indexed:
        return False
    if len(vector) != seen.dimension * FLOAT_BYTES:
        return False
    if open_scope(filter, seen.chunks).is_narrow(seen.table_size):  # the others are most of the graph
        return False
    check_vector(vector, seen.dimension)
    return True


def _check_here(state: _State) -> None:
    if state.home:
        raise kept_elsewhere(state.home, "")
