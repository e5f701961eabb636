"""Finding chunks by meaning, always exactly: sqlite-vec, or its vectors kept in memory where they are few."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from concord.backends.embeddings import check_identity, check_vector, refuse_elsewhere
from concord.backends.sqlite.connections import Connection, Readers, Writer
from concord.backends.sqlite.filters import CHUNKS, condition, has_superseded
from concord.backends.sqlite.ledger import check_here, home_url, move_home
from concord.backends.sqlite.resident import MOST, Resident
from concord.backends.sqlite.rows import heading_of
from concord.backends.sqlite.vec_table import (
    count_change,
    create_vec,
    forget_vectors,
    lacks_sentinel,
    rebuild_as_cosine,
    remember_identity,
    stored_identity,
    vec_exists,
)
from concord.errors import BadValue
from concord.types import ChunkId, Filter, Identity, Pending, Scored, Vector

_MAX_K = 4096  # sqlite-vec refuses more neighbours than this
# Reading a vector by its id takes at worst as long as passing this many in a scan: 24 µs where its neighbours
# are not read too, and 0.35 µs (384 dimensions, 100,000 vectors).
_LOOKUP_COST = 64

_STATE = """
SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'kb_vec') AS has_vectors,
    (SELECT value FROM kb_vec_meta WHERE key = 'dimension') AS dimension,
    (SELECT value FROM kb_meta WHERE key = 'chunks') AS chunks,
    ifnull((SELECT value FROM kb_vec_meta WHERE key = 'version'), 0) AS version,
    ifnull((SELECT value FROM kb_vec_meta WHERE key = 'home'), '') AS home"""
_ALLOWED = f"SELECT c.id FROM {CHUNKS} WHERE {{condition}}"
_NEAREST = "SELECT distance, rowid FROM kb_vec WHERE embedding MATCH :vector AND k = :k"
_NEAREST_ALLOWED = _NEAREST + f" AND rowid IN ({_ALLOWED})"
_BY_DISTANCE = """
SELECT vec_distance_cosine(v.embedding, :vector) AS distance, v.rowid FROM {rows}
ORDER BY distance, v.rowid LIMIT :limit"""
_SCAN = _BY_DISTANCE.format(rows="kb_vec AS v")
_SCAN_ALLOWED = _BY_DISTANCE.format(rows=f"({_ALLOWED}) AS a CROSS JOIN kb_vec AS v ON v.rowid = a.id")

_PENDING = """
SELECT p.chunk, d.title, c.heading, c.content, CASE d.type WHEN 'note' THEN
    (SELECT json_group_array(tag ORDER BY position) FROM kb_document_tags WHERE document = d.key)
    ELSE '[]' END
FROM kb_pending AS p CROSS JOIN kb_chunks AS c ON c.id = p.chunk
CROSS JOIN kb_documents AS d ON d.key = c.document
WHERE p.chunk > :after AND (:source IS NULL OR d.source = (SELECT key FROM kb_sources WHERE id = :source))
ORDER BY p.chunk LIMIT :limit"""
_FETCH = """
SELECT v.rowid, v.embedding FROM json_each(?) AS wanted CROSS JOIN kb_vec AS v ON v.rowid = wanted.value"""
_EMBEDDED_OF_SOURCE = f"""
SELECT c.id FROM {CHUNKS} WHERE d.source = (SELECT key FROM kb_sources WHERE id = ?)
AND c.id NOT IN (SELECT chunk FROM kb_pending)"""


class _State(NamedTuple):
    """What there is to search; as _STATE returns it."""

    has_vectors: bool
    dimension: int | None
    chunks: int
    version: int
    home: str


class _Scope(NamedTuple):
    """Which chunks may be found: the statements that look among them, by search and one by one."""

    nearest: str
    scan: str
    values: dict[str, str | int | float]
    is_narrow: bool


_EVERYTHING = _Scope(_NEAREST, _SCAN, {}, is_narrow=False)


class SQLiteVectors:
    """The vectors of one file. sqlite-vec is loaded when the first method needs it."""

    def __init__(self, readers: Readers, vec_readers: Readers, writer: Writer) -> None:
        self._plain = readers
        self._readers = vec_readers
        self._writer = writer
        self._checking = threading.Lock()
        self._is_checked = False
        self._resident = Resident()

    def identity(self) -> Identity | None:
        """Return which embedder made the vectors; None before the first."""
        with self._plain.connection() as connection:
            return stored_identity(connection)

    def prepare(self, identity: Identity) -> None:
        """Make ready for vectors of this identity, remembering it.

        Raises:
            ModelMismatch: vectors of another identity are stored.
        """
        self._ensure_cosine()
        with self._plain.connection() as connection:
            if vec_exists(connection) and stored_identity(connection) == identity:
                return
        with self._writer.transaction() as connection:
            if (vec_exists(connection) or home_url(connection)) and _count_vectors(connection):
                check_here(connection)
                check_identity(stored_identity(connection), identity)
            else:
                if home_url(connection):
                    move_home(connection, "")
                create_vec(connection, identity.dimension)
                remember_identity(connection, identity)

    def pending(self, after: ChunkId, limit: int, source_id: str | None = None) -> list[Pending]:
        """Return chunks without a vector whose id is greater than `after`, in order of id."""
        values = {"after": after, "limit": max(limit, 0), "source": source_id}
        with self._plain.connection() as connection:
            rows = connection.execute(_PENDING, values)
            return [
                Pending(chunk, title, heading_of(heading), text, tuple(json.loads(tags)))
                for chunk, title, heading, text, tags in rows
            ]

    def put(self, vectors: Iterable[tuple[ChunkId, Vector]]) -> int:
        """Store vectors in one transaction, replacing any of the same chunk; return how many."""
        batch = list(vectors)  # before the lock is taken: the iterable may be an embedder at work
        self._ensure_cosine()
        with self._writer.transaction() as connection:
            check_here(connection)
            identity = stored_identity(connection)
            if identity is None or not vec_exists(connection):
                raise BadValue(
                    "no embedder has been prepared for", hint="call prepare() with its identity first"
                )
            connection.load_vec0()
            for _, vector in batch:
                check_vector(vector, identity.dimension)
            count_change(connection)
            return sum(_put(connection, chunk_id, vector) for chunk_id, vector in batch)

    def search(
        self, vector: Vector, filter: Filter, limit: int, *, ef_search: int | None = None
    ) -> list[Scored]:
        """Return the nearest chunks by cosine similarity, nearest first; ties by chunk id.

        `ef_search` is for indexes that approximate; this one does not.
        """
        if limit < 1:
            return []
        self._ensure_cosine()
        with self._readers.connection() as connection:
            state = _read_state(connection)
            if not state.has_vectors or state.dimension is None:
                return []
            check_vector(vector, state.dimension)
            is_everything = filter.is_open and (filter.include_superseded or not has_superseded(connection))
            is_small = state.chunks <= MOST
            if is_everything and is_small and (matrix := self._resident.read(connection, state.version)):
                return matrix.nearest(vector, limit)
            scope = _EVERYTHING if is_everything else _scope(connection, filter, state.chunks)
            rows = _nearest(connection, scope, vector, limit)
            return [Scored(chunk_id, min(1.0, 1.0 - distance)) for distance, chunk_id in rows]

    def fetch(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, Vector]:
        """Return the vectors of those chunks that have one."""
        self._ensure_cosine()
        with self._readers.connection() as connection:
            state = _read_state(connection)
            if not chunk_ids or not state.has_vectors:
                return {}
            if matrix := self._resident.kept(state.version):
                return matrix.fetch(chunk_ids)
            return dict(connection.execute(_FETCH, (json.dumps(list(chunk_ids)),)))

    def delete_source(self, source_id: str) -> int:
        """Delete the vectors of a source's chunks; return how many there were."""
        with self._writer.transaction() as connection:
            doomed = [chunk_id for (chunk_id,) in connection.execute(_EMBEDDED_OF_SOURCE, (source_id,))]
            if doomed:
                check_here(connection)
            identity = stored_identity(connection)
            if doomed and identity and len(doomed) == _count_vectors(connection):
                create_vec(connection, identity.dimension)  # emptied at once, not one by one
            else:
                forget_vectors(connection, doomed)
            connection.executemany("INSERT INTO kb_pending VALUES (?)", ((chunk_id,) for chunk_id in doomed))
        return len(doomed)

    def _ensure_cosine(self) -> None:
        """Migrate vectors that measure another distance; looks once."""
        if self._is_checked:
            return
        with self._checking:
            with self._plain.connection() as connection:
                is_needed = lacks_sentinel(connection)
            if is_needed:
                self._migrate()
            self._is_checked = True

    def _migrate(self) -> None:
        with self._writer.transaction() as connection:
            if lacks_sentinel(connection):  # unless another process has done it meanwhile
                rebuild_as_cosine(connection)


def _read_state(connection: Connection) -> _State:
    state = _State(*connection.execute(_STATE).get)
    if state.home:
        refuse_elsewhere(state.home, "")
    return state


def _scope(connection: Connection, filter: Filter, chunks: int) -> _Scope:
    sql, values = condition(filter)
    allowed = connection.execute(f"SELECT count(*) FROM {CHUNKS} WHERE {sql}", values).get
    return _Scope(
        _NEAREST_ALLOWED.format(condition=sql),
        _SCAN_ALLOWED.format(condition=sql),
        values,
        allowed * _LOOKUP_COST <= chunks,
    )


def _nearest(
    connection: Connection, scope: _Scope, vector: Vector, limit: int
) -> list[tuple[float, ChunkId]]:
    """Return the nearest, ties by id: sqlite-vec leaves their order open, and who is last on the list."""
    k = limit + 1
    while k <= _MAX_K and not scope.is_narrow:
        values = {"vector": vector, "k": k, **scope.values}
        rows: list[tuple[float, ChunkId]] = sorted(connection.execute(scope.nearest, values))
        if len(rows) < k or rows[limit - 1][0] < rows[-1][0]:
            return rows[:limit]
        k *= 4  # the list ends among equals: see them all
    return list(connection.execute(scope.scan, {"vector": vector, "limit": limit, **scope.values}))


def _put(connection: Connection, chunk_id: ChunkId, vector: Vector) -> bool:
    """Store one vector; False when its chunk has gone."""
    if not connection.execute("DELETE FROM kb_pending WHERE chunk = ? RETURNING 1", (chunk_id,)).get:
        if not connection.execute("SELECT 1 FROM kb_chunks WHERE id = ?", (chunk_id,)).get:
            return False
        # sqlite-vec has no INSERT OR REPLACE
        connection.execute("DELETE FROM kb_vec WHERE rowid = ?", (chunk_id,))
    connection.execute("INSERT INTO kb_vec (rowid, embedding) VALUES (?, ?)", (chunk_id, vector))
    return True


def _count_vectors(connection: Connection) -> int:
    return int(
        connection.execute(
            "SELECT (SELECT value FROM kb_meta WHERE key = 'chunks') - (SELECT count(*) FROM kb_pending)"
        ).get
    )
