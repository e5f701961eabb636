"""Sources, documents and chunks: reading them and changing them. Every method is one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import starmap
from typing import TYPE_CHECKING

from concord.backends.sql_values import list_column
from concord.backends.sqlite.connections import Readers, Writer, snapshot
from concord.backends.sqlite.filters import condition
from concord.backends.sqlite.location import Location
from concord.backends.sqlite.rows import (
    CHUNK_COLUMNS,
    DOCUMENT_COLUMNS,
    SOURCE_COLUMNS,
    chunk_of,
    document_of,
    source_of,
)
from concord.types import Chunk, ChunkId, Counts, Document, DocumentType, FileState, Filter, Piece, Source

if TYPE_CHECKING:
    from concord.backends.sqlite.changes import Changes

_SOURCES = f"SELECT {SOURCE_COLUMNS} FROM kb_sources AS s ORDER BY s.name"
_OF_SOURCE = "d.source = (SELECT key FROM kb_sources WHERE id = :source)"
_FILE_STATES = f"""
SELECT d.id, d.path, d.size, d.mtime_ns, d.file_hash, d.content_hash, d.indexed_at FROM kb_documents AS d
WHERE {_OF_SOURCE}"""
_DOCUMENTS = f"SELECT {DOCUMENT_COLUMNS} FROM kb_documents AS d"
# An exact path shuts out the others, however many end in it.
_AT_PATH = f"""{_DOCUMENTS} WHERE d.path = :path OR (
    substr(d.path, -length(:ending)) = :ending AND NOT EXISTS (SELECT 1 FROM kb_documents WHERE path = :path))
ORDER BY d.path"""
_SUPERSEDED_BY = f"{_DOCUMENTS} WHERE d.superseded_by = ? ORDER BY d.path"
_HAS_SUPERSEDED = "SELECT EXISTS (SELECT 1 FROM kb_documents WHERE superseded_by IS NOT NULL)"
_CHUNKS_OF = f"""
SELECT {CHUNK_COLUMNS} FROM kb_documents AS d CROSS JOIN kb_chunks AS c ON c.document = d.key
WHERE d.id = ? ORDER BY c.position"""
_READ_CHUNKS = f"""
SELECT c.document, {CHUNK_COLUMNS} FROM json_each(?) AS wanted
CROSS JOIN kb_chunks AS c ON c.id = wanted.value CROSS JOIN kb_documents AS d ON d.key = c.document"""
_TYPES_OF = """
SELECT c.id, d.type FROM json_each(?) AS wanted
CROSS JOIN kb_chunks AS c ON c.id = wanted.value CROSS JOIN kb_documents AS d ON d.key = c.document"""
_READ_DOCUMENTS = f"""
SELECT d.key, {DOCUMENT_COLUMNS} FROM json_each(?) AS wanted
CROSS JOIN kb_documents AS d ON d.key = wanted.value"""

_PENDING = """
SELECT chunk FROM kb_pending WHERE space = (SELECT value FROM kb_meta WHERE key = 'active_space')"""
_COUNTS = f"""
SELECT (SELECT count(*) FROM kb_sources), (SELECT count(*) FROM kb_documents), chunks,
    chunks - (SELECT count(*) FROM ({_PENDING}))
FROM (SELECT value AS chunks FROM kb_meta WHERE key = 'chunks')"""
_COUNTS_OF_SOURCE = f"""
WITH s (key) AS (SELECT key FROM kb_sources WHERE id = :source),
    c (id) AS (SELECT c.id FROM s CROSS JOIN kb_documents AS d ON d.source = s.key
               CROSS JOIN kb_chunks AS c ON c.document = d.key)
SELECT (SELECT count(*) FROM s), (SELECT count(*) FROM s JOIN kb_documents AS d ON d.source = s.key),
    (SELECT count(*) FROM c), (SELECT count(*) FROM c WHERE id NOT IN ({_PENDING}))"""
_COUNT_DOCUMENTS = "SELECT count(*) FROM kb_documents AS d"
_MEMO = "SELECT value FROM kb_meta WHERE key = 'memo ' || ?"
_COUNT_TYPES = "SELECT type, count(*) FROM kb_documents GROUP BY type ORDER BY type"


class SQLiteCatalog:
    """The catalog of one file."""

    def __init__(self, location: Location, readers: Readers, writer: Writer) -> None:
        self._location = location
        self._readers = readers
        self._writer = writer

    @cached_property
    def _changes(self) -> Changes:
        from concord.backends.sqlite.changes import Changes  # late: a search changes nothing

        return Changes(self._writer)

    def sources(self) -> list[Source]:
        """Return all sources, by name."""
        with self._readers.connection() as connection:
            return [source_of(row) for row in connection.execute(_SOURCES)]

    def put_source(self, source: Source) -> None:
        """Insert a source, or replace the one with its id."""
        self._changes.put_source(source)

    def remove_source(self, source_id: str) -> int:
        """Delete a source with its FTS rows, chunks and documents; return how many documents."""
        return self._changes.remove_source(source_id)

    def file_states(self, source_id: str) -> dict[str, FileState]:
        """Return path → state of every document of a source."""
        with self._readers.connection() as connection:
            rows = connection.execute(_FILE_STATES, {"source": source_id})
            return {state.path: state for state in starmap(FileState, rows)}

    def documents(self, source_id: str | None = None) -> Iterator[Document]:
        """Yield documents in order of path, all or one source's, as they were when the first was read."""
        condition = "" if source_id is None else f"WHERE {_OF_SOURCE}"
        with self._readers.connection() as connection:
            rows = connection.execute(f"{_DOCUMENTS} {condition} ORDER BY d.path", {"source": source_id})
            yield from map(document_of, rows)

    def document(self, document_id: str) -> Document | None:
        """Return a document by id."""
        with self._readers.connection() as connection:
            row = connection.execute(f"{_DOCUMENTS} WHERE d.id = ?", (document_id,)).fetchone()
            return document_of(row) if row else None

    def documents_at(self, path: str) -> list[Document]:
        """Return the document with exactly this citation path, else those whose path ends in /path."""
        with self._readers.connection() as connection:
            rows = connection.execute(_AT_PATH, {"path": path, "ending": f"/{path}"})
            return [document_of(row) for row in rows]

    def put_document(self, document: Document, pieces: Sequence[Piece]) -> list[ChunkId]:
        """Store a document, replacing all chunks of an earlier version and their vectors with it.

        Pieces that equal an old chunk in text, title and heading keep its id and vector.
        """
        (chunk_ids,) = self._changes.put_documents([(document, pieces)])
        return chunk_ids

    def put_documents(self, documents: Iterable[tuple[Document, Sequence[Piece]]]) -> None:
        """Store several documents in one transaction."""
        self._changes.put_documents(documents)

    def update_document(self, document: Document) -> None:
        """Store a document's own fields (path, stat, title, tags, superseded_by …); its chunks' text stays.

        Their vectors stay too, although the title was embedded with them: a rename embeds nothing again.
        """
        self._changes.update_documents([document])

    def update_documents(self, documents: Sequence[Document]) -> None:
        """Store the own fields of documents in one transaction."""
        self._changes.update_documents(documents)

    def reindex(self, document_ids: Sequence[str]) -> int:
        """Index the chunks of documents by words anew; return how many were indexed otherwise before."""
        return self._changes.reindex(document_ids)

    def delete_documents(self, document_ids: Sequence[str]) -> int:
        """Delete documents with their chunks and vectors; return how many there were."""
        return self._changes.delete_documents(document_ids)

    def superseded(self, document_id: str) -> list[Document]:
        """Return the documents that this one superseded directly, by path."""
        with self._readers.connection() as connection:
            rows = connection.execute(_SUPERSEDED_BY, (document_id,))
            return [document_of(row) for row in rows]

    def has_superseded(self) -> bool:
        """Whether any document is superseded."""
        with self._readers.connection() as connection:
            return bool(connection.execute(_HAS_SUPERSEDED).get)

    def read(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, tuple[Chunk, Document]]:
        """Return the chunks that still exist, each with its document."""
        with self._readers.connection() as connection, snapshot(connection):
            found = connection.execute(_READ_CHUNKS, (list_column(chunk_ids),)).fetchall()
            keys = list_column({row[0] for row in found})
            documents = {row[0]: document_of(row[1:]) for row in connection.execute(_READ_DOCUMENTS, (keys,))}
            chunks = [(chunk_of(row[1:]), documents[row[0]]) for row in found]
            return {chunk.id: (chunk, document) for chunk, document in chunks}

    def types_of(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, DocumentType]:
        """Return the document types of the chunks that still exist, without reading their text."""
        with self._readers.connection() as connection:
            return dict(connection.execute(_TYPES_OF, (list_column(chunk_ids),)))

    def chunks_of(self, document_id: str) -> list[Chunk]:
        """Return a document's chunks in order."""
        with self._readers.connection() as connection:
            return [chunk_of(row) for row in connection.execute(_CHUNKS_OF, (document_id,))]

    def counts(self, source_id: str | None = None) -> Counts:
        """Return how much is stored, in all or in one source."""
        statement = _COUNTS if source_id is None else _COUNTS_OF_SOURCE
        with self._readers.connection() as connection:
            return Counts(*connection.execute(statement, {"source": source_id}).get)

    def count_documents(self, filter: Filter) -> int:
        """Return how many documents a filter lets through."""
        sql, values = condition(filter)
        with self._readers.connection() as connection:
            return int(connection.execute(f"{_COUNT_DOCUMENTS} WHERE {sql}", values).get)

    def count_types(self) -> dict[DocumentType, int]:
        """Return the number of documents by type."""
        with self._readers.connection() as connection:
            return dict(connection.execute(_COUNT_TYPES))

    def generation(self) -> int:
        """Return a number that grows with every change to sources, documents or chunks."""
        with self._readers.connection() as connection:
            return int(connection.execute("SELECT value FROM kb_meta WHERE key = 'generation'").get)

    def memo(self, source_id: str) -> str:
        """Return what the last sync wrote down about a source for the next one; empty when nothing."""
        with self._readers.connection() as connection:
            return str(connection.execute(_MEMO, (source_id,)).get or "")

    def put_memo(self, source_id: str, memo: str) -> None:
        """Keep a memo for as long as the source exists."""
        self._changes.put_memo(source_id, memo)

    @contextmanager
    def sync_lock(self, source_id: str, *, wait_s: float) -> Iterator[None]:
        """Hold the right to sync one source, across processes; it is freed when the holder dies.

        Raises:
            StoreBusy: another process holds it for longer than `wait_s`.
        """
        from concord.backends.file_locks import file_lock  # late: no search needs either
        from concord.backends.sqlite.upkeep import is_worth_merging, merge_words

        self._writer.make_file()
        lock = file_lock(self._location.path, source_id, "syncing this source", wait_s)
        with lock, self._writer.patience():
            before = self.generation()
            yield
            if is_worth_merging(self.generation() - before, self.counts().documents):
                merge_words(self._writer)
