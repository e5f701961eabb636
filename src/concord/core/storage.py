"""What the pipelines need of a store: a catalog, an index of words, and what is kept beside them.

Its vectors are in `vector_storage`. Structural, as `protocols` is: having the methods is implementing the
protocol.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

from concord.core.protocols import Progress
from concord.core.reports import CacheUsage, Finding, VectorIndexState
from concord.core.vector_storage import Ledger, VectorIndex, VectorSpaces
from concord.types import (
    Access,
    Chunk,
    ChunkId,
    Counts,
    Document,
    DocumentType,
    Feedback,
    FileState,
    Filter,
    Glance,
    Identity,
    Match,
    Piece,
    Scored,
    Source,
    Vector,
)


class Catalog(Protocol):
    """Sources, documents and chunks: the truth. Every method is one transaction."""

    def sources(self) -> list[Source]:
        """Return all sources, by name."""
        ...

    def put_source(self, source: Source) -> None:
        """Insert a source, or replace the one with its id."""
        ...

    def remove_source(self, source_id: str) -> int:
        """Delete a source's FTS rows, chunks, documents, then itself; return how many documents."""
        ...

    def file_states(self, source_id: str) -> dict[str, FileState]:
        """Return path → state of every document of a source."""
        ...

    def documents(self, source_id: str | None = None) -> Iterator[Document]:
        """Yield documents in order of path, all or one source's."""
        ...

    def document(self, document_id: str) -> Document | None:
        """Return a document by id."""
        ...

    def documents_at(self, path: str) -> list[Document]:
        """Return the document with exactly this citation path, else those whose path ends in /path."""
        ...

    def put_document(self, document: Document, pieces: Sequence[Piece]) -> list[ChunkId]:
        """Store a document, replacing all chunks of an earlier version and their vectors with it.

        Pieces that equal an old chunk in text, title and heading, and of notes in tags too, may keep its id
        and vector: these are what is embedded.
        """
        ...

    def put_documents(self, documents: Iterable[tuple[Document, Sequence[Piece]]]) -> None:
        """Store documents as `put_document` does, all in one transaction: it costs as much as one of them."""
        ...

    def update_document(self, document: Document) -> None:
        """Store a document's own fields (path, stat, title, tags, superseded_by …); the text stays.

        Raises:
            NotFound: there is no such document.
        """
        ...

    def update_documents(self, documents: Sequence[Document]) -> None:
        """Store the own fields of documents as `update_document` does, all in one transaction."""
        ...

    def reindex(self, document_ids: Sequence[str]) -> int:
        """Index the chunks of documents by words anew, with the fields as they are extracted now.

        One transaction; returns how many chunks were indexed otherwise before. Text and vectors stay.
        """
        ...

    def delete_documents(self, document_ids: Sequence[str]) -> int:
        """Delete documents with their chunks and vectors; return how many there were.

        What a deleted document had superseded comes back, or is superseded by whatever superseded the deleted
        one; `remove_source` does the same. How often they were read is forgotten.
        """
        ...

    def superseded(self, document_id: str) -> list[Document]:
        """Return the documents that this one superseded directly, by path."""
        ...

    def read(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, tuple[Chunk, Document]]:
        """Return the chunks that still exist, each with its document."""
        ...

    def types_of(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, DocumentType]:
        """Return the document types of the chunks that still exist, without reading their text."""
        ...

    def chunks_of(self, document_id: str) -> list[Chunk]:
        """Return a document's chunks in order."""
        ...

    def counts(self, source_id: str | None = None) -> Counts:
        """Return how much is stored, in all or in one source."""
        ...

    def count_documents(self, filter: Filter) -> int:
        """Return how many documents a filter lets through."""
        ...

    def count_types(self) -> dict[DocumentType, int]:
        """Return the number of documents by type."""
        ...

    def generation(self) -> int:
        """Return a number that grows with every change to sources, documents or chunks."""
        ...

    def memo(self, source_id: str) -> str:
        """Return what the last sync wrote down about a source for the next one; empty when nothing."""
        ...

    def put_memo(self, source_id: str, memo: str) -> None:
        """Keep a memo for as long as the source exists; the generation does not grow."""
        ...

    def sync_lock(self, source_id: str, *, wait_s: float) -> AbstractContextManager[None]:
        """Hold the right to sync one source, across processes; it is freed when the holder dies.

        Raises:
            StoreBusy: another process holds it for longer than `wait_s`.
        """
        ...


class LexicalIndex(Protocol):
    """Finds chunks by words."""

    def search(
        self, match: Match, filter: Filter, limit: int, known: Mapping[str, int] | None = None
    ) -> list[Scored]:
        """Return the best chunks by BM25, best first; ties by chunk id.

        `known` is what `frequencies` has just returned for the words of the match. An index may have read
        postings along with those numbers, and need not read them again.
        """
        ...

    def is_at_hand(self, match: Match, filter: Filter, known: Mapping[str, int]) -> bool:
        """Whether such a search does no I/O, because `frequencies` has already fetched all that it uses."""
        ...

    def frequencies(
        self, words: Sequence[str], sought_share: float | None = None
    ) -> tuple[int, dict[str, int]]:
        """Return how many chunks there are, and how many hold each word (by its stem).

        The caller may change these numbers. `sought_share` announces a search, under an open filter, for the
        words that at most this share of chunks holds: an index may read their postings at once, and keep
        them with the numbers (see `known` of `search`).
        """
        ...

    def similar_words(self, word: str, limit: int) -> list[tuple[str, int]]:
        """Return indexed words near a typed one, nearest first, with how many chunks hold each.

        Near is at most one edit away for words of 4 letters or more, two for 6 or more; or it begins with
        the word or holds it. Of equally near words the most frequent come first. A large index may leave out
        words that hold the typed one, and those two edits away that begin otherwise.
        """
        ...

    def search_names(self, tokens: Sequence[str], filter: Filter, limit: int) -> list[Scored]:
        """Return the chunks that have most of some name tokens (see `text.names`), best first; ties by id.

        A score is the sum over the tokens that a chunk has of ln((N - n + 0.5) / (n + 0.5)), at least
        `LEAST_IDF` each, where n of N chunks have the token.
        """
        ...

    def name_frequencies(self, tokens: Sequence[str]) -> dict[str, int]:
        """Return how many chunks have each of some name tokens."""
        ...


class EmbeddingCache(Protocol):
    """Vectors by text, so that no text is embedded twice while they are kept.

    Keys are SHA-256 of the embeddable text.
    """

    def get(self, identity: Identity, keys: Sequence[bytes]) -> dict[bytes, Vector]:
        """Return the vectors known for these keys under this identity, counting what was known and not."""
        ...

    def put(self, identity: Identity, vectors: Mapping[bytes, Vector]) -> None:
        """Remember vectors."""
        ...

    def entries(self) -> Iterator[tuple[Identity, bytes, Vector]]:
        """Yield all that is remembered, the least recently used first."""
        ...

    def usage(self) -> CacheUsage:
        """Return how much is kept and how often it was of use."""
        ...

    def trim(self, max_bytes: int) -> int:
        """Forget the least recently used until the vectors fit; return how many were forgotten."""
        ...


class Journal(Protocol):
    """Which documents were read, and which results were judged. Kept in the store, for one organisation.

    Searches find the same as before, so the generation does not grow.
    """

    def record_access(self, document_ids: Sequence[str], at: float) -> None:
        """Count one more reading of each document that exists, at a moment in seconds."""
        ...

    def accesses(self, document_ids: Sequence[str]) -> dict[str, Access]:
        """Return how often and when last each of these documents was read; those never read are left out."""
        ...

    def put_accesses(self, accesses: Mapping[str, Access]) -> None:
        """Replace what is known of how often documents were read, as far as these exist."""
        ...

    def record_feedback(self, feedback: Feedback) -> None:
        """Keep an opinion, in place of an earlier one on the same document for the same query."""
        ...

    def feedback(self) -> list[Feedback]:
        """Return all opinions, oldest first, also those on documents that are gone."""
        ...


class Store(Protocol):
    """One organisation's storage: what a backend opens."""

    @property
    def path(self) -> str | None:
        """The one file that everything is kept in; None where there is no such file."""
        ...

    @property
    def is_begun(self) -> bool:
        """Whether anything was ever stored in it: reading from a store that is not there makes none."""
        ...

    def others(self) -> list[str]:
        """Return the other organisations in the same place, as far as this one may know of them."""
        ...

    def unique_id(self) -> str:
        """Return an id of this store, once begun: the same by any URL, and no other store's."""
        ...

    @property
    def catalog(self) -> Catalog:
        """Sources, documents and chunks."""
        ...

    @property
    def lexical(self) -> LexicalIndex:
        """Chunks by words."""
        ...

    @property
    def vectors(self) -> VectorIndex:
        """Chunks by meaning, in the active space."""
        ...

    @property
    def spaces(self) -> VectorSpaces:
        """The spaces of vectors, one a model."""
        ...

    @property
    def cache(self) -> EmbeddingCache:
        """The embeddings of texts seen before."""
        ...

    @property
    def ledger(self) -> Ledger:
        """What a vector store outside has acknowledged, and what it has not been told yet."""
        ...

    @property
    def journal(self) -> Journal:
        """What was read, and what people think of results."""
        ...

    def glance(self) -> Glance:
        """Return all that a search has to know before it begins, in one request to a server.

        Later reads see everything that had been written up to its generation.

        Raises:
            Unavailable: the vector store does not answer.
        """
        ...

    def check(self) -> list[Finding]:
        """Look for faults that only the store can see: damage, indexes out of step, orphans, lost vectors.

        Changes nothing. An engine that keeps all of this in order by itself returns an empty list.

        Raises:
            StoreError: it cannot even be read.
        """
        ...

    def repair(self, findings: Sequence[Finding]) -> None:
        """Repair those of its own findings that are repairable; nothing but derived data is ever deleted.

        What takes long to build is left to `tend`.
        """
        ...

    def tend(self, progress: Progress) -> None:
        """Build or update indexes that only make searches faster, where that is worth its time.

        Called after a sync, a migration or a removal. An index that cannot be built is no error: searches
        work without it.
        """
        ...

    def index_state(self) -> VectorIndexState | None:
        """Return the state of the active space's vector index; None for a store that never builds one."""
        ...

    def close(self) -> None:
        """Free connections and files."""
        ...


@runtime_checkable
class SelfCopying(Protocol):
    """A store that is one file, and can copy itself to another while it is in use."""

    @property
    def path(self) -> str | None:
        """Where it is."""
        ...

    def backup(self, path: str, progress: Progress) -> None:
        """Copy what is stored now to a file, in place of an older copy that may be there.

        Raises:
            BadValue: something else is there.
            StoreError: the store is damaged, or the disk refuses; the older copy stays.
        """
        ...
