"""What led from one schema to the next, from 1 to 5, as statements. What was released never changes.

Only files that an earlier program has written take these steps; a new one is made as `schema` says.
"""

from __future__ import annotations

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

SPACES = _SPACES + _DELETED_TRIGGER + _CACHE_USE

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
