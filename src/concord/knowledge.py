"""KnowledgeBase: what every face calls, and the only place where adapters are opened.

Nothing heavy is loaded before it is needed: the store opens with the first call, the model with the first
text that is embedded.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from concord import plugins
from concord.config import Settings, load_settings
from concord.errors import BadValue
from concord.types import (
    Answer,
    Degraded,
    Document,
    Passage,
    Removal,
    Request,
    Source,
    SourceSummary,
    Stats,
    SyncReport,
    Trust,
)
from concord.understand import find_source

if TYPE_CHECKING:
    from concord import ingest
    from concord.notes import Note
    from concord.protocols import Embedder, FileReader, Progress, Store, Strategy


def silent(stage: str, done: int, total: int | None) -> None:
    """Report progress to nobody."""


class Scope(NamedTuple):
    """A part of the knowledge base: a source, or what lies under a path of one."""

    source: str
    path: str | None


class KnowledgeBase:
    """Sources, documents and notes of one organisation, and their search."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or load_settings()
        self.org: str = self.settings["org"]
        self._lock = threading.RLock()  # several threads of a server may ask for the same part first

    @classmethod
    def open(cls, **overrides: Any) -> Self:
        """Open with settings given by key, dots written as double underscores: `open(org="team")`."""
        return cls(load_settings({key.replace("__", "."): value for key, value in overrides.items()}))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Free the store, the model and the worker process."""
        with self._lock:
            for part in ("store", "embedder", "reader"):
                opened = self.__dict__.pop(part, None)
                if opened is not None:
                    opened.close()

    # What is opened, once each.

    @cached_property
    def store(self) -> Store:
        """The store, by the scheme of its URL."""
        with self._lock:
            url = self.settings.store_url
            opened: Store = plugins.load("backends", url.partition(":")[0]).open(url, self.org)
            return opened

    @cached_property
    def embedder(self) -> Embedder | None:
        """The embedder; None when the provider is `none`."""
        provider = self.settings["embed.provider"]
        if provider == "none":
            return None
        with self._lock:
            options = {key: self.settings[key] for key in self.settings if key.startswith("embed.")}
            opened: Embedder = plugins.load("embedders", provider)(options, self.settings.paths.cache)
            return opened

    @cached_property
    def reader(self) -> FileReader:
        """What turns files into text."""
        with self._lock:
            opened: FileReader = plugins.load("readers", "files")()
            return opened

    @cached_property
    def _strategies(self) -> tuple[Strategy, ...]:
        built: list[Strategy] = [
            plugins.load("strategies", name)(self.store.lexical) for name in ("fts_exact", "fts_relaxed")
        ]
        return tuple(built)

    @cached_property
    def _semantic(self) -> Strategy | None:
        embedder = self.embedder
        if embedder is None:
            return None
        built: Strategy = plugins.load("strategies", "semantic")(self.store.vectors, embedder)
        return built

    # Sources.

    def add(
        self,
        path: str | os.PathLike[str],
        *,
        name: str | None = None,
        patterns: Sequence[str] = (),
        tags: Sequence[str] = (),
        trust: Trust = "trusted",
        embed: bool = True,
        progress: Progress = silent,
    ) -> SyncReport:
        """Index a folder or file; one that is known already is brought up to date, with what is given anew.

        Raises:
            NotFound: there is nothing at `path`.
            UsageError: it may not be indexed, or the name is taken.
        """
        from concord.sources import absolute_path, new_source

        given = absolute_path(path)
        known = self.store.catalog.sources()
        source = next((s for s in known if s.path == str(given)), None)
        if source is None:
            source = new_source(given, known, name=name, patterns=patterns, tags=tags, trust=trust)
        else:
            changes = {"name": name, "patterns": tuple(patterns), "tags": tuple(tags)}
            source = replace(source, **{key: value for key, value in changes.items() if value})
        self.store.catalog.put_source(source)
        return self._sync_one(source, embed=embed, progress=progress)

    def sync(
        self, names: Sequence[str] = (), *, embed: bool = True, progress: Progress = silent
    ) -> list[SyncReport]:
        """Bring sources up to date, all or those named; one whose folder is gone is reported, not raised.

        Raises:
            NotFound: no source of a given name.
        """
        known = self.store.catalog.sources()
        chosen = [find_source(name, known) for name in names] or known
        return [self._sync_or_report(source, embed=embed, progress=progress) for source in chosen]

    def ensure(
        self, path: str | os.PathLike[str], *, embed: bool = True, progress: Progress = silent
    ) -> Scope:
        """Index a path if it is new or changed, and return the scope to search it by.

        A path inside a source that exists is brought up to date with that source.
        """
        from concord.sources import absolute_path, holder

        given = absolute_path(path)
        source = holder(given, self.store.catalog.sources())
        if source is None:
            return Scope(self.add(given, embed=embed, progress=progress).source.id, None)
        self._sync_one(source, embed=embed, progress=progress)
        return Scope(source.id, _glob_under(source, given))

    def remove(self, name: str) -> Removal:
        """Delete a source: its vectors first, so that a vector store that is down leaves the rest whole.

        Raises:
            NotFound: no source of that name.
            BackendDown: the vectors cannot be deleted now; nothing has been, and it can be tried again.
        """
        source = find_source(name, self.store.catalog.sources())
        vectors = self.store.vectors.delete_source(source.id)
        documents = self.store.catalog.remove_source(source.id)
        return Removal(source, documents, vectors)

    def sources(self) -> list[SourceSummary]:
        """Return every source with its counts, by name."""
        catalog = self.store.catalog
        return [SourceSummary(source, catalog.counts(source.id)) for source in catalog.sources()]

    def documents(self, name: str | None = None) -> Iterator[Document]:
        """Yield documents by path, all or one source's."""
        source = find_source(name, self.store.catalog.sources()) if name else None
        yield from self.store.catalog.documents(source.id if source else None)

    # Searching and reading.

    def search(self, text: str, **options: Any) -> Answer:
        """Search. Options are the fields of `Request`: mode, top, tags, type, source, path, threshold …

        Raises:
            UsageError: the request cannot be carried out as asked.
        """
        return self.ask(Request(text, **options))

    def ask(self, request: Request) -> Answer:
        """Answer a request."""
        from concord.search import Tools, search

        strategies: list[Strategy] = list(self._strategies)
        absent: tuple[Degraded, ...] = ()
        if (request.mode or self.settings["search.mode"]) != "fts5":
            semantic, absent = self._meaning()
            strategies += semantic
        answer = search(request, Tools(self.store, strategies, self.settings, self.org))
        return replace(answer, degraded=(*answer.degraded, *absent))

    def get(self, reference: str, *, context: int = 0, whole: bool = False) -> Passage:
        """Read a citation, a document or a chunk.

        Raises:
            NotFound: nothing of that name is indexed.
        """
        from concord.reading import read_passage

        if context < 0:
            raise BadValue(f"cannot read {context} neighbours", hint="0 or more")
        return read_passage(reference, self.store.catalog, context=context, whole=whole)

    def note(self, note: Note, *, supersedes: str | None = None, embed: bool = True) -> Document:
        """Keep a note.

        Raises:
            BadValue: it is empty.
            NotFound: the document it supersedes does not exist.
        """
        from concord.ingest import embed_pending
        from concord.notes import save_note

        limits = self._limits()
        document = save_note(note, self.store, self._measure(), limits.chunk, supersedes=supersedes)
        if embed:
            embed_pending(self.store, self.embedder, silent, source_id=document.source_id)
        return document

    def stats(self) -> Stats:
        """Return the state of the knowledge base."""
        catalog = self.store.catalog
        counts = catalog.counts()
        path: Path | None = getattr(self.store, "path", None)
        return Stats(
            org=self.org,
            store=self.settings.store_url,
            size_bytes=path.stat().st_size if path and path.exists() else None,
            counts=counts,
            pending=counts.chunks - counts.vectors,
            identity=self.store.vectors.identity(),
            generation=catalog.generation(),
            types=dict(Counter(document.type for document in catalog.documents())),
        )

    def _sync_or_report(self, source: Source, *, embed: bool, progress: Progress) -> SyncReport:
        from concord.errors import Unreadable
        from concord.types import Failure

        if source.kind == "notes":
            return self._embed_notes(source, embed=embed, progress=progress)
        try:
            return self._sync_one(source, embed=embed, progress=progress)
        except Unreadable as fault:
            return SyncReport(source, failed=(Failure(source.path or source.name, fault.message),))

    def _sync_one(self, source: Source, *, embed: bool, progress: Progress) -> SyncReport:
        from concord import ingest

        tools = ingest.Tools(
            store=self.store,
            reader=self.reader,
            measure=self._measure(),
            embedder=self.embedder if embed else None,
            limits=self._limits(),
            progress=progress,
        )
        return ingest.sync(source, tools, lock_wait_s=self.settings["sync.lock_wait_s"])

    def _embed_notes(self, source: Source, *, embed: bool, progress: Progress) -> SyncReport:
        from concord.ingest import embed_pending

        done = embed_pending(self.store, self.embedder if embed else None, progress, source_id=source.id)
        return SyncReport(
            source,
            unchanged=self.store.catalog.counts(source.id).documents,
            embedded=done.embedded,
            reused=done.reused,
            pending=done.pending,
            degraded=done.degraded,
            generation=self.store.catalog.generation(),
        )

    def _limits(self) -> ingest.Limits:
        from concord.ingest import Limits
        from concord.text.chunk import ChunkSize

        target = self.settings["ingest.chunk_tokens"]
        size = ChunkSize(
            target=target, maximum=target * 7 // 5, overlap=self.settings["ingest.chunk_overlap"]
        )
        return Limits(self.settings["ingest.max_bytes"], size)

    def _measure(self) -> Embedder:
        """Return whose tokens chunks are measured in; words stand in where no model is configured."""
        embedder = self.embedder
        if embedder is not None:
            return embedder
        stand_in: Embedder = plugins.load("embedders", "hashing")({}, self.settings.paths.cache)
        return stand_in

    def _meaning(self) -> tuple[list[Strategy], tuple[Degraded, ...]]:
        """Return the semantic strategy, or why it cannot vote."""
        identity = self.store.vectors.identity()
        embedder = self.embedder
        if embedder is None:
            return [], (Degraded("semantic", "no embedding provider is configured"),)
        if identity is None:
            return [], (Degraded("semantic", "nothing has been embedded yet: `kb sync`"),)
        if identity != embedder.identity:
            mine, theirs = embedder.identity, identity
            reason = (
                f"the index was built with {theirs.provider}/{theirs.model}, not {mine.provider}/{mine.model}"
            )
            return [], (Degraded("semantic", reason),)
        return ([self._semantic] if self._semantic else []), ()


def _glob_under(source: Source, path: Path) -> str | None:
    """Return the path filter for a file or folder inside a source; None for all of it."""
    if source.path is None or source.kind == "file" or str(path) == source.path:
        return None
    inside = f"{source.prefix}/{path.relative_to(source.path).as_posix()}"
    escaped = "".join(f"[{c}]" if c in "*?[" else c for c in inside)
    return escaped + "/**" if path.is_dir() else escaped
