"""Ingest, top to bottom: walk → compare → read → extract and clean → chunk → catalog → embed → pictures.

A document is searchable by words the moment it is stored, and by meaning once its chunks are embedded.
Documents are stored and embedded in small groups, each of which commits by itself: an interrupted run loses
the group it was at, and the next one goes on from there.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

from concord.core.batches import batched
from concord.core.errors import NotIndexable
from concord.core.protocols import BINARY, NO_TEXT_LAYER, PICTURE_EXTENSIONS, FileBeingRead
from concord.core.reports import Failure, SyncReport
from concord.files.state import Memo, Textless, check_disk, is_as_indexed, read_memo, readers, write_memo
from concord.files.walk import Found, Skipped, walk_source
from concord.index.documents import (
    BAD_FILE,
    UPDATED_AT_ONCE,
    ReadFile,
    SyncTools,
    Tally,
    prepared,
    read_file,
    renamed_title,
)
from concord.index.embedding import EmbeddingReport, embed_pending, with_embedding
from concord.index.links import find_mentions, release_superseded, settle_supersession
from concord.index.lock import as_stored, begin_anew, sync_lock, until_removed
from concord.index.pictures import read_pictures
from concord.store.contract import Catalog, Select, document_by_id
from concord.text.document import declares
from concord.types import Extracted, FileState, Filter, Source


def sync(source: Source, tools: SyncTools, *, lock_wait_s: float) -> SyncReport:
    """Bring the index of one source up to date with its files.

    Raises:
        Unreadable: the source's folder or file is gone or cannot be read; no document is removed.
        NotFound: the source itself was removed before its turn came.
        StoreBusy: another process has been syncing the same source for too long.
    """
    started, catalog = time.monotonic(), tools.store.catalog
    with sync_lock(source.id, tools.store, tools.progress, lock_wait_s):
        source = as_stored(source, catalog)
        begin_anew(source.id, catalog)
        tools = tools._replace(progress=until_removed(source, catalog, tools.progress))
        run = _Run(source, tools)
        run.save_chunking()
        run.add_source_tags()
        try:
            run.compare_files()
            run.index_new_files()
        finally:
            if run.reading:  # after a fault that ends the run
                run.reading[1].abandon()
        run.tally.store()
        run.delete_missing_files()
        run.apply_supersession()
        find_mentions(tools.store, tools.progress)
        run.remember_for_next_sync()
        source = replace(as_stored(source, catalog), synced_at=time.time())
        catalog.put_source(source)
        embedding = _embed_source(source, tools)
    if read_pictures(run.shown, source, tools, run.tally, lock_wait_s):
        embedding = embedding.followed_by(_embed_source(source, tools))
    return _finished(run.tally.report(source), embedding, catalog, started)


def embed_notes(source: Source, tools: SyncTools) -> SyncReport:
    """Embed the notes that have no vectors: no files belong to them."""
    started, catalog = time.monotonic(), tools.store.catalog
    embedding = _embed_source(source, tools)
    notes = catalog.count(source.id).documents
    return _finished(SyncReport(source, unchanged=notes), embedding, catalog, started)


def _embed_source(source: Source, tools: SyncTools) -> EmbeddingReport:
    counts = tools.store.catalog.count(source.id)
    if counts.chunks == counts.vectors:
        return EmbeddingReport()
    return embed_pending(tools.store, tools.embedder(), tools.progress, source_id=source.id)


def _finished(report: SyncReport, embedding: EmbeddingReport, catalog: Catalog, started: float) -> SyncReport:
    generation, took_s = catalog.snapshot().generation, time.monotonic() - started
    return replace(with_embedding(report, embedding), generation=generation, took_s=took_s)


_Gone = dict[tuple[str, str], FileState]  # hash and extension of files that are gone → their documents


class _Run:
    """One sync of one source: what is known of it, and what is still to be done."""

    def __init__(self, source: Source, tools: SyncTools) -> None:
        self.source = source
        self.tools = tools
        self.catalog = tools.store.catalog
        self.entries = walk_source(source, tools.limits.max_bytes)
        self.memo = read_memo(self.catalog.sync_state(source.id))
        self.known = self.catalog.file_states(source.id)  # indexed files by path; met ones are taken out
        if self.known:
            check_disk(source)
        self.textless = Textless(self.memo)
        self.new: list[Found] = []  # files that wait until it is known which others are gone
        self.unreadable_folders: list[str] = []
        # Files that may show text which they do not hold, and why they were left out if they were.
        self.shown: dict[Found, str | None] = {}
        self.reading: tuple[ReadFile, FileBeingRead] | None = None  # while the one before it is chunked
        self.tally = Tally(self.catalog)
        self.done = 0
        self.total: int | None = None  # files to index, as soon as it is known

    def save_chunking(self) -> None:
        """Write down how files are chunked from now on, before any is read: a run may be interrupted."""
        limits = self.tools.limits
        if not limits.is_met_by(self.memo.chunking):
            since = time.time() if self.known else 0.0
            self._put_memo(replace(self.memo, chunking=limits.chunking_key(), chunking_since=since))

    def add_source_tags(self) -> None:
        """Give the source's tags to documents that were stored before it had them."""
        wanted = self.source.tags
        tagged = Filter(tags=wanted, source_id=self.source.id, include_superseded=True)
        if not wanted or self.catalog.count_documents(tagged) == len(self.known):
            return
        changed = (
            replace(document, tags=tuple(dict.fromkeys((*wanted, *document.tags))))
            for document in self.catalog.documents(Select(source_id=self.source.id))
            if not set(wanted) <= set(document.tags)
        )
        for group in batched(changed, UPDATED_AT_ONCE):
            self.catalog.update_documents(group)

    def compare_files(self) -> None:
        """Walk the source: an unchanged file costs one stat, a changed one is indexed at once.

        New files wait until the walk is over: they may be indexed files under a new name, which shows only
        once it is known which names are gone.
        """
        for found in self.entries:
            if isinstance(found, Skipped):
                self._skip(found)
                continue
            state = self.known.pop(self.source.path_of(found.relative), None)
            if state and self._has_current_chunks(state) and is_as_indexed(found, state):
                self.tally.counts["unchanged"] += 1
                if found.relative in self.memo.scans:
                    self.shown[found] = None
            elif state is None and (reason := self.textless.reason(found)):
                self._leave_out(found, reason)
            elif state:
                self._index(found, state)
            else:
                self.new.append(found)
        self._read_next(None)

    def index_new_files(self) -> None:
        """Index new files; one with the content of a file that is gone is that file, renamed."""
        gone = {(state.file_hash, Path(state.path).suffix): state for state in self._missing()}
        if self.new:
            self.total = self.done + len(self.new)
        for found in self.new:
            self._index(found, None, gone)
        self._read_next(None)

    def delete_missing_files(self) -> None:
        """Delete the documents whose files are gone."""
        missing = [state.document_id for state in self._missing()]
        if missing:
            if self.memo.declares:
                release_superseded(self.source, self.catalog, missing)
            self.catalog.delete_documents(missing)
            self.tally.counts["removed"] += len(missing)

    def apply_supersession(self) -> None:
        """Mark documents as superseded where a file says which other file has replaced it."""
        if self.memo.declares and not settle_supersession(self.source, self.catalog):
            self._put_memo(replace(self.memo, declares=False))

    def remember_for_next_sync(self) -> None:
        """Write down what the next sync needs to know of this one."""
        memo = Memo(
            readers(),
            self.textless.met,
            self.tools.limits.chunking_key(),
            scans=[found.relative for found in self.shown],
            declares=self.memo.declares,
        )
        if memo != self.memo:
            self._put_memo(memo)

    def _put_memo(self, memo: Memo) -> None:
        self.memo = memo
        self.catalog.put_sync_state(self.source.id, write_memo(memo))

    def _has_current_chunks(self, state: FileState) -> bool:
        """Whether a document was chunked as it would be now."""
        return state.indexed_at >= self.memo.chunking_since

    def _missing(self) -> list[FileState]:
        """Return known files that the walk did not meet, except below folders that could not be read."""
        hidden = tuple(self.unreadable_folders)
        return [state for state in self.known.values() if not state.path.startswith(hidden)]

    def _index(self, found: Found, state: FileState | None, gone: _Gone | None = None) -> None:
        """Have a file read if its content is new, and chunk the one before it meanwhile."""
        read = None
        with self._reporting_faults(found, state):
            read = read_file(self.source, found, state, self.tools.limits.max_bytes)
            if read is None:
                self._keep_as_missing(state)
            elif self._is_known(read, gone or {}):
                read = None
        if read:
            self._read_next(read)
        self.done += 1
        self.tally.store_in_time()
        self.tools.progress("index", self.done, self.total)

    @contextmanager
    def _reporting_faults(self, found: Found, state: FileState | None) -> Iterator[None]:
        """Count a file that cannot be indexed as left out or failed, and let the run go on."""
        try:
            yield
        except NotIndexable as nothing:
            self._leave_out(found, nothing.message)
            self.textless.add(found, nothing.message)
            self._keep_as_missing(state)
        except BAD_FILE as fault:
            self.tally.failed.append(self._failure(found.relative, fault.message))

    def _keep_as_missing(self, state: FileState | None) -> None:
        """Have the document of a file deleted, if it has one: the file is gone, or holds no text any more."""
        if state:
            self.known[state.path] = state

    def _is_known(self, read: ReadFile, gone: _Gone) -> bool:
        """Whether a file's content is indexed: under its own name, or under that of a file that is gone."""
        state = read.known
        if state and self._has_current_chunks(state) and state.file_hash == read.file_hash:
            self._update(read, state)
            self.tally.counts["unchanged"] += 1
            return True
        old = gone.pop((read.file_hash, read.found.path.suffix), None)
        if old:
            self._update(read, old)
            self.known.pop(old.path, None)
            self.tally.counts["renamed"] += 1
        return old is not None

    def _update(self, read: ReadFile, state: FileState) -> None:
        """Store the state and the name of a file whose content is indexed already."""
        document = document_by_id(self.catalog, state.document_id)
        if document and (state.path != read.path or read.tells_more_than(state)):
            title = renamed_title(document.title, Path(state.path), read.found.path)
            self.catalog.update_documents([replace(document, path=read.path, title=title, **read.state())])

    def _read_next(self, read: ReadFile | None) -> None:
        """Have a file read, and chunk the one before it meanwhile; None if no other is to be read."""
        before = self._received()
        if read:
            with self._reporting_faults(read.found, read.known):
                self.reading = read, self.tools.reader.begin(read.data, read.found.path.name)
        if before or self.reading:  # loads it while the worker starts; if it fails, no file is to blame
            self.tools.tokenizer().token_starts("")
        if before:
            with self._reporting_faults(before[0].found, before[0].known):
                self._add(*before)

    def _received(self) -> tuple[ReadFile, Extracted] | None:
        """Wait for the text of the file that is being read; None if there is none, or it has no text."""
        reading, self.reading = self.reading, None  # first: what was waited for in vain cannot be abandoned
        if reading:
            read, file = reading
            with self._reporting_faults(read.found, read.known):
                return read, file.result()
        return None

    def _add(self, read: ReadFile, extracted: Extracted) -> None:
        """Chunk a text, and have its document stored."""
        ready = prepared(self.source, read, extracted, self.tools, "changed" if read.known else "added")
        if not self.memo.declares and declares(ready.document.details):
            # Before the document is stored: a run may be interrupted.
            self._put_memo(replace(self.memo, declares=True))
        if ready.document.details.get("pages_without_text"):
            self.shown[read.found] = None
        self.tally.add(ready)

    def _failure(self, relative: str, reason: str) -> Failure:
        return Failure(self.source.path_of(relative), reason)

    def _skip(self, skipped: Skipped) -> None:
        failure = self._failure(skipped.relative, skipped.reason)
        if skipped.failed:
            self.tally.failed.append(failure)
            self.unreadable_folders.append(failure.path + "/")
            self.known.pop(failure.path, None)
        else:
            self.tally.skipped.append(failure)

    def _leave_out(self, found: Found, reason: str) -> None:
        """Leave out a file without text, which is looked at again if it may show some."""
        is_picture = found.path.suffix.lower().removeprefix(".") in PICTURE_EXTENSIONS
        if reason == NO_TEXT_LAYER or (reason == BINARY and is_picture):
            self.shown[found] = reason
        else:
            self.tally.skipped.append(self._failure(found.relative, reason))
