"""KnowledgeBase: what the command line, MCP and Python programs call. It opens the parts and runs a pipeline.

Nothing heavy is loaded before it is needed: the store opens with the first call, the model with the first
text that is embedded. A name that fits no source or document raises NotFound, one that fits several BadValue,
what cannot be carried out as asked UsageError, whose kinds they are, and what does not answer Unavailable.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Event
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from concord.core.config import Settings, load_settings
from concord.core.errors import BadValue, KBError, NotFound
from concord.parts import Parts
from concord.store.contract import Select, document_by_id, source_by_id
from concord.types import Answer, Document, Feedback, Level, Opinion, Request, Source, Trust, silent

if TYPE_CHECKING:
    from concord.core.protocols import Embedder, Progress
    from concord.core.reports import (
        Backup,
        DocumentSlice,
        Recovery,
        Removal,
        SourceSummary,
        Stats,
        SyncReport,
    )
    from concord.index.notes import Imported, KeptNote, Note, NoteTools, RemovedNote
    from concord.index.refresh import Scope, Syncing
    from concord.ops.backfill import Backfill
    from concord.ops.doctor import Diagnosis
    from concord.ops.migrate import Migration, VectorMove
    from concord.ops.models import Models
    from concord.quality.measuring import Measuring
    from concord.reading.pages import Page
    from concord.search.around import DocumentLinks, Near
    from concord.search.explain import Explanation
    from concord.search.legs import Tools
    from concord.search.pipeline import Progressive
    from concord.store.contract import Store


class KnowledgeBase:
    """Sources, documents and notes of one organisation, and their search."""

    def __init__(
        self, settings: Settings | None = None, *, org: str | None = None, must_exist: bool = False
    ) -> None:
        """Open nothing yet; with `must_exist`, an empty store that seems named by mistake raises NotFound."""
        self.settings = settings or load_settings()
        self.org: str = org or self.settings["org"]  # a server has one for each organisation
        self.parts = Parts(self.settings, self.org, must_exist=must_exist)

    @classmethod
    def open(cls, **overrides: Any) -> Self:
        """Open with settings given by key, dots written as double underscores: `open(org="team")`."""
        return cls(load_settings({key.replace("__", "."): value for key, value in overrides.items()}))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Free the store, the models and the worker process; any further use raises UsageError."""
        self.parts.close()

    @property
    def store(self) -> Store:
        """Where everything is kept."""
        return self.parts.store

    @property
    def embedder(self) -> Embedder | None:
        """What turns text into vectors; None when nothing is configured."""
        return self.parts.embedder

    def add(
        self,
        path: str | os.PathLike[str],
        *,
        name: str | None = None,
        patterns: Sequence[str] = (),
        tags: Sequence[str] = (),
        trust: Trust = "trusted",
        about: str | None = None,
        embed: bool = True,
        progress: Progress = silent,
    ) -> SyncReport:
        """Index a folder or file, or sync it if it is indexed; options given here replace its own."""
        source = self.register(path, name=name, patterns=patterns, tags=tags, trust=trust, about=about)
        return self._syncing.sync(source, embed=embed, progress=progress)

    def register(
        self,
        path: str | os.PathLike[str],
        *,
        patterns: Sequence[str] = (),
        tags: Sequence[str] = (),
        **options: Any,
    ) -> Source:
        """Make a folder or file a source, which the next sync reads; options are those of `add`."""
        from concord.core.values import as_texts
        from concord.index.sources import absolute_path, register

        named, wanted = as_texts("tags", tags), as_texts("patterns", patterns)
        return register(absolute_path(path), self.store.catalog, patterns=wanted, tags=named, **options)

    def sync(
        self, names: Sequence[str] = (), *, embed: bool = True, progress: Progress = silent
    ) -> list[SyncReport]:
        """Bring sources up to date, all or those named; one whose folder is gone is reported, not raised."""
        from concord.core.values import as_texts

        known = self.store.catalog.snapshot().sources
        chosen = [self._named(name) for name in as_texts("names", names)] or known
        return [self._syncing.sync_and_report(source, embed=embed, progress=progress) for source in chosen]

    def watch(
        self,
        names: Sequence[str] = (),
        *,
        embed: bool = True,
        stop: Event | None = None,
        progress: Progress = silent,
    ) -> Iterator[SyncReport]:
        """Keep sources current, all or those named, until `stop` is set: yields what each sync did."""
        from concord.core.values import as_texts

        chosen = [self._named(name).id for name in as_texts("names", names)]
        return self._syncing.watch(chosen, embed=embed, stop=stop or Event(), progress=progress)

    def ensure(
        self, path: str | os.PathLike[str], *, embed: bool = True, progress: Progress = silent
    ) -> Scope:
        """Index a path if it is new or changed, and return the scope to search it by.

        A path inside a source that exists is brought up to date with that source, and searched there even if
        nothing is in it yet; only what its patterns or ignore rules leave out becomes a source of its own.
        """
        from concord.index.sources import absolute_path

        return self._syncing.ensure(absolute_path(path), embed=embed, progress=progress)

    def remove(self, name: str, *, force: bool = False, progress: Progress = silent) -> Removal:
        """Delete a source: its vectors first, so that a vector store that is down leaves the rest whole.

        Notes are in no file: without `force` their source is not deleted.
        """
        from concord.index.lock import remove

        wait_s = self.settings["sync.lock_wait_s"]
        return remove(self.store, self._named(name), wait_s, force=force, progress=progress)

    def sources(self) -> list[SourceSummary]:
        """Return every source with its counts, by name."""
        from concord.ops.doctor import summary

        catalog = self.store.catalog
        return [summary(catalog, source) for source in catalog.snapshot().sources]

    def source(self, name: str) -> SourceSummary:
        """Return one source with its counts."""
        from concord.ops.doctor import summary

        return summary(self.store.catalog, self._named(name))

    def stats(self) -> Stats:
        """Return the state of the knowledge base."""
        from concord.ops.doctor import stats

        return stats(self.store, self.org, self.settings.store_url)

    @property
    def generation(self) -> int:
        """A number that grows with every change to what is indexed."""
        return self.store.catalog.snapshot().generation

    def document(self, document_id: str) -> Document | None:
        """Return a document by its id; None when there is none."""
        return document_by_id(self.store.catalog, document_id)

    def document_named(self, reference: str) -> Document:
        """Return the document that a citation, a path or an id stands for."""
        from concord.reading.locate import find_document

        return find_document(reference, self.store.catalog)

    def documents(self, name: str | None = None) -> Iterator[Document]:
        """Yield documents by path, all or one source's."""
        source = self._named(name) if name else None
        yield from self.store.catalog.documents(Select(source_id=source.id if source else None))

    def search(self, text: str, *, wait_for_model: bool = True, **options: Any) -> Answer:
        """Search. Options are the fields of `Request`: mode, top, tags, type, source, path, threshold …"""
        from concord.search.request import request_of

        return self.ask(request_of(text, options), wait_for_model=wait_for_model)

    def ask(self, request: Request, *, wait_for_model: bool = True) -> Answer:
        """Answer a request; with `wait_for_model` off, by words alone until the model has been loaded."""
        from concord.search.pipeline import preliminary, search
        from concord.search.setup import COLD

        with self._searching(request, wait_for_model=wait_for_model) as (checked, tools):
            answer = search(checked, tools)
        return preliminary(answer) if tools.absent is COLD and answer.hits else answer

    @contextmanager
    def _searching(self, request: Request, *, wait_for_model: bool = True) -> Iterator[tuple[Request, Tools]]:
        """Lend what a search works with; no call to a server in the block outlasts the search."""
        from concord.core.call_limit import limited_to
        from concord.search.request import checked, options_of
        from concord.search.setup import Searching

        request = checked(request)
        with limited_to(options_of(request, self.settings).deadline_ms):
            yield request, Searching(self.parts).tools(request, wait_for_model=wait_for_model)

    def search_progressive(self, text: str, **options: Any) -> Iterator[Progressive]:
        """Yield what words find at once, then the full answer; options are those of `search`."""
        from concord.search.pipeline import progressive
        from concord.search.request import checked, mode_of, request_of

        request = checked(request_of(text, options))
        return progressive(request, mode_of(request, self.settings), self.ask)

    def explain(self, text: str, reference: str, **options: Any) -> Explanation:
        """Say why a passage ranks where it does for a query, or why not at all; options as for `search`."""
        from concord.search.explain import explain
        from concord.search.request import request_of

        with self._searching(request_of(text, options)) as (request, tools):
            return explain(request, reference, tools)

    def warm(self) -> None:
        """Open the store and load the reader and, where there are vectors to compare with, the model."""
        from concord.search.setup import Searching

        self.parts.warm()
        if reader := Searching(self.parts).reader:
            reader.warm()

    @property
    def is_warm(self) -> bool:
        """Whether a search needs no model to be loaded first."""
        from concord.search.setup import Searching

        reader = Searching(self.parts).reader
        return self.parts.is_warm and (reader is None or reader.is_warm)

    def get(
        self, reference: str, *, context: int = 0, whole: bool = False, level: Level | None = None
    ) -> DocumentSlice:
        """Read a citation, a document or a chunk; by its level as much as the section or all around it."""
        from concord.reading.locate import locate, slice_of
        from concord.reading.pages import outline_slice
        from concord.search.around import MOST_LINKS, with_links

        if context < 0:
            raise BadValue(f"cannot read {context} neighbours", hint="0 or more")
        located = locate(reference, self.store.catalog, context=context, level="document" if whole else level)
        read = outline_slice(located) if level == "outline" else slice_of(located)
        self._count_reading(read.document)
        return with_links(read, self.store, MOST_LINKS)

    def page(
        self,
        reference: str,
        *,
        max_bytes: int,
        context: int = 0,
        cursor: str | None = None,
        level: Level | None = None,
    ) -> Page:
        """Read a citation, a document or a chunk in pages; with a cursor, the page that it leads to."""
        from msgspec.structs import replace

        from concord.reading import pages
        from concord.search.around import BYTES_A_LINK, MOST_LINKS, with_links

        if cursor is not None:
            return pages.next_page(cursor, self.store.catalog, max_bytes=max_bytes)
        page = pages.first_page(
            reference, self.store.catalog, max_bytes=max_bytes, context=context, level=level
        )
        self._count_reading(page.slice.document)
        most = min(MOST_LINKS, max_bytes // BYTES_A_LINK)
        return replace(page, slice=with_links(page.slice, self.store, most))

    def links(self, reference: str | None = None) -> DocumentLinks:
        """Return what a document links to and what links to it; of all, the links that are broken."""
        from concord.search.around import broken_links, links_of

        if reference is None:
            return broken_links(self.store)
        return links_of(self.document_named(reference), self.store)

    def related(self, reference: str, *, limit: int = 10) -> list[Near]:
        """Return the documents nearest to one, by meaning and by links, with the reasons."""
        from concord.search.around import related_to

        return related_to(self.document_named(reference), self.store, limit)

    def orphans(self, name: str | None = None) -> Iterator[Document]:
        """Yield the documents that no other links to, of one source or of all, by path."""
        named = [self._named(name)] if name is not None else self.store.catalog.snapshot().sources
        ids = {id for source in named for id in self.store.links.orphans(source.id)}
        return (document for document in self.documents(name) if document.id in ids)

    def page_image(self, reference: str, page: int, *, width: int = 900, mark: str | None = None) -> bytes:
        """Draw a page of a PDF as PNG, from the file as it is now; a citation's passage can be marked."""
        from concord.files.opening import read_unchanging
        from concord.files.walk import Found
        from concord.reading.locate import find_document, locate, slice_of

        document = find_document(reference, self.store.catalog)
        source = source_by_id(self.store.catalog, document.source_id)
        found = Found(source.file_of(document.path) or "", "", 0, 0, 0)
        data = read_unchanging(found, self.settings["ingest.max_bytes"]) if source.path else None
        if data is None:
            raise NotFound(f"the file of {document.path} is not there")
        marked = slice_of(locate(mark, self.store.catalog)).text if mark else ""
        is_scanned = page in document.details.get("ocr", {}).get("pages", ())
        pictures = self.parts.pictures if marked and is_scanned else None
        areas = pictures.areas(data, document.path, page, marked) if pictures else []
        return self.parts.reader.image(data, document.path, page, width, marked, areas)

    def _count_reading(self, document: Document) -> None:
        if self.settings["usage.enabled"]:
            from concord.search.passages import record_reading

            record_reading(document.id, self.store.journal)

    def feedback(self, reference: str, opinion: Opinion, *, query: str = "") -> Feedback:
        """Keep an opinion, good or bad, on a result for a query; the order of results does not change."""
        from concord.reading.locate import locate, slice_of

        if opinion not in ("good", "bad"):
            raise BadValue(f"{opinion!r} is no opinion", hint="good or bad")
        located = locate(reference, self.store.catalog)
        citation = slice_of(located).citation
        feedback = Feedback(located.document.id, citation, opinion, " ".join(query.split()), time.time())
        self.store.journal.record_feedback(feedback)
        return feedback

    def note(self, note: Note | str, *, supersedes: str | None = None, embed: bool = True) -> Document:
        """Keep a note, a `Note` or its text; `supersedes` is the id, path or citation of a document."""
        from concord.index.notes import Note, save_note

        given = Note(note) if isinstance(note, str) else note
        document = save_note(given, self._note_tools(), supersedes=supersedes)
        self._embed_pending(document.source_id, embed=embed)
        return document

    def edit_note(self, reference: str, *, embed: bool = True, **changes: Any) -> Document:
        """Replace fields of a note in place, by its id, path or citation: content, title, tags, details …"""
        from concord.index.notes import edit_note

        document = edit_note(self.document_named(reference).id, changes, self._note_tools())
        self._embed_pending(document.source_id, embed=embed)
        return document

    def remove_note(self, reference: str) -> RemovedNote:
        """Delete a note for good, by its id, path or citation; what it superseded comes back."""
        from concord.index.notes import remove_note

        return remove_note(reference, self.store)

    def notes(self) -> Iterator[KeptNote]:
        """Yield every note as it was given, superseded ones too."""
        from concord.index.notes import kept_notes

        return kept_notes(self.store.catalog)

    def import_notes(self, path: str | os.PathLike[str], *, embed: bool = True) -> Imported:
        """Keep the notes in a JSON, JSON lines or Markdown file, or a folder of them; repeating is safe."""
        from concord.index.note_files import read_notes
        from concord.index.notes import store_notes

        done = store_notes(read_notes(path), self._note_tools())
        if done.added or done.changed:
            self._embed_pending(None, embed=embed)
        return done

    def export_notes(self, path: str | os.PathLike[str]) -> int:
        """Write all notes to a .json, .jsonl or .md file, or as Markdown into a folder; return how many."""
        from concord.index.note_files import write_notes

        return write_notes(self.notes(), path)

    def history(self, reference: str) -> list[Document]:
        """Return what a document superseded and what superseded it, oldest first, itself included."""
        from concord.index.notes import history
        from concord.reading.locate import locate

        return history(locate(reference, self.store.catalog).document, self.store.catalog)

    def _note_tools(self) -> NoteTools:
        from concord.index.notes import NoteTools

        return NoteTools(self.store, self.parts.tokenizer(), self.parts.limits().chunk)

    def _embed_pending(self, source_id: str | None, *, embed: bool) -> None:
        """Embed chunks that have no vector. A failure is only logged: the notes are stored by then."""
        from concord.index.embedding import embed_pending

        if not embed:
            return
        try:
            why = embed_pending(self.store, self.embedder, silent, source_id=source_id).degraded
            self.parts.after_embedding()
        except KBError as fault:
            why = fault.message
        if why:
            import logging  # late: 5 ms, for those who need it

            said = "kept; not embedded: %s; words find it meanwhile, and the next sync embeds it"
            logging.getLogger(__name__).warning(said, why)

    @property
    def models(self) -> Models:
        """The models whose vectors are kept: to list, add, use and remove them."""
        from concord.ops.models import Models

        return Models(self.store, self.parts.new_embedder, self.settings["sync.lock_wait_s"])

    def backfill(self, *, progress: Progress = silent) -> Backfill:
        """Index anew what is stored, without reading a file; vectors come from the cache where possible."""
        from concord.ops.backfill import backfill

        done = backfill(self._note_tools(), self.embedder, progress)
        self.parts.after_embedding()
        self.store.maintain(progress)
        return done

    def migrate(self, to: str, *, org: str | None = None, progress: Progress = silent) -> Migration:
        """Copy everything to another store, with its vectors inside it; there it may belong to another `org`.

        Raises:
            NotFound: there is nothing to copy.
            BadValue: that store holds something else, or is this one.
            StoreError: the copy is not the same, because something changed meanwhile.
        """
        from concord.ops.migrate import migrate

        elsewhere = self.settings.replaced(store__url=to, vectors__url="", org=org or self.org)
        with KnowledgeBase(elsewhere) as other:
            return migrate(self.store, other.store, progress, lock_wait_s=self.settings["sync.lock_wait_s"])

    def backup(self, path: str | os.PathLike[str], *, progress: Progress = silent) -> Backup:
        """Copy everything to one file, while others may use it; an older copy there is replaced."""
        from concord.ops.migrate import back_up

        return back_up(self.store, path, progress)

    def _restore(self) -> None:
        """Make what is indexed of notes and of names anew, after the store was damaged."""
        from concord.core.errors import UnknownName
        from concord.ops.backfill import renew
        from concord.ops.recover import restore_notes

        with suppress(UnknownName):  # a kind of store that keeps no notes beside it
            restore_notes(self.parts.salvage(), self._note_tools())
        renew(self._note_tools())

    def recover(self) -> Recovery:
        """Bring back what exists nowhere else: notes, and which folders were indexed.

        A damaged store is moved away, and a new one takes its place.
        """
        from concord.ops.recover import RecoverTools, recover

        def reopened() -> NoteTools:
            self.parts.forget_others("store", "")  # the next use opens what is in its place then
            return self._note_tools()

        return recover(RecoverTools(lambda: self.store, self.parts.salvage, reopened))

    def migrate_vectors(self, *, progress: Progress = silent) -> VectorMove:
        """Bring the vectors of this store to where `vectors.url` says, from the embedding cache.

        Those in the place they were kept before are deleted, or the result says why they could not be.
        """
        from concord.ops.migrate import VectorMoveTools, move_vectors

        tools = VectorMoveTools(self.parts.outside, self.parts.clear_vectors)
        return move_vectors(self.store, tools, self.embedder, progress)

    def doctor(self, *, fix: bool = False, progress: Progress = silent) -> Diagnosis:
        """Look for what is wrong, and with `fix` repair what is safe to repair; findings are never raised."""
        from concord.ops.doctor import DoctorTools, diagnose

        tools = DoctorTools(
            store=lambda: self.store,
            embedder=lambda: self.embedder,
            sync=lambda source: self._syncing.sync_and_report(source, embed=False, progress=progress),
            restore=self._restore,
            folder=self.settings.paths.data,
        )
        return diagnose(tools, fix=fix, progress=progress)

    @property
    def measuring(self) -> Measuring:
        """How good the answers are on judged collections: evaluate, calibrate, review."""
        from concord.quality.measuring import Measuring

        return Measuring(self.parts)

    @property
    def _syncing(self) -> Syncing:
        from concord.index.refresh import Syncing

        return Syncing(self.parts)

    def _named(self, name: str) -> Source:
        from concord.core.places import find_source

        return find_source(name, self.store.catalog.snapshot().sources)
