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
from concord.embed.hashing import HashingEmbedder
from concord.extract.reader import SandboxedReader
from concord.index.documents import ReadLimits, SyncTools
from concord.index.sources import register
from concord.index.sync import sync
from concord.store.contract import Models, Store, VectorIndex, documents_at
from concord.store.json_file import MemoryStore
from concord.text.chunk import ChunkSize
from concord.types import Chunk, Extracted, Identity, Source, Vector
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


class FrailModels:
    """Models whose vectors can be down; what is asked of them while they are not is left to real ones."""

    def __init__(self, inner: Models) -> None:
        self.inner = inner
        self.is_down = False

    def index(self, identity: Identity) -> VectorIndex:
        return FrailIndex(self.inner.index(identity), self)

    def __getattr__(self, name: str) -> Any:
        self.ask()
        return getattr(self.inner, name)

    def ask(self) -> None:
        if self.is_down:
            raise BackendDown("the vector store does not answer", hint="start it")


class FrailIndex:
    """The vectors of such a model."""

    def __init__(self, inner: VectorIndex, models: FrailModels) -> None:
        self.inner = inner
        self.models = models

    def __getattr__(self, name: str) -> Any:
        self.models.ask()
        return getattr(self.inner, name)


class FrailStore(MemoryStore):
    """A store in memory whose vectors can be down."""

    last: FrailStore

    def __init__(self) -> None:
        super().__init__()
        self.frail = FrailModels(self.models)
        self.models = self.frail
        FrailStore.last = self


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
    pictures: Any = None  # a PictureReader, as far as it is asked

    def add(self, path: Path, **options: Any) -> SyncReport:
        return self.sync(register(path, self.store.catalog, **options))

    def sync(self, source: Source | None = None) -> SyncReport:
        """Sync a source, or the only one."""
        source = source or self.store.catalog.snapshot().sources[0]
        tools = SyncTools(
            store=self.store,
            reader=self.reader,
            tokenizer=lambda: self.embedder,
            embedder=lambda: self.embedder if self.embeds else None,
            limits=ReadLimits(self.max_bytes, self.size),
            progress=self.progress,
            pictures=lambda: self.pictures,
        )
        return sync(source, tools, lock_wait_s=30)

    def forget(self) -> None:
        """Begin a new record."""
        self.reader.names.clear()
        self.embedder.texts.clear()

    def paths(self) -> list[str]:
        return [document.path for document in self.store.catalog.documents()]

    def chunks(self, path: str) -> list[Chunk]:
        return self.store.catalog.chunks(self.document(path).id)

    def document(self, path: str) -> Any:
        (found,) = documents_at(self.store.catalog, path)
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
