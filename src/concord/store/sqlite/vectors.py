"""Vectors: a vec0 table for each model, keyed by the ids of kb_embeddings, and the search for the nearest.

All vectors of a model are compared, or those that codes in memory propose, best first; the tables then say
which chunks use them, and whether a filter lets these through.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from concord.store.embeddings import is_intact
from concord.store.models import Model
from concord.store.rows import HAS_SUPERSEDED, condition
from concord.store.sql import Session, VectorTables, override
from concord.store.sqlite.connections import Connection
from concord.store.sqlite.dialect import DIALECT
from concord.types import ChunkId, Filter, Scored, Vector

if TYPE_CHECKING:
    from concord.store.sqlite.compare import Floats
    from concord.store.sqlite.in_memory import Memory, Open

# How many vectors sqlite-vec keeps in one value. With its default, 1024, reading or deleting one by its id
# takes up to 25 times as long, because SQLite walks there from the start of the value; scans do not care.
VECTORS_A_VALUE = 32
METRIC = "cosine"
# Reading a vector by its id takes as long as comparing this many in a scan.
_LOOKUP_COST = 64
# Fewer vectors in memory are compared as fast as codes propose some of them. From here on codes gain: a
# search takes 0.89 of the time at 16,000 vectors, 0.69 at 40,000 (`python -m benchmarks vector_index`).
CODES_FROM = 16_000

_SENTINEL = """
INSERT INTO kb_vec_meta (key, value) VALUES ('distance_metric', :metric)
ON CONFLICT (key) DO UPDATE SET value = excluded.value"""
# The order of this join is kept: vec0 would scan the whole table for a list.
_READ = "SELECT v.rowid, v.embedding FROM json_each(:ids) AS w CROSS JOIN {} AS v ON v.rowid = w.value"
_CRCS = "SELECT id, crc FROM kb_embeddings WHERE id IN (:ids...)"
_HAS_TABLE = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = :table)"
_CHUNKS = "SELECT value FROM kb_meta WHERE key = 'chunks'"
_FROM_DOCUMENTS = """
kb_documents AS d CROSS JOIN kb_chunks AS c ON c.document = d.key
CROSS JOIN kb_chunk_vectors AS v ON v.chunk = c.id AND v.model = :model AND v.embedding IS NOT NULL"""
_FEW = f"SELECT DISTINCT v.embedding FROM {_FROM_DOCUMENTS} WHERE {{condition}} LIMIT :most"
_ALLOWED = f"SELECT v.embedding FROM {_FROM_DOCUMENTS} WHERE {{condition}}"
_IN_USE = "SELECT embedding FROM kb_chunk_vectors WHERE model = :model AND embedding IS NOT NULL"
_USERS = "SELECT embedding, chunk FROM kb_chunk_vectors WHERE embedding IN (:ids...)"
_USERS_ALLOWED = """
SELECT v.embedding, v.chunk FROM kb_chunk_vectors AS v
CROSS JOIN kb_chunks AS c INDEXED BY kb_chunks_place ON c.id = v.chunk
CROSS JOIN kb_documents AS d ON d.key = +c.document
WHERE v.embedding IN (:ids...) AND {condition}"""
_AT_FIRST = 2  # times the limit: as many vectors are looked up first, because some have no chunk to show

_User = tuple[float, ChunkId, int]  # the score, negated so that the best sorts first, the chunk, its vector
_Condition = tuple[str, dict[str, Any]]


def table_of(key: int) -> str:
    """Return the name of a model's table of vectors."""
    return f"kb_vectors_{key:d}"


class SQLiteVectorTables(VectorTables):
    """The vectors of one file. Those that are searched often stay in memory, if `open` lends a session."""

    def __init__(self, codes_from: int | None = None, open: Open | None = None) -> None:
        self._codes_from = codes_from
        self._open = open
        self._memory: Memory | None = None

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
        return read_vectors(session, model, ids)

    @override
    def stored(self, session: Session, model: Model) -> str:
        _with_vec0(session)
        return f"SELECT rowid FROM {table_of(model.key)}" if has_table(session, model) else "SELECT 0 WHERE 0"

    @override
    def remove(self, session: Session, model: Model, ids: list[int]) -> None:
        _with_vec0(session)
        session.run_many(f"DELETE FROM {table_of(model.key)} WHERE rowid = :id", ({"id": id} for id in ids))

    @override
    def nearest(
        self, session: Session, model: Model, vector: Vector, filter: Filter, limit: int, ef: int | None
    ) -> list[Scored]:
        from concord.store.sqlite import compare  # late, for it imports numpy

        query = compare.normalised(vector)
        is_everything = filter.is_open and (filter.include_superseded or not session.value(HAS_SUPERSEDED))
        among = None if is_everything else condition(filter, DIALECT)
        read = self._proposed(session, model, query, among, limit, ef)
        if read is None:
            ids, scores = compare.scan(session, table_of(model.key), query)
        else:
            ids, scores = compare.scores_of(*compare.arrays(read, len(query)), query)
        nearest: list[Scored] = []
        for group in compare.best_first(ids, scores, _AT_FIRST * limit):
            users = _users(session, group, among)
            nearest += _intact(session, model, users, limit - len(nearest), read or {})
            if len(nearest) >= limit:
                break
        return nearest[:limit]

    def close(self) -> None:
        """Wait for what is still being read into memory, which stops at once."""
        if self._memory:
            self._memory.close()

    def _proposed(
        self,
        session: Session,
        model: Model,
        query: Floats,
        among: _Condition | None,
        limit: int,
        ef: int | None,
    ) -> Mapping[int, Vector] | None:
        """Return vectors to compare, among them the nearest that a condition lets through; None means all."""
        from concord.store.sqlite import in_memory

        if self._memory is None and self._open is not None:
            self._memory = in_memory.Memory(self._codes_from, self._open)
        kept = self._memory.searched(session, model) if self._memory else None
        if not self._memory or not kept:
            few = _few(session, model, among)
            return None if few is None else read_vectors(session, model, few)
        allowed = partial(_allowed, session, model, among)
        mask = self._memory.mask(kept, session, model, repr(among), allowed)
        if among and mask.sum() <= len(mask) // _LOOKUP_COST:
            return read_vectors(session, model, kept.ids[mask].tolist())
        vectors = kept.nearest(query, mask, limit, ef, self._codes_from)
        known = {id: vector for id, vector in vectors.items() if vector is not None}
        return known or read_vectors(session, model, [*vectors])


def has_table(session: Session, model: Model) -> bool:
    """Whether a model's table of vectors is there."""
    return bool(session.value(_HAS_TABLE, {"table": table_of(model.key)}))


def rewrite(session: Session, model: Model, vectors: Mapping[int, Vector]) -> None:
    """Make the table of a model anew, with these vectors."""
    tables = SQLiteVectorTables()
    tables.drop(session, model)
    tables.create(session, model)
    tables.write(session, model, vectors)


def read_vectors(session: Session, model: Model, ids: list[int]) -> dict[int, Vector]:
    """Return those of some vectors that are in the file."""
    if not ids:
        return {}
    _with_vec0(session)
    return dict(session.rows(_READ.format(table_of(model.key)), {"ids": list(set(ids))}))


def _intact(
    session: Session, model: Model, users: list[_User], wanted: int, read: Mapping[int, Vector]
) -> list[Scored]:
    """Return the best chunks whose vectors are intact; of those not yet read, no others are read."""
    intact: list[Scored] = []
    while users and len(intact) < wanted:
        few, users = users[: wanted - len(intact)], users[wanted - len(intact) :]
        ids = list({id for _, _, id in few})
        vectors, crcs = read or read_vectors(session, model, ids), dict(session.rows(_CRCS, {"ids": ids}))
        intact += [
            Scored(chunk, -score)
            for score, chunk, id in few
            if id in crcs and is_intact(vectors.get(id), crcs[id])
        ]
    return intact


def _allowed(session: Session, model: Model, among: _Condition | None) -> Iterator[int]:
    sql, values = among or ("", {})
    statement = _ALLOWED.format(condition=sql) if among else _IN_USE
    return (id for (id,) in session.iterate(statement, {**values, "model": model.key}))


def _few(session: Session, model: Model, among: _Condition | None) -> list[int] | None:
    """Return the vectors of the chunks that a filter lets through; None where a scan of all is quicker."""
    if among is None:
        return None
    sql, values = among
    most = session.value(_CHUNKS) // _LOOKUP_COST
    rows = session.rows(_FEW.format(condition=sql), {**values, "model": model.key, "most": most + 1})
    return None if len(rows) > most else [id for (id,) in rows]


def _users(session: Session, scores: Mapping[int, float], among: _Condition | None) -> list[_User]:
    """Return the chunks that use vectors and that a filter lets through, best first, ties by id."""
    sql, values = among or ("", {})
    statement = _USERS_ALLOWED.format(condition=sql) if among else _USERS
    rows = session.rows(statement, {**values, "ids": list(scores)})
    return sorted((-scores[id], chunk, id) for id, chunk in rows)


def _with_vec0(session: Session) -> None:
    assert isinstance(session, Connection)
    session.load_vec0()
