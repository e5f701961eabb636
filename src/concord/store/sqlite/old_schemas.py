"""What leads a file here from an earlier schema. What was released never changes.

Only files that an earlier program has written take these steps; a new one is made as `schema` says. Up to
schema 5 vectors were kept twice, for searches and in a cache: tables that old are set aside and read.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from zlib import crc32

from concord.store import schema
from concord.store.contents import Contents, Held, contents_in, fill
from concord.store.models import all_models
from concord.store.rows import details_of, identity_of
from concord.store.sqlite.connections import Connection
from concord.store.sqlite.dialect import DIALECT
from concord.store.sqlite.vectors import METRIC, SQLiteVectorTables, rewrite, table_of
from concord.store.sqlite.words import SQLiteWordTables
from concord.store.upkeep import mend_vectors
from concord.types import ChunkId, Vector

FIRST_IN_STEPS = 6
# The step at index n leads from version n + 6 to the next.
STEPS = (
    "ALTER TABLE kb_sources ADD COLUMN about TEXT NOT NULL DEFAULT ''",
    schema.LINKS.format(**DIALECT.types),
)

# Schema 1 and 2 knew one model, whose identity is null until the first embedder is known. Its number is 1.
_ONE_MODEL = """
CREATE TABLE kb_spaces (key INTEGER PRIMARY KEY, identity TEXT, recipe TEXT);
INSERT INTO kb_spaces SELECT 1, json_array(
    (SELECT value FROM kb_vec_meta WHERE key = 'provider'),
    (SELECT value FROM kb_vec_meta WHERE key = 'model'),
    (SELECT value FROM kb_vec_meta WHERE key = 'dimension'),
    (SELECT value FROM kb_vec_meta WHERE key = 'prefix_version'),
    'cosine'), '{}'
WHERE EXISTS (SELECT 1 FROM kb_vec_meta WHERE key = 'dimension');
INSERT INTO kb_meta VALUES ('active_space', 1);
ALTER TABLE kb_pending ADD COLUMN space INTEGER NOT NULL DEFAULT 1;
"""
_JOURNAL = """
CREATE TABLE IF NOT EXISTS kb_accesses (document INTEGER, count INTEGER, last_at REAL);
CREATE TABLE IF NOT EXISTS kb_feedback (query TEXT, document_id TEXT, citation TEXT, opinion TEXT, at REAL);
CREATE TABLE IF NOT EXISTS kb_unsettled (turn INTEGER PRIMARY KEY AUTOINCREMENT, chunk INTEGER);
"""
_STATES = """
UPDATE kb_sources SET sync_state = ifnull((SELECT value FROM kb_meta WHERE key = 'memo ' || id), '')"""
_ADDED = {
    "kb_sources": ("sync_state TEXT NOT NULL DEFAULT ''", "about TEXT NOT NULL DEFAULT ''"),
    "kb_documents": ("fields TEXT NOT NULL DEFAULT '{}'",),
    "kb_chunks": ("last_page INTEGER", "start_column INTEGER", "end_column INTEGER"),
    "kb_embedding_cache": ("used INTEGER NOT NULL DEFAULT 0",),
}
_COLUMNS = "SELECT name FROM pragma_table_info(:table)"
# Tables that others refer to come later.
_TABLES = (
    "kb_document_tags", "kb_accesses", "kb_feedback", "kb_names", "kb_chunks", "kb_documents", "kb_sources",
    "kb_pending", "kb_spaces", "kb_embedding_cache", "kb_embedders", "kb_unsettled", "kb_unindexed",
    "kb_meta", "kb_vec_meta",
)  # fmt: skip
_IN_THE_WAY = "SELECT type, name FROM sqlite_schema WHERE type IN ('trigger', 'index') AND sql IS NOT NULL"
_EXISTS = "SELECT 1 FROM sqlite_schema WHERE name = :name"

_SPACES = "SELECT key, identity, recipe FROM old_spaces WHERE identity IS NOT NULL ORDER BY key"
_CACHED = """
SELECT identity, text_hash, vector FROM old_embedding_cache JOIN old_embedders ON key = embedder
ORDER BY used, old_embedding_cache.rowid"""
_NOT_PENDING = "NOT IN (SELECT chunk FROM old_pending WHERE space = :space)"
_OUTSIDE = f"SELECT id, NULL FROM old_chunks WHERE id {_NOT_PENDING} ORDER BY id"
_PLAIN = f"SELECT rowid, embedding FROM {{table}} WHERE rowid {_NOT_PENDING} ORDER BY rowid"
# A vector of length 0 has no direction: normalised it is NaN, and its distance, being NaN, is NULL in SQL.
_NORMALISED = """
SELECT rowid, vec_normalize(embedding) FROM {table}
WHERE vec_distance_l2(vec_normalize(embedding), embedding) IS NOT NULL"""
_METRIC = "SELECT value FROM old_vec_meta WHERE key = 'distance_metric'"


def set_aside(connection: Connection) -> None:
    """Call the tables of schema 5 or earlier otherwise, each with all the columns that it has in schema 5."""
    connection.load_vec0()
    for kind, name in connection.rows(_IN_THE_WAY):
        connection.run(f"DROP {kind} {name}")
    connection.run("DROP TABLE kb_chunks_vocab; DROP TABLE kb_chunks_fts")
    connection.run(_JOURNAL if _there(connection, "kb_spaces") else _JOURNAL + _ONE_MODEL)
    for table, columns in _ADDED.items():
        known = {name for (name,) in connection.rows(_COLUMNS, {"table": table})}
        for column in (column for column in columns if column.split()[0] not in known):
            connection.run(f"ALTER TABLE {table} ADD COLUMN {column}")
    connection.run(_STATES)
    for table in filter(partial(_there, connection), _TABLES):
        connection.run(f"ALTER TABLE {table} RENAME TO {table.replace('kb_', 'old_')}")


def take_over(connection: Connection) -> None:
    """Fill tables that hold nothing from those that were set aside, and drop these."""
    fill(connection, _contents(connection), SQLiteVectorTables(), SQLiteWordTables(), DIALECT)
    names = [f"kb_vec_{space:d}" for (space,) in connection.rows("SELECT key FROM old_spaces")]
    connection.run("INSERT INTO kb_meta SELECT key, value FROM old_meta WHERE key = 'org'")
    for name in ("kb_vec", *names, *(table.replace("kb_", "old_") for table in _TABLES)):
        connection.run(f"DROP TABLE IF EXISTS {name}")


def _contents(connection: Connection) -> Contents:
    contents = contents_in(connection, "old_")
    active = connection.value("SELECT value FROM old_meta WHERE key = 'active_space'")
    for space, identity, recipe in connection.rows(_SPACES):
        vectors = _vectors(connection, space, is_outside=contents.home != "")
        held = Held(details_of(recipe), {chunk: vector or b"" for chunk, vector in vectors})
        contents.spaces.append((identity_of(identity), held))
        contents.active = identity_of(identity) if space == active else contents.active
    rows = connection.rows(_CACHED)
    contents.cached = [(identity_of(identity), key, vector) for identity, key, vector in rows]
    contents.unsettled = dict(connection.rows("SELECT turn, chunk FROM old_unsettled ORDER BY turn"))
    last = dict(connection.rows("SELECT name, seq FROM sqlite_sequence"))
    contents.last_chunk_id, contents.last_turn = last.get("old_chunks", 0), last.get("old_unsettled", 0)
    return contents


def _vectors(
    connection: Connection, space: int, *, is_outside: bool
) -> Iterable[tuple[ChunkId, Vector | None]]:
    """Return the vectors by which chunks were searched."""
    table = "kb_vec" if space == 1 else f"kb_vec_{space:d}"
    if is_outside:
        return connection.iterate(_OUTSIDE, {"space": space})
    if not _there(connection, table):
        return ()
    is_cosine = connection.value(_METRIC) == METRIC
    statement = _PLAIN if is_cosine else f"{_NORMALISED} AND rowid {_NOT_PENDING} ORDER BY rowid"
    return connection.iterate(statement.format(table=table), {"space": space})


def _there(connection: Connection, name: str) -> bool:
    return bool(connection.value(_EXISTS, {"name": name}))


def rebuild_as_cosine(connection: Connection) -> None:
    """Make the tables of vectors anew, with the same vectors made of length 1."""
    connection.load_vec0()
    for model in all_models(connection):
        known = f"{_NORMALISED} AND rowid IN (SELECT id FROM kb_embeddings)"
        vectors = dict(connection.rows(known.format(table=table_of(model.key))))
        rewrite(connection, model, vectors)
        crcs = ({"id": id, "crc": crc32(vector)} for id, vector in vectors.items())
        connection.run_many("UPDATE kb_embeddings SET crc = :crc WHERE id = :id", crcs)
        connection.run("UPDATE kb_models SET version = version + 1 WHERE key = :model", {"model": model.key})
    mend_vectors(connection, SQLiteVectorTables())
