"""Sources, documents and chunks of a memory store."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager

from msgspec.structs import replace

from concord.backends.memory.contents import Contents, allows
from concord.store.columns import chunk_names, columns_of
from concord.store.store_errors import name_taken, no_document, no_source, path_taken
from concord.store.supersession import rerouted
from concord.text.document import embedded_tags
from concord.types import Chunk, ChunkId, Counts, Document, DocumentType, FileState, Filter, Piece, Source


class MemoryCatalog:
    """Sources, documents and chunks."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents

    def sources(self) -> list[Source]:
        """Return all sources, by name."""
        with self._contents.reading():
            return sorted(self._contents.sources.values(), key=lambda source: source.name)

    def put_source(self, source: Source) -> None:
        """Insert a source, or replace the one with its id."""
        with self._changing() as contents:
            for other in contents.sources.values():
                if other.id != source.id and (other.name == source.name or other.prefix == source.prefix):
                    raise name_taken(source)
            contents.sources[source.id] = source

    def remove_source(self, source_id: str) -> int:
        """Delete a source with its documents and chunks; return how many documents."""
        with self._changing() as contents:
            doomed = [document.id for document in self.documents(source_id)]
            self._delete_all(doomed)
            contents.sources.pop(source_id, None)
            contents.memos.pop(source_id, None)
            return len(doomed)

    def file_states(self, source_id: str) -> dict[str, FileState]:
        """Return path → state of every document of a source."""
        return {document.path: document.file_state() for document in self.documents(source_id)}

    def documents(self, source_id: str | None = None) -> Iterator[Document]:
        """Yield documents in order of path, all or one source's."""
        with self._contents.reading():
            documents = sorted(self._contents.documents.values(), key=lambda document: document.path)
        yield from (document for document in documents if source_id in (None, document.source_id))

    def document(self, document_id: str) -> Document | None:
        """Return a document by id."""
        with self._contents.reading() as contents:
            return contents.documents.get(document_id)

    def documents_at(self, path: str) -> list[Document]:
        """Return the document with exactly this citation path, else those whose path ends in /path."""
        documents = list(self.documents())
        exact = [document for document in documents if document.path == path]
        return exact or [document for document in documents if document.path.endswith(f"/{path}")]

    def put_document(self, document: Document, pieces: Sequence[Piece]) -> list[ChunkId]:
        """Store a document, replacing all chunks of an earlier version and their vectors with it."""
        with self._changing() as contents:
            kept = self._reusable(document)
            old = contents.chunks_of.get(document.id, [])
            self._write(document)
            ids = [self._place(document, at, piece, kept) for at, piece in enumerate(pieces)]
            contents.chunks_of[document.id] = ids
            for chunk_id in set(old) - set(ids):
                self._delete_chunk(chunk_id)
            return ids

    def put_documents(self, documents: Iterable[tuple[Document, Sequence[Piece]]]) -> None:
        """Store several documents."""
        with self._contents.changing():
            for document, pieces in documents:
                self.put_document(document, pieces)

    def update_document(self, document: Document) -> None:
        """Store a document's own fields; its chunks' text stays, and so do their vectors."""
        self.update_documents([document])

    def update_documents(self, documents: Sequence[Document]) -> None:
        """Store the own fields of documents; of none when one of them is gone."""
        with self._contents.changing() as contents:
            for document in documents:
                if document.id not in contents.documents:
                    raise no_document(document.id)
            for document in documents:
                self._update(document)

    def _update(self, document: Document) -> None:
        with self._changing() as contents:
            self._write(document)
            for chunk_id in contents.chunks_of[document.id]:
                self._index(document, contents.chunks[chunk_id])

    def reindex(self, document_ids: Sequence[str]) -> int:
        """Index the chunks of documents by words anew; return how many were indexed otherwise before."""
        with self._contents.changing():
            contents, before = self._contents, dict(self._contents.indexed)
            names = dict(self._contents.names)
            for document_id in set(document_ids) & contents.documents.keys():
                for chunk_id in contents.chunks_of[document_id]:
                    self._index(contents.documents[document_id], contents.chunks[chunk_id])
            changed = sum(
                contents.indexed[chunk_id] != known or contents.names.get(chunk_id) != names.get(chunk_id)
                for chunk_id, known in before.items()
            )
            contents.generation += changed > 0
            return changed

    def delete_documents(self, document_ids: Sequence[str]) -> int:
        """Delete documents with their chunks and vectors; return how many there were."""
        with self._contents.changing():
            doomed = self._contents.documents.keys() & set(document_ids)
            if doomed:
                self._contents.generation += 1
            self._delete_all(doomed)
            return len(doomed)

    def superseded(self, document_id: str) -> list[Document]:
        """Return the documents that this one superseded directly, by path."""
        return [document for document in self.documents() if document.superseded_by == document_id]

    def read(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, tuple[Chunk, Document]]:
        """Return the chunks that still exist, each with its document."""
        with self._contents.reading():
            found = [
                self._contents.chunks[chunk_id] for chunk_id in chunk_ids if chunk_id in self._contents.chunks
            ]
            return {chunk.id: (chunk, self._contents.documents[chunk.document_id]) for chunk in found}

    def types_of(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, DocumentType]:
        """Return the document types of the chunks that still exist."""
        return {chunk_id: document.type for chunk_id, (_, document) in self.read(chunk_ids).items()}

    def chunks_of(self, document_id: str) -> list[Chunk]:
        """Return a document's chunks in order."""
        with self._contents.reading():
            return [
                self._contents.chunks[chunk_id] for chunk_id in self._contents.chunks_of.get(document_id, [])
            ]

    def counts(self, source_id: str | None = None) -> Counts:
        """Return how much is stored, in all or in one source."""
        with self._contents.reading():
            chunks = self._contents.chunk_ids(source_id)
            sources = sum(source_id in (None, known) for known in self._contents.sources)
            vectors = len(self._contents.vectors().keys() & set(chunks))
            return Counts(sources, len(list(self.documents(source_id))), len(chunks), vectors)

    def count_documents(self, filter: Filter) -> int:
        """Return how many documents a filter lets through."""
        with self._contents.reading():
            return sum(allows(filter, document) for document in self._contents.documents.values())

    def count_types(self) -> dict[DocumentType, int]:
        """Return the number of documents by type."""
        return dict(Counter(document.type for document in self.documents()))

    def generation(self) -> int:
        """Return a number that grows with every change to sources, documents or chunks."""
        with self._contents.reading() as contents:
            return contents.generation

    def memo(self, source_id: str) -> str:
        """Return what the last sync wrote down about a source for the next one; empty when nothing."""
        with self._contents.reading() as contents:
            return contents.memos.get(source_id, "")

    def put_memo(self, source_id: str, memo: str) -> None:
        """Keep a memo for as long as the source exists."""
        with self._contents.changing():
            if source_id in self._contents.sources:
                self._contents.memos[source_id] = memo

    def sync_lock(self, source_id: str, *, wait_s: float) -> AbstractContextManager[None]:
        """Hold the right to sync one source.

        Raises:
            StoreBusy: somebody else holds it for longer than `wait_s`.
        """
        return self._contents.exclusive(f"sync {source_id}", "syncing this source", wait_s)

    @contextmanager
    def _changing(self) -> Iterator[Contents]:
        with self._contents.changing() as contents:
            yield contents
            contents.generation += 1

    def _write(self, document: Document) -> None:
        if document.source_id not in self._contents.sources:
            raise no_source(document.source_id)
        for other in self._contents.documents.values():
            if other.path == document.path and other.id != document.id:
                raise path_taken(document.path)
        self._contents.documents[document.id] = replace(document, tags=tuple(dict.fromkeys(document.tags)))
        for chunk_id in self._contents.chunks_of.get(document.id, ()):
            self._contents.disturb(chunk_id)

    def _reusable(self, document: Document) -> dict[tuple[str, tuple[str, ...]], deque[ChunkId]]:
        """Return the chunks whose ids and vectors may be kept, by text and heading."""
        found: dict[tuple[str, tuple[str, ...]], deque[ChunkId]] = defaultdict(deque)
        earlier = self._contents.documents.get(document.id)
        if earlier and _embedded_labels(earlier) == _embedded_labels(document):
            for chunk in self.chunks_of(document.id):
                found[chunk.text, chunk.heading].append(chunk.id)
        return found

    def _place(
        self,
        document: Document,
        at: int,
        piece: Piece,
        kept: Mapping[tuple[str, tuple[str, ...]], deque[ChunkId]],
    ) -> ChunkId:
        same = kept.get((piece.text, piece.heading))
        if same:
            chunk_id = same.popleft()
        else:
            self._contents.last_chunk_id += 1
            chunk_id = self._contents.last_chunk_id
        chunk = Chunk(
            chunk_id,
            document.id,
            at,
            piece.text,
            piece.start,
            piece.end,
            piece.start_line,
            piece.end_line,
            piece.page,
            piece.heading,
            piece.last_page,
            piece.start_column,
            piece.end_column,
        )
        self._contents.chunks[chunk_id] = chunk
        self._index(document, chunk)
        return chunk_id

    def _index(self, document: Document, chunk: Chunk) -> None:
        earlier = self._contents.indexed.pop(chunk.id, None)
        if earlier:
            self._contents.words.remove(chunk.id, earlier)
        self._contents.indexed[chunk.id] = columns_of(
            document.title, document.tags, chunk.heading, chunk.text
        )
        self._contents.words.add(chunk.id, self._contents.indexed[chunk.id])
        self._contents.call(chunk.id, chunk_names(document, chunk.heading, chunk.text))

    def _delete_all(self, doomed: Collection[str]) -> None:
        """Delete documents, and bring back what only they supersede."""
        documents = self._contents.documents
        superseded = {d.id: d.superseded_by for d in documents.values() if d.superseded_by is not None}
        for old, new in rerouted(superseded, doomed).items():
            documents[old] = replace(documents[old], superseded_by=new)
        for document_id in doomed:
            self._delete(document_id)

    def _delete(self, document_id: str) -> None:
        for chunk_id in self._contents.chunks_of.pop(document_id, []):
            self._delete_chunk(chunk_id)
        self._contents.accesses.pop(document_id, None)
        del self._contents.documents[document_id]

    def _delete_chunk(self, chunk_id: ChunkId) -> None:
        for held in self._contents.spaces.values():
            held.vectors.pop(chunk_id, None)
        self._contents.disturb(chunk_id)
        self._contents.words.remove(chunk_id, self._contents.indexed.pop(chunk_id))
        self._contents.call(chunk_id, ())
        del self._contents.chunks[chunk_id]


def _embedded_labels(document: Document) -> tuple[str, ...]:
    """Return what is embedded with each text of a document: its title, and the tags of a note."""
    return (document.title, *dict.fromkeys(embedded_tags(document)))
