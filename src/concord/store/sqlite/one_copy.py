"""From schema 5 to 6: vectors were kept twice, in a table for searches and in a cache; now there is one copy.

Each chunk is given the vector that the cache has for its text. Where the cache has none, because it was
trimmed or because the title changed since, its vector is copied from the table for searches. Nothing is
embedded. All of this is one transaction.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from zlib import crc32

from concord.store import schema
from concord.store.models import Model, all_models, find_model, forget_if_empty, new_model
from concord.store.outbox import home_of
from concord.store.rows import TAGS, identity_of
from concord.store.sql_values import list_of
from concord.store.sqlite import dialect
from concord.store.sqlite.connections import Connection
from concord.store.sqlite.vectors import METRIC, SQLiteVectorTables, table_of
from concord.text.document import embeddable_text
from concord.types import FLOAT_BYTES, Identity, Vector

_TABLES = SQLiteVectorTables()

_SYNC_STATES = """
ALTER TABLE kb_sources ADD COLUMN sync_state TEXT NOT NULL DEFAULT '';
UPDATE kb_sources SET sync_state = ifnull((SELECT value FROM kb_meta WHERE key = 'memo ' || id), '');
DELETE FROM kb_meta WHERE substr(key, 1, 5) = 'memo ';
"""
_OLD_FEEDBACK = "ALTER TABLE kb_feedback RENAME TO kb_old_feedback"
_FEEDBACK = """
INSERT INTO kb_feedback (query, document_id, citation, opinion, at)
SELECT query, document_id, citation, opinion, at FROM kb_old_feedback ORDER BY at;
DROP TABLE kb_old_feedback;
"""
_METRIC = "SELECT value FROM kb_vec_meta WHERE key = 'distance_metric'"
_MODELS = """
INSERT INTO kb_models (key, identity, recipe, was_active, version)
SELECT key, identity, recipe, was_active, version FROM kb_spaces WHERE identity IS NOT NULL ORDER BY key;
INSERT INTO kb_meta SELECT 'active_model', value FROM kb_meta
WHERE key = 'active_space' AND value IN (SELECT key FROM kb_models);
"""
_CACHED = """
SELECT identity, text_hash, vector, used FROM kb_embedding_cache JOIN kb_embedders ON key = embedder
ORDER BY used, kb_embedding_cache.rowid"""
_NEW = (
    "INSERT INTO kb_embeddings (model, text_hash, crc, used) VALUES (:model, :key, :crc, :used) RETURNING id"
)
_EMBEDDED = f"""
SELECT c.id, d.title, c.heading, c.content, CASE d.type WHEN 'note' THEN {TAGS} ELSE '[]' END
FROM kb_chunks AS c JOIN kb_documents AS d ON d.key = c.document
WHERE c.id NOT IN (SELECT chunk FROM kb_pending WHERE space = :space) ORDER BY c.id"""
_KNOWN = "SELECT id FROM kb_embeddings WHERE model = :model AND text_hash = :key"
_ALIKE = "SELECT id FROM kb_embeddings WHERE model = :model AND crc = :crc"
_LINK = "INSERT INTO kb_chunk_vectors (chunk, model, embedding) VALUES (:chunk, :model, :embedding)"
# A vector of length 0 has no direction: normalised it is NaN, and its distance, being NaN, is NULL in SQL.
_NORMALISED = """
SELECT vec_normalize(embedding) FROM {table} WHERE rowid = :chunk
    AND vec_distance_l2(vec_normalize(embedding), embedding) IS NOT NULL"""
_ALL_NORMALISED = """
SELECT rowid, vec_normalize(embedding) FROM {table}
WHERE vec_distance_l2(vec_normalize(embedding), embedding) IS NOT NULL
    AND rowid IN (SELECT id FROM kb_embeddings)"""
_PLAIN = "SELECT embedding FROM {table} WHERE rowid = :chunk"
_OUTBOX = """
INSERT INTO kb_outbox (turn, chunk) SELECT turn, chunk FROM kb_unsettled;
DROP TABLE kb_unsettled;
DROP TRIGGER IF EXISTS kb_unsettled_chunk_deleted;
DROP TRIGGER IF EXISTS kb_unsettled_chunk_moved;
DROP TRIGGER IF EXISTS kb_unsettled_document;
DROP TRIGGER IF EXISTS kb_unsettled_tag_added;
DROP TRIGGER IF EXISTS kb_unsettled_tag_deleted;
"""
_OLD_TABLES = """
DROP TRIGGER kb_chunks_inserted;
DROP TRIGGER kb_chunks_deleted;
DROP TABLE kb_pending;
DROP TABLE kb_spaces;
DROP TABLE kb_embedding_cache;
DROP TABLE kb_embedders;
DROP TABLE IF EXISTS kb_unindexed;
DELETE FROM kb_meta WHERE key IN ('active_space', 'cache_entries', 'cache_bytes');
DELETE FROM kb_vec_meta WHERE key LIKE 'graph%';
"""


def keep_each_vector_once(connection: Connection) -> None:
    """Lead a file from schema 5 to 6."""
    connection.load_vec0()
    is_cosine = connection.value(_METRIC) == METRIC  # before there is a table that is
    connection.execute(_SYNC_STATES + _OLD_FEEDBACK)
    connection.execute((schema.FEEDBACK + schema.VECTORS).format(**dialect.DIALECT.types) + _FEEDBACK)
    connection.execute(_MODELS)
    for model in _models(connection):
        _TABLES.create(connection, model)
    _keep_cached(connection)
    connection.execute("CREATE INDEX kb_alike ON kb_embeddings (model, crc)")
    for model in _models(connection):
        _link(connection, model, _PLAIN if is_cosine else _NORMALISED)
    connection.execute("DROP INDEX kb_alike")
    _drop_old(connection)


def rebuild_as_cosine(connection: Connection) -> None:
    """Make the tables of vectors anew, with the same vectors made of length 1."""
    connection.load_vec0()
    for model in all_models(connection):
        vectors = dict(connection.rows(_ALL_NORMALISED.format(table=table_of(model.key))))
        gone = "SELECT id FROM kb_embeddings WHERE model = :model AND id NOT IN (:ids...)"
        lost = connection.rows(gone, {"model": model.key, "ids": list(vectors)})
        ids = {"ids": [id for (id,) in lost]}
        connection.run("DELETE FROM kb_chunk_vectors WHERE embedding IN (:ids...)", ids)
        connection.run("DELETE FROM kb_embeddings WHERE id IN (:ids...)", ids)
        _TABLES.drop(connection, model)
        _TABLES.create(connection, model)
        _TABLES.write(connection, model, vectors)
        crcs = ({"id": id, "crc": crc32(vector)} for id, vector in vectors.items())
        connection.run_many("UPDATE kb_embeddings SET crc = :crc WHERE id = :id", crcs)
        connection.run("UPDATE kb_models SET version = version + 1 WHERE key = :model", {"model": model.key})


def _models(connection: Connection) -> list[Model]:
    rows = connection.rows("SELECT key, identity FROM kb_models WHERE is_added = 1 ORDER BY key")
    return [Model(key, identity_of(identity), 0, True) for key, identity in rows]


def _keep_cached(connection: Connection) -> None:
    """Give every cached vector its row; models that only the cache knows are kept as such."""
    models: dict[str, Model] = {}
    for (name,) in connection.rows("SELECT identity FROM kb_embedders"):
        identity = Identity(*json.loads(name))
        known = find_model(connection, identity)
        models[name] = known or new_model(connection, _TABLES, identity, is_added=False)
    for name, key, vector, used in connection.iterate(_CACHED):
        if len(vector) == models[name].identity.dimension * FLOAT_BYTES:
            _store(connection, models[name], key, vector, used)
    for model in models.values():
        forget_if_empty(connection, _TABLES, model)


def _link(connection: Connection, model: Model, statement: str) -> None:
    """Link the chunks that have a vector of a model to it; the statement reads one from the old table."""
    is_outside = bool(home_of(connection, str).url)
    old = "kb_vec" if model.key == 1 else f"kb_vec_{model.key:d}"
    statement = statement.format(table=old)
    there = connection.value("SELECT 1 FROM sqlite_schema WHERE name = :old", {"old": old})
    for chunk, key in _hashes(connection, model) if there or is_outside else ():
        id = None if is_outside else _vector_of(connection, model, statement, chunk, key)
        if is_outside or id is not None:
            connection.run(_LINK, {"chunk": chunk, "model": model.key, "embedding": id})


def _hashes(connection: Connection, model: Model) -> Iterator[tuple[int, bytes]]:
    """Yield the chunks that have a vector of a model, and the hashes of their texts."""
    for chunk, title, heading, text, tags in connection.iterate(_EMBEDDED, {"space": model.key}):
        embedded = embeddable_text(title, list_of(heading), text, list_of(tags))
        yield chunk, sha256(embedded.encode("utf-8", "replace")).digest()


def _vector_of(connection: Connection, model: Model, old: str, chunk: int, key: bytes) -> int | None:
    """Return the id of the vector that a chunk is to have; None if it has none, or none that can be used."""
    known = connection.value(_KNOWN, {"model": model.key, "key": key})
    if known is not None:
        return int(known)
    vector = connection.value(old, {"chunk": chunk})
    if vector is None or len(vector) != model.identity.dimension * FLOAT_BYTES:
        return None
    alike = [id for (id,) in connection.rows(_ALIKE, {"model": model.key, "crc": crc32(vector)})]
    same = [id for id, stored in _TABLES.read(connection, model, alike).items() if stored == vector]
    return same[0] if same else _store(connection, model, key, vector, 0)


def _store(connection: Connection, model: Model, key: bytes, vector: Vector, used: int) -> int:
    values = {"model": model.key, "key": key, "crc": crc32(vector), "used": used}
    id = int(connection.value(_NEW, values))
    _TABLES.write(connection, model, {id: vector})
    return id


def _drop_old(connection: Connection) -> None:
    if connection.value("SELECT 1 FROM sqlite_schema WHERE name = 'kb_unsettled'"):
        connection.execute(_OUTBOX)
        connection.execute(dialect.DIALECT.watch)
    names = "SELECT 'kb_vec' UNION ALL SELECT 'kb_vec_' || key FROM kb_spaces"
    for (name,) in connection.rows(names):
        connection.execute(f"DROP TABLE IF EXISTS {name}")
    connection.execute(_OLD_TABLES)
    connection.execute(dialect.INSERTED_TRIGGER + dialect.DELETED_TRIGGER)
