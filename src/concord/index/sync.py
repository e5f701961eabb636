"""Ingest, top to bottom: walk → compare → read → extract and clean → chunk → catalog → embed.

A document is searchable by words the moment it is stored, and by meaning once its chunks are embedded.
Documents are stored and embedded in small groups, each of which commits by itself: an interrupted run loses
the group it was at, and the next one goes on from there.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from concord.core.batches import batched
from concord.core.errors import (
    BadValue,
    ExtractionError,
    MissingExtra,
    NotIndexable,
    UnknownName,
)
from concord.core.protocols import Embedder, FileReader, PictureReader, Progress
from concord.core.reports import Failure, SyncReport
from concord.files.opening import read_unchanging
from concord.files.state import (
    Memo,
    Textless,
    check_disk,
    is_as_indexed,
    mount_point,
    read_memo,
    readers,
    write_memo,
)
from concord.files.walk import Found, Skipped, count_unlike, walk_source
from concord.index.batch import UPDATED_AT_ONCE, Group, Prepared, Tally
from concord.index.embedding import EmbeddingReport, added, embed_pending, with_embedding
from concord.index.links import find_mentions
from concord.index.lock import begin_anew, removed_meanwhile, sync_lock, until_removed
from concord.index.pictures import PictureTools, may_show_text, read_pictures
from concord.index.reading import ReadFile, Reading, ReadLimits, new_document, renamed_title
from concord.index.supersession import release_superseded, settle_supersession
from concord.store.contract import Catalog, Select, Store, document_by_id
from concord.text.chunk import chunk
from concord.text.document import declares
from concord.types import Extracted, FileState, Filter, Piece, Source

SLOW_BYTES = 1 << 20  # a larger file may take seconds to read: what was read before it is stored first
BAD_FILE = (ExtractionError, MissingExtra, UnknownName, BadValue)  # faults of one file: the run goes on


class SyncTools(NamedTuple):
    """What ingest works with. Embedders are opened when a file needs one: most syncs find nothing to do."""

    store: Store
    reader: FileReader
    tokenizer: Callable[[], Embedder]  # whose tokens chunks are measured in
    embedder: Callable[[], Embedder | None]  # None when nothing is to be embedded
    limits: ReadLimits
    progress: Progress
    pictures: Callable[[], PictureReader | None] = lambda: None  # None when nobody reads them


def sync(source: Source, tools: SyncTools, *, lock_wait_s: float) -> SyncReport:
    """Bring the index of one source up to date with its files.

    Raises:
        Unreadable: the source's folder or file is gone or cannot be read; no document is removed.
        NotFound: the source itself was removed before its turn came.
        StoreBusy: another process has been syncing the same source for too long.
    """
    started = time.monotonic()
    with sync_lock(source.id, tools.store, tools.progress, lock_wait_s):
        source = _as_stored(source, tools.store.catalog)
        begin_anew(source.id, tools.store.catalog)
        tools = tools._replace(progress=until_removed(source, tools.store.catalog, tools.progress))
        run = _Run(source, tools)
        run.begin()
        try:
            run.compare_files()
            run.index_new_files()
        finally:
            if run.reading:  # after a fault that ends the run
                run.reading.file.abandon()
        run.store_group()
        run.delete_missing_files()
        run.apply_supersession()
        find_mentions(tools.store, tools.progress)
        run.report_unmatched_patterns()
        run.remember_for_next_sync()
        synced = replace(_as_stored(source, tools.store.catalog), synced_at=time.time())
        tools.store.catalog.put_source(synced)
        embedding = _embed_source(source, tools)
        if run.read_pictures():
            embedding = added(embedding, _embed_source(source, tools))
    return replace(
        with_embedding(run.tally.report(synced), embedding),
        generation=tools.store.catalog.snapshot().generation,
        took_s=time.monotonic() - started,
    )


def _as_stored(source: Source, catalog: Catalog) -> Source:
    """Return a source as it is stored now: somebody may have renamed or retagged it since it was read."""
    for stored in catalog.snapshot().sources:
        if stored.id == source.id:
            return stored
    raise removed_meanwhile(source)


def _embed_source(source: Source, tools: SyncTools) -> EmbeddingReport:
    tools.store.outbox.own()  # before counting: in a copy of a store no vector has been sent anywhere yet
    counts = tools.store.catalog.count(source.id)
    if counts.chunks == counts.vectors:
        return EmbeddingReport()
    return embed_pending(tools.store, tools.embedder(), tools.progress, source_id=source.id)


_New = tuple[ReadFile, bytes]  # a new or changed file, and its content
_Gone = dict[tuple[str, str], FileState]  # hash and extension of files that are gone → their documents


class _Run:
    """One sync of one source: what is known of it, and what is still to be done."""

    def __init__(self, source: Source, tools: SyncTools) -> None:
        self.source = source
        self.tools = tools
        self.entries: Iterable[Found | Skipped] = ()
        self.known: dict[str, FileState] = {}  # indexed files by path; met ones are taken out
        self.is_first = False  # nothing of the source is indexed yet
        self.memo = read_memo(tools.store.catalog.sync_state(source.id))
        self.mount = self.memo.mount  # where its disk is mounted
        self.textless = Textless(self.memo)
        self.new: list[Found] = []  # files that wait until it is known which others are gone
        self.unreadable_folders: list[str] = []
        self.shown: list[Found] = []  # files that may show text which they do not hold
        self.reading: Reading | None = None  # the file that is read while the one before it is chunked
        self.group = Group()  # what was read, and is to be stored together
        self.tally = Tally()
        self.done = 0
        self.total: int | None = None  # files to index, as soon as it is known

    def begin(self) -> None:
        """Prepare to look at all files."""
        self.entries = walk_source(self.source, self.tools.limits.max_bytes)
        self.mount = mount_point(self.source)
        self.known = self.tools.store.catalog.file_states(self.source.id)
        check_disk(self.source, self.known, self.memo)
        self.is_first = not self.known
        self.save_chunking()
        self.add_source_tags()

    def save_chunking(self) -> None:
        """Write down how files are chunked from now on, before any is read: a run may be interrupted."""
        limits = self.tools.limits
        if not limits.is_met_by(self.memo.chunking):
            since = time.time() if self.known else 0.0
            self._put_memo(replace(self.memo, chunking=limits.chunking_key(), chunking_since=since))

    def add_source_tags(self) -> None:
        """Give the source's tags to documents that were stored before it had them."""
        wanted, catalog = self.source.tags, self.tools.store.catalog
        tagged = Filter(tags=wanted, source_id=self.source.id, include_superseded=True)
        if not wanted or catalog.count_documents(tagged) == len(self.known):
            return
        changed = (
            replace(document, tags=tuple(dict.fromkeys((*wanted, *document.tags))))
            for document in catalog.documents(Select(source_id=self.source.id))
            if not set(wanted) <= set(document.tags)
        )
        for group in batched(changed, UPDATED_AT_ONCE):
            catalog.update_documents(group)

    def compare_files(self) -> None:
        """Walk the source: an unchanged file costs one stat, a changed one is indexed at once.

        New files of a source that already has documents wait until the walk is over: they may be indexed
        files under a new name, which shows only once it is known which names are gone.
        """
        if self.is_first:
            self.entries = list(self.entries)
            self.total = sum(isinstance(entry, Found) for entry in self.entries)
        for found in self.entries:
            if isinstance(found, Skipped):
                self._skip(found)
                continue
            state = self.known.pop(self.source.path_of(found.relative), None)
            if state and self._has_current_chunks(state) and is_as_indexed(found, state):
                self.tally.counts["unchanged"] += 1
                self.shown += [found] if found.relative in self.memo.scans else []
            elif state is None and (reason := self.textless.reason(found)):
                self._leave_out_textless(found, reason)
            elif state or self.is_first:
                self._index(found, state)
            else:
                self.new.append(found)
        self.finish_reading()

    def index_new_files(self) -> None:
        """Index new files; one with the content of a file that is gone is that file, renamed."""
        gone = {(state.file_hash, Path(state.path).suffix): state for state in self._missing()}
        if self.new:
            self.total = self.done + len(self.new)
        for found in self.new:
            self._index(found, None, gone)
        self.finish_reading()

    def finish_reading(self) -> None:
        """Wait for the file that is being read, if there is one, and chunk it."""
        if received := self._received():
            self._prepare(*received)

    def store_group(self) -> None:
        """Store the documents that were read since the last group."""
        self.tally.add_stored(self.group.store(self.tools.store.catalog))

    def delete_missing_files(self) -> None:
        """Delete the documents whose files are gone."""
        missing = [state.document_id for state in self._missing()]
        if missing:
            if self.memo.declares:
                release_superseded(self.source, self.tools.store.catalog, missing)
            self.tools.store.catalog.delete_documents(missing)
            self.tally.counts["removed"] += len(missing)

    def apply_supersession(self) -> None:
        """Mark documents as superseded where a file says which other file has replaced it."""
        if self.memo.declares and not settle_supersession(self.source, self.tools.store.catalog):
            self._put_memo(replace(self.memo, declares=False))

    def report_unmatched_patterns(self) -> None:
        """If the source's patterns match no file at all, report how many they leave out: probably a typo."""
        patterns, catalog = self.source.patterns, self.tools.store.catalog
        if not patterns or catalog.count(self.source.id).documents:
            return
        unlike = count_unlike(Path(self.source.path or ""), patterns, self.tools.limits.max_bytes)
        if unlike:
            self.tally.skipped[f"not like {', '.join(patterns)}"] = unlike

    def remember_for_next_sync(self) -> None:
        """Write down what the next sync needs to know of this one."""
        memo = Memo(
            self.mount,
            readers(),
            self.textless.met,
            self.tools.limits.chunking_key(),
            scans=[found.relative for found in self.shown],
            declares=self.memo.declares,
        )
        if memo != self.memo:
            self._put_memo(memo)

    def read_pictures(self) -> bool:
        """Read what scans and pictures show, if somebody can; return whether anything was looked at."""
        pictures = self.tools.pictures() if self.shown else None
        if pictures is None:
            return False
        tools = PictureTools(
            pictures, self.tools.store.catalog, self.tools.tokenizer(), self.tools.limits, self.tools.progress
        )
        read_pictures(self.source, self.shown, tools, self.tally, self.textless)
        self.shown = []
        self.remember_for_next_sync()
        return True

    def _put_memo(self, memo: Memo) -> None:
        self.memo = memo
        self.tools.store.catalog.put_sync_state(self.source.id, write_memo(memo))

    def _has_current_chunks(self, state: FileState) -> bool:
        """Whether a document was chunked as it would be now."""
        return state.indexed_at >= self.memo.chunking_since

    def _missing(self) -> list[FileState]:
        """Return known files that the walk did not meet, except below folders that could not be read."""
        hidden = tuple(self.unreadable_folders)
        return [state for state in self.known.values() if not state.path.startswith(hidden)]

    def _treat_as_missing(self, state: FileState | None) -> None:
        """Have the document of a file deleted, if it has one: the file is gone, or holds no text any more."""
        if state:
            self.known[state.path] = state

    def _index(self, found: Found, state: FileState | None, gone: _Gone | None = None) -> None:
        """Have a file read if its content is new; `state` is that of its document, None for a new file."""
        path = self.source.path_of(found.relative)
        if found.size > SLOW_BYTES:
            self.finish_reading()
            self.store_group()
        new: _New | None = None
        with self._reporting_faults(path, found, state):
            new = self._read(path, found, state, gone or {})
        if new:
            self._begin_reading(*new, state)
        self._advance()

    @contextmanager
    def _reporting_faults(self, path: str, found: Found, state: FileState | None) -> Iterator[None]:
        """Count a file that cannot be indexed as left out or failed, and let the run go on."""
        try:
            yield
        except NotIndexable as nothing:
            self.finish_reading()  # which is reported first
            self._leave_out_textless(found, nothing.message)
            self.textless.add(found, nothing.message)
            self._treat_as_missing(state)
        except BAD_FILE as fault:
            self.finish_reading()
            self.tally.failed.append(Failure(path, fault.message))

    def _read(self, path: str, found: Found, state: FileState | None, gone: _Gone) -> _New | None:
        """Return a file's content; None if it is unchanged, was only renamed, or is gone."""
        read_at = time.time()
        data = read_unchanging(found, self.tools.limits.max_bytes)
        if data is None:
            self._treat_as_missing(state)
            return None
        read = ReadFile(path, found, read_at, hashlib.sha256(data).hexdigest())
        if state and self._has_current_chunks(state) and state.file_hash == read.file_hash:
            self._keep_unchanged(state, read)
        elif old := gone.pop((read.file_hash, found.path.suffix), None):
            self._rename(old, read)
        else:
            return read, data
        return None

    def _begin_reading(self, read: ReadFile, data: bytes, state: FileState | None) -> None:
        """Have a file read, and chunk the one before it meanwhile."""
        before = self._received()
        with self._reporting_faults(read.path, read.found, state):
            self.reading = Reading(read, state, self.tools.reader.begin(data, read.found.path.name))
        if before:
            self._prepare(*before)
        elif self.reading:
            self.tools.tokenizer().token_starts("")  # loads it while the worker starts

    def _received(self) -> tuple[Reading, Extracted] | None:
        """Return the file that was being read, and its text; None if there is none, or it has no text."""
        reading, self.reading = self.reading, None
        if reading:
            with self._reporting_faults(reading.read.path, reading.read.found, reading.state):
                return reading, reading.file.result()
        return None

    def _prepare(self, reading: Reading, extracted: Extracted) -> None:
        """Chunk a file and add its document to the group."""
        token_starts = self.tools.tokenizer().token_starts  # outside: if it fails, no file is to blame
        with self._reporting_faults(reading.read.path, reading.read.found, reading.state):
            self._add(reading, extracted, chunk(extracted, token_starts, self.tools.limits.chunk))

    def _add(self, reading: Reading, extracted: Extracted, pieces: list[Piece]) -> None:
        if not pieces:
            raise NotIndexable("no text")
        read, state, _ = reading
        document = new_document(self.source, read, extracted)
        if state and (old := document_by_id(self.tools.store.catalog, state.document_id)):
            document = replace(document, id=old.id, superseded_by=old.superseded_by)
        if not self.memo.declares and declares(document.details):
            # Before the document is stored: a run may be interrupted.
            self._put_memo(replace(self.memo, declares=True))
        self.shown += [read.found] if document.details.get("pages_without_text") else []
        self.group.add(Prepared(document, pieces, "changed" if state else "added"))

    def _keep_unchanged(self, state: FileState, read: ReadFile) -> None:
        document = document_by_id(self.tools.store.catalog, state.document_id)
        if document and read.tells_more_than(state):
            self.tools.store.catalog.update_documents([replace(document, **read.state())])
        self.tally.counts["unchanged"] += 1

    def _rename(self, old: FileState, read: ReadFile) -> None:
        document = document_by_id(self.tools.store.catalog, old.document_id)
        if document is None:
            return
        title = renamed_title(document.title, Path(old.path), read.found.path)
        self.tools.store.catalog.update_documents(
            [replace(document, path=read.path, title=title, **read.state())]
        )
        self.known.pop(old.path, None)
        self.tally.counts["renamed"] += 1

    def _skip(self, skipped: Skipped) -> None:
        if skipped.failed:
            path = self.source.path_of(skipped.relative)
            self.tally.failed.append(Failure(path, skipped.reason))
            self.unreadable_folders.append(path + "/")
            self.known.pop(path, None)
        else:
            self._leave_out(skipped.relative, skipped.reason)

    def _leave_out_textless(self, found: Found, reason: str) -> None:
        self._leave_out(found.relative, reason)
        if may_show_text(found.path.name, reason):
            self.shown.append(found)

    def _leave_out(self, relative: str, reason: str) -> None:
        self.tally.add_skipped(self.source.path_of(relative), reason)

    def _advance(self) -> None:
        self.done += 1
        if self.group.is_due():
            self.store_group()
        self.tools.progress("index", self.done, self.total)
