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

from concord.core import call_limit, places
from concord.core.config import Settings, load_settings
from concord.core.errors import BadValue, KBError, NotFound, UnknownName
from concord.core.late import late
from concord.core.values import as_texts
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
    from concord.files import opening, walk
    from concord.index import embedding, lock, note_files, notes, refresh, sources
    from concord.index.notes import Imported, Note, NoteTools
    from concord.ops import backfill, doctor, migrate, models, recover
    from concord.ops.migrate import VectorMove
    from concord.quality import measuring
    from concord.reading import locate, pages
    from concord.search import around, explain, pipeline, setup
    from concord.search import request as requests
    from concord.search.legs import Tools
    from concord.store.contract import Store
else:
    opening, walk = late("concord.files", "opening", "walk")
    embedding, lock, note_files, notes, refresh, sources = late(
        "concord.index", "embedding", "lock", "note_files", "notes", "refresh", "sources"
    )
    backfill, doctor, migrate, models, recover = late(
        "concord.ops", "backfill", "doctor", "migrate", "models", "recover"
    )
    (measuring,) = late("concord.quality", "measuring")
    locate, pages = late("concord.reading", "locate", "pages")
    around, explain, pipeline, requests, setup = late(
        "concord.search", "around", "explain", "pipeline", "request", "setup"
    )


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
        named, wanted = as_texts("tags", tags), as_texts("patterns", patterns)
        return sources.register(
            sources.absolute_path(path), self.store.catalog, patterns=wanted, tags=named, **options
        )

    def sync(
        self, names: Sequence[str] = (), *, embed: bool = True, progress: Progress = silent
    ) -> list[SyncReport]:
        """Bring sources up to date, all or those named; one whose folder is gone is reported, not raised."""
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
        chosen = [self._named(name).id for name in as_texts("names", names)]
        return self._syncing.watch(chosen, embed=embed, stop=stop or Event(), progress=progress)

    def ensure(
        self, path: str | os.PathLike[str], *, embed: bool = True, progress: Progress = silent
    ) -> refresh.Scope:
        """Index a path if it is new or changed, and return the scope to search it by.

        A path inside a source that exists is brought up to date with that source, and searched there even if
        nothing is in it, or nothing that its patterns and ignore rules let through.
        """
        return self._syncing.ensure(sources.absolute_path(path), embed=embed, progress=progress)

    def remove(self, name: str, *, force: bool = False, progress: Progress = silent) -> Removal:
        """Delete a source: its vectors first, so that a vector store that is down leaves the rest whole.

        Notes are in no file: without `force` their source is not deleted.
        """
        wait_s = self.settings["sync.lock_wait_s"]
        return lock.remove(self.store, self._named(name), wait_s, force=force, progress=progress)

    def sources(self) -> list[SourceSummary]:
        """Return every source with its counts, by name."""
        catalog = self.store.catalog
        return [doctor.summary(catalog, source) for source in catalog.snapshot().sources]

    def source(self, name: str) -> SourceSummary:
        """Return one source with its counts."""
        return doctor.summary(self.store.catalog, self._named(name))

    def stats(self) -> Stats:
        """Return the state of the knowledge base."""
        return doctor.stats(self.store, self.org, self.settings.store_url)

    @property
    def generation(self) -> int:
        """A number that grows with every change to what is indexed."""
        return self.store.catalog.snapshot().generation

    def document(self, document_id: str) -> Document | None:
        """Return a document by its id; None when there is none."""
        return document_by_id(self.store.catalog, document_id)

    def document_named(self, reference: str) -> Document:
        """Return the document that a citation, a path or an id stands for."""
        return locate.find_document(reference, self.store.catalog)

    def documents(self, name: str | None = None) -> Iterator[Document]:
        """Yield documents by path, all or one source's."""
        source = self._named(name) if name else None
        yield from self.store.catalog.documents(Select(source_id=source.id if source else None))

    def search(self, text: str, *, wait_for_model: bool = True, **options: Any) -> Answer:
        """Search. Options are the fields of `Request`: mode, top, tags, type, source, path, threshold …"""
        return self.ask(requests.request_of(text, options), wait_for_model=wait_for_model)

    def ask(self, request: Request, *, wait_for_model: bool = True) -> Answer:
        """Answer a request; with `wait_for_model` off, by words alone until the model has been loaded."""
        with self._searching(request, wait_for_model=wait_for_model) as (checked, tools):
            answer = pipeline.search(checked, tools)
        return pipeline.preliminary(answer) if tools.absent is setup.COLD and answer.hits else answer

    @contextmanager
    def _searching(self, request: Request, *, wait_for_model: bool = True) -> Iterator[tuple[Request, Tools]]:
        """Lend what a search works with; no call to a server in the block outlasts the search."""
        request = requests.checked(request)
        with call_limit.limited_to(requests.options_of(request, self.settings).deadline_ms):
            yield request, setup.Searching(self.parts).tools(request, wait_for_model=wait_for_model)

    def search_progressive(self, text: str, **options: Any) -> Iterator[pipeline.Progressive]:
        """Yield what words find at once, then the full answer; options are those of `search`."""
        request = requests.checked(requests.request_of(text, options))
        return pipeline.progressive(request, requests.mode_of(request, self.settings), self.ask)

    def explain(self, text: str, reference: str, **options: Any) -> explain.Explanation:
        """Say why a passage ranks where it does for a query, or why not at all; options as for `search`."""
        with self._searching(requests.request_of(text, options)) as (request, tools):
            return explain.explain(request, reference, tools)

    def warm(self) -> None:
        """Open the store and load the reader and, where there are vectors to compare with, the model."""
        self.parts.warm()
        if reader := setup.Searching(self.parts).reader:
            reader.warm()

    @property
    def is_warm(self) -> bool:
        """Whether a search needs no model to be loaded first."""
        reader = setup.Searching(self.parts).reader
        return self.parts.is_warm and (reader is None or reader.is_warm)

    def get(
        self, reference: str, *, context: int = 0, whole: bool = False, level: Level | None = None
    ) -> DocumentSlice:
        """Read a citation, a document or a chunk; by its level as much as the section or all around it."""
        if context < 0:
            raise BadValue(f"cannot read {context} neighbours", hint="0 or more")
        located = locate.locate(
            reference, self.store.catalog, context=context, level="document" if whole else level
        )
        read = pages.outline_slice(located) if level == "outline" else locate.slice_of(located)
        self._count_reading(read.document)
        return around.with_links(read, self.store, around.MOST_LINKS)

    def page(
        self,
        reference: str,
        *,
        max_bytes: int,
        context: int = 0,
        cursor: str | None = None,
        level: Level | None = None,
    ) -> pages.Page:
        """Read a citation, a document or a chunk in pages; with a cursor, the page that it leads to."""
        from msgspec.structs import replace

        if cursor is not None:
            return pages.next_page(cursor, self.store.catalog, max_bytes=max_bytes)
        page = pages.first_page(
            reference, self.store.catalog, max_bytes=max_bytes, context=context, level=level
        )
        self._count_reading(page.slice.document)
        most = min(around.MOST_LINKS, max_bytes // around.BYTES_A_LINK)
        return replace(page, slice=around.with_links(page.slice, self.store, most))

    def links(self, reference: str | None = None) -> around.DocumentLinks:
        """Return what a document links to and what links to it; of all, the links that are broken."""
        if reference is None:
            return around.broken_links(self.store)
        return around.links_of(self.document_named(reference), self.store)

    def related(self, reference: str, *, limit: int = 10) -> list[around.Near]:
        """Return the documents nearest to one, by meaning and by links, with the reasons."""
        return around.related_to(self.document_named(reference), self.store, limit)

    def orphans(self, name: str | None = None) -> Iterator[Document]:
        """Yield the documents that no other links to, of one source or of all, by path."""
        named = [self._named(name)] if name is not None else self.store.catalog.snapshot().sources
        ids = {id for source in named for id in self.store.links.orphans(source.id)}
        return (document for document in self.documents(name) if document.id in ids)

    def page_image(self, reference: str, page: int, *, width: int = 900, mark: str | None = None) -> bytes:
        """Draw a page of a PDF as PNG, from the file as it is now; a citation's passage can be marked."""
        document = locate.find_document(reference, self.store.catalog)
        source = source_by_id(self.store.catalog, document.source_id)
        found = walk.Found(source.file_of(document.path) or "", "", 0, 0, 0)
        data = opening.read_unchanging(found, self.settings["ingest.max_bytes"]) if source.path else None
        if data is None:
            raise NotFound(f"the file of {document.path} is not there")
        marked = locate.slice_of(locate.locate(mark, self.store.catalog)).text if mark else ""
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
        if opinion not in ("good", "bad"):
            raise BadValue(f"{opinion!r} is no opinion", hint="good or bad")
        located = locate.locate(reference, self.store.catalog)
        citation = locate.slice_of(located).citation
        feedback = Feedback(located.document.id, citation, opinion, " ".join(query.split()), time.time())
        self.store.journal.record_feedback(feedback)
        return feedback

    def note(self, note: Note | str, *, supersedes: str | None = None, embed: bool = True) -> Document:
        """Keep a note, a `Note` or its text; `supersedes` is the id, path or citation of a document."""
        given = notes.Note(note) if isinstance(note, str) else note
        document = notes.save_note(given, self._note_tools(), supersedes=supersedes)
        self._embed_pending(document.source_id, embed=embed)
        return document

    def edit_note(self, reference: str, *, embed: bool = True, **changes: Any) -> Document:
        """Replace fields of a note in place, by its id, path or citation: content, title, tags, details …"""
        document = notes.edit_note(self.document_named(reference).id, changes, self._note_tools())
        self._embed_pending(document.source_id, embed=embed)
        return document

    def remove_note(self, reference: str) -> notes.RemovedNote:
        """Delete a note for good, by its id, path or citation; what it superseded comes back."""
        return notes.remove_note(reference, self.store)

    def notes(self) -> Iterator[notes.KeptNote]:
        """Yield every note as it was given, superseded ones too."""
        return notes.kept_notes(self.store.catalog)

    def import_notes(self, path: str | os.PathLike[str], *, embed: bool = True) -> Imported:
        """Keep the notes in a JSON, JSON lines or Markdown file, or a folder of them; repeating is safe."""
        done = notes.store_notes(note_files.read_notes(path), self._note_tools())
        if done.added or done.changed:
            self._embed_pending(None, embed=embed)
        return done

    def export_notes(self, path: str | os.PathLike[str]) -> int:
        """Write all notes to a .json, .jsonl or .md file, or as Markdown into a folder; return how many."""
        return note_files.write_notes(self.notes(), path)

    def history(self, reference: str) -> list[Document]:
        """Return what a document superseded and what superseded it, oldest first, itself included."""
        return notes.history(locate.locate(reference, self.store.catalog).document, self.store.catalog)

    def _note_tools(self) -> NoteTools:
        return notes.NoteTools(self.store, self.parts.tokenizer(), self.parts.limits().chunk)

    def _embed_pending(self, source_id: str | None, *, embed: bool) -> None:
        """Embed chunks that have no vector. A failure is only logged: the notes are stored by then."""
        if not embed:
            return
        try:
            why = embedding.embed_pending(self.store, self.embedder, silent, source_id=source_id).degraded
            self.parts.after_embedding()
        except KBError as fault:
            why = fault.message
        if why:
            import logging  # late: 5 ms, for those who need it

            said = "kept; not embedded: %s; words find it meanwhile, and the next sync embeds it"
            logging.getLogger(__name__).warning(said, why)

    @property
    def models(self) -> models.Models:
        """The models whose vectors are kept: to list, add, use and remove them."""
        return models.Models(self.store, self.parts.new_embedder, self.settings["sync.lock_wait_s"])

    def backfill(self, *, progress: Progress = silent) -> backfill.Backfill:
        """Index anew what is stored, without reading a file; vectors come from the cache where possible."""
        done = backfill.backfill(self._note_tools(), self.embedder, progress)
        self.parts.after_embedding()
        self.store.maintain(progress)
        return done

    def migrate(self, to: str, *, org: str | None = None, progress: Progress = silent) -> migrate.Migration:
        """Copy everything to another store, with its vectors inside it; there it may belong to another `org`.

        Raises:
            NotFound: there is nothing to copy.
            BadValue: that store holds something else, or is this one.
            StoreError: the copy is not the same, because something changed meanwhile.
        """
        elsewhere = self.settings.replaced(store__url=to, vectors__url="", org=org or self.org)
        with KnowledgeBase(elsewhere) as other:
            return migrate.migrate(
                self.store, other.store, progress, lock_wait_s=self.settings["sync.lock_wait_s"]
            )

    def backup(self, path: str | os.PathLike[str], *, progress: Progress = silent) -> Backup:
        """Copy everything to one file, while others may use it; an older copy there is replaced."""
        return migrate.back_up(self.store, path, progress)

    def _restore(self) -> None:
        """Make what is indexed of notes and of names anew, after the store was damaged."""
        with suppress(UnknownName):  # a kind of store that keeps no notes beside it
            recover.restore_notes(self.parts.salvage(), self._note_tools())
        backfill.renew(self._note_tools())

    def recover(self) -> Recovery:
        """Bring back what exists nowhere else: notes, and which folders were indexed.

        A damaged store is moved away, and a new one takes its place.
        """

        def reopened() -> NoteTools:
            self.parts.forget_others("store", "")  # the next use opens what is in its place then
            return self._note_tools()

        return recover.recover(recover.RecoverTools(lambda: self.store, self.parts.salvage, reopened))

    def migrate_vectors(self, *, progress: Progress = silent) -> VectorMove:
        """Bring the vectors of this store to where `vectors.url` says, from the embedding cache.

        Those in the place they were kept before are deleted, or the result says why they could not be.
        """
        tools = migrate.VectorMoveTools(self.parts.outside, self.parts.clear_vectors)
        return migrate.move_vectors(self.store, tools, self.embedder, progress)

    def doctor(self, *, fix: bool = False, progress: Progress = silent) -> doctor.Diagnosis:
        """Look for what is wrong, and with `fix` repair what is safe to repair; findings are never raised."""
        tools = doctor.DoctorTools(
            store=lambda: self.store,
            embedder=lambda: self.embedder,
            sync=lambda source: self._syncing.sync_and_report(source, embed=False, progress=progress),
            restore=self._restore,
            folder=self.settings.paths.data,
        )
        return doctor.diagnose(tools, fix=fix, progress=progress)

    @property
    def measuring(self) -> measuring.Measuring:
        """How good the answers are on judged collections: evaluate, calibrate, review."""
        return measuring.Measuring(self.parts)

    @property
    def _syncing(self) -> refresh.Syncing:
        return refresh.Syncing(self.parts)

    def _named(self, name: str) -> Source:
        return places.find_source(name, self.store.catalog.snapshot().sources)
