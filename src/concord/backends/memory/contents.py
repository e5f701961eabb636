"""What a memory store holds, who may look and who may change it, and what a filter lets through."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from msgspec import Struct, field
from msgspec.structs import replace

from concord.backends.memory.bm25 import InvertedIndex
from concord.core.errors import StoreBusy
from concord.store.birthplaces import is_copied
from concord.store.columns import Columns
from concord.store.globs import glob_matches
from concord.types import (
    Access,
    Chunk,
    ChunkId,
    Document,
    Feedback,
    Filter,
    Home,
    Identity,
    Json,
    Scored,
    Source,
    Vector,
)

_NANOSECONDS = 1e9


class Held(Struct):
    """What is kept of one model."""

    recipe: dict[str, Json] = field(default_factory=dict)
    was_active: bool = False
    vectors: dict[ChunkId, Vector] = field(default_factory=dict)  # empty ones are kept outside


class Contents(Struct):
    """All that is stored, shared by the parts of one store."""

    sources: dict[str, Source] = field(default_factory=dict)
    memos: dict[str, str] = field(default_factory=dict)  # source id → what sync wrote down about it
    documents: dict[str, Document] = field(default_factory=dict)
    chunks: dict[ChunkId, Chunk] = field(default_factory=dict)
    chunks_of: dict[str, list[ChunkId]] = field(default_factory=dict)
    indexed: dict[ChunkId, Columns] = field(default_factory=dict)
    words: InvertedIndex = field(default_factory=InvertedIndex)
    names: dict[ChunkId, frozenset[str]] = field(default_factory=dict)  # what each chunk is called
    named: defaultdict[str, set[ChunkId]] = field(default_factory=lambda: defaultdict(set))  # and who is so
    spaces: dict[Identity, Held] = field(default_factory=dict)
    active: Identity | None = None  # whose space searches use
    cached: dict[tuple[Identity, bytes], Vector] = field(default_factory=dict)  # least recently used first
    cache_hits: int = 0
    cache_misses: int = 0
    home: str = ""  # where vectors are kept when not here
    key: str = ""
    birthplace: str = ""  # of the key
    left: list[Home] = field(default_factory=list)  # where vectors were kept before, and still lie
    unsettled: dict[int, ChunkId] = field(default_factory=dict)  # turn → what changed and was not told there
    last_turn: int = 0
    accesses: dict[str, Access] = field(default_factory=dict)  # document id → how often it was read
    feedback: dict[tuple[str, str], Feedback] = field(default_factory=dict)  # query and document id → opinion
    last_chunk_id: ChunkId = 0
    generation: int = 0
    lock: threading.RLock = field(default_factory=threading.RLock)
    turns: defaultdict[str, threading.Lock] = field(default_factory=lambda: defaultdict(threading.Lock))

    @contextmanager
    def reading(self) -> Iterator[Contents]:
        """Let nobody change anything during the block."""
        with self.lock:
            yield self

    @contextmanager
    def changing(self) -> Iterator[Contents]:
        """Let nobody else read or change anything during the block."""
        with self.lock:
            yield self

    @contextmanager
    def exclusive(self, name: str, doing: str, wait_s: float) -> Iterator[None]:
        """Hold the right to long work of this name; whoever is refused is told what its holder is doing.

        Raises:
            StoreBusy: somebody else holds it for longer than `wait_s`.
        """
        turn = self.turns[name]
        if not turn.acquire(timeout=wait_s):
            raise StoreBusy(f"another thread is {doing}", hint="wait for it to finish")
        try:
            yield
        finally:
            turn.release()

    def disturb(self, chunk_id: ChunkId) -> None:
        """Take note that a chunk was deleted or is no longer where it was, for a vector store outside."""
        if self.home:
            self.last_turn += 1
            self.unsettled[self.last_turn] = chunk_id

    def here(self) -> str:
        """Return what tells where this is from wherever it is copied to: memory is not."""
        return ""

    def kept_at(self) -> Home:
        """Return where vectors are kept."""
        return Home(self.home, self.key, bool(self.home) and is_copied(self.birthplace, self.here()))

    def move_home(self, url: str) -> None:
        """Forget all vectors, in every space, and keep those that come in another home."""
        import secrets  # late: hardly anybody does

        old = self.kept_at()
        if url != old.url or old.is_anothers:
            if old.url and (self.unsettled or any(held.vectors for held in self.spaces.values())):
                self.left.append(old)
            if old.is_anothers:
                self.left = [replace(one, is_anothers=True) for one in self.left]
            self.key = secrets.token_hex(8) if url else self.key
        self.birthplace = self.here()
        for held in self.spaces.values():
            held.vectors.clear()
        self.unsettled.clear()
        self.home = url

    def call(self, chunk_id: ChunkId, names: Iterable[str]) -> None:
        """Let a chunk be called by these names, and by no others; by none when it is deleted."""
        before, now = self.names.pop(chunk_id, frozenset()), frozenset(names)
        for token in before - now:
            self.named[token].discard(chunk_id)
        for token in now - before:
            self.named[token].add(chunk_id)
        if now:
            self.names[chunk_id] = now

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
