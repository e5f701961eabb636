"""The tables that every engine has. Keys are integers inside; text ids, which others know, are columns.

kb_sources ─< kb_documents ─< kb_chunks ─< kb_names             (what chunks are called)
                    ├─< kb_titles        ├─< kb_links            (what they point to)
                    ├─< kb_document_tags ├── words               (the engine's own index)
                    └── kb_accesses       └─< kb_chunk_vectors >── kb_embeddings >── kb_models
                                              (which vector)       (one a text and model: index and cache)

A chunk without a row in kb_chunk_vectors waits for a vector of that model. A row without an embedding says
that the vector is kept outside the store. Rows of kb_embeddings that no chunk links to are the cache.
"""

from __future__ import annotations

from concord.store.sql import Dialect

# kb_meta holds numbers: generation, chunks, last_turn, active_model, cache_hits, cache_misses.
# kb_vec_meta holds texts: distance_metric, home, key.
# kb_chunks keeps title, tags and terms beside its text because an index of words can only take a row out when
# it is given exactly what was put in. The text comes last: reading the columns before it never touches the
# pages that a long text overflows to.
CATALOG = """
CREATE TABLE kb_meta (key {text} PRIMARY KEY, value {any} NOT NULL) {clustered};
CREATE TABLE kb_sources (
    key {key},
    id {text} NOT NULL UNIQUE,
    name {text} NOT NULL UNIQUE,
    path {text},
    kind {text} NOT NULL,
    prefix {text} NOT NULL UNIQUE,
    patterns {text} NOT NULL,
    tags {text} NOT NULL,
    trust {text} NOT NULL,
    created_at {real} NOT NULL,
    synced_at {real},
    sync_state {text} NOT NULL DEFAULT '',
    about {text} NOT NULL DEFAULT ''
) {plain};
CREATE TABLE kb_documents (
    key {key},
    id {text} NOT NULL UNIQUE,
    source {int} NOT NULL REFERENCES kb_sources (key),
    path {text} NOT NULL UNIQUE,
    type {text} NOT NULL,
    title {text} NOT NULL,
    details {text} NOT NULL,
    file_hash {text} NOT NULL,
    content_hash {text} NOT NULL,
    size {int} NOT NULL,
    mtime_ns {int} NOT NULL,
    superseded_by {text},
    indexed_at {real} NOT NULL,
    fields {text} NOT NULL DEFAULT '{{}}'
) {plain};
CREATE INDEX kb_documents_source ON kb_documents (source, path);
CREATE INDEX kb_documents_superseded ON kb_documents (key) WHERE superseded_by IS NOT NULL;
CREATE INDEX kb_documents_superseder ON kb_documents (superseded_by) WHERE superseded_by IS NOT NULL;
CREATE TABLE kb_document_tags (
    document {int} NOT NULL REFERENCES kb_documents (key) ON DELETE CASCADE,
    tag {text} NOT NULL,
    position {int} NOT NULL,
    PRIMARY KEY (document, tag)
) {clustered};
CREATE INDEX kb_document_tags_tag ON kb_document_tags (tag, document);
CREATE TABLE kb_chunks (
    id {serial},
    document {int} NOT NULL REFERENCES kb_documents (key),
    position {int} NOT NULL,
    start_offset {int} NOT NULL,
    end_offset {int} NOT NULL,
    start_line {int} NOT NULL,
    end_line {int} NOT NULL,
    page {int},
    last_page {int},
    start_column {int},
    end_column {int},
    heading {text} NOT NULL,
    title {text} NOT NULL,
    tags {text} NOT NULL,
    terms {text} NOT NULL,
    content {text} NOT NULL
) {plain};
CREATE INDEX kb_chunks_document ON kb_chunks (document, position);
-- From a chunk to its document without reading its text: at 100,000 chunks this halves a filtered search.
CREATE INDEX kb_chunks_place ON kb_chunks (id, document);
CREATE TABLE kb_names (
    token {text} NOT NULL,
    chunk {int} NOT NULL REFERENCES kb_chunks (id) ON DELETE CASCADE,
    PRIMARY KEY (token, chunk)
) {clustered};
CREATE INDEX kb_names_chunk ON kb_names (chunk);
CREATE TABLE kb_accesses (
    document {int} PRIMARY KEY REFERENCES kb_documents (key) ON DELETE CASCADE,
    count {int} NOT NULL,
    last_at {real} NOT NULL
) {plain};
CREATE TABLE kb_vec_meta (key {text} PRIMARY KEY, value {any_text} NOT NULL) {clustered};
INSERT INTO kb_meta VALUES ('generation', 0), ('chunks', 0);
"""

FEEDBACK = """
CREATE TABLE kb_feedback (
    query {text} NOT NULL,
    document_id {text} NOT NULL,
    citation {text} NOT NULL,
    opinion {text} NOT NULL,
    at {real} NOT NULL
) {plain};
-- Not with the query, which may be a pasted page: PostgreSQL's indexes have no room for that.
CREATE INDEX kb_feedback_document ON kb_feedback (document_id);
"""

# `is_added` is 0 for models of which only cached vectors are left. `version` changes whenever a model's
# vectors do. `used` is the number of look-ups there had been when a vector was last of use: time without a
# clock. `crc` is the CRC-32 of a vector's bytes: a disk may change one without anybody noticing.
VECTORS = """
CREATE TABLE kb_models (
    key {serial},
    identity {text} NOT NULL UNIQUE,
    recipe {text} NOT NULL DEFAULT '{{}}',
    is_added {int} NOT NULL DEFAULT 1,
    was_active {int} NOT NULL DEFAULT 0,  -- read by earlier versions
    version {int} NOT NULL DEFAULT 0
) {plain};
CREATE TABLE kb_embeddings (
    id {serial},
    model {int} NOT NULL REFERENCES kb_models (key),
    text_hash {bytes} NOT NULL,
    crc {int} NOT NULL,
    used {int} NOT NULL DEFAULT 0,
    UNIQUE (text_hash, model)
) {plain};
CREATE TABLE kb_chunk_vectors (
    chunk {int} NOT NULL REFERENCES kb_chunks (id) ON DELETE CASCADE,
    model {int} NOT NULL REFERENCES kb_models (key),
    embedding {int} REFERENCES kb_embeddings (id),
    PRIMARY KEY (chunk, model)
) {clustered};
CREATE INDEX kb_chunk_vectors_embedding ON kb_chunk_vectors (embedding) WHERE embedding IS NOT NULL;
CREATE TABLE kb_outbox (
    turn {serial},
    chunk {int} NOT NULL
) {plain};
"""

# kb_titles: names by which links find a document, and those of them that texts may mention: these have an
# `opening`, their first two words. `common` is in how many chunks a title stood when that was found to be too
# many. kb_links: `name` is looked up among the former; without a document a link is broken, or leads to what
# is not indexed. kb_unlinked: documents whose mentions are yet to be found; `is_new` if their titles are too.
LINKS = """
CREATE TABLE kb_titles (
    name {text} NOT NULL,
    document {int} NOT NULL REFERENCES kb_documents (key) ON DELETE CASCADE,
    opening {text} NOT NULL,
    title {text} NOT NULL,
    common {int} NOT NULL DEFAULT 0,
    PRIMARY KEY (name, document)
) {clustered};
CREATE INDEX kb_titles_document ON kb_titles (document);
CREATE INDEX kb_titles_opening ON kb_titles (opening) WHERE opening <> '';
CREATE TABLE kb_links (
    chunk {int} NOT NULL REFERENCES kb_chunks (id) ON DELETE CASCADE,
    kind {text} NOT NULL,
    name {text} NOT NULL,
    target {text} NOT NULL,
    words {text} NOT NULL,
    document {int} REFERENCES kb_documents (key) ON DELETE SET NULL,
    PRIMARY KEY (chunk, kind, name, target)
) {clustered};
CREATE INDEX kb_links_name ON kb_links (name);
CREATE INDEX kb_links_document ON kb_links (document) WHERE document IS NOT NULL;
CREATE TABLE kb_unlinked (
    document {int} PRIMARY KEY REFERENCES kb_documents (key) ON DELETE CASCADE,
    is_new {int} NOT NULL
) {plain};
"""
COUNTERS = "INSERT INTO kb_meta VALUES ('cache_hits', 0), ('cache_misses', 0);"


def create(dialect: Dialect) -> str:
    """Return the statements that make all tables that engines share, for a store that holds nothing."""
    return (CATALOG + FEEDBACK + VECTORS + LINKS).format(**dialect.types) + COUNTERS
