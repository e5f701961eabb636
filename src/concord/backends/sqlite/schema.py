"""The tables, as statements. Keys are integers inside; the text ids that everybody else knows are columns.

kb_sources ─< kb_documents ─< kb_chunks ── kb_chunks_fts (words, by triggers)
                    ├─< kb_document_tags  ├─ kb_vec        (vectors; made when the first embedder is known)
                    └── kb_accesses       └─ kb_pending    (chunks without a vector, by triggers)
"""

from __future__ import annotations

# sqlite-vec keeps many vectors in one value, which SQLite walks page by page: with pages of 16 kB instead of
# 4, nearest neighbours take 3/4 of the time, words no longer, and the file is smaller.
PAGE_BYTES = 16384
APPLICATION_ID = 0x6B62636F  # "kbco" in the file's header: tells a store from any other SQLite database

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

DELETED_TRIGGER = """
CREATE TRIGGER kb_chunks_deleted AFTER DELETE ON kb_chunks BEGIN
    INSERT INTO kb_chunks_fts (kb_chunks_fts, rowid, title, content, tags, terms)
        VALUES ('delete', old.id, old.title, old.content, old.tags, old.terms);
    DELETE FROM kb_pending WHERE chunk = old.id;
    UPDATE kb_meta SET value = value - 1 WHERE key = 'chunks';
END;
"""

FIRST = (
    _TABLES + _FULL_TEXT + DELETED_TRIGGER + "INSERT INTO kb_meta VALUES ('generation', 0), ('chunks', 0);"
)

# Notes keep what they were made of; who superseded whom is asked from both sides; what was read and judged.
NOTES_AND_JOURNAL = """
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
