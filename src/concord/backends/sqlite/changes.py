"""What changes the catalog: each change is one transaction."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import Any

import apsw

from concord.backends.columns import chunk_names, columns_of
from concord.backends.sql_values import document_values, list_column, list_of, source_values
from concord.backends.sqlite import schema
from concord.backends.sqlite.connections import Connection, Writer
from concord.backends.sqlite.names import put_names
from concord.backends.sqlite.rows import chunk_values
from concord.backends.sqlite.vec_table import forget_vectors
from concord.backends.store_errors import name_taken, no_document, no_source, path_taken
from concord.backends.supersession import rerouted
from concord.text.names import names_of
from concord.types import ChunkId, Document, Piece, Source

_PUT_SOURCE = """
INSERT INTO kb_sources (id, name, path, kind, prefix, patterns, tags, trust, created_at, synced_at)
VALUES (:id, :name, :path, :kind, :prefix, :patterns, :tags, :trust, :created_at, :synced_at)
ON CONFLICT (id) DO UPDATE SET name = :name, path = :path, kind = :kind, prefix = :prefix,
    patterns = :patterns, tags = :tags, trust = :trust, created_at = :created_at, synced_at = :synced_at"""
_PUT_MEMO = """
INSERT OR REPLACE INTO kb_meta SELECT 'memo ' || ?1, ?2
WHERE EXISTS (SELECT 1 FROM kb_sources WHERE id = ?1)"""
_PUT_DOCUMENT = """
INSERT INTO kb_documents (id, source, path, type, title, details, file_hash, content_hash, size, mtime_ns,
    superseded_by, indexed_at, fields)
VALUES (:id, :source, :path, :type, :title, :details, :file_hash, :content_hash, :size, :mtime_ns,
    :superseded_by, :indexed_at, :fields)
ON CONFLICT (id) DO UPDATE SET source = :source, path = :path, type = :type, title = :title,
    details = :details, file_hash = :file_hash, content_hash = :content_hash, size = :size,
    mtime_ns = :mtime_ns, superseded_by = :superseded_by, indexed_at = :indexed_at,
    fields = :fields
RETURNING key"""
_INSERT_CHUNK = """
INSERT INTO kb_chunks (document, position, start_offset, end_offset, start_line, end_line, page, heading,
    title, tags, terms, content, last_page, start_column, end_column)
VALUES (:document, :position, :start_offset, :end_offset, :start_line, :end_line, :page, :heading,
    :title, :tags, :terms, :content, :last_page, :start_column, :end_column)
RETURNING id"""
_MOVE_CHUNK = """
UPDATE kb_chunks SET position = :position, start_offset = :start_offset, end_offset = :end_offset,
    start_line = :start_line, end_line = :end_line, page = :page, last_page = :last_page,
    start_column = :start_column, end_column = :end_column, title = :title, tags = :tags, terms = :terms
WHERE id = :id"""
_LABELS = """
SELECT title, (SELECT json_group_array(tag ORDER BY position) FROM kb_document_tags WHERE document = key)
FROM kb_documents WHERE id = ?"""
_NAMED_AFTER = "SELECT type, path, title FROM kb_documents WHERE id = ?"
_CHUNK_TEXTS = "SELECT id, heading, content FROM kb_chunks WHERE document = ? ORDER BY position"
_INDEXED = """
SELECT c.id, d.type, d.path, d.title,
    (SELECT json_group_array(tag ORDER BY position) FROM kb_document_tags WHERE document = d.key),
    c.heading, c.content, c.title, c.tags, c.terms
FROM json_each(?) AS wanted CROSS JOIN kb_documents AS d ON d.id = wanted.value
CROSS JOIN kb_chunks AS c ON c.document = d.key"""
_RELABEL_CHUNK = "UPDATE kb_chunks SET title = ?, tags = ?, terms = ? WHERE id = ?"

_SUPERSEDED = "SELECT id, superseded_by FROM kb_documents WHERE superseded_by IS NOT NULL"
_SUPERSEDE = "UPDATE kb_documents SET superseded_by = ? WHERE id = ?"

_MANY = 1000  # chunks; fewer are taken out of the full-text index in a fraction of a second

_Kept = dict[tuple[str, str], deque[ChunkId]]  # heading and text → chunks that have them, in order


class Changes:
    """The changes that a catalog can be asked for."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def put_source(self, source: Source) -> None:
        """Insert or replace a source."""
        with self._writer.transaction() as connection:
            _put_source(connection, source)

    def remove_source(self, source_id: str) -> int:
        """Delete a source and all that came from it; return how many documents."""
        with self._writer.transaction() as connection:
            return remove_source(connection, source_id)

    def put_memo(self, source_id: str, memo: str) -> None:
        """Keep a memo about a source that exists."""
        with self._writer.transaction() as connection:
            connection.execute(_PUT_MEMO, (source_id, memo))

    def put_documents(self, documents: Iterable[tuple[Document, Sequence[Piece]]]) -> list[list[ChunkId]]:
        """Store documents and their chunks, keeping those that did not change; return the ids of each."""
        with self._writer.transaction() as connection:
            return [_put_document(connection, document, pieces) for document, pieces in documents]

    def update_documents(self, documents: Iterable[Document]) -> None:
        """Store documents' own fields, and in their chunks what is indexed of them."""
        with self._writer.transaction() as connection:
            for document in documents:
                _update_document(connection, document)

    def reindex(self, document_ids: Sequence[str]) -> int:
        """Write what is indexed of chunks as it is extracted now; return how many were indexed otherwise."""
        with self._writer.transaction() as connection:
            return _reindex(connection, document_ids)

    def delete_documents(self, document_ids: Sequence[str]) -> int:
        """Delete documents and all that belongs to them; return how many there were."""
        with self._writer.transaction() as connection:
            return _delete_documents_by_id(connection, document_ids)


def _put_source(connection: Connection, source: Source) -> None:
    try:
        connection.execute(_PUT_SOURCE, source_values(source))
    except apsw.ConstraintError as fault:
        raise name_taken(source) from fault
    _count_change(connection)


def remove_source(connection: Connection, source_id: str) -> int:
    """Delete a source and all that came from it; return how many documents."""
    key = connection.execute("SELECT key FROM kb_sources WHERE id = ?", (source_id,)).get
    if key is None:
        return 0
    deleted = _delete_documents(connection, "SELECT key FROM kb_documents WHERE source = ?", key)
    connection.execute("DELETE FROM kb_meta WHERE key = 'memo ' || ?", (source_id,))
    connection.execute("DELETE FROM kb_sources WHERE key = ?", (key,))
    _count_change(connection)
    return deleted


def _put_document(connection: Connection, document: Document, pieces: Sequence[Piece]) -> list[ChunkId]:
    is_embedded_alike = _has_labels_of(connection, document)
    key = _write_document(connection, document)
    old = _chunks_by_text(connection, key)
    kept: list[ChunkId | None] = [None] * len(pieces)
    if is_embedded_alike:
        kept = [_claim(old, piece) for piece in pieces]
    _delete_chunks(connection, [chunk_id for left in old.values() for chunk_id in left])
    rows = [{"document": key, **chunk_values(document, at, piece)} for at, piece in enumerate(pieces)]
    moved = (
        {"id": chunk_id, **row} for chunk_id, row in zip(kept, rows, strict=True) if chunk_id is not None
    )
    connection.executemany(_MOVE_CHUNK, moved)
    new = (row for chunk_id, row in zip(kept, rows, strict=True) if chunk_id is None)
    inserted = iter([chunk_id for (chunk_id,) in connection.executemany(_INSERT_CHUNK, new)])
    ids = [next(inserted) if chunk_id is None else chunk_id for chunk_id in kept]
    names = (chunk_names(document, piece.heading, piece.text) for piece in pieces)
    put_names(connection, dict(zip(ids, names, strict=True)))
    _count_change(connection)
    return ids


def _update_document(connection: Connection, document: Document) -> None:
    earlier = connection.execute(_LABELS, (document.id,)).fetchone()
    if earlier is None:
        raise no_document(document.id)
    named_after = connection.execute(_NAMED_AFTER, (document.id,)).fetchone()
    key = _write_document(connection, document)
    if named_after != (document.type, document.path, document.title):
        _rename_chunks(connection, key, document)
    if earlier != connection.execute(_LABELS, (document.id,)).fetchone():
        _relabel_chunks(connection, key, document)
    _count_change(connection)


def _reindex(connection: Connection, document_ids: Sequence[str]) -> int:
    rows: list[Any] = list(connection.execute(_INDEXED, (list_column(document_ids),)))
    changed, names = set(), {}
    for chunk_id, type, path, title, tags, heading, text, *before in rows:
        now = columns_of(title, list_of(tags), list_of(heading), text)
        names[chunk_id] = names_of(type, path, title, list_of(heading), text)
        if before != [now.title, now.tags, now.terms]:
            connection.execute(_RELABEL_CHUNK, (now.title, now.tags, now.terms, chunk_id))
            changed.add(chunk_id)
    changed |= put_names(connection, names)
    if changed:
        _count_change(connection)
    return len(changed)


def _delete_documents_by_id(connection: Connection, document_ids: Sequence[str]) -> int:
    doomed = "SELECT key FROM kb_documents WHERE id IN (SELECT value FROM json_each(?))"
    deleted = _delete_documents(connection, doomed, list_column(document_ids))
    if deleted:
        _count_change(connection)
    return deleted


def _write_document(connection: Connection, document: Document) -> int:
    """Write a document's row and tags; return its key."""
    values = document_values(document)
    values["source"] = connection.execute("SELECT key FROM kb_sources WHERE id = :source_id", values).get
    if values["source"] is None:
        raise no_source(document.source_id)
    try:
        key = int(connection.execute(_PUT_DOCUMENT, values).get)
    except apsw.ConstraintError as fault:
        raise path_taken(document.path) from fault
    connection.execute("DELETE FROM kb_document_tags WHERE document = ?", (key,))
    tags = enumerate(dict.fromkeys(document.tags))
    connection.executemany(
        "INSERT INTO kb_document_tags VALUES (?, ?, ?)", ((key, tag, at) for at, tag in tags)
    )
    return key


def _has_labels_of(connection: Connection, document: Document) -> bool:
    """Whether the stored document has what is embedded with each text: the title, and the tags of a note."""
    if document.type != "note":
        title = connection.execute("SELECT title FROM kb_documents WHERE id = ?", (document.id,)).get
        return bool(title == document.title)
    stored = connection.execute(_LABELS, (document.id,)).fetchone()
    return stored is not None and (stored[0], list_of(stored[1])) == (
        document.title,
        tuple(dict.fromkeys(document.tags)),
    )


def _relabel_chunks(connection: Connection, key: int, document: Document) -> None:
    """Rewrite the title and tags that a document's chunks are indexed under."""
    for chunk_id, heading, text in list(connection.execute(_CHUNK_TEXTS, (key,))):
        indexed = columns_of(document.title, document.tags, list_of(heading), text)
        connection.execute(_RELABEL_CHUNK, (indexed.title, indexed.tags, indexed.terms, chunk_id))


def _rename_chunks(connection: Connection, key: int, document: Document) -> None:
    """Write anew what a document's chunks are called."""
    rows = list(connection.execute(_CHUNK_TEXTS, (key,)))
    put_names(
        connection,
        {chunk_id: chunk_names(document, list_of(heading), text) for chunk_id, heading, text in rows},
    )


def _chunks_by_text(connection: Connection, document: int) -> _Kept:
    found: _Kept = defaultdict(deque)
    for chunk_id, heading, text in connection.execute(_CHUNK_TEXTS, (document,)):
        found[heading, text].append(chunk_id)
    return found


def _claim(old: _Kept, piece: Piece) -> ChunkId | None:
    same = old.get((list_column(piece.heading), piece.text))
    return same.popleft() if same else None


def _delete_documents(connection: Connection, doomed: str, value: Any) -> int:
    """Delete the documents whose keys a query returns: vectors, FTS and chunks, documents, in that order."""
    _release_superseded(connection, doomed, value)
    chunks = connection.execute(f"SELECT id FROM kb_chunks WHERE document IN ({doomed})", (value,))
    _delete_chunks(connection, [chunk_id for (chunk_id,) in chunks])
    deleted = connection.execute(f"DELETE FROM kb_documents WHERE key IN ({doomed}) RETURNING 1", (value,))
    return len(deleted.fetchall())


def _release_superseded(connection: Connection, doomed: str, value: Any) -> None:
    """Bring back what only the doomed documents supersede."""
    superseded = dict(connection.execute(_SUPERSEDED))
    if superseded:  # in most stores nothing is, and the doomed may be many
        ids = connection.execute(f"SELECT id FROM kb_documents WHERE key IN ({doomed})", (value,))
        moved = rerouted(superseded, {document_id for (document_id,) in ids})
        connection.executemany(_SUPERSEDE, ((new, old) for old, new in moved.items()))


def _delete_chunks(connection: Connection, chunk_ids: Iterable[ChunkId]) -> None:
    doomed = [(chunk_id,) for chunk_id in chunk_ids]
    if not doomed:
        return
    forget_vectors(connection, [chunk_id for (chunk_id,) in doomed])
    chunks = connection.execute("SELECT value FROM kb_meta WHERE key = 'chunks'").get
    if len(doomed) > max(_MANY, chunks / 2):
        _delete_most(connection, doomed)
    else:
        connection.executemany("DELETE FROM kb_chunks WHERE id = ?", doomed)


def _delete_most(connection: Connection, doomed: Sequence[tuple[ChunkId]]) -> None:
    """Delete most chunks and index the rest anew: faster than taking them out of the index one by one."""
    connection.execute("DROP TRIGGER kb_chunks_deleted")
    connection.executemany("DELETE FROM kb_chunks WHERE id = ?", doomed)
    connection.execute("DELETE FROM kb_pending WHERE chunk NOT IN (SELECT id FROM kb_chunks)")
    connection.execute("UPDATE kb_meta SET value = (SELECT count(*) FROM kb_chunks) WHERE key = 'chunks'")
    connection.execute("INSERT INTO kb_chunks_fts (kb_chunks_fts) VALUES ('rebuild')")
    connection.execute(schema.DELETED_TRIGGER)


def _count_change(connection: Connection) -> None:
    connection.execute("UPDATE kb_meta SET value = value + 1 WHERE key = 'generation'")
