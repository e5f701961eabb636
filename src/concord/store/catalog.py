"""Reading sources, documents and chunks; changes to them are in `changes`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import starmap
from typing import Any

from msgspec import Struct

from concord.store.changes import Changes
from concord.store.models import ADDED, TEXTS, home_of, model_of
from concord.store.rows import (
    CHUNK_COLUMNS,
    DOCUMENT_COLUMNS,
    HAS_SUPERSEDED,
    OF_SOURCE,
    SOURCE_COLUMNS,
    chosen,
    chunk_of,
    condition,
    document_of,
    source_of,
)
from concord.types import (
    Chunk,
    ChunkId,
    Counts,
    Document,
    DocumentType,
    FileState,
    Filter,
    Home,
    Model,
    Part,
    Source,
)

_SOURCES = f"SELECT {SOURCE_COLUMNS} FROM kb_sources AS s ORDER BY s.name"
_GENERATION = "SELECT value FROM kb_meta WHERE key = 'generation'"
_FILE_STATES = f"""
SELECT d.id, d.path, d.size, d.mtime_ns, d.file_hash, d.content_hash, d.indexed_at FROM kb_documents AS d
WHERE {OF_SOURCE}"""
_DOCUMENTS = f"SELECT {DOCUMENT_COLUMNS} FROM kb_documents AS d"
_ENDING = "substr(d.path, length(d.path) - length(:ending) + 1) = :ending"
_CHUNKS_OF = f"""
SELECT {CHUNK_COLUMNS} FROM kb_documents AS d JOIN kb_chunks AS c ON c.document = d.key
WHERE d.id = :document ORDER BY c.position"""
_OF_CHUNKS = "FROM kb_chunks AS c JOIN kb_documents AS d ON d.key = c.document WHERE c.id IN (:chunks...)"
_READ_CHUNKS = f"SELECT c.document, {CHUNK_COLUMNS} {_OF_CHUNKS}"
_READ_DOCUMENTS = f"SELECT d.key, {DOCUMENT_COLUMNS} FROM kb_documents AS d WHERE d.key IN (:keys...)"
_SIBLINGS = """
SELECT c.id, d.id FROM kb_chunks AS c JOIN kb_documents AS d ON d.key = c.document
WHERE d.key IN (SELECT document FROM kb_chunks WHERE id IN (:chunks...)) ORDER BY c.id"""
_SAME_HEADING = """
SELECT h.id, c.position, c.start_offset, c.end_offset, c.start_line, c.end_line
FROM kb_chunks AS h JOIN kb_chunks AS c ON c.document = h.document
    AND c.position BETWEEN h.position - :reach AND h.position + :reach AND c.heading = h.heading
WHERE h.id IN (:chunks...) ORDER BY h.id, c.position"""
_COUNTS = """
SELECT (SELECT count(*) FROM kb_sources), (SELECT count(*) FROM kb_documents),
    (SELECT value FROM kb_meta WHERE key = 'chunks'),
    (SELECT count(*) FROM kb_chunk_vectors
     WHERE model = (SELECT value FROM kb_meta WHERE key = 'active_model'))"""
_COUNTS_OF_SOURCE = """
SELECT count(DISTINCT s.key), count(DISTINCT d.key), count(c.id), count(v.chunk)
FROM kb_sources AS s LEFT JOIN kb_documents AS d ON d.source = s.key
LEFT JOIN kb_chunks AS c ON c.document = d.key
LEFT JOIN kb_chunk_vectors AS v
    ON v.chunk = c.id AND v.model = (SELECT value FROM kb_meta WHERE key = 'active_model')
WHERE s.id = :source"""
_COUNT_TYPES = "SELECT type, count(*) FROM kb_documents GROUP BY type ORDER BY type"
_SYNC_STATE = "SELECT sync_state FROM kb_sources WHERE id = :source"


class Select(Struct, frozen=True):
    """Which documents: all those that have every value that is given."""

    ids: Sequence[str] | None = None
    source_id: str | None = None
    path: str | None = None
    path_ending: str | None = None  # the path ends in a slash and this
    superseded_by: str | None = None


EVERY = Select()


class Snapshot(Struct, frozen=True):
    """All that a search has to know before it begins, as of one moment."""

    generation: int
    sources: Sequence[Source]  # by name
    models: Sequence[Model]  # in the order in which they were added
    has_superseded: bool
    home: Home  # where vectors are kept

    @property
    def active(self) -> Model | None:
        """The model that searches use; None before the first."""
        return next((model for model in self.models if model.is_active), None)


class Catalog(Changes):
    """Sources, documents and chunks: what everything else is derived from. A method is a transaction."""

    def snapshot(self) -> Snapshot:
        """Return all that a search has to know; later reads see at least what had been written by then."""
        with self._database.read() as session:
            generation, sources, models, superseded, texts = session.several(
                _GENERATION, _SOURCES, ADDED, HAS_SUPERSEDED, TEXTS
            )
        return Snapshot(
            generation[0][0],
            [source_of(row) for row in sources],
            [model_of(*row) for row in models],
            bool(superseded[0][0]),
            home_of(dict(texts)),
        )

    def file_states(self, source_id: str) -> dict[str, FileState]:
        """Return the files of a source by path."""
        rows = self._database.rows(_FILE_STATES, {"source": source_id})
        return {state.path: state for state in starmap(FileState, rows)}

    def documents(self, select: Select = EVERY) -> Iterator[Document]:
        """Return documents in order of path, as of now."""
        where, values = _selected(select)
        return map(document_of, self._database.rows(f"{_DOCUMENTS} {where} ORDER BY d.path", values))

    def read(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, tuple[Chunk, Document]]:
        """Return chunks with their documents; those that do not exist any more are left out everywhere."""
        with self._database.read() as session:
            rows = session.rows(_READ_CHUNKS, {"chunks": list(chunk_ids)})
            keys = {"keys": list({row[0] for row in rows})}
            documents = {row[0]: document_of(row[1:]) for row in session.rows(_READ_DOCUMENTS, keys)}
            # A document may have gone in between, where an engine shows each statement the latest.
            return {row[1]: (chunk_of(row[1:]), documents[row[0]]) for row in rows if row[0] in documents}

    def chunks(self, document_id: str) -> list[Chunk]:
        """Return a document's chunks in order."""
        return [chunk_of(row) for row in self._database.rows(_CHUNKS_OF, {"document": document_id})]

    def document_types(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, DocumentType]:
        """Return the types of the documents that chunks are part of."""
        return dict(self._database.rows(f"SELECT c.id, d.type {_OF_CHUNKS}", {"chunks": list(chunk_ids)}))

    def under_same_heading(self, chunk_ids: Sequence[ChunkId], reach: int) -> dict[ChunkId, list[Part]]:
        """Return for each chunk those of its document that stand under the same heading, itself included.

        None of them is further from it than `reach` chunks.
        """
        found: dict[ChunkId, list[Part]] = {}
        rows = self._database.rows(_SAME_HEADING, {"chunks": list(chunk_ids), "reach": reach})
        for chunk_id, *place in rows:
            found.setdefault(chunk_id, []).append(Part(*place))
        return found

    def siblings(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, str]:
        """Return all chunks of the documents that some chunks are part of, each with its document's id."""
        return dict(self._database.rows(_SIBLINGS, {"chunks": list(chunk_ids)}))

    def count_types(self) -> dict[DocumentType, int]:
        """Return the number of documents by type."""
        return dict(self._database.rows(_COUNT_TYPES))

    def allowed(self, filter: Filter, chunk_ids: Sequence[ChunkId]) -> set[ChunkId]:
        """Return those of some chunks that a filter lets through."""
        sql, values = condition(filter, self._database.dialect)
        values["chunks"] = list(chunk_ids)
        rows = self._database.rows(f"SELECT c.id {_OF_CHUNKS} AND {sql}", values)
        return {chunk_id for (chunk_id,) in rows}

    def matching(self, filter: Filter, most: int) -> list[str] | None:
        """Return the documents that a filter lets through; None if they are more than `most`."""
        sql, values = condition(filter, self._database.dialect)
        statement = f"SELECT d.id FROM kb_documents AS d WHERE {sql} LIMIT :most"
        ids = [id for (id,) in self._database.rows(statement, {**values, "most": most + 1})]
        return ids if len(ids) <= most else None

    def count(self, source_id: str | None = None) -> Counts:
        """Return how much there is, of one source or in all."""
        if source_id is None:
            return Counts(*self._database.rows(_COUNTS)[0])
        return Counts(*self._database.rows(_COUNTS_OF_SOURCE, {"source": source_id})[0])

    def count_documents(self, filter: Filter) -> int:
        """Return how many documents a filter lets through."""
        sql, values = condition(filter, self._database.dialect)
        return int(self._database.value(f"SELECT count(*) FROM kb_documents AS d WHERE {sql}", values))

    def sync_state(self, source_id: str) -> str:
        """Return what the last sync wrote down for the next one, if any."""
        return str(self._database.value(_SYNC_STATE, {"source": source_id}) or "")


def _selected(select: Select) -> tuple[str, dict[str, Any]]:
    ending = None if select.path_ending is None else f"/{select.path_ending}"
    given = {
        "d.id IN (:ids...)": ("ids", select.ids),
        OF_SOURCE: ("source", select.source_id),
        "d.path = :path": ("path", select.path),
        _ENDING: ("ending", ending),
        "d.superseded_by = :superseder": ("superseder", select.superseded_by),
    }
    conditions, values = chosen(given)
    return f"WHERE {' AND '.join(conditions)}" if conditions else "", values
