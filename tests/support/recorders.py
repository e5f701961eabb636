"""Adapters that keep a record or fail when they are told to, and a bench to work at with them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from concord.core import plugins
from concord.core.config import Paths
from concord.core.errors import BackendDown, EmbedderDown
from concord.core.protocols import FileBeingRead, FileReader, Progress
from concord.core.reports import SyncReport
from concord.core.storage import Catalog, EmbeddingCache, Journal, LexicalIndex, Store
from concord.core.vector_storage import VectorIndex, VectorSpaces
from concord.embed.hashing import HashingEmbedder
from concord.extract.reader import SandboxedReader
from concord.index.reading import ReadLimits
from concord.index.sources import register
from concord.index.sync import SyncTools, sync
from concord.store.old_names import OldMemoryStore
from concord.text.chunk import ChunkSize
from concord.types import Chunk, Extracted, Glance, Source, Vector
from support.folders import NOWHERE

SIZE = ChunkSize.for_target(40, overlap=0)
A_DAY = 86_400
MAX_BYTES = 1_000_000


class RecordingReader:
    """The real reader, which remembers what it was asked to read."""

    def __init__(self, inner: FileReader | None = None) -> None:
        self.inner = inner or SandboxedReader()
        self.names: list[str] = []
        self.during: Callable[[str], None] = lambda name: None

    def begin(self, data: bytes, name: str) -> FileBeingRead:
        self.names.append(name)
        self.during(name)
        return self.inner.begin(data, name)

    def read(self, data: bytes, name: str) -> Extracted:
        return self.begin(data, name).result()

    def close(self) -> None:
        self.inner.close()


class RecordingEmbedder(HashingEmbedder):
    """The hashing embedder, which remembers what it embedded and breaks down when it is told to."""

    def __init__(self, options: Mapping[str, Any] | None = None, paths: Paths = NOWHERE) -> None:
        super().__init__(options or {}, paths)
        self.texts: list[str] = []
        self.calls: list[int] = []
        self.fails_after: int | None = None  # texts
        self.fault: BaseException = EmbedderDown("the provider does not answer", hint="start it")
        self.before: Callable[[Sequence[str]], None] = lambda texts: None

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        self.before(texts)
        if self.fails_after is not None and len(self.texts) + len(texts) > self.fails_after:
            raise self.fault
        self.texts += texts
        self.calls.append(len(texts))
        return super().embed_documents(texts)


class FrailVectors:
    """A vector index that can be down; everything else it leaves to a real one."""

    def __init__(self, inner: VectorIndex) -> None:
        self.inner = inner
        self.is_down = False

    def __getattr__(self, name: str) -> Any:
        if self.is_down:
            raise BackendDown("the vector store does not answer", hint="start it")
        return getattr(self.inner, name)


class FrailSpaces:
    """Spaces that are down when a vector index is."""

    def __init__(self, inner: VectorSpaces, vectors: FrailVectors) -> None:
        self.inner = inner
        self.vectors = vectors

    def __getattr__(self, name: str) -> Any:
        if self.vectors.is_down:
            raise BackendDown("the vector store does not answer", hint="start it")
        return getattr(self.inner, name)


@dataclass
class FrailStore:
    """A store in memory whose vectors can be down."""

    catalog: Catalog
    lexical: LexicalIndex
    vectors: Any
    spaces: Any
    cache: EmbeddingCache
    journal: Journal
    ledger: Any
    path: None = None
    last: Any = None

    def glance(self) -> Glance:
        return Glance(self.catalog.generation(), self.catalog.sources(), self.spaces.active())

    @classmethod
    def open(cls, url: str, org: str, options: Mapping[str, Any] | None = None) -> FrailStore:
        whole = OldMemoryStore.open(url, org)
        vectors = FrailVectors(whole.vectors)
        made = cls(
            whole.catalog,
            whole.lexical,
            vectors,
            FrailSpaces(whole.spaces, vectors),
            whole.cache,
            whole.journal,
            whole.ledger,
        )
        cls.last = made
        return made

    def tend(self, progress: Progress) -> None:
        """Do nothing."""

    def index_state(self) -> None:
        """Return nothing: each vector is compared."""

    def close(self) -> None:
        """Do nothing."""


def opened(url: str) -> Store:
    """Open a store by its URL."""
    store: Store = plugins.load("backends", url.partition(":")[0]).open(url, "default")
    return store


@dataclass
class SyncBench:
    """A store, a reader and an embedder, to sync folders with."""

    store: Store
    reader: RecordingReader = field(default_factory=RecordingReader)
    embedder: RecordingEmbedder = field(default_factory=RecordingEmbedder)
    embeds: bool = True
    size: ChunkSize = SIZE
    max_bytes: int = MAX_BYTES
    progress: Progress = lambda stage, done, total: None

    def add(self, path: Path, **options: Any) -> SyncReport:
        return self.sync(register(path, self.store.catalog, **options))

    def sync(self, source: Source | None = None, changed: Sequence[str] = ()) -> SyncReport:
        """Sync a source, or the only one; all of it, or what changed."""
        source = source or self.store.catalog.sources()[0]
        tools = SyncTools(
            store=self.store,
            reader=self.reader,
            tokenizer=lambda: self.embedder,
            embedder=lambda: self.embedder if self.embeds else None,
            limits=ReadLimits(self.max_bytes, self.size),
            progress=self.progress,
        )
        return sync(source, tools, lock_wait_s=30, changed=changed)

    def forget(self) -> None:
        """Begin a new record."""
        self.reader.names.clear()
        self.embedder.texts.clear()

    def paths(self) -> list[str]:
        return [document.path for document in self.store.catalog.documents()]

    def chunks(self, path: str) -> list[Chunk]:
        return self.store.catalog.chunks_of(self.document(path).id)

    def document(self, path: str) -> Any:
        (found,) = self.store.catalog.documents_at(path)
        return found


class Did(NamedTuple):
    """What a report says was done to files."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    renamed: int = 0
    unchanged: int = 0
    failed: int = 0


def did(report: SyncReport) -> Did:
    counts = (report.added, report.changed, report.removed, report.renamed, report.unchanged)
    return Did(*counts, len(report.failed))


def write(path: Path, text: str | bytes, *, days_old: float = 1) -> Path:
    """Write a file that was last saved some time ago, so that nothing about it is in doubt."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    age(path, days_old)
    return path


def age(path: Path, days_old: float = 1) -> None:
    """Set back when a file was last saved."""
    when = path.stat().st_ctime - days_old * A_DAY
    os.utime(path, (when, when))
