"""Vectors: a vec0 table for each model, keyed by the ids of kb_embeddings, and the search for the nearest.

All vectors of a model are compared, those that only the cache still knows too, best first; the tables then
say which chunks use them, and whether a filter lets these through.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from concord.store.embeddings import is_intact
from concord.store.models import Model, VectorTables
from concord.store.overriding import override
from concord.store.rows import condition
from concord.store.sql import Session
from concord.store.sqlite.connections import Connection
from concord.store.sqlite.dialect import DIALECT
from concord.store.sqlite.opened_file import FileId
from concord.types import ChunkId, Filter, Scored, Vector

if TYPE_CHECKING:
    from concord.store.sqlite.matrix import Matrix

# How many vectors sqlite-vec keeps in one value. With its default, 1024, reading or deleting one by its id
# takes up to 25 times as long, because SQLite walks there from the start of the value; scans do not care.
VECTORS_A_VALUE = 32
METRIC = "cosine"
# Reading a vector by its id takes as long as comparing this many in a scan.
_LOOKUP_COST = 64
MOST_KEPT = 50_000  # vectors in memory: 77 MB of 384 dimensions
# Reading them into memory takes as long as this many searches: so many have to come before it pays.
WORTH_KEEPING = 6

_SENTINEL = """
INSERT INTO kb_vec_meta (key, value) VALUES ('distance_metric', :metric)
ON CONFLICT (key) DO UPDATE SET value = excluded.value"""
# The order of this join is kept: vec0 would scan the whole table for a list.
_READ = "SELECT v.rowid, v.embedding FROM json_each(:ids) AS w CROSS JOIN {} AS v ON v.rowid = w.value"
_CRCS = "SELECT id, crc FROM kb_embeddings WHERE id IN (:ids...)"
_CHUNKS = "SELECT value FROM kb_meta WHERE key = 'chunks'"
_FROM_DOCUMENTS = """
kb_documents AS d CROSS JOIN kb_chunks AS c ON c.document = d.key
CROSS JOIN kb_chunk_vectors AS v ON v.chunk = c.id AND v.model = :model AND v.embedding IS NOT NULL"""
_FEW = f"SELECT DISTINCT v.embedding FROM {_FROM_DOCUMENTS} WHERE {{condition}} LIMIT :most"
_USERS = "SELECT embedding, chunk FROM kb_chunk_vectors WHERE embedding IN (:ids...)"
_USERS_ALLOWED = """
SELECT v.embedding, v.chunk FROM kb_chunk_vectors AS v
CROSS JOIN kb_chunks AS c INDEXED BY kb_chunks_place ON c.id = v.chunk
CROSS JOIN kb_documents AS d ON d.key = +c.document
WHERE v.embedding IN (:ids...) AND {condition}"""
_AT_FIRST = 2  # times the limit: as many vectors are looked up first, because some have no chunk to show

_State = tuple[FileId | None, int, int]  # file, model and its version: what changes when vectors do
_User = tuple[float, ChunkId, int]  # the score, negated so that the best sorts first, the chunk, its vector
_Condition = tuple[str, dict[str, Any]]
_HAS_SUPERSEDED = "SELECT EXISTS (SELECT 1 FROM kb_documents WHERE superseded_by IS NOT NULL)"


def table_of(key: int) -> str:
    """Return the name of a model's table of vectors."""
    return f"kb_vectors_{key:d}"


class SQLiteVectorTables(VectorTables):
    """The vectors of one file. Those that are searched often stay in memory, if they are not too many."""

    def __init__(self) -> None:
        self._reading = threading.Lock()
        self._searched: _State | None = None  # what was searched last
        self._searches = 0  # of that
        self._kept: Matrix | None = None  # all vectors of that

    @override
    def create(self, session: Session, model: Model) -> None:
        _with_vec0(session)
        column = f"embedding float[{model.identity.dimension:d}] distance_metric={METRIC}"
        options = f"{column}, chunk_size={VECTORS_A_VALUE}"
        session.run(f"CREATE VIRTUAL TABLE {table_of(model.key)} USING vec0({options})")
        session.run(_SENTINEL, {"metric": METRIC})

    @override
    def drop(self, session: Session, model: Model) -> None:
        _with_vec0(session)
        session.run(f"DROP TABLE IF EXISTS {table_of(model.key)}")

    @override
    def write(self, session: Session, model: Model, vectors: Mapping[int, Vector]) -> None:
        self.remove(session, model, list(vectors))  # sqlite-vec has no INSERT OR REPLACE
        statement = f"INSERT INTO {table_of(model.key)} (rowid, embedding) VALUES (:id, :vector)"
        session.run_many(statement, ({"id": id, "vector": vector} for id, vector in vectors.items()))

    @override
    def read(self, session: Session, model: Model, ids: list[int]) -> dict[int, Vector]:
        if not ids:
            return {}
        if (kept := self._kept) is not None and self._searched == _state(session, model):
            return kept.fetch(ids)
        _with_vec0(session)
        return dict(session.rows(_READ.format(table_of(model.key)), {"ids": list(set(ids))}))

    @override
    def remove(self, session: Session, model: Model, ids: list[int]) -> None:
        _with_vec0(session)
        session.run_many(f"DELETE FROM {table_of(model.key)} WHERE rowid = :id", ({"id": id} for id in ids))

    @override
    def nearest(
        self, session: Session, model: Model, vector: Vector, filter: Filter, limit: int, ef: int | None
    ) -> list[Scored]:
        from concord.store.sqlite import matrix  # late, for it imports numpy

        is_everything = filter.is_open and (filter.include_superseded or not session.value(_HAS_SUPERSEDED))
        among = None if is_everything else condition(filter, DIALECT)
        dimension, chunks = model.identity.dimension, session.value(_CHUNKS)
        kept = self._often_searched(session, model, chunks)
        if kept is not None:
            ids, scores = kept.scores(vector)
        elif (few := _few(session, model, among, chunks // _LOOKUP_COST)) is not None:
            ids, scores = matrix.matrix_of(self.read(session, model, few), dimension).scores(vector)
        else:
            ids, scores = matrix.scan(session, table_of(model.key), dimension, vector)
        nearest: list[Scored] = []
        for group in matrix.best_first(ids, scores, _AT_FIRST * limit):
            nearest += self._intact(session, model, _users(session, group, among), limit - len(nearest))
            if len(nearest) >= limit:
                break
        return nearest[:limit]

    def _often_searched(self, session: Session, model: Model, chunks: int) -> Matrix | None:
        """Return the vectors of a model in memory; None while it is not worth reading them."""
        state = _state(session, model)
        if state != self._searched:
            self._searched, self._searches, self._kept = state, 0, None
        self._searches += 1
        if self._kept is not None or self._searches <= WORTH_KEEPING or chunks > MOST_KEPT:
            return self._kept
        if not self._reading.acquire(blocking=False):
            return None
        from concord.store.sqlite.matrix import read_matrix

        try:
            kept = read_matrix(session, table_of(model.key), model.identity.dimension)
            if state == self._searched:
                self._kept = kept
            return kept
        finally:
            self._reading.release()

    def _intact(self, session: Session, model: Model, users: list[_User], wanted: int) -> list[Scored]:
        """Return the best chunks whose vectors are intact; the vectors of no others are read."""
        intact: list[Scored] = []
        while users and len(intact) < wanted:
            few, users = users[: wanted - len(intact)], users[wanted - len(intact) :]
            ids = list({id for _, _, id in few})
            vectors, crcs = self.read(session, model, ids), dict(session.rows(_CRCS, {"ids": ids}))
            intact += [
                Scored(chunk, -score)
                for score, chunk, id in few
                if id in crcs and is_intact(vectors.get(id), crcs[id])
            ]
        return intact


def _few(session: Session, model: Model, among: _Condition | None, most: int) -> list[int] | None:
    """Return the vectors of the chunks that a filter lets through; None if they are more than `most`."""
    if among is None:
        return None
    sql, values = among
    rows = session.rows(_FEW.format(condition=sql), {**values, "model": model.key, "most": most + 1})
    return None if len(rows) > most else [id for (id,) in rows]


def _users(session: Session, scores: Mapping[int, float], among: _Condition | None) -> list[_User]:
    """Return the chunks that use vectors and that a filter lets through, best first, ties by id."""
    sql, values = among or ("", {})
    statement = _USERS_ALLOWED.format(condition=sql) if among else _USERS
    rows = session.rows(statement, {**values, "ids": list(scores)})
    return sorted((-scores[id], chunk, id) for id, chunk in rows)


def _state(session: Session, model: Model) -> _State:
    assert isinstance(session, Connection)
    return session.file, model.key, model.version


def _with_vec0(session: Session) -> None:
    assert isinstance(session, Connection)
    session.load_vec0()
