"""SQLite files as earlier versions made them: the first schema, and the steps to later ones."""

from __future__ import annotations

from pathlib import Path

from concord.store.sqlite import old_schemas
from concord.store.sqlite.connections import Connection
from concord.store.sqlite.file import APPLICATION_ID

# kb_chunks keeps title, tags and terms beside its text, because an external-content index can only take a row
# out when it is told exactly what was put in. The text comes last, so that reading the columns before it
# never touches the pages that a long text overflows to.
_TABLES = """
CREATE TABLE kb_meta (
    key TEXT PRIMARY KEY,
    value ANY NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE kb_sources (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL UNIQUE,
    path TEXT,
    kind TEXT NOT NULL,
    prefix TEXT NOT NULL UNIQUE,
    patterns TEXT NOT NULL,
    tags TEXT NOT NULL,
    trust TEXT NOT NULL,
    created_at REAL NOT NULL,
    synced_at REAL
) STRICT;

CREATE TABLE kb_documents (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    source INTEGER NOT NULL REFERENCES kb_sources (key),
    path TEXT NOT NULL UNIQUE,
    type TEXT NOT NULL,
    title TEXT NOT NULL,
    details TEXT NOT NULL,
    file_hash TEXT NOT NULL,
    content_hash TEXT NOT NULL,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    superseded_by TEXT,
    indexed_at REAL NOT NULL
) STRICT;
CREATE INDEX kb_documents_source ON kb_documents (source, path);
CREATE INDEX kb_documents_superseded ON kb_documents (key) WHERE superseded_by IS NOT NULL;

CREATE TABLE kb_document_tags (
    document INTEGER NOT NULL REFERENCES kb_documents (key) ON DELETE CASCADE,
    tag TEXT NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (document, tag)
) STRICT, WITHOUT ROWID;
CREATE INDEX kb_document_tags_tag ON kb_document_tags (tag, document);

CREATE TABLE kb_chunks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    document INTEGER NOT NULL REFERENCES kb_documents (key),
    position INTEGER NOT NULL,
    start_offset INTEGER NOT NULL,
    end_offset INTEGER NOT NULL,
    start_line INTEGER NOT NULL,
    end_line INTEGER NOT NULL,
    page INTEGER,
    heading TEXT NOT NULL,
    title TEXT NOT NULL,
    tags TEXT NOT NULL,
    terms TEXT NOT NULL,
    content TEXT NOT NULL
) STRICT;
CREATE INDEX kb_chunks_document ON kb_chunks (document, position);
-- From a chunk to its document without reading its text: at 100,000 chunks this halves a filtered search.
CREATE INDEX kb_chunks_place ON kb_chunks (id, document);

CREATE TABLE kb_pending (
    chunk INTEGER PRIMARY KEY
) STRICT;

CREATE TABLE kb_vec_meta (
    key TEXT PRIMARY KEY,
    value ANY NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE kb_embedders (
    key INTEGER PRIMARY KEY,
    identity TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE kb_embedding_cache (
    embedder INTEGER NOT NULL REFERENCES kb_embedders (key),
    text_hash BLOB NOT NULL,
    vector BLOB NOT NULL,
    UNIQUE (text_hash, embedder)
) STRICT;
"""

_FULL_TEXT = """
CREATE VIRTUAL TABLE kb_chunks_fts USING fts5(
    title, content, tags, terms,
    content='kb_chunks', content_rowid='id', tokenize='porter unicode61'
);
CREATE VIRTUAL TABLE kb_chunks_vocab USING fts5vocab('kb_chunks_fts', 'row');

CREATE TRIGGER kb_chunks_inserted AFTER INSERT ON kb_chunks BEGIN
    INSERT INTO kb_chunks_fts (rowid, title, content, tags, terms)
        VALUES (new.id, new.title, new.content, new.tags, new.terms);
    INSERT INTO kb_pending VALUES (new.id);
    UPDATE kb_meta SET value = value + 1 WHERE key = 'chunks';
END;

CREATE TRIGGER kb_chunks_updated AFTER UPDATE OF title, content, tags, terms ON kb_chunks
WHEN (old.title, old.content, old.tags, old.terms) IS NOT (new.title, new.content, new.tags, new.terms) BEGIN
    INSERT INTO kb_chunks_fts (kb_chunks_fts, rowid, title, content, tags, terms)
        VALUES ('delete', old.id, old.title, old.content, old.tags, old.terms);
    INSERT INTO kb_chunks_fts (rowid, title, content, tags, terms)
        VALUES (new.id, new.title, new.content, new.tags, new.terms);
END;
"""

_FIRST_DELETED_TRIGGER = """
CREATE TRIGGER kb_chunks_deleted AFTER DELETE ON kb_chunks BEGIN
    INSERT INTO kb_chunks_fts (kb_chunks_fts, rowid, title, content, tags, terms)
        VALUES ('delete', old.id, old.title, old.content, old.tags, old.terms);
    DELETE FROM kb_pending WHERE chunk = old.id;
    UPDATE kb_meta SET value = value - 1 WHERE key = 'chunks';
END;
"""

FIRST = (
    _TABLES
    + _FULL_TEXT
    + _FIRST_DELETED_TRIGGER
    + "INSERT INTO kb_meta VALUES ('generation', 0), ('chunks', 0);"
)


def earlier_file(path: Path, version: int, rows: str) -> Connection:
    """Make a file of an earlier schema that holds some rows; return the connection to it."""
    connection = Connection(str(path))
    connection.load_vec0()
    connection.pragma("journal_mode", "wal")
    connection.execute(FIRST)
    for step in old_schemas.STEPS[: version - 1]:
        step(connection)
    connection.execute("INSERT INTO kb_meta VALUES ('org', 'default')")
    connection.execute(rows)
    connection.pragma("application_id", APPLICATION_ID)
    connection.pragma("user_version", version)
    return connection
