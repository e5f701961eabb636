"""What a memory store holds, and what a filter lets through."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from msgspec import Struct, field

from concord.backends.bm25 import InvertedIndex
from concord.backends.columns import Columns
from concord.backends.globs import glob_matches
from concord.types import Access, Chunk, ChunkId, Document, Filter, Identity, Json, Scored, Source, Vector

_NANOSECONDS = 1e9


class Held(Struct):
    """What is kept of one model."""

    recipe: dict[str, Json] = field(default_factory=dict)
    was_active: bool = False
    vectors: dict[ChunkId, Vector] = field(default_factory=dict)


class Shelves(Struct):
    """All that is stored, shared by the parts of one store."""

    sources: dict[str, Source] = field(default_factory=dict)
    memos: dict[str, str] = field(default_factory=dict)  # source id → what sync wrote down about it
    documents: dict[str, Document] = field(default_factory=dict)
    chunks: dict[ChunkId, Chunk] = field(default_factory=dict)
    chunks_of: dict[str, list[ChunkId]] = field(default_factory=dict)
    indexed: dict[ChunkId, Columns] = field(default_factory=dict)
    words: InvertedIndex = field(default_factory=InvertedIndex)
    spaces: dict[Identity, Held] = field(default_factory=dict)
    active: Identity | None = None  # whose space searches use
    accesses: dict[str, Access] = field(default_factory=dict)  # document id → how often it was read
    last_chunk_id: ChunkId = 0
    generation: int = 0
    lock: threading.RLock = field(default_factory=threading.RLock)

    def chunk_ids(self, source_id: str | None) -> list[ChunkId]:
        """Return the chunks of a source, or all, in order of id."""
        return [
            chunk.id
            for chunk in sorted(self.chunks.values(), key=lambda chunk: chunk.id)
            if source_id in (None, self.documents[chunk.document_id].source_id)
        ]

    def activate(self, identity: Identity) -> None:
        """Let searches use a model's vectors."""
        self.active = identity
        self.spaces[identity].was_active = True

    def vectors(self) -> dict[ChunkId, Vector]:
        """Return the vectors of the active space."""
        return {} if self.active is None else self.spaces[self.active].vectors

    def allows(self, filter: Filter, chunk_id: ChunkId) -> bool:
        """Whether a filter lets a chunk through."""
        return allows(filter, self.documents[self.chunks[chunk_id].document_id])


def allows(filter: Filter, document: Document) -> bool:
    """Whether a filter lets a document through."""
    return (
        (filter.include_superseded or document.superseded_by is None)
        and set(filter.tags) <= set(document.tags)
        and filter.type in (None, document.type)
        and filter.source_id in (None, document.source_id)
        and (filter.path is None or glob_matches(filter.path, document.path))
        and (filter.since is None or document.mtime_ns >= filter.since * _NANOSECONDS)
        and (filter.until is None or document.mtime_ns <= filter.until * _NANOSECONDS)
    )


def best(found: Iterable[Scored], limit: int) -> list[Scored]:
    """Return the best, ties by chunk id."""
    return sorted(found, key=lambda scored: (-scored.score, scored.chunk_id))[: max(limit, 0)]
