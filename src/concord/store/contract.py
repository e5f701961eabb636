"""What the product needs of a store. Every method is one transaction.

Scores leave a store as "higher is better", vectors are float32 bytes of length 1, and no engine's query
syntax exists above its adapter. What all engines share is a class, what they differ in is a protocol, in
which a comment stands above what it is about, or behind it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from concord.core.errors import Action, CorruptStore, Hint
from concord.store.catalog import EVERY, Catalog, Select, Snapshot
from concord.store.embeddings import EmbeddingCache
from concord.store.indexes import Models, TextHash, VectorIndex
from concord.store.journal import Journal
from concord.store.links import LinkRow, Links, Pointing
from concord.store.models import Outbox
from concord.store.words import WordIndex
from concord.types import Document, Home, Source

if TYPE_CHECKING:
    from concord.core.protocols import Progress
    from concord.core.reports import Finding, VectorIndexState

__all__ = [
    "EVERY", "Backend", "Catalog", "EmbeddingCache", "Journal", "LinkRow", "Links", "Models", "Outbox",
    "OutsideVectors", "Place", "Pointing", "Salvage", "Select", "Snapshot", "Store", "TextHash",
    "VectorIndex", "WordIndex", "document_by_id", "documents_at", "source_by_id",
]  # fmt: skip


class Place(Struct, frozen=True):
    """Where a store is."""

    path: str | None  # the one file that everything is in; None where there is no such file
    is_begun: bool  # whether anything was ever stored: reading from a store that is not there makes none
    unique_id: str  # once begun, the same by any URL, and no other store's


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
