"""Sources, documents and chunks: reading them and changing them. Every method is one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager

from concord.backends.postgres import changes
from concord.backends.postgres.connections import Connections
from concord.backends.postgres.filters import condition
from concord.backends.postgres.locks import Locks
from concord.backends.postgres.rows import (
    CHUNK_COLUMNS,
    DOCUMENT_COLUMNS,
    DOCUMENT_WIDTH,
    SOURCE_COLUMNS,
    array_of,
    chunk_of,
    document_of,
    file_state_of,
    loaded,
    named_as_stored,
    source_of,
    stored,
    stored_all,
    stored_name,
)
from concord.types import Chunk, ChunkId, Counts, Document, DocumentType, FileState, Filter, Piece, Source

_GENERATION = "SELECT generation FROM kb_orgs WHERE key = %(org)s"
_SOURCES = f"SELECT {SOURCE_COLUMNS} FROM kb_sources WHERE org = %(org)s ORDER BY name"
_FILE_STATES = """
SELECT id, path, size, mtime_ns, file_hash, content_hash, indexed_at FROM kb_documents
WHERE org = %(org)s AND source = %(source)s"""
_DOCUMENTS = f"SELECT {DOCUMENT_COLUMNS} FROM kb_documents AS d WHERE d.org = %(org)s"
# An exact path shuts out the others, however many end in it.
_AT_PATH = f"""{_DOCUMENTS} AND (d.path = %(path)s OR (
    right(d.path, length(%(ending)s)) = %(ending)s
    AND NOT EXISTS (SELECT 1 FROM kb_documents WHERE org = %(org)s AND path = %(path)s)))
ORDER BY d.path"""
_PAGE = f"""{_DOCUMENTS} AND d.path > %(after)s AND (%(source)s::text IS NULL OR d.source = %(source)s)
ORDER BY d.path LIMIT %(page)s"""
_PAGE_SIZE = 1000
_CHUNKS_OF = f"""
SELECT {CHUNK_COLUMNS} FROM kb_chunks AS c WHERE c.org = %(org)s AND c.document = %(document)s
ORDER BY c.position"""
# Each by its key: for a join, thousands of documents would be read whenever they are on few pages.
_OF_CHUNKS = """
FROM kb_chunks AS c CROSS JOIN LATERAL (
    SELECT * FROM kb_documents AS d WHERE d.org = c.org AND d.id = c.document LIMIT 1) AS d
WHERE c.org = %(org)s AND c.id = ANY(%(ids)s::bigint[])"""
_READ = f"SELECT {DOCUMENT_COLUMNS}, {CHUNK_COLUMNS} {_OF_CHUNKS}"
_TYPES_OF = f"SELECT c.id, d.type {_OF_CHUNKS}"
_PENDING = """
SELECT p.chunk FROM kb_pending AS p JOIN kb_spaces AS s ON s.org = p.org AND s.key = p.space AND s.is_active
WHERE p.org = %(org)s"""
_COUNTS = f"""
SELECT (SELECT count(*) FROM kb_sources WHERE org = %(org)s),
    (SELECT count(*) FROM kb_documents WHERE org = %(org)s),
    o.chunks, o.chunks - (SELECT count(*) FROM ({_PENDING}) AS waiting)
FROM kb_orgs AS o WHERE o.key = %(org)s"""
_COUNTS_OF_SOURCE = f"""
WITH c AS (
    SELECT c.id, p.chunk IS NULL AS has_vector
    FROM kb_documents AS d JOIN kb_chunks AS c ON c.org = d.org AND c.document = d.id
    LEFT JOIN ({_PENDING}) AS p ON p.chunk = c.id
    WHERE d.org = %(org)s AND d.source = %(source)s)
SELECT (SELECT count(*) FROM kb_sources WHERE org = %(org)s AND id = %(source)s),
    (SELECT count(*) FROM kb_documents WHERE org = %(org)s AND source = %(source)s),
    (SELECT count(*) FROM c), (SELECT count(*) FROM c WHERE has_vector)"""
_SUPERSEDED_BY = f"{_DOCUMENTS} AND d.superseded_by = %(id)s ORDER BY d.path"
_HAS_SUPERSEDED = """
SELECT EXISTS (SELECT FROM kb_documents WHERE org = %(org)s AND superseded_by IS NOT NULL)"""
_COUNT_TYPES = "SELECT type, count(*) FROM kb_documents WHERE org = %(org)s GROUP BY type ORDER BY type"
_COUNT_DOCUMENTS = "SELECT count(*) FROM kb_documents AS d WHERE d.org = %(org)s AND "
_MEMO = "SELECT memo FROM kb_sources WHERE org = %(org)s AND id = %(source)s"


class PostgresCatalog:
    """The catalog of one organisation."""

    def __init__(self, connections: Connections, locks: Locks) -> None:
        self._connections = connections
        self._locks = locks
        self._org = connections.org

    def sources(self) -> list[Source]:
        """Return all sources, by name."""
        return [source_of(row) for row in self._connections.rows(_SOURCES)]

    def put_source(self, source: Source) -> None:
        """Insert a source, or replace the one with its id."""
        with self._connections.transaction() as connection:
            changes.put_source(connection, self._org, source)

    def remove_source(self, source_id: str) -> int:
        """Delete a source with its words, chunks and documents; return how many documents."""
        with self._connections.transaction() as connection:
            return changes.remove_source(connection, self._org, stored(source_id))

    def file_states(self, source_id: str) -> dict[str, FileState]:
        """Return path → state of every document of a source."""
        states = map(file_state_of, self._connections.rows(_FILE_STATES, source=stored(source_id)))
        return {state.path: state for state in states}

    def documents(self, source_id: str | None = None) -> Iterator[Document]:
        """Yield documents in order of path, all or one source's; a page at a time, each as it is then."""
        asked, after = stored_name(source_id), ""
        while rows := self._connections.rows(_PAGE, source=asked, after=after, page=_PAGE_SIZE):
            yield from map(document_of, rows)
            after = rows[-1][2]

    def document(self, document_id: str) -> Document | None:
        """Return a document by id."""
        rows = self._connections.rows(f"{_DOCUMENTS} AND d.id = %(id)s", id=stored(document_id))
        return document_of(rows[0]) if rows else None

    def documents_at(self, path: str) -> list[Document]:
        """Return the document with exactly this citation path, else those whose path ends in /path."""
        asked = stored(path)
        rows = self._connections.rows(_AT_PATH, path=asked, ending=f"/{asked}")
        return [document_of(row) for row in rows]

    def put_document(self, document: Document, pieces: Sequence[Piece]) -> list[ChunkId]:
        """Store a document, replacing all chunks of an earlier version and their vectors with it.

        Pieces that equal an old chunk in text, title and heading, and of notes in tags too, keep its id and
        vector.
        """
        with self._connections.transaction() as connection:
            (ids,) = changes.put_documents(connection, self._org, [(named_as_stored(document), pieces)])
            return ids

    def put_documents(self, documents: Iterable[tuple[Document, Sequence[Piece]]]) -> None:
        """Store several documents in one transaction."""
        with self._connections.transaction() as connection:
            named = ((named_as_stored(document), pieces) for document, pieces in documents)
            changes.put_documents(connection, self._org, named)

    def update_document(self, document: Document) -> None:
        """Store a document's own fields (path, stat, title, tags, superseded_by …); its chunks' text stays.

        Their vectors stay too, although the title was embedded with them: a rename embeds nothing again.
        """
        self.update_documents([document])

    def update_documents(self, documents: Sequence[Document]) -> None:
        """Store the own fields of documents in one transaction: what the index has of a word is read once."""
        with self._connections.transaction() as connection:
            changes.update_documents(connection, self._org, list(map(named_as_stored, documents)))

    def reindex(self, document_ids: Sequence[str]) -> int:
        """Index the chunks of documents by words anew; return how many were indexed otherwise before."""
        with self._connections.transaction() as connection:
            return changes.reindex(connection, self._org, stored_all(document_ids))

    def delete_documents(self, document_ids: Sequence[str]) -> int:
        """Delete documents with their chunks and vectors; return how many there were."""
        with self._connections.transaction() as connection:
            return changes.delete_documents(connection, self._org, stored_all(document_ids))

    def superseded(self, document_id: str) -> list[Document]:
        """Return the documents that this one superseded directly, by path."""
        return [document_of(row) for row in self._connections.rows(_SUPERSEDED_BY, id=stored(document_id))]

    def has_superseded(self) -> bool:
        """Whether any document is superseded."""
        ((is_any,),) = self._connections.rows(_HAS_SUPERSEDED)
        return bool(is_any)

    def read(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, tuple[Chunk, Document]]:
        """Return the chunks that still exist, each with its document."""
        found: dict[ChunkId, tuple[Chunk, Document]] = {}
        for row in self._connections.rows(_READ, ids=array_of(chunk_ids)):
            chunk = chunk_of(row[DOCUMENT_WIDTH:])
            found[chunk.id] = chunk, document_of(row[:DOCUMENT_WIDTH])
        return {chunk_id: found[chunk_id] for chunk_id in chunk_ids if chunk_id in found}

    def types_of(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, DocumentType]:
        """Return the document types of the chunks that still exist, without reading their text."""
        return dict(self._connections.rows(_TYPES_OF, ids=array_of(chunk_ids)))

    def chunks_of(self, document_id: str) -> list[Chunk]:
        """Return a document's chunks in order."""
        return [chunk_of(row) for row in self._connections.rows(_CHUNKS_OF, document=stored(document_id))]

    def counts(self, source_id: str | None = None) -> Counts:
        """Return how much is stored, in all or in one source."""
        statement = _COUNTS if source_id is None else _COUNTS_OF_SOURCE
        (row,) = self._connections.rows(statement, source=stored_name(source_id))
        return Counts(*row)

    def count_documents(self, filter: Filter) -> int:
        """Return how many documents a filter lets through."""
        sql, values = condition(filter)
        ((count,),) = self._connections.rows(_COUNT_DOCUMENTS + sql, **values)
        return int(count)

    def count_types(self) -> dict[DocumentType, int]:
        """Return how many documents there are of each type that there is."""
        return dict(self._connections.rows(_COUNT_TYPES))

    def generation(self) -> int:
        """Return a number that grows with every change to sources, documents or chunks."""
        ((number,),) = self._connections.rows(_GENERATION)
        return int(number)

    def memo(self, source_id: str) -> str:
        """Return what the last sync wrote down about a source for the next one; empty when nothing."""
        rows = self._connections.rows(_MEMO, source=stored(source_id))
        return loaded(rows[0][0]) if rows else ""

    def put_memo(self, source_id: str, memo: str) -> None:
        """Keep a memo for as long as the source exists."""
        with self._connections.transaction() as connection:
            changes.put_memo(connection, self._org, stored(source_id), stored(memo))

    def sync_lock(self, source_id: str, *, wait_s: float) -> AbstractContextManager[None]:
        """Hold the right to sync one source, across processes and machines; it is freed when the holder dies.

        Raises:
            StoreBusy: another process holds it for longer than `wait_s`.
        """
        return self._locks.hold(source_id, "syncing this source", wait_s)
