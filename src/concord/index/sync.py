"""Ingest, top to bottom: walk → compare → read → extract and clean → chunk → catalog → embed → pictures.

A document is searchable by words the moment it is stored, and by meaning once its chunks are embedded.
Documents are stored and embedded in small groups, each of which commits by itself: an interrupted run loses
the group it was at, and the next one goes on from there.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from concord.core.batches import batched
from concord.core.errors import (
    BadValue,
    ExtractionError,
    MissingExtra,
    NotIndexable,
    StoreBusy,
    UnknownName,
)
from concord.core.protocols import (
    BINARY,
    NO_TEXT_LAYER,
    PICTURE_EXTENSIONS,
    Embedder,
    FileBeingRead,
    FileReader,
    PictureReader,
    Progress,
)
from concord.core.reports import Failure, SyncReport
from concord.files.opening import read_unchanging
from concord.files.state import (
    Memo,
    Textless,
    check_disk,
    is_as_indexed,
    read_memo,
    readers,
    write_memo,
)
from concord.files.walk import Found, Skipped, walk_source
from concord.index.documents import (
    UPDATED_AT_ONCE,
    Prepared,
    ReadFile,
    ReadLimits,
    Tally,
    is_full,
    new_document,
    renamed_title,
)
from concord.index.embedding import EmbeddingReport, embed_pending, with_embedding
from concord.index.links import find_mentions, release_superseded, settle_supersession
from concord.index.lock import begin_anew, removed_meanwhile, sync_lock, until_removed
from concord.store.contract import Catalog, Select, Store, document_by_id
from concord.text.chunk import chunk
from concord.text.document import declares
from concord.types import Extracted, FileState, Filter, Source

GROUP_S = 0.5  # how long a document may wait to be searchable
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
    started, catalog = time.monotonic(), tools.store.catalog
    with sync_lock(source.id, tools.store, tools.progress, lock_wait_s):
        source = _as_stored(source, catalog)
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
        run.store_group()
        run.delete_missing_files()
        run.apply_supersession()
        find_mentions(tools.store, tools.progress)
        run.remember_for_next_sync()
        synced = replace(_as_stored(source, catalog), synced_at=time.time())
        catalog.put_source(synced)
        embedding = _embed_source(source, tools)
    if run.read_pictures(lock_wait_s):
        embedding = embedding.followed_by(_embed_source(source, tools))
    return replace(
        with_embedding(run.tally.report(synced), embedding),
        generation=catalog.snapshot().generation,
        took_s=time.monotonic() - started,
    )


def embed_notes(source: Source, tools: SyncTools) -> SyncReport:
    """Embed the notes that have no vectors: no files belong to them."""
    started, catalog = time.monotonic(), tools.store.catalog
    embedding = _embed_source(source, tools)
    return replace(
        with_embedding(SyncReport(source, unchanged=catalog.count(source.id).documents), embedding),
        generation=catalog.snapshot().generation,
        took_s=time.monotonic() - started,
    )


def _as_stored(source: Source, catalog: Catalog) -> Source:
    """Return a source as it is stored now: somebody may have renamed or retagged it since it was read."""
    for stored in catalog.snapshot().sources:
        if stored.id == source.id:
            return stored
    raise removed_meanwhile(source)


def _embed_source(source: Source, tools: SyncTools) -> EmbeddingReport:
    counts = tools.store.catalog.count(source.id)
    if counts.chunks == counts.vectors:
        return EmbeddingReport()
    return embed_pending(tools.store, tools.embedder(), tools.progress, source_id=source.id)


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
        self.group: list[Prepared] = []  # what was read, and is to be stored together
        self.group_since = 0.0
        self.tally = Tally()
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

    def store_group(self) -> None:
        """Store the documents that were read since the last group."""
        group, self.group = self.group, []
        if group:
            self.tally.store(group, self.catalog)

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

    def read_pictures(self, lock_wait_s: float) -> bool:
        """Read what scans and pictures show, if somebody can; return whether anything was looked at.

        That takes seconds each, so others may sync the source meanwhile: it is held only to store one. Where
        another sync is in the way for too long, the next one goes on.
        """
        shown, self.shown = self.shown, {}
        reader = self.tools.pictures() if shown else None
        if reader is None:
            left_out = ((found, reason) for found, reason in shown.items() if reason)
            self.tally.skipped += [self._failure(found.relative, reason) for found, reason in left_out]
            return False
        with suppress(StoreBusy):
            for done, found in enumerate(shown):
                self.tools.progress("pictures", done, len(shown))
                self._read_picture(found, reader, lock_wait_s)
            self.tools.progress("pictures", len(shown), len(shown))
        return True

    def _read_picture(self, found: Found, reader: PictureReader, lock_wait_s: float) -> None:
        """Read what a file shows, and store it; one that shows no words is left out until it changes."""
        content, extracted, reason = None, None, ""
        try:
            content = self._content(found, None)
            if content:
                extracted = reader.read(content[1], found.path.name, self.tools.progress)
        except (NotIndexable, *BAD_FILE) as fault:
            reason = fault.message
        with sync_lock(self.source.id, self.tools.store, self.tools.progress, lock_wait_s):
            self.source = _as_stored(self.source, self.catalog)
            begin_anew(self.source.id, self.catalog)
            self.memo = read_memo(self.catalog.sync_state(self.source.id))
            state = self.catalog.file_states(self.source.id).get(self.source.path_of(found.relative))
            self.textless = textless = Textless(self.memo)
            if reason and state is None:
                self.tally.skipped.append(self._failure(found.relative, reason))
                textless.add(found, reason)
            if content and extracted and (state is None or state.file_hash == content[0].file_hash):
                with self._reporting_faults(found, state):
                    read = content[0]._replace(known=state)
                    self._add(read, extracted, counted_as="pictures" if state else "added")
                self.store_group()
            left = [relative for relative in self.memo.scans if relative != found.relative]
            self._put_memo(replace(self.memo, scans=left, textless=self.memo.textless | textless.met))

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

    def _treat_as_missing(self, state: FileState | None) -> None:
        """Have the document of a file deleted, if it has one: the file is gone, or holds no text any more."""
        if state:
            self.known[state.path] = state

    def _index(self, found: Found, state: FileState | None, gone: _Gone | None = None) -> None:
        """Have a file read if its content is new, and chunk the one before it meanwhile."""
        content = None
        with self._reporting_faults(found, state):
            content = self._content(found, state)
            if content is None:
                self._treat_as_missing(state)
            elif self._is_known(content[0], gone or {}):
                content = None
        if content:
            self._read_next(content)
        self.done += 1
        if self.group and (
            time.monotonic() - self.group_since >= GROUP_S
            or is_full([prepared.pieces for prepared in self.group])
        ):
            self.store_group()
        self.tools.progress("index", self.done, self.total)

    @contextmanager
    def _reporting_faults(self, found: Found, state: FileState | None) -> Iterator[None]:
        """Count a file that cannot be indexed as left out or failed, and let the run go on."""
        try:
            yield
        except NotIndexable as nothing:
            self._leave_out(found, nothing.message)
            self.textless.add(found, nothing.message)
            self._treat_as_missing(state)
        except BAD_FILE as fault:
            self.tally.failed.append(self._failure(found.relative, fault.message))

    def _content(self, found: Found, state: FileState | None) -> tuple[ReadFile, bytes] | None:
        """Return a file's content; None if it is gone."""
        read_at, path = time.time(), self.source.path_of(found.relative)
        data = read_unchanging(found, self.tools.limits.max_bytes)
        if data is None:
            return None
        return ReadFile(path, found, state, read_at, hashlib.sha256(data).hexdigest()), data

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

    def _read_next(self, content: tuple[ReadFile, bytes] | None) -> None:
        """Have a file read, and chunk the one before it meanwhile; None if no other is to be read."""
        before = self._received()
        if content:
            read, data = content
            with self._reporting_faults(read.found, read.known):
                self.reading = read, self.tools.reader.begin(data, read.found.path.name)
        if before or self.reading:  # loads it while the worker starts; if it fails, no file is to blame
            self.tools.tokenizer().token_starts("")
        if before:
            read, extracted = before
            with self._reporting_faults(read.found, read.known):
                self._add(read, extracted, counted_as="changed" if read.known else "added")

    def _received(self) -> tuple[ReadFile, Extracted] | None:
        """Wait for the text of the file that is being read; None if there is none, or it has no text."""
        reading, self.reading = self.reading, None  # first: what was waited for in vain cannot be abandoned
        if reading:
            read, file = reading
            with self._reporting_faults(read.found, read.known):
                return read, file.result()
        return None

    def _add(self, read: ReadFile, extracted: Extracted, *, counted_as: str) -> None:
        """Chunk a text, and add its document to the group."""
        pieces = chunk(extracted, self.tools.tokenizer().token_starts, self.tools.limits.chunk)
        if not pieces:
            raise NotIndexable("no text")
        document = new_document(self.source, read, extracted)
        if read.known and (old := document_by_id(self.catalog, read.known.document_id)):
            document = replace(document, id=old.id, superseded_by=old.superseded_by)
        if not self.memo.declares and declares(document.details):
            # Before the document is stored: a run may be interrupted.
            self._put_memo(replace(self.memo, declares=True))
        if document.details.get("pages_without_text"):
            self.shown[read.found] = None
        self.group_since = self.group_since if self.group else time.monotonic()
        self.group.append(Prepared(document, pieces, counted_as))

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
