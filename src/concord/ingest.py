"""Ingest, top to bottom: walk → compare → read → extract and clean → chunk → catalog → embed.

A document is searchable by words the moment it is stored, and by meaning once its chunks are embedded.
Every step commits by itself, so an interrupted run loses nothing and the next one goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from concord.errors import ExtractionError, NotIndexable, Unavailable, Unreadable
from concord.protocols import Embedder, FileReader, Progress, Store
from concord.text.assemble import embeddable_text
from concord.text.chunk import ChunkSize, chunk
from concord.types import Document, Extracted, Failure, FileState, Pending, Source, SyncReport, Vector
from concord.walk import Found, Skipped, walk

EMBED_WINDOW = 2048  # chunks sorted by length together, so that a batch wastes little on padding
EMBED_BATCH = 64  # chunks embedded and committed together: what an interruption loses at most
RACY_NS = 2_000_000_000  # a file saved this shortly before it was read may be saved again with the same time
NEVER = -1  # stored as the modification time of such a file, so that the next sync looks inside


@dataclass(frozen=True, slots=True)
class Limits:
    """How files are read and cut."""

    max_bytes: int
    chunk: ChunkSize


class Tools(NamedTuple):
    """What ingest works with; `embedder` is None when nothing is to be embedded."""

    store: Store
    reader: FileReader
    measure: Embedder  # whose tokens chunks are measured in
    embedder: Embedder | None
    limits: Limits
    progress: Progress


def sync(source: Source, tools: Tools, *, lock_wait_s: float) -> SyncReport:
    """Bring the index of one source up to date with its files.

    Raises:
        Unreadable: the source's folder or file is not there any more; its index is left as it is.
        StoreBusy: another process has been syncing the same source for too long.
    """
    started = time.monotonic()
    with tools.store.catalog.sync_lock(source.id, wait_s=lock_wait_s):
        run = _Run(source, tools)
        run.compare_files()
        run.index_new_files()
        run.delete_missing_files()
        synced = replace(source, synced_at=time.time())
        tools.store.catalog.put_source(synced)
        embedding = embed_pending(tools.store, tools.embedder, tools.progress, source_id=source.id)
    return replace(
        run.report,
        source=synced,
        embedded=embedding.embedded,
        reused=embedding.reused,
        pending=embedding.pending,
        degraded=embedding.degraded,
        generation=tools.store.catalog.generation(),
        took_s=time.monotonic() - started,
    )


class _Run:
    """One sync of one source: what is known of it and what has been done so far."""

    def __init__(self, source: Source, tools: Tools) -> None:
        if source.path is None or not os.path.lexists(source.path):
            raise Unreadable(
                f"{source.path or source.name} is not there any more",
                hint=f"put it back, or `kb remove {source.name}`; its index is kept until then",
            )
        self.source = source
        self.tools = tools
        self.known = tools.store.catalog.file_states(source.id)
        self.first_time = not self.known
        self.new: list[Found] = []
        self.unreadable_folders: list[str] = []
        self.report = SyncReport(source)
        self.skipped: Counter[str] = Counter()
        self.failed: list[Failure] = []
        self.done = 0

    def compare_files(self) -> None:
        """Walk the source; unchanged files cost one stat, changed ones are indexed at once.

        New files of a source that already has documents wait until the walk is over: they may be old ones
        under another name, and that shows only when it is known which names are gone.
        """
        root = Path(self.source.path or "")
        for found in walk(root, self.source.patterns, max_bytes=self.tools.limits.max_bytes):
            if isinstance(found, Skipped):
                self._skip(found)
                continue
            state = self.known.pop(document_path(self.source, found.relative), None)
            if state is None and self.first_time:
                self._index(found, None)
            elif state is None:
                self.new.append(found)
            elif (state.size, state.mtime_ns) == (found.size, found.mtime_ns):
                self._count(unchanged=1)
            else:
                self._index(found, state)

    def index_new_files(self) -> None:
        """Index what is new, unless it is a known document under a new name."""
        gone = {state.file_hash: state for state in self.known.values() if state.file_hash}
        for found in self.new:
            self._index(found, None, gone)

    def delete_missing_files(self) -> None:
        """Delete the documents whose files are gone, but none below a folder that could not be read."""
        hidden = tuple(self.unreadable_folders)
        missing = [s.document_id for s in self.known.values() if not (hidden and s.path.startswith(hidden))]
        if missing:
            self.tools.store.catalog.delete_documents(missing)
            self._count(removed=len(missing))
        self.report = replace(self.report, skipped=dict(self.skipped), failed=tuple(self.failed))

    def _index(self, found: Found, state: FileState | None, gone: dict[str, FileState] | None = None) -> None:
        path = document_path(self.source, found.relative)
        try:
            data = read_unchanging(found)
            file_hash = hashlib.sha256(data).hexdigest()
            if state and state.file_hash == file_hash:
                self._restat(state, found)
            elif gone and (old := gone.pop(file_hash, None)):
                self._rename(old, path, found)
            else:
                self._store(path, found, data, file_hash, state)
        except NotIndexable as nothing:
            self.skipped[nothing.message] += 1
            if state:  # it was text once
                self.known[path] = state
        except ExtractionError as fault:
            self.failed.append(Failure(path, fault.message))
        self._advance()

    def _store(self, path: str, found: Found, data: bytes, file_hash: str, state: FileState | None) -> None:
        extracted = self.tools.reader.read(data, found.path.name)
        document = described(self.source, path, found, extracted, file_hash)
        if state and (old := self.tools.store.catalog.document(state.document_id)):
            document = replace(document, id=old.id, superseded_by=old.superseded_by)
        pieces = chunk(extracted, self.tools.measure.token_starts, self.tools.limits.chunk)
        if not pieces:
            raise NotIndexable("no text")
        self.tools.store.catalog.put_document(document, pieces)
        self._count(**{"changed" if state else "added": 1}, chunks=len(pieces))

    def _restat(self, state: FileState, found: Found) -> None:
        document = self.tools.store.catalog.document(state.document_id)
        if document:
            self.tools.store.catalog.update_document(
                replace(document, size=found.size, mtime_ns=settled_mtime(found))
            )
        self._count(unchanged=1)

    def _rename(self, old: FileState, path: str, found: Found) -> None:
        document = self.tools.store.catalog.document(old.document_id)
        if document is None:
            return
        title = found.path.stem if document.title == Path(old.path).stem else document.title
        self.tools.store.catalog.update_document(
            replace(document, path=path, title=title, size=found.size, mtime_ns=settled_mtime(found))
        )
        self.known.pop(old.path, None)
        self._count(renamed=1)

    def _skip(self, skipped: Skipped) -> None:
        if skipped.failed:
            path = document_path(self.source, skipped.relative)
            self.failed.append(Failure(path, skipped.reason))
            self.unreadable_folders.append(path + "/")
            self.known.pop(path, None)
        else:
            self.skipped[skipped.reason] += 1

    def _count(self, **counts: int) -> None:
        self.report = replace(self.report, **{k: getattr(self.report, k) + n for k, n in counts.items()})

    def _advance(self) -> None:
        self.done += 1
        self.tools.progress("index", self.done, None)


def document_path(source: Source, relative: str) -> str:
    """Return the citation path of a file of a source."""
    return source.prefix if source.kind == "file" else f"{source.prefix}/{relative}"


def read_unchanging(found: Found) -> bytes:
    """Return a file's bytes, read while nobody was writing it.

    Raises:
        NotIndexable: it is empty.
        Unreadable: it is gone, forbidden, or changed each time it was read.
    """
    try:
        for _ in range(3):
            with open(found.path, "rb") as file:
                before = os.fstat(file.fileno())
                data = file.read()
                after = os.fstat(file.fileno())
            if (before.st_size, before.st_mtime_ns) == (len(data), after.st_mtime_ns):
                break
        else:
            raise Unreadable("changed while it was being read", hint="the next sync tries again")
    except OSError as fault:
        raise Unreadable(
            os.strerror(fault.errno or 0).lower(), hint="check the file's permissions"
        ) from fault
    if not data:
        raise NotIndexable("empty")
    return data


def settled_mtime(found: Found) -> int:
    """Return the modification time to remember; NEVER while it may still hide another save."""
    return NEVER if time.time_ns() - found.mtime_ns < RACY_NS else found.mtime_ns


def described(source: Source, path: str, found: Found, extracted: Extracted, file_hash: str) -> Document:
    """Return the document for a file, under a new id."""
    return Document(
        id=secrets.token_hex(8),
        source_id=source.id,
        path=path,
        type=extracted.type,
        title=extracted.title or found.path.stem,
        tags=tuple(dict.fromkeys((*source.tags, *extracted.tags))),
        details=extracted.details,
        file_hash=file_hash,
        content_hash=hashlib.sha256(extracted.text.encode("utf-8", "replace")).hexdigest(),
        size=found.size,
        mtime_ns=settled_mtime(found),
        indexed_at=time.time(),
    )


class Embedding(NamedTuple):
    """What embedding the waiting chunks came to."""

    embedded: int = 0
    reused: int = 0
    pending: int = 0
    degraded: str | None = None


def embed_pending(
    store: Store, embedder: Embedder | None, progress: Progress, *, source_id: str | None = None
) -> Embedding:
    """Give a vector to every chunk that has none; a provider that is down leaves the rest for next time."""
    counts = store.catalog.counts(source_id)
    waiting = counts.chunks - counts.vectors
    if embedder is None or waiting <= 0:
        return Embedding(pending=waiting)
    done = Embedding()
    try:
        store.vectors.prepare(embedder.identity)
        for batch in _batches(store, source_id):
            made, reused = _embed(batch, store, embedder)
            done = Embedding(done.embedded + made, done.reused + reused)
            progress("embed", done.embedded + done.reused, waiting)
    except Unavailable as fault:
        done = done._replace(degraded=fault.message)
    return done._replace(pending=max(0, waiting - done.embedded - done.reused))


def _batches(store: Store, source_id: str | None) -> Iterator[list[tuple[Pending, str]]]:
    """Yield the waiting chunks with their embeddable texts, texts of like length together."""
    after = 0
    while window := store.vectors.pending(after, EMBED_WINDOW, source_id):
        after = window[-1].chunk_id
        texts = [
            (waiting, embeddable_text(waiting.title, waiting.heading, waiting.text)) for waiting in window
        ]
        texts.sort(key=lambda pair: len(pair[1]))
        for start in range(0, len(texts), EMBED_BATCH):
            yield texts[start : start + EMBED_BATCH]


def _embed(batch: Sequence[tuple[Pending, str]], store: Store, embedder: Embedder) -> tuple[int, int]:
    """Store a vector for each of the batch; return how many were made and how many were known."""
    keys = {
        waiting.chunk_id: hashlib.sha256(text.encode("utf-8", "replace")).digest() for waiting, text in batch
    }
    known = store.cache.get(embedder.identity, list(set(keys.values())))
    fresh = {keys[waiting.chunk_id]: text for waiting, text in batch if keys[waiting.chunk_id] not in known}
    made = dict(zip(fresh, embedder.embed_documents(list(fresh.values())), strict=True)) if fresh else {}
    if made:
        store.cache.put(embedder.identity, made)
    vectors: dict[bytes, Vector] = {**known, **made}
    store.vectors.put((chunk_id, vectors[key]) for chunk_id, key in keys.items())
    return len(made), len(batch) - len(made)
