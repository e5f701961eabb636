"""Vectors, each stored once by the hash of its text: what chunks are searched by, and the cache.

A vector's number, hash and checksum are in kb_embeddings; the vector itself is where the engine keeps it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeGuard
from zlib import crc32

from concord.core.errors import Action, BadValue, Hint, ModelMismatch
from concord.store.indexes import TextHash, VectorIndex
from concord.store.models import (
    Model,
    all_models,
    check_here,
    claim,
    find_model,
    forget_if_empty,
    new_model,
)
from concord.store.rows import OF_SOURCE, TAGS, list_of
from concord.store.sql import Database, Row, Session, VectorTables, override
from concord.types import FLOAT_BYTES, ChunkId, Filter, Identity, Pending, Scored, Vector

if TYPE_CHECKING:
    from concord.core.reports import CacheUsage

_READ_AT_ONCE = 512  # vectors, of all that are listed
_LENGTH_TOLERANCE = 1e-3  # a unit vector rounded to float32 is off by 1e-7; to float16, by 5e-4

_WAITING = """
FROM kb_chunks AS c JOIN kb_documents AS d ON d.key = c.document WHERE NOT EXISTS (
    SELECT 1 FROM kb_chunk_vectors AS v WHERE v.chunk = c.id AND v.model = :model)"""
_COUNT_WAITING = """
SELECT (SELECT value FROM kb_meta WHERE key = 'chunks')
    - (SELECT count(*) FROM kb_chunk_vectors WHERE model = :model)"""
# A chunk `c` of a document `d`, and all that is embedded of it.
EMBEDDED = f"c.id, d.title, c.heading, c.content, CASE d.type WHEN 'note' THEN {TAGS} ELSE '[]' END"
KNOWN = (
    "SELECT text_hash, id, crc FROM kb_embeddings WHERE model = :model AND text_hash IN (:keys as bytes...)"
)
_NEW = """
INSERT INTO kb_embeddings (model, text_hash, crc, used) VALUES (:model, :key, :crc, :used) RETURNING id"""
_USED = "UPDATE kb_embeddings SET used = :used WHERE id IN (:ids...)"
_USERS = "SELECT chunk, embedding FROM kb_chunk_vectors WHERE embedding IN (:ids...)"
LINK = """
INSERT INTO kb_chunk_vectors (chunk, model, embedding) VALUES (:chunk, :model, :embedding)
ON CONFLICT (chunk, model) DO UPDATE SET embedding = excluded.embedding"""
_VECTORS_OF = """
SELECT v.chunk, e.id, e.crc FROM kb_chunk_vectors AS v JOIN kb_embeddings AS e ON e.id = v.embedding
WHERE v.model = :model AND v.chunk IN (:chunks...)"""
_OF_SOURCES_CHUNKS = f"""
FROM kb_chunk_vectors WHERE model = :model AND chunk IN (
    SELECT c.id FROM kb_documents AS d JOIN kb_chunks AS c ON c.document = d.key WHERE {OF_SOURCE})"""
_UNUSED = "NOT EXISTS (SELECT 1 FROM kb_chunk_vectors AS v WHERE v.embedding = e.id)"
_LOOKUPS = "SELECT sum(value) FROM kb_meta WHERE key IN ('cache_hits', 'cache_misses')"


class SqlVectors(VectorIndex):
    """The vectors of one model."""

    def __init__(self, database: Database, tables: VectorTables, identity: Identity) -> None:
        self._database = database
        self._tables = tables
        self._identity = identity

    @override
    def count_pending(self, source_id: str | None = None) -> int:
        with self._database.read() as session:
            values = {"model": self._key(session), "source": source_id}
            of_source = f"SELECT count(*) {_WAITING} AND {OF_SOURCE}"
            return int(session.value(_COUNT_WAITING if source_id is None else of_source, values))

    @override
    def pending(self, after: ChunkId, limit: int, source_id: str | None = None) -> list[Pending]:
        chosen = "" if source_id is None else f" AND {OF_SOURCE}"
        statement = f"SELECT {EMBEDDED} {_WAITING} AND c.id > :after{chosen} ORDER BY c.id LIMIT :limit"
        values = {"after": after, "limit": max(limit, 0), "source": source_id}
        with self._database.read() as session:
            rows = session.rows(statement, {**values, "model": self._key(session)})
        return [*map(pending_of, rows)]

    @override
    def cached(self, keys: Sequence[TextHash]) -> dict[TextHash, Vector]:
        with self._database.read() as session:
            if (model := find_model(session, self._identity)) is None:
                return {}
            rows = session.rows(KNOWN, {"model": model.key, "keys": list(set(keys))})
            vectors = self._tables.read(session, model, [id for _, id, _ in rows])
        known = {id: key for key, id, crc in rows if is_intact(vectors.get(id), crc)}
        if known:
            with self._database.transaction() as session:
                used = _count(session, "cache_hits", len(known))
                session.run(_USED, {"used": used, "ids": [*known]})
        return {key: vectors[id] for id, key in known.items()}

    @override
    def remember(self, vectors: Mapping[TextHash, Vector]) -> None:
        if not vectors:
            return
        with self._database.transaction() as session:
            model = find_model(session, self._identity)
            model = model or new_model(session, self._tables, self._identity, is_added=False)
            _count(session, "cache_misses", len(vectors))
            self._store(session, model, vectors)

    @override
    def put(self, vectors: Iterable[tuple[ChunkId, TextHash, Vector]]) -> int:
        batch = list(vectors)  # before the lock is taken: the iterable may be an embedder at work
        with self._database.transaction() as session:
            model = find_model(session, self._identity)
            if model is None or not model.is_added:
                raise not_added()
            if model.home:
                claim(session, self._database.dialect)
            for _, _, vector in batch:
                check_vector(vector, self._identity.dimension)
            ids = self._store(session, model, {key: vector for _, key, vector in batch})
            chunks = "SELECT id FROM kb_chunks WHERE id IN (:chunks...)"
            alive = {id for (id,) in session.rows(chunks, {"chunks": [chunk for chunk, _, _ in batch]})}
            links = {chunk: ids[key] for chunk, key, _ in batch if chunk in alive}
            link(session, model, links)
            return len(links)

    @override
    def search(
        self, vector: Vector, filter: Filter, limit: int, *, ef_search: int | None = None
    ) -> list[Scored]:
        if limit < 1:
            return []
        with self._database.read() as session:
            model = find_model(session, self._identity)
            if model is None or not model.is_added:
                raise vectors_gone(self._identity)
            check_vector(vector, self._identity.dimension)
            check_here(model.home)
            return self._tables.nearest(session, model, vector, filter, limit, ef_search)

    @override
    def fetch(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, Vector]:
        with self._database.read() as session:
            model = find_model(session, self._identity)
            if not chunk_ids or model is None:
                return {}
            check_here(model.home)
            rows = session.rows(_VECTORS_OF, {"model": model.key, "chunks": list(chunk_ids)})
            vectors = self._tables.read(session, model, [id for _, id, _ in rows])
        return {chunk: vectors[id] for chunk, id, crc in rows if is_intact(vectors.get(id), crc)}

    @override
    def delete_source(self, source_id: str) -> int:
        with self._database.transaction() as session:
            if (model := find_model(session, self._identity)) is None:
                return 0
            values = {"model": model.key, "source": source_id}
            rows = session.rows(f"SELECT embedding {_OF_SOURCES_CHUNKS}", values)
            if rows:
                check_here(model.home)
            session.run(f"DELETE {_OF_SOURCES_CHUNKS}", values)
            statement = f"SELECT e.id FROM kb_embeddings AS e WHERE e.id IN (:ids...) AND {_UNUSED}"
            unused = session.rows(statement, {"ids": [id for (id,) in rows]})
            delete_embeddings(session, self._tables, model, [id for (id,) in unused])
            return len(rows)

    def _key(self, session: Session) -> int:
        model = find_model(session, self._identity)
        return model.key if model else 0  # no model has this key: every chunk waits

    def _store(
        self, session: Session, model: Model, vectors: Mapping[TextHash, Vector]
    ) -> dict[TextHash, int]:
        """Store the vectors of texts, unless they are stored already; return their ids.

        Another vector of the same text gets an id of its own: what has an id never changes.
        """
        known = {key: id for key, id, _ in session.rows(KNOWN, {"model": model.key, "keys": [*vectors]})}
        stored = self._tables.read(session, model, [*known.values()])
        replaced = {id: key for key, id in known.items() if stored.get(id) != vectors[key]}
        users = []
        if replaced:
            users = session.rows(_USERS, {"ids": [*replaced]})
            session.run("DELETE FROM kb_chunk_vectors WHERE embedding IN (:ids...)", {"ids": [*replaced]})
            delete_embeddings(session, self._tables, model, [*replaced])
        ids = {key: id for key, id in known.items() if id not in replaced}
        used = int(session.value(_LOOKUPS))
        new = [(key, vector, used) for key, vector in vectors.items() if key not in ids]
        made = new_embeddings(session, self._tables, model, new)
        ids |= {key: id for (key, _, _), id in zip(new, made, strict=True)}
        link(session, model, {chunk: ids[replaced[id]] for chunk, id in users})
        _count_version(session, model)
        return ids


class EmbeddingCache:
    """All vectors by text, whether or not chunks use them."""

    def __init__(self, database: Database, tables: VectorTables) -> None:
        self._database = database
        self._tables = tables

    def entries(self) -> Iterator[tuple[Identity, TextHash, Vector]]:
        """Yield all vectors that are intact, the least recently used first."""
        with self._database.read() as session:
            yield from all_vectors(session, self._tables)

    def usage(self) -> CacheUsage:
        """Return how much is kept, and how often it was of use."""
        from concord.core.reports import CacheUsage

        with self._database.read() as session:
            counts = _counts(session)
            meta = dict(session.rows("SELECT key, value FROM kb_meta"))
        return CacheUsage(sum(counts.values()), _size(counts), meta["cache_hits"], meta["cache_misses"])

    def trim(self, max_bytes: int) -> int:
        """Delete vectors that no chunk uses, least recently used first, until all fit; return how many."""
        if self.usage().size_bytes <= max_bytes:
            return 0
        with self._database.transaction() as session:
            models = {model.key: model for model in all_models(session)}
            doomed: dict[int, list[int]] = {}
            excess = _size(_counts(session)) - max_bytes
            statement = f"SELECT id, model FROM kb_embeddings AS e WHERE {_UNUSED} ORDER BY used, id"
            for id, key in session.rows(statement):
                if excess <= 0:
                    break
                doomed.setdefault(key, []).append(id)
                excess -= models[key].identity.dimension * FLOAT_BYTES
            for key, ids in doomed.items():
                delete_embeddings(session, self._tables, models[key], ids)
                forget_if_empty(session, self._tables, models[key])
            return sum(map(len, doomed.values()))


def all_vectors(session: Session, tables: VectorTables) -> Iterator[tuple[Identity, TextHash, Vector]]:
    """Yield the vectors that are intact, each with the hash of its text, the least recently used first."""
    models = {model.key: model for model in all_models(session)}
    rows = session.rows("SELECT id, model, text_hash, crc FROM kb_embeddings ORDER BY used, id")
    for start in range(0, len(rows), _READ_AT_ONCE):
        few = [row for row in rows[start : start + _READ_AT_ONCE] if row[1] in models]
        vectors: dict[int, Vector] = {}
        for key in {key for _, key, _, _ in few}:
            ids = [id for id, model, _, _ in few if model == key]
            vectors |= tables.read(session, models[key], ids)
        for id, key, text_hash, crc in few:
            if is_intact(vector := vectors.get(id), crc):
                yield models[key].identity, text_hash, vector


def check_vector(vector: Vector, dimension: int) -> None:
    """Refuse a vector that is not finite, not of length 1 or not of this dimension."""
    hint = "the embedder is broken or is not the one that the index was built with"
    if len(vector) != dimension * FLOAT_BYTES:
        given = len(vector) / FLOAT_BYTES
        raise BadValue(f"a vector has {given:g} dimensions where the index has {dimension}", hint=hint)
    from array import array  # late: a search by words checks no vector

    length = math.hypot(*array("f", vector))
    if not abs(length - 1) <= _LENGTH_TOLERANCE:  # so written, it refuses NaN as well
        raise BadValue(f"a vector has the length {length:g} where 1 is needed", hint=hint)


def not_added() -> BadValue:
    """Return the error that vectors cannot be stored of a model that is not known."""
    return BadValue("nobody has told which embedder makes the vectors", hint="add its model first")


def vectors_gone(identity: Identity) -> ModelMismatch:
    """Return the error that there are no vectors of the model to search with, or no longer."""
    message = f"the index holds no vectors of {identity.name}, or no longer"
    return ModelMismatch(message, hint=Hint(Action.MODELS_LIST))


def pending_of(row: Row) -> Pending:
    """Return the chunk and its text in a row of EMBEDDED."""
    id, title, heading, text, tags = row
    return Pending(id, title, list_of(heading), text, list_of(tags))


def text_hash(pending: Pending) -> TextHash:
    """Return what the vector of a text is stored under."""
    from hashlib import sha256  # late: a search needs none of it

    from concord.text.document import embeddable_text

    text = embeddable_text(pending.title, pending.heading, pending.text, pending.tags)
    return sha256(text.encode("utf-8", "replace")).digest()


def new_embeddings(
    session: Session, tables: VectorTables, model: Model, vectors: Sequence[tuple[TextHash, Vector, int]]
) -> list[int]:
    """Store vectors of texts that have none, each with when it was last of use; return their ids."""
    rows = ((key, crc32(vector), used) for key, vector, used in vectors)
    values = [{"model": model.key, "key": key, "crc": crc, "used": used} for key, crc, used in rows]
    ids: list[int] = session.insert_many(_NEW, values)
    if ids:
        tables.write(session, model, {id: vector for id, (_, vector, _) in zip(ids, vectors, strict=True)})
    return ids


def link(session: Session, model: Model, embeddings: Mapping[ChunkId, int | None]) -> None:
    """Note which vectors chunks have; None is one that is kept outside."""
    rows = embeddings.items()
    session.run_many(LINK, ({"chunk": chunk, "model": model.key, "embedding": id} for chunk, id in rows))


def is_intact(vector: Vector | None, crc: int) -> TypeGuard[Vector]:
    """Whether a vector is as it was written."""
    return vector is not None and crc32(vector) == crc


def delete_embeddings(session: Session, tables: VectorTables, model: Model, ids: list[int]) -> None:
    """Delete vectors that no chunk uses."""
    if ids:
        tables.remove(session, model, ids)
        session.run("DELETE FROM kb_embeddings WHERE id IN (:ids...)", {"ids": ids})
        _count_version(session, model)


def _count_version(session: Session, model: Model) -> None:
    session.run("UPDATE kb_models SET version = version + 1 WHERE key = :model", {"model": model.key})


def _count(session: Session, counter: str, more: int) -> int:
    """Count look-ups; return how many there have been."""
    values = {"more": more, "counter": counter}
    session.run("UPDATE kb_meta SET value = value + :more WHERE key = :counter", values)
    return int(session.value(_LOOKUPS))


def _counts(session: Session) -> dict[Identity, int]:
    counts = dict(session.rows("SELECT model, count(*) FROM kb_embeddings GROUP BY model"))
    return {model.identity: counts.get(model.key, 0) for model in all_models(session)}


def _size(counts: Mapping[Identity, int]) -> int:
    return sum(identity.dimension * FLOAT_BYTES * count for identity, count in counts.items())
