"""What commands come to: what was read, counted, synced, removed, found wrong. No search needs them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct, field

from concord.types import Counts, Document, DocumentType, Freshness, Identity, Opinion, Source


class DocumentSlice(Struct, frozen=True):
    """What `get` reads: a part of one document, as it was indexed."""

    document: Document
    source: Source
    text: str
    citation: str
    start_line: int
    end_line: int
    pages: tuple[int, int] | None
    heading: tuple[str, ...]
    freshness: Freshness | None  # None if its whole source is out of reach
    before: str | None = None  # citation of the chunk that comes before it, to read on
    after: str | None = None
    start_column: int | None = None  # from 1, inclusive; None where it is whole lines
    end_column: int | None = None
    links: tuple[str, ...] = ()  # paths of the documents that its document links to, the first few
    backlinks: tuple[str, ...] = ()  # of those that link to it


class SourceSummary(Struct, frozen=True):
    """A source and how much of it is stored."""

    source: Source
    counts: Counts


class CacheUsage(Struct, frozen=True):
    """How much an embedding cache holds, and how often it was of use."""

    entries: int
    size_bytes: int  # all vectors together
    hits: int  # texts looked up and found, since the store was made: they were not embedded again
    misses: int

    @property
    def hit_rate(self) -> float | None:
        """The share of texts that were known; None before the first was asked for."""
        asked = self.hits + self.misses
        return self.hits / asked if asked else None


class VectorIndexState(Struct, frozen=True):
    """The state of an index that spares searches comparing every vector; scores are exact either way."""

    covered: int  # vectors in it; the others are compared one by one
    size_bytes: int
    absent: str | None = None  # why there is no index; None if there is one


class Stats(Struct, frozen=True):
    """The state of a knowledge base."""

    org: str
    store: str
    size_bytes: int | None  # None when the store is not a file
    counts: Counts
    pending: int  # chunks without a vector
    identity: Identity | None  # the model that made the vectors
    generation: int
    types: Mapping[DocumentType, int]  # document type → how many
    cache: CacheUsage | None = None
    index: VectorIndexState | None = None  # None if this kind of store has no index of vectors
    feedback: Mapping[Opinion, int] = field(default_factory=dict)  # opinion → how many
    vectors_home: str = ""  # where vectors are kept; empty: in the store itself
    problems: tuple[str, ...] = ()  # what keeps searches from finding all that they could, and what to do


class Failure(Struct, frozen=True):
    """A file that could not be indexed, and why."""

    path: str
    reason: str


FILE_COUNTS = ("added", "changed", "removed", "renamed", "unchanged")  # fields of a SyncReport


class PartlyRead(Struct, frozen=True):
    """A document with pages that cannot be found, because they hold pictures and no text."""

    path: str
    pages: int
    pages_without_text: int


class SyncReport(Struct, frozen=True):
    """What one sync did to one source."""

    source: Source
    added: int = 0
    changed: int = 0
    removed: int = 0
    renamed: int = 0
    unchanged: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)  # reason → how many files
    skipped_files: Sequence[Failure] = ()  # the files that `skipped` counts
    partly_read: Sequence[PartlyRead] = ()  # documents written by this sync that have pages without text
    failed: Sequence[Failure] = ()
    chunks: int = 0  # chunks written by this sync
    embedded: int = 0
    reused: int = 0  # vectors taken from the cache
    pending: int = 0  # chunks still without a vector
    degraded: str | None = None  # why embedding did not finish
    overflowed: int = 0  # chunks longer than the model's window, which were embedded in parts
    generation: int = 0
    took_s: float = 0.0


class Removal(Struct, frozen=True):
    """What removing a source deleted."""

    source: Source
    documents_deleted: int
    vectors_deleted: int


class Backup(Struct, frozen=True):
    """A copy of a store in one file."""

    path: str
    size_bytes: int
    counts: Counts
    took_s: float


class Recovery(Struct, frozen=True):
    """What was brought back of a store that is damaged, or that has lost notes."""

    notes: int
    uncertain: int  # 0: what is not as it was written is not brought back
    sources: Sequence[str]  # names; the next sync reads their files
    moved_to: str | None  # where the damaged file is now
    took_s: float


# What `kb doctor` looks at, and what it may find wrong. A check that fails with an error is a finding, too.
CheckName = Literal["open", "storage", "sources", "files", "vectors", "provider", "machine"]
FaultName = CheckName | Literal[
    "store", "ghosts", "embedding", "model", "disk", "outside",  # around the store
    "integrity", "texts", "words", "counter", "index",  # damage
    "notes",  # that are kept a second time
    "chunks", "lost-vectors", "damaged-vectors", "superseded",  # rows that belong to nothing
]  # fmt: skip


class Finding(Struct, frozen=True):
    """Something that is wrong with a knowledge base, and what to do about it."""

    fault: FaultName  # a store's `repair` knows it by this name
    message: str
    hint: str
    is_repairable: bool = False  # whether it can be put right without losing anything


def partly_read(documents: Iterable[Document]) -> list[PartlyRead]:
    """Return those of the documents that have pages without text, each once."""
    pdfs = {document.path: document.details for document in documents if document.type == "pdf"}
    return [
        PartlyRead(path, pages, unread)
        for path, details in pdfs.items()
        if isinstance(pages := details.get("pages"), int)
        if isinstance(unread := details.get("pages_without_text"), int)
    ]


def sentence(part: PartlyRead) -> str:
    """Return a sentence that says how many pages of a document hold no text."""
    return f"{part.pages_without_text:,} of {part.pages:,} pages of {part.path} hold no text"
