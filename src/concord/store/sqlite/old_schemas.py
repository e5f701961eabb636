"""What leads from one schema to the next, from 1 to 7. What was released never changes.

Only files that an earlier program has written take these steps; a new one is made as `schema` says.

Up to schema 5 vectors were kept twice, in a table for searches and in a cache. Now each chunk is given the
vector that the cache has for its text. Where the cache has none, because it was trimmed or because the title
changed since, its vector is copied from the table for searches. Nothing is embedded.
"""

from __future__ import annotations

from collections.abc import Callable
from zlib import crc32

from concord.store import schema
from concord.store.contract import TextHash
from concord.store.embeddings import EMBEDDED, new_embeddings, pending_of, text_hash
from concord.store.models import Model, all_models, find_model, forget_if_empty, new_model
from concord.store.outbox import home_of
from concord.store.rows import identity_of
from concord.store.sqlite import dialect
from concord.store.sqlite.connections import Connection
from concord.store.sqlite.vectors import METRIC, SQLiteVectorTables, table_of
from concord.types import FLOAT_BYTES, Pending, Vector

# Notes keep what they were made of; who superseded whom is asked from both sides; what was read and judged.
_NOTES_AND_JOURNAL = """
ALTER TABLE kb_documents ADD COLUMN fields TEXT NOT NULL DEFAULT '{}';
CREATE INDEX kb_documents_superseder ON kb_documents (superseded_by) WHERE superseded_by IS NOT NULL;

CREATE TABLE kb_accesses (
    document INTEGER PRIMARY KEY REFERENCES kb_documents (key) ON DELETE CASCADE,
    count INTEGER NOT NULL,
    last_at REAL NOT NULL
) STRICT;

CREATE TABLE kb_feedback (
    query TEXT NOT NULL,
    document_id TEXT NOT NULL,
    citation TEXT NOT NULL,
    opinion TEXT NOT NULL,
    at REAL NOT NULL,
    PRIMARY KEY (query, document_id)
) STRICT, WITHOUT ROWID;
"""

_DELETED_TRIGGER = """
CREATE TRIGGER kb_chunks_deleted AFTER DELETE ON kb_chunks BEGIN
    INSERT INTO kb_chunks_fts (kb_chunks_fts, rowid, title, content, tags, terms)
        VALUES ('delete', old.id, old.title, old.content, old.tags, old.terms);
    DELETE FROM kb_pending WHERE space IN (SELECT key FROM kb_spaces) AND chunk = old.id;
    UPDATE kb_meta SET value = value - 1 WHERE key = 'chunks';
END;
"""

# One space for each model. The first keeps the table from when there was only one; its identity is null until
# the first embedder is known. Keys are never reused: a version belongs to one space for ever.
_MODEL_SPACES = """
CREATE TABLE kb_spaces (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    identity TEXT UNIQUE,
    recipe TEXT NOT NULL DEFAULT '{}',
    was_active INTEGER NOT NULL DEFAULT 0,
    version INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO kb_spaces (key, was_active, identity) SELECT 1, 1, json_array(
    (SELECT value FROM kb_vec_meta WHERE key = 'provider'),
    (SELECT value FROM kb_vec_meta WHERE key = 'model'),
    (SELECT value FROM kb_vec_meta WHERE key = 'dimension'),
    (SELECT value FROM kb_vec_meta WHERE key = 'prefix_version'),
    'cosine')
WHERE EXISTS (SELECT 1 FROM kb_vec_meta WHERE key = 'dimension');
INSERT OR IGNORE INTO kb_spaces (key, was_active) VALUES (1, 1);
INSERT INTO kb_meta VALUES ('active_space', 1);
DELETE FROM kb_vec_meta WHERE key <> 'distance_metric';

DROP TRIGGER kb_chunks_inserted;
DROP TRIGGER kb_chunks_deleted;
CREATE TABLE kb_waiting (
    space INTEGER NOT NULL REFERENCES kb_spaces (key),
    chunk INTEGER NOT NULL,
    PRIMARY KEY (space, chunk)
) STRICT, WITHOUT ROWID;
INSERT INTO kb_waiting SELECT 1, chunk FROM kb_pending;
DROP TABLE kb_pending;
ALTER TABLE kb_waiting RENAME TO kb_pending;
CREATE TRIGGER kb_chunks_inserted AFTER INSERT ON kb_chunks BEGIN
    INSERT INTO kb_chunks_fts (rowid, title, content, tags, terms)
        VALUES (new.id, new.title, new.content, new.tags, new.terms);
    INSERT INTO kb_pending SELECT key, new.id FROM kb_spaces;
    UPDATE kb_meta SET value = value + 1 WHERE key = 'chunks';
END;
"""

# `used` is the number of look-ups there had been when a vector was last of use: time without a clock.
_CACHE_USE = """
ALTER TABLE kb_embedding_cache ADD COLUMN used INTEGER NOT NULL DEFAULT 0;
INSERT INTO kb_meta SELECT 'cache_entries', count(*) FROM kb_embedding_cache;
INSERT INTO kb_meta SELECT 'cache_bytes', ifnull(sum(length(vector)), 0) FROM kb_embedding_cache;
INSERT INTO kb_meta VALUES ('cache_hits', 0), ('cache_misses', 0);
CREATE TRIGGER kb_embedding_cache_inserted AFTER INSERT ON kb_embedding_cache BEGIN
    UPDATE kb_meta SET value = value + 1 WHERE key = 'cache_entries';
    UPDATE kb_meta SET value = value + length(new.vector) WHERE key = 'cache_bytes';
END;
CREATE TRIGGER kb_embedding_cache_deleted AFTER DELETE ON kb_embedding_cache BEGIN
    UPDATE kb_meta SET value = value - 1 WHERE key = 'cache_entries';
    UPDATE kb_meta SET value = value - length(old.vector) WHERE key = 'cache_bytes';
END;
"""

_SPACES = _MODEL_SPACES + _DELETED_TRIGGER + _CACHE_USE

# A passage may end on a later page than it begins on; what was stored before is taken to end where it begins.
_LAST_PAGES = "ALTER TABLE kb_chunks ADD COLUMN last_page INTEGER"

# What its owner says of a source.
_ABOUT = "ALTER TABLE kb_sources ADD COLUMN about TEXT NOT NULL DEFAULT ''"

# What chunks are called, and where in a line they begin and end. `kb backfill` fills in the names of chunks
# that were stored before, and the next sync their columns, too.
_NAMES = """
CREATE TABLE kb_names (
    token TEXT NOT NULL,
    chunk INTEGER NOT NULL REFERENCES kb_chunks (id) ON DELETE CASCADE,
    PRIMARY KEY (token, chunk)
) STRICT, WITHOUT ROWID;
CREATE INDEX kb_names_chunk ON kb_names (chunk);
ALTER TABLE kb_chunks ADD COLUMN start_column INTEGER;
ALTER TABLE kb_chunks ADD COLUMN end_column INTEGER;
"""


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
_EMBEDDED = f"""
SELECT {EMBEDDED} FROM kb_chunks AS c JOIN kb_documents AS d ON d.key = c.document
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
        identity = identity_of(name)
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
    if not there and not is_outside:
        return
    for text in map(pending_of, connection.iterate(_EMBEDDED, {"space": model.key})):
        id = None if is_outside else _vector_of(connection, model, statement, text)
        if is_outside or id is not None:
            connection.run(_LINK, {"chunk": text.chunk_id, "model": model.key, "embedding": id})


def _vector_of(connection: Connection, model: Model, old: str, text: Pending) -> int | None:
    """Return the id of the vector that a chunk is to have; None if it has none, or none that can be used."""
    key = text_hash(text)
    known = connection.value(_KNOWN, {"model": model.key, "key": key})
    if known is not None:
        return int(known)
    vector = connection.value(old, {"chunk": text.chunk_id})
    if vector is None or len(vector) != model.identity.dimension * FLOAT_BYTES:
        return None
    alike = [id for (id,) in connection.rows(_ALIKE, {"model": model.key, "crc": crc32(vector)})]
    same = [id for id, stored in _TABLES.read(connection, model, alike).items() if stored == vector]
    return same[0] if same else _store(connection, model, key, vector, 0)


def _store(connection: Connection, model: Model, key: TextHash, vector: Vector, used: int) -> int:
    return new_embeddings(connection, _TABLES, model, [(key, vector, used)])[0]


def _drop_old(connection: Connection) -> None:
    if connection.value("SELECT 1 FROM sqlite_schema WHERE name = 'kb_unsettled'"):
        connection.execute(_OUTBOX)
        connection.execute(dialect.DIALECT.watch)
    names = "SELECT 'kb_vec' UNION ALL SELECT 'kb_vec_' || key FROM kb_spaces"
    for (name,) in connection.rows(names):
        connection.execute(f"DROP TABLE IF EXISTS {name}")
    connection.execute(_OLD_TABLES)
    connection.execute(dialect.INSERTED_TRIGGER + dialect.DELETED_TRIGGER)


def _script(statements: str) -> Callable[[Connection], None]:
    return lambda connection: connection.run(statements)


# The step at index n leads from version n + 1 to version n + 2.
STEPS = (
    _script(_NOTES_AND_JOURNAL),
    _script(_SPACES),
    _script(_LAST_PAGES),
    _script(_NAMES),
    keep_each_vector_once,
    _script(_ABOUT),
)
