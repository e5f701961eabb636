"""The tables, as statements. Keys are integers inside; the text ids that everybody else knows are columns.

kb_sources ─< kb_documents ─< kb_chunks ── kb_chunks_fts (words, by triggers)
                    ├─< kb_document_tags  ├─ kb_vec, kb_vec_2 … (vectors: a table for each row of kb_spaces)
                    └── kb_accesses       ├─ kb_pending    (chunks without a vector in a space, by triggers)
                                          └─ kb_names      (what chunks are called)
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

DELETED_TRIGGER = """
CREATE TRIGGER kb_chunks_deleted AFTER DELETE ON kb_chunks BEGIN
    INSERT INTO kb_chunks_fts (kb_chunks_fts, rowid, title, content, tags, terms)
        VALUES ('delete', old.id, old.title, old.content, old.tags, old.terms);
    DELETE FROM kb_pending WHERE space IN (SELECT key FROM kb_spaces) AND chunk = old.id;
    UPDATE kb_meta SET value = value - 1 WHERE key = 'chunks';
END;
"""

# One space for each model. The first keeps the table from when there was only one; its identity is null until
# the first embedder is known. Keys are never reused: a version belongs to one space for ever.
_SPACES = """
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

SPACES = _SPACES + DELETED_TRIGGER + _CACHE_USE

# A passage may end on a later page than it begins on; what was stored before is taken to end where it begins.
LAST_PAGES = "ALTER TABLE kb_chunks ADD COLUMN last_page INTEGER"

# What chunks are called, and where in a line they begin and end. `kb backfill` fills in the names of chunks
# that were stored before, and the next sync their columns, too.
NAMES = """
CREATE TABLE kb_names (
    token TEXT NOT NULL,
    chunk INTEGER NOT NULL REFERENCES kb_chunks (id) ON DELETE CASCADE,
    PRIMARY KEY (token, chunk)
) STRICT, WITHOUT ROWID;
CREATE INDEX kb_names_chunk ON kb_names (chunk);
ALTER TABLE kb_chunks ADD COLUMN start_column INTEGER;
ALTER TABLE kb_chunks ADD COLUMN end_column INTEGER;
"""
