"""What the product needs of a store. Every method is one transaction.

Scores leave a store as "higher is better", vectors are float32 bytes of length 1, and no engine's query
syntax exists above its adapter. A comment stands above what it is about, or behind it.
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
    unique_id: str  # once begun, the same by any URL, and no other store's


class Catalog(Protocol):
    """Sources, documents and chunks: what everything else is derived from."""

    def snapshot(self) -> Snapshot: ...  # later reads see at least what had been written by then
    def put_source(self, source: Source) -> None: ...  # inserts it, or replaces the one with its id

    # Deletes a source's words, chunks and documents, then itself; returns the number of documents.
    def remove_source(self, source_id: str) -> int: ...
    def file_states(self, source_id: str) -> dict[str, FileState]: ...  # by path

    def documents(self, select: Select = EVERY) -> Iterator[Document]: ...  # in order of path, as of now

    # Stores documents with their chunks, in place of earlier versions; returns the ids of the chunks. A chunk
    # whose embeddable text is as before keeps its id and its vectors.
    def put_documents(self, batch: Iterable[tuple[Document, Sequence[Piece]]]) -> list[list[ChunkId]]: ...

    # Stores documents' own fields. Chunks stay; where what is embedded with them changed, they wait. Raises
    # NotFound if one of them is not there.
    def update_documents(self, documents: Sequence[Document]) -> None: ...

    # Deletes documents with their chunks; returns how many there were. What a deleted document had superseded
    # comes back, or is superseded by whatever superseded the deleted one. Vectors stay as cache.
    def delete_documents(self, document_ids: Sequence[str]) -> int: ...

    # Indexes chunks by words and names anew; returns how many were indexed otherwise.
    def reindex_words(self, document_ids: Sequence[str]) -> int: ...

    # Of what is asked for by the ids of chunks, those are left out that do not exist any more.
    def read(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, tuple[Chunk, Document]]: ...
    def chunks(self, document_id: str) -> list[Chunk]: ...  # in order
    def document_types(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, DocumentType]: ...

    # Returns for each chunk those of its document that stand under the same heading, itself included; none of
    # them is further from it than `reach` chunks.
    def under_same_heading(self, chunk_ids: Sequence[ChunkId], reach: int) -> dict[ChunkId, list[Part]]: ...

    # Returns all chunks of the documents that some chunks are part of, each with its document's id.
    def siblings(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, str]: ...

    def allowed(self, filter: Filter, chunk_ids: Sequence[ChunkId]) -> set[ChunkId]: ...
    def matching(self, filter: Filter, most: int) -> list[str] | None: ...  # None: more than `most` documents
    def count(self, source_id: str | None = None) -> Counts: ...
    def count_documents(self, filter: Filter) -> int: ...
    def count_types(self) -> dict[DocumentType, int]: ...  # the number of documents by type
    def sync_state(self, source_id: str) -> str: ...  # what the last sync wrote down for the next one, if any
    def put_sync_state(self, source_id: str, state: str) -> None: ...  # the generation does not grow


def source_by_id(catalog: Catalog, source_id: str) -> Source:
    """Return the source of a document.

    Raises:
        CorruptStore: there is none.
    """
    for source in catalog.snapshot().sources:
        if source.id == source_id:
            return source
    message = "the store is damaged: a document belongs to no source"
    raise CorruptStore(message, hint=Hint(Action.DOCTOR, "{doctor} looks further into it"))


def document_by_id(catalog: Catalog, document_id: str) -> Document | None:
    """Return a document by its id."""
    return next(catalog.documents(Select(ids=[document_id])), None)


def documents_at(catalog: Catalog, path: str) -> list[Document]:
    """Return the document with exactly this citation path, else those whose path ends in /path."""
    return list(catalog.documents(Select(path=path))) or list(catalog.documents(Select(path_ending=path)))


class WordIndex(Protocol):
    """Finds chunks by words, and by what they are called. The best come first, ties by id."""

    def search(self, match: Match, filter: Filter, limit: int) -> list[Scored]: ...  # by BM25

    # Returns how many chunks there are, and how many hold each word (by its stem).
    def frequencies(self, words: Sequence[str]) -> tuple[int, dict[str, int]]: ...

    # Returns indexed words near a typed one, nearest first, with how many chunks hold each.
    def similar_words(self, word: str, limit: int) -> list[tuple[str, int]]: ...

    # Returns the chunks with the highest sum of idf over some name tokens.
    def search_names(self, tokens: Sequence[str], filter: Filter, limit: int) -> list[Scored]: ...
    def name_frequencies(self, tokens: Sequence[str]) -> dict[str, int]: ...


class VectorIndex(Protocol):
    """Finds chunks by meaning. It is bound to one model, whichever is active."""

    def count_pending(self, source_id: str | None = None) -> int: ...  # chunks that have no vector

    # Returns chunks without a vector whose id is greater than `after`, in order of id.
    def pending(self, after: ChunkId, limit: int, source_id: str | None = None) -> list[Pending]: ...
    def cached(self, keys: Sequence[TextHash]) -> dict[TextHash, Vector]: ...  # which count as hits
    def remember(self, vectors: Mapping[TextHash, Vector]) -> None: ...  # of texts that count as misses

    # Gives chunks their vectors; returns how many got one: chunks that are gone are skipped. Raises BadValue,
    # and stores nothing, if the model has not been added or a vector is not finite, not of length 1 or not of
    # the model's dimension; VectorsElsewhere if they are kept outside.
    def put(self, vectors: Iterable[tuple[ChunkId, TextHash, Vector]]) -> int: ...

    # Returns the nearest chunks by cosine similarity, nearest first; ties by chunk id. A vector that a disk
    # has changed is skipped. Raises ModelMismatch if the model has not been added, or no longer is.
    def search(
        self, vector: Vector, filter: Filter, limit: int, *, ef_search: int | None = None
    ) -> list[Scored]: ...
    def fetch(self, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, Vector]: ...  # those that are intact

    # Takes the vectors of a source's chunks away, and deletes those that no other chunk uses; returns how
    # many chunks had one.
    def delete_source(self, source_id: str) -> int: ...


class Models(Protocol):
    """The models that vectors are kept of. At most one is active: searches use it, in every process."""

    def index(self, identity: Identity) -> VectorIndex: ...  # whether or not the model has been added yet

    # Adds a model without vectors, or replaces the recipe of one. The first becomes active.
    def add(self, identity: Identity, recipe: Mapping[str, Json]) -> None: ...
    def activate(self, identity: Identity) -> None: ...  # raises NotFound if it has not been added

    # Takes a model away; returns how many chunks had a vector of it. Its vectors stay as cache. Raises
    # NotFound if it has not been added, BadValue if it is the active one.
    def drop(self, identity: Identity) -> int: ...


class EmbeddingCache(Protocol):
    """All vectors by text, whether or not chunks use them."""

    def entries(self) -> Iterator[tuple[Identity, TextHash, Vector]]: ...  # the least recently used first
    def usage(self) -> CacheUsage: ...

    # Deletes vectors that no chunk uses, least recently used first, until all fit; returns how many.
    def trim(self, max_bytes: int) -> int: ...


class Outbox(Protocol):
    """What a store knows of vectors that are kept outside it, so that none is lost or left behind."""

    def home(self) -> Home: ...  # where the vectors are kept
    def is_empty(self) -> bool: ...  # whether no chunk has a vector of any model, wherever they are kept

    # Keeps vectors at this URL from now on: all chunks are pending for all models, no change waits.
    def move(self, url: str) -> None: ...

    # Notes that the vectors of chunks are stored outside; chunks that are gone are skipped.
    def acknowledge(self, identity: Identity, chunk_ids: Sequence[ChunkId]) -> None: ...

    # Makes a source's chunks pending again for one model; returns how many were not.
    def retract(self, identity: Identity, source_id: str) -> int: ...

    # Returns the oldest changes that the vector store outside does not know of, each with its number: chunks
    # that were deleted, or whose position or document has changed.
    def changes(self, limit: int) -> list[tuple[int, ChunkId]]: ...
    def settle(self, turns: Sequence[int]) -> None: ...  # the changes with these numbers are known there
    def left(self) -> list[Home]: ...  # places that vectors were moved from and still lie in, oldest first
    def forget(self, home: Home) -> None: ...  # no vector of this store is left there


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

    # Returns what chunks point to among the documents that a filter lets through.
    def pointing(self, chunk_ids: Sequence[ChunkId], filter: Filter) -> list[Pointing]: ...
    def outgoing(self, document_id: str) -> list[LinkRow]: ...  # in order
    def incoming(self, document_id: str) -> list[LinkRow]: ...  # by their paths
    def broken(self) -> list[LinkRow]: ...  # lead to no document and should
    def orphans(self, source_id: str) -> set[str]: ...  # documents of a source that no other links to
    def waiting(self, most: int) -> list[str]: ...  # documents whose mentions of others are to be looked for
    def await_all(self) -> None: ...
    def done(self, document_ids: Sequence[str]) -> None: ...  # they wait no more
    def titles(self, *, new: bool = False) -> list[Named]: ...  # all, or those new to documents that wait
    def titles_opening(self, openings: Sequence[str]) -> list[Named]: ...  # begin with two such words, or one

    # Stores links of chunks beside those that they have; chunks that are gone are skipped.
    def add(self, found: Mapping[ChunkId, Sequence[Link]]) -> None: ...

    # Stores which titles chunks mention; returns in how many chunks each of these titles stands now.
    def put_mentions(self, found: Mapping[ChunkId, Iterable[str]]) -> dict[str, int]: ...

    # Deletes the mentions of titles that stand in too many chunks, and looks for them no more; those that
    # stood in half of `limit` chunks or less are looked for again.
    def drop_common(self, counts: Mapping[str, int]) -> None: ...
    def revived(self, limit: int) -> list[Named]: ...


class Journal(Protocol):
    """Which documents were read, and which results were judged. The generation does not grow."""

    def record_access(self, document_ids: Sequence[str], at: float) -> None: ...  # one more reading of each
    def accesses(self, document_ids: Sequence[str]) -> dict[str, Access]: ...  # but of those never read
    def feedback(self) -> list[Feedback]: ...  # oldest first, also on documents that are gone
    def record_feedback(
        self, feedback: Feedback
    ) -> None: ...  # in place of one on the same for the same query


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
    def place(self) -> Place: ...

    # Holds the right to long work, across processes; it is freed when the holder dies. Raises StoreBusy if
    # another process is `doing` that for longer than `wait_s`.
    def lock(self, name: str, doing: str, *, wait_s: float) -> AbstractContextManager[None]: ...

    # Looks for faults that only the store can see, and changes nothing; raises StoreError if it cannot even
    # be read. What is repairable of its own findings is then repaired: only derived data is ever deleted.
    def check(self) -> list[Finding]: ...
    def repair(self, findings: Sequence[Finding]) -> None: ...

    # Does what makes searches faster or files smaller, where that is worth its time.
    def maintain(self, progress: Progress) -> None: ...

    # Returns the state of the index of the active model's vectors; None if this store builds none.
    def vector_index_state(self) -> VectorIndexState | None: ...

    # Takes over all that another store holds, in one transaction, vectors into the store itself. Raises
    # BadValue where it holds something already, StoreError where the other one changes meanwhile.
    def copy(self, origin: Store, progress: Progress) -> None: ...

    # Copies what is stored now to a file, in place of an older copy that may be there. Raises UsageError if
    # this store is no file, NotFound if nothing was ever kept here, BadValue if something else is there,
    # StoreError if the store is damaged or the disk refuses: the older copy stays.
    def backup(self, path: str, progress: Progress) -> None: ...
    def close(self) -> None: ...


class Backend(Store, Protocol):
    """A store that its URL tells how to open."""

    # Opens an organisation's store, migrating what is old; where there is none, a change makes it. Raises
    # BadValue for a URL or a name that is none, StoreError if what is there cannot be used as it is,
    # BackendDown if the disk or the server refuses.
    @classmethod
    def open(cls, url: str, org: str, options: Mapping[str, Any] | None = None) -> Backend: ...


class Salvage(Struct, frozen=True):
    """What is kept beside a store that may be damaged."""

    path: str
    notes: tuple[Document, ...]
    sources: tuple[Source, ...]


class OutsideVectors(Store, Protocol):
    """A store whose vectors are kept on a server outside it; another store keeps everything else.

    It is made of that store, a URL, an organisation and the settings. A server that does not answer is
    BackendDown.
    """

    @property
    def home(self) -> str: ...  # where vectors are kept: the URL that an outbox notes

    def warm(self) -> None: ...  # loads the client, which takes long; the server is not asked for anything
    def reach(self, dimension: int) -> None: ...  # whether vectors of this dimension could be kept there

    # Sends all changes, and deletes vectors of chunks that the store does not know, as after a restore.
    def sweep(self) -> None: ...
    def check_vectors(self) -> list[Finding]: ...  # a server that does not answer is a finding, too

    # Deletes all vectors that a store has sent to a place, which the settings may name no more.
    @classmethod
    def clear(cls, store: Store, home: Home, org: str, options: Mapping[str, Any]) -> None: ...
