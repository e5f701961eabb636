"""Finding chunks by meaning: sqlite-vec, its vectors in memory where they are few, a graph where many."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from concord.backends.sql_values import list_column, list_of
from concord.backends.sqlite.connections import Connection, Readers, Writer, snapshot
from concord.backends.sqlite.filters import CHUNKS, condition, has_superseded
from concord.backends.sqlite.graph_search import EFFORT, GraphSearch, Plan, Question
from concord.backends.sqlite.graph_table import note_unindexed
from concord.backends.sqlite.ledger import check_here, claim
from concord.backends.sqlite.opened_file import FileId
from concord.backends.sqlite.resident import MOST, Resident
from concord.backends.sqlite.vec_table import (
    SpaceRow,
    count_change,
    count_vectors,
    create_vec,
    find_space,
    forget_in,
    identity_column,
    lacks_sentinel,
    make_active,
    rebuild_as_cosine,
    vec_exists,
)
from concord.backends.store_errors import unprepared, vectors_gone
from concord.backends.vector_checks import check_identity, check_vector
from concord.types import ChunkId, Filter, Identity, Pending, Scored, Vector

_MAX_K = 4096  # sqlite-vec refuses more neighbours than this
# Reading a vector by its id takes at worst as long as passing this many in a scan: 24 µs where its neighbours
# are not read too, and 0.35 µs (384 dimensions, 100,000 vectors).
_LOOKUP_COST = 64

_CHUNKS = "SELECT value FROM kb_meta WHERE key = 'chunks'"
_ALLOWED = f"SELECT c.id FROM {CHUNKS} WHERE {{condition}}"
_NEAREST = "SELECT distance, rowid FROM {vec} WHERE embedding MATCH :vector AND k = :k"
_NEAREST_ALLOWED = _NEAREST + f" AND rowid IN ({_ALLOWED})"
_BY_DISTANCE = """
SELECT vec_distance_cosine(v.embedding, :vector) AS distance, v.rowid FROM {rows}
ORDER BY distance, v.rowid LIMIT :limit"""
_SCAN = _BY_DISTANCE.format(rows="{vec} AS v")
_SCAN_ALLOWED = _BY_DISTANCE.format(rows=f"({_ALLOWED}) AS a CROSS JOIN {{vec}} AS v ON v.rowid = a.id")

_WAITING = "FROM kb_pending AS p"
_OF_SOURCE = """
CROSS JOIN kb_chunks AS c ON c.id = p.chunk CROSS JOIN kb_documents AS d ON d.key = c.document
WHERE p.space = :space AND (:source IS NULL OR d.source = (SELECT key FROM kb_sources WHERE id = :source))"""
_COUNT_WAITING = f"SELECT count(*) {_WAITING} WHERE p.space = :space"
_COUNT_WAITING_OF_SOURCE = f"SELECT count(*) {_WAITING} {_OF_SOURCE}"
_PENDING = f"""
SELECT p.chunk, d.title, c.heading, c.content, CASE d.type WHEN 'note' THEN
    (SELECT json_group_array(tag ORDER BY position) FROM kb_document_tags WHERE document = d.key)
    ELSE '[]' END
{_WAITING} {_OF_SOURCE} AND p.chunk > :after
ORDER BY p.chunk LIMIT :limit"""
_FETCH = """
SELECT v.rowid, v.embedding FROM json_each(?) AS wanted CROSS JOIN {vec} AS v ON v.rowid = wanted.value"""
_EMBEDDED_OF_SOURCE = f"""
SELECT c.id FROM {CHUNKS} WHERE d.source = (SELECT key FROM kb_sources WHERE id = ?)
AND c.id NOT IN (SELECT chunk FROM kb_pending WHERE space = ?)"""


class _Scope(Struct, frozen=True):
    """Which chunks may be found: two statements to choose from, and the values in both."""

    nearest: str  # asks sqlite-vec for the k nearest
    scan: str  # compares all that may be found, in order of distance and id
    values: Mapping[str, str | int | float]
    is_narrow: bool  # so few may be found that a scan is quicker


class SQLiteVectors:
    """The vectors of one space of a file: that of an identity, or, without one, the active space.

    sqlite-vec is loaded when the first method needs it.
    """

    def __init__(
        self,
        readers: Readers,
        vec_readers: Readers,
        writer: Writer,
        plan: Plan,
        identity: Identity | None = None,
    ) -> None:
        self._plain = readers
        self._readers = vec_readers
        self._writer = writer
        self._bound = identity
        self._checking = threading.Lock()
        self._checked: set[FileId | None] = set()
        self._resident = Resident()
        self._graph_search = GraphSearch(plan)

    def identity(self) -> Identity | None:
        """Return which embedder made the vectors; None before the first."""
        with self._plain.connection() as connection:
            space = find_space(connection, self._bound)
            return space.identity if space else None

    def prepare(self, identity: Identity) -> None:
        """Make ready for vectors of this identity, remembering it.

        Raises:
            ModelMismatch: vectors of another identity are stored.
        """
        if self._bound:
            check_identity(self._bound, identity)
        self.ensure_cosine()
        with self._plain.connection() as connection:
            if _is_ready(connection, find_space(connection, self._bound), identity):
                return
        with self._writer.transaction() as connection:
            if not _is_ready(connection, find_space(connection, self._bound), identity):
                _give_active(connection, identity)

    def count_pending(self, source_id: str | None = None) -> int:
        """Return how many chunks have no vector, of all or of one source."""
        statement = _COUNT_WAITING if source_id is None else _COUNT_WAITING_OF_SOURCE
        with self._plain.connection() as connection, snapshot(connection):
            # A space that is not there yet will be given the active one's place, or none.
            key = _key(find_space(connection, self._bound) or find_space(connection, None))
            return int(connection.execute(statement, {"space": key, "source": source_id}).get)

    def pending(self, after: ChunkId, limit: int, source_id: str | None = None) -> list[Pending]:
        """Return chunks without a vector whose id is greater than `after`, in order of id."""
        values = {"after": after, "limit": max(limit, 0), "source": source_id}
        with self._plain.connection() as connection, snapshot(connection):
            values["space"] = _key(find_space(connection, self._bound))
            rows = connection.execute(_PENDING, values)
            return [
                Pending(chunk, title, list_of(heading), text, list_of(tags))
                for chunk, title, heading, text, tags in rows
            ]

    def put(self, vectors: Iterable[tuple[ChunkId, Vector]]) -> int:
        """Store vectors in one transaction, replacing any of the same chunk; return how many."""
        batch = list(vectors)  # before the lock is taken: the iterable may be an embedder at work
        self.ensure_cosine()
        with self._writer.transaction() as connection:
            claim(connection)
            space = find_space(connection, self._bound)
            if space is None or space.identity is None or not vec_exists(connection, space.key):
                raise unprepared()
            connection.load_vec0()
            for _, vector in batch:
                check_vector(vector, space.identity.dimension)
            count_change(connection, space.key)
            stored = [chunk_id for chunk_id, vector in batch if _put(connection, space, chunk_id, vector)]
            note_unindexed(connection, space.key, stored)
            return len(stored)

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

        Where a graph proposes who may be near, some may be missed: the fewer, the higher `ef_search` is.
        Scores are exact everywhere.

        Raises:
            ModelMismatch: the vectors of the model that this index is bound to are gone.
        """
        if limit < 1:
            return []
        self.ensure_cosine()
        with self._readers.connection() as connection, snapshot(connection):
            space = self._searchable(connection)
            if space is None or space.identity is None:
                return []
            check_vector(vector, space.identity.dimension)
            check_here(connection)
            is_everything = filter.is_open and (filter.include_superseded or not has_superseded(connection))
            among = None if is_everything else condition(filter)
            return self._nearest(connection, space, Question(vector, among, limit, ef_search or EFFORT))

    def fetch(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, Vector]:
        """Return the vectors of those chunks that have one."""
        self.ensure_cosine()
        with self._readers.connection() as connection, snapshot(connection):
            space = find_space(connection, self._bound)
            if not chunk_ids or space is None or not vec_exists(connection, space.key):
                return {}
            check_here(connection)
            if matrix := self._resident.kept(space):
                return matrix.fetch(chunk_ids)
            statement = _FETCH.format(vec=space.table)
            return dict(connection.execute(statement, (list_column(chunk_ids),)))

    def delete_source(self, source_id: str) -> int:
        """Delete the vectors of a source's chunks; return how many there were."""
        with self._writer.transaction() as connection:
            space = find_space(connection, self._bound)
            if space is None:
                return 0
            rows = connection.execute(_EMBEDDED_OF_SOURCE, (source_id, space.key))
            doomed = [chunk_id for (chunk_id,) in rows]
            if doomed:
                check_here(connection)
            if doomed and space.identity and len(doomed) == count_vectors(connection, space.key):
                create_vec(connection, space.key, space.identity.dimension)  # emptied at once, not one by one
            else:
                forget_in(connection, space.key, doomed)
            connection.executemany("INSERT INTO kb_pending VALUES (?, ?)", ((space.key, i) for i in doomed))
        return len(doomed)

    def ensure_cosine(self) -> None:
        """Migrate vectors that measure another distance; looks once at a file."""
        file = self._plain.file()
        if file in self._checked:
            return
        with self._checking:
            with self._plain.connection() as connection:
                is_needed = lacks_sentinel(connection)
            if is_needed:
                self._migrate()
            self._checked.add(file)

    def _nearest(self, connection: Connection, space: SpaceRow, asked: Question) -> list[Scored]:
        """Ask the graph where there is one, else the vectors in memory where they are few, else the file."""
        chunks = connection.execute(_CHUNKS).get
        if self._graph_search.plan.wants(chunks):
            proposed = self._graph_search.nearest(connection, space, asked)
            if proposed is not None:
                return _scored(proposed)
        is_small = asked.condition is None and chunks <= MOST
        if is_small and (matrix := self._resident.read(connection, space)):
            return matrix.nearest(asked.vector, asked.limit)
        return _scored(_nearest(connection, _scope(connection, space, asked, chunks), asked))

    def _searchable(self, connection: Connection) -> SpaceRow | None:
        """Return the space to search; None while nothing was ever prepared for."""
        space = find_space(connection, self._bound)
        if space is None and self._bound:
            raise vectors_gone(self._bound)
        return space if space and vec_exists(connection, space.key) else None

    def _migrate(self) -> None:
        with self._writer.transaction() as connection:
            if lacks_sentinel(connection):  # unless another process has done it meanwhile
                rebuild_as_cosine(connection)


def _scored(rows: Iterable[tuple[float, ChunkId]]) -> list[Scored]:
    return [Scored(chunk_id, min(1.0, 1.0 - distance)) for distance, chunk_id in rows]


def _is_ready(connection: Connection, space: SpaceRow | None, identity: Identity) -> bool:
    return space is not None and space.identity == identity and vec_exists(connection, space.key)


def _give_active(connection: Connection, identity: Identity) -> None:
    """Make the active space an identity's, if there is no vector of another in it."""
    space = find_space(connection, None)
    assert space is not None  # there is one from the start, and it cannot be dropped
    if vec_exists(connection, space.key) and count_vectors(connection, space.key):
        check_identity(space.identity, identity)
    if space.identity != identity and (known := find_space(connection, identity)):
        make_active(connection, known.key)
        return
    create_vec(connection, space.key, identity.dimension)
    if space.identity != identity:
        values = (identity_column(identity), space.key)
        connection.execute("UPDATE kb_spaces SET identity = ?, recipe = '{}' WHERE key = ?", values)


def _key(space: SpaceRow | None) -> int:
    return space.key if space else 0  # no space has this key


def _scope(connection: Connection, space: SpaceRow, asked: Question, chunks: int) -> _Scope:
    if asked.condition is None:
        return _Scope(_NEAREST.format(vec=space.table), _SCAN.format(vec=space.table), {}, is_narrow=False)
    sql, values = asked.condition
    allowed = connection.execute(f"SELECT count(*) FROM {CHUNKS} WHERE {sql}", values).get
    return _Scope(
        _NEAREST_ALLOWED.format(vec=space.table, condition=sql),
        _SCAN_ALLOWED.format(vec=space.table, condition=sql),
        values,
        allowed * _LOOKUP_COST <= chunks,
    )


def _nearest(connection: Connection, scope: _Scope, asked: Question) -> list[tuple[float, ChunkId]]:
    """Return the nearest, ties by id: sqlite-vec leaves open in which order ties come, and which are cut."""
    vector, limit = asked.vector, asked.limit
    k = limit + 1
    while k <= _MAX_K and not scope.is_narrow:
        values = {"vector": vector, "k": k, **scope.values}
        rows: list[tuple[float, ChunkId]] = sorted(connection.execute(scope.nearest, values))
        if len(rows) < k or rows[limit - 1][0] < rows[-1][0]:
            return rows[:limit]
        k *= 4  # the list ends among equals: see them all
    return list(connection.execute(scope.scan, {"vector": vector, "limit": limit, **scope.values}))


def _put(connection: Connection, space: SpaceRow, chunk_id: ChunkId, vector: Vector) -> bool:
    """Store one vector; False when its chunk has gone."""
    waited = "DELETE FROM kb_pending WHERE space = ? AND chunk = ? RETURNING 1"
    if not connection.execute(waited, (space.key, chunk_id)).get:
        if not connection.execute("SELECT 1 FROM kb_chunks WHERE id = ?", (chunk_id,)).get:
            return False
        # sqlite-vec has no INSERT OR REPLACE
        connection.execute(f"DELETE FROM {space.table} WHERE rowid = ?", (chunk_id,))
    connection.execute(f"INSERT INTO {space.table} (rowid, embedding) VALUES (?, ?)", (chunk_id, vector))
    return True
