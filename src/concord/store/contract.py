"""What the product needs of a store. Every method is one transaction.

Scores leave a store as "higher is better", vectors are float32 bytes of length 1, and no engine's query
syntax exists above its adapter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from msgspec import Struct

from concord.core.errors import Action, CorruptStore, Hint
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
    Home,
    Identity,
    Json,
    Link,
    LinkKind,
    Match,
    Model,
    Part,
    Pending,
    Piece,
    Scored,
    Source,
    Vector,
)

if TYPE_CHECKING:
    from concord.core.protocols import Progress
    from concord.core.reports import CacheUsage, Finding, VectorIndexState
    from concord.text.links import Named

TextHash = bytes  # SHA-256 of an embeddable text


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


class Place(Struct, frozen=True):
    """Where a store is."""

    path: str | None  # the one file that everything is in; None where there is no such file
    is_begun: bool  # whether anything was ever stored: reading from a store that is not there makes none
    others: Sequence[str]  # the other organisations there, as far as this one may know of them
    unique_id: str  # once begun, the same by any URL, and no other store's


class Catalog(Protocol):
    """Sources, documents and chunks: what everything else is derived from."""

    def snapshot(self) -> Snapshot:
        """Return what a search has to know; later reads see at least what had been written by then."""

    def put_source(self, source: Source) -> None:
        """Insert a source, or replace the one with its id."""

    def remove_source(self, source_id: str) -> int:
        """Delete a source's words, chunks and documents, then itself; return the number of documents."""

    def file_states(self, source_id: str) -> dict[str, FileState]:
        """Return path → state of every document of a source."""

    def documents(self, select: Select = EVERY) -> Iterator[Document]:
        """Yield documents in order of path, as they were when the first was read."""

    def put_documents(self, batch: Iterable[tuple[Document, Sequence[Piece]]]) -> list[list[ChunkId]]:
        """Store documents with their chunks, in place of earlier versions; return the ids of the chunks.

        A chunk whose embeddable text is as before keeps its id and its vectors.
        """

    def update_documents(self, documents: Sequence[Document]) -> None:
        """Store documents' own fields. Chunks stay; where what is embedded with them changed, they wait.

        Raises:
            NotFound: one of them is not there.
        """

    def delete_documents(self, document_ids: Sequence[str]) -> int:
        """Delete documents with their chunks; return how many there were.

        What a deleted document had superseded comes back, or is superseded by whatever superseded the deleted
        one. Vectors stay as cache.
        """

    def reindex_words(self, document_ids: Sequence[str]) -> int:
        """Index chunks of documents by words and names anew; return how many were indexed otherwise."""

    def read(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, tuple[Chunk, Document]]:
        """Return the chunks that still exist, each with its document."""

    def chunks(self, document_id: str) -> list[Chunk]:
        """Return a document's chunks in order."""

    def document_types(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, DocumentType]:
        """Return the document types of the chunks that still exist, without reading their text."""

    def under_same_heading(self, chunk_ids: Sequence[ChunkId], reach: int) -> dict[ChunkId, list[Part]]:
        """Return for each chunk those of its document that stand under the same heading, itself included.

        None of them is further from it than `reach` chunks.
        """

    def siblings(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, str]:
        """Return all chunks of the documents that some chunks are part of, each with its document's id."""

    def count_types(self) -> dict[DocumentType, int]:
        """Return the number of documents by type."""

    def allowed(self, filter: Filter, chunk_ids: Sequence[ChunkId]) -> set[ChunkId]:
        """Return those of the chunks that exist and that a filter lets through."""

    def matching(self, filter: Filter, most: int) -> list[str] | None:
        """Return the ids of the documents that a filter lets through; None when they are more than `most`."""

    def count(self, source_id: str | None = None) -> Counts:
        """Return how much is stored, in all or in one source."""

    def count_documents(self, filter: Filter) -> int:
        """Return how many documents a filter lets through."""

    def sync_state(self, source_id: str) -> str:
        """Return what the last sync wrote down about a source for the next one; empty when nothing."""

    def put_sync_state(self, source_id: str, state: str) -> None:
        """Keep that for as long as the source exists; the generation does not grow."""


def source_by_id(catalog: Catalog, source_id: str) -> Source:
    """Return the source of a document.

    Raises:
        CorruptStore: there is none.
    """
    for source in catalog.snapshot().sources:
        if source.id == source_id:
            return source
    said = "the store is damaged: a document belongs to no source"
    raise CorruptStore(said, hint=Hint(Action.DOCTOR, "{doctor} looks further into it"))


def document_by_id(catalog: Catalog, document_id: str) -> Document | None:
    """Return a document by its id."""
    return next(iter(list(catalog.documents(Select(ids=[document_id])))), None)


def documents_at(catalog: Catalog, path: str) -> list[Document]:
    """Return the document with exactly this citation path, else those whose path ends in /path."""
    return list(catalog.documents(Select(path=path))) or list(catalog.documents(Select(path_ending=path)))


class WordIndex(Protocol):
    """Finds chunks by words, and by what they are called."""

    def search(self, match: Match, filter: Filter, limit: int) -> list[Scored]:
        """Return the best chunks by BM25, best first; ties by chunk id."""

    def frequencies(self, words: Sequence[str]) -> tuple[int, dict[str, int]]:
        """Return how many chunks there are, and how many hold each word (by its stem)."""

    def similar_words(self, word: str, limit: int) -> list[tuple[str, int]]:
        """Return indexed words near a typed one, nearest first, with how many chunks hold each."""

    def search_names(self, tokens: Sequence[str], filter: Filter, limit: int) -> list[Scored]:
        """Return the chunks with the highest sum of idf over some name tokens, best first; ties by id."""

    def name_frequencies(self, tokens: Sequence[str]) -> dict[str, int]:
        """Return how many chunks have each of some name tokens."""


class VectorIndex(Protocol):
    """Finds chunks by meaning. It is bound to one model, whichever is active."""

    def count_pending(self, source_id: str | None = None) -> int:
        """Return how many chunks have no vector, of all or of one source."""

    def pending(self, after: ChunkId, limit: int, source_id: str | None = None) -> list[Pending]:
        """Return chunks without a vector whose id is greater than `after`, in order of id."""

    def cached(self, keys: Sequence[TextHash]) -> dict[TextHash, Vector]:
        """Return the vectors of texts that are known, and count them as hits."""

    def remember(self, vectors: Mapping[TextHash, Vector]) -> None:
        """Keep the vectors of texts that were not known, and count them as misses."""

    def put(self, vectors: Iterable[tuple[ChunkId, TextHash, Vector]]) -> int:
        """Give chunks their vectors; return how many chunks got one. Chunks that are gone are skipped.

        Raises:
            BadValue: the model has not been added, or a vector is not finite, not of length 1 or not of the
                model's dimension. Nothing is stored then.
            VectorsElsewhere: they are kept outside.
        """

    def search(
        self, vector: Vector, filter: Filter, limit: int, *, ef_search: int | None = None
    ) -> list[Scored]:
        """Return the nearest chunks by cosine similarity, nearest first; ties by chunk id.

        A vector that a disk has changed is skipped.

        Raises:
            ModelMismatch: the model has not been added, or no longer is.
        """

    def fetch(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, Vector]:
        """Return the vectors of those chunks that have an intact one."""

    def delete_source(self, source_id: str) -> int:
        """Take the vectors of a source's chunks away; return how many chunks had one.

        Vectors that no other chunk uses are deleted.
        """


class Models(Protocol):
    """The models that vectors are kept of. At most one is active: searches use it."""

    def index(self, identity: Identity) -> VectorIndex:
        """Return the index of one model, whether or not it has been added yet."""

    def add(self, identity: Identity, recipe: Mapping[str, Json]) -> None:
        """Add a model without vectors, or replace the recipe of one. The first becomes active."""

    def activate(self, identity: Identity) -> None:
        """Let searches use a model from now on, in every process.

        Raises:
            NotFound: it has not been added.
        """

    def drop(self, identity: Identity) -> int:
        """Take a model away; return how many chunks had a vector of it. Its vectors stay as cache.

        Raises:
            NotFound: it has not been added.
            BadValue: it is the active one.
        """


class EmbeddingCache(Protocol):
    """All vectors by text, whether or not chunks use them."""

    def entries(self) -> Iterator[tuple[Identity, TextHash, Vector]]:
        """Yield all vectors, the least recently used first."""

    def usage(self) -> CacheUsage:
        """Return how much is kept and how often it was of use."""

    def trim(self, max_bytes: int) -> int:
        """Delete vectors that no chunk uses, least recently used first, until all fit; return how many."""


class Outbox(Protocol):
    """What a store knows of vectors that are kept outside it, so that none is lost or left behind."""

    def home(self) -> Home:
        """Return where the vectors are kept."""

    def own(self) -> Home:
        """Return where the vectors are kept, under a key of this very store: a copy gets its own."""

    def is_empty(self) -> bool:
        """Whether no chunk has a vector of any model, wherever they are kept."""

    def move(self, url: str) -> None:
        """Keep vectors at this URL from now on: all chunks are pending for all models, no change waits."""

    def acknowledge(self, identity: Identity, chunk_ids: Sequence[ChunkId]) -> None:
        """Record that the vectors of chunks are stored outside; chunks that are gone are skipped."""

    def retract(self, identity: Identity, source_id: str) -> int:
        """Make a source's chunks pending again for one model; return how many were not."""

    def changes(self, limit: int) -> list[tuple[int, ChunkId]]:
        """Return the oldest changes that the vector store outside does not know of, each with its number.

        A change is a chunk that was deleted, or whose position or document has changed.
        """

    def settle(self, turns: Sequence[int]) -> None:
        """Record that the vector store outside knows of the changes with these numbers."""

    def left(self) -> list[Home]:
        """Return the places that vectors were moved away from and still lie in, the oldest first."""

    def forget(self, home: Home) -> None:
        """Record that no vector of this store is left there."""


class Pointing(NamedTuple):
    """A chunk that points to another document, and what a search weighs of that."""

    chunk_id: ChunkId
    kind: LinkKind
    target: str
    words: str
    document_id: str  # that it points to
    first: ChunkId  # of that document
    pointed_to: int  # how many links lead to that document; many are not counted further


class LinkRow(NamedTuple):
    """A link as it is stored."""

    chunk_id: ChunkId
    link: Link
    origin: str  # id of the document that holds it
    document_id: str | None  # id of the document that it leads to
    is_broken: bool  # whether it surely names a document that is not there


class Links(Protocol):
    """What chunks point to. What documents are called and link to is stored with them, by `put_documents`.

    Mentions of titles are not: whoever stores documents sees to it that they are looked for. The generation
    does not grow.
    """

    def pointing(self, chunk_ids: Sequence[ChunkId], filter: Filter) -> list[Pointing]:
        """Return what chunks point to among the documents that a filter lets through."""

    def outgoing(self, document_id: str) -> list[LinkRow]:
        """Return the links of a document to others, in order."""

    def incoming(self, document_id: str) -> list[LinkRow]:
        """Return the links of others to a document, by their paths."""

    def broken(self) -> list[LinkRow]:
        """Return the links that lead to no document and should."""

    def orphans(self, source_id: str) -> set[str]:
        """Return the ids of the documents of a source that no other document links to."""

    def waiting(self, most: int) -> list[str]:
        """Return ids of documents whose mentions of others are yet to be looked for."""

    def await_all(self) -> None:
        """Let all documents wait for that."""

    def done(self, document_ids: Sequence[str]) -> None:
        """Record that they wait no more."""

    def titles(self, *, new: bool = False) -> list[Named]:
        """Return the titles that texts may mention: all, or those that are new to documents that wait."""

    def titles_opening(self, openings: Sequence[str]) -> list[Named]:
        """Return the titles that begin with two such words, or are one of them."""

    def add(self, found: Mapping[ChunkId, Sequence[Link]]) -> None:
        """Store links of chunks beside those that they have; chunks that are gone are skipped."""

    def put_mentions(self, found: Mapping[ChunkId, Iterable[str]]) -> dict[str, int]:
        """Store which titles chunks mention; return in how many chunks each of these titles stands now."""

    def drop_common(self, counts: Mapping[str, int]) -> None:
        """Delete the mentions of titles that stand in too many chunks, and look for them no more."""

    def revived(self, limit: int) -> list[Named]:
        """Look for titles again that stood in half of `limit` chunks or less when they were too common."""


class Journal(Protocol):
    """Which documents were read, and which results were judged. The generation does not grow."""

    def record_access(self, document_ids: Sequence[str], at: float) -> None:
        """Count one more reading of each document that exists, at a moment in seconds."""

    def accesses(self, document_ids: Sequence[str]) -> dict[str, Access]:
        """Return how often and when last each of these documents was read; those never read are left out."""

    def put_accesses(self, accesses: Mapping[str, Access]) -> None:
        """Replace what is known of how often documents were read, as far as these exist."""

    def feedback(self) -> list[Feedback]:
        """Return all opinions, oldest first, also those on documents that are gone."""

    def record_feedback(self, feedback: Feedback) -> None:
        """Keep an opinion, in place of an earlier one on the same document for the same query."""


class Store(Protocol):
    """One organisation's storage: what a backend opens."""

    catalog: Catalog
    words: WordIndex
    models: Models
    cache: EmbeddingCache
    outbox: Outbox
    links: Links
    journal: Journal

    @property
    def place(self) -> Place:
        """Where it is."""

    def lock(self, name: str, doing: str, *, wait_s: float) -> AbstractContextManager[None]:
        """Hold the right to long work, across processes; it is freed when the holder dies.

        Raises:
            StoreBusy: another process holds it for longer than `wait_s`: it is `doing` that.
        """

    def check(self) -> list[Finding]:
        """Look for faults that only the store can see; changes nothing.

        Raises:
            StoreError: it cannot even be read.
        """

    def repair(self, findings: Sequence[Finding]) -> None:
        """Repair those of its own findings that are repairable; only derived data is ever deleted."""

    def maintain(self, progress: Progress) -> None:
        """Do what makes searches faster or files smaller, where that is worth its time."""

    def vector_index_state(self) -> VectorIndexState | None:
        """Return the state of the index of the active model's vectors; None if this store builds none."""

    def backup(self, path: str, progress: Progress) -> None:
        """Copy what is stored now to a file, in place of an older copy that may be there.

        Raises:
            UsageError: this store is no file.
            NotFound: nothing was ever kept here.
            BadValue: something else is there.
            StoreError: the store is damaged, or the disk refuses; the older copy stays.
        """

    def close(self) -> None:
        """Free connections and files."""


class Backend(Store, Protocol):
    """A store that its URL tells how to open."""

    @classmethod
    def open(cls, url: str, org: str, options: Mapping[str, Any] | None = None) -> Backend:
        """Open an organisation's store, migrating what is old; where there is none, a change makes it.

        Raises:
            BadValue: the URL or the organisation's name is not of the form it must have.
            StoreError: what is there cannot be used as it is.
            BackendDown: the disk or the server refuses.
        """


class Salvage(Struct, frozen=True):
    """What could be read of a store that may be damaged, and of what is kept beside it."""

    path: str
    logged: tuple[Document, ...]  # notes, each as it was written
    scanned: tuple[Document, ...]  # notes that look like it; perhaps older, or damaged
    sources: tuple[Source, ...]


class OutsideVectors(Store, Protocol):
    """A store whose vectors are kept on a server outside it; another store keeps everything else.

    It is made of that store, a URL, an organisation and the settings.
    """

    @property
    def home(self) -> str:
        """Where vectors are kept: the URL that an outbox notes."""

    def warm(self) -> None:
        """Load the client, which takes long; the server is not asked for anything."""

    def reach(self, dimension: int) -> None:
        """Check that vectors of this dimension could be kept there.

        Raises:
            BackendDown: the server does not answer.
        """

    def sweep(self) -> None:
        """Send all changes, and delete vectors of chunks that the store does not know, as after a restore.

        Raises:
            BackendDown: the server does not answer.
        """

    def check_vectors(self) -> list[Finding]:
        """Look for faults that only show outside; that the server does not answer is a finding, too."""

    @classmethod
    def clear(cls, store: Store, home: Home, org: str, options: Mapping[str, Any]) -> None:
        """Delete all vectors that a store has sent to a place, which the settings may name no more.

        Raises:
            BackendDown: the server does not answer.
        """
