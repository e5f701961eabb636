"""Notes: short texts that people and agents keep, stored as documents without a file.

The fields of a note are kept as they were given (`Document.fields`, title, tags, details), so that it can be
edited and exported; what is searched is the text that `text.assemble` makes of them.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct, convert, field, to_builtins
from msgspec.structs import replace

from concord.core.batches import batched
from concord.core.errors import Action, BadValue, Hint, NotFound
from concord.core.protocols import Embedder
from concord.core.values import as_texts
from concord.files.state import storable_ns
from concord.index.documents import WHOLE_DOCUMENTS
from concord.index.links import find_mentions
from concord.index.sources import notes_source
from concord.reading.locate import find_document, joined
from concord.store.contract import Catalog, Select, Store, document_by_id, source_by_id
from concord.text.chunk import ChunkSize, chunk
from concord.text.clean import clean, without_lone_surrogates
from concord.text.document import NoteText, note_text
from concord.types import Document, Extracted, Json, Source, silent

_LISTS = ("tags", "highlights", "aliases")
_FIELDS = ("content", "summary", "context", "highlights", "aliases")
_OWN_ID = re.compile(r"[0-9a-f]{16}")
_LONGEST_TITLE = 60  # characters of a title that is made of a note's first words


class Note(Struct, frozen=True):
    """What somebody wants kept."""

    content: str
    title: str | None = None
    tags: tuple[str, ...] = ()
    details: Mapping[str, Json] = field(default_factory=dict)
    summary: str = ""
    context: str = ""
    highlights: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()


class KeptNote(NamedTuple):
    """A note as it is kept, and when it was last changed, in seconds."""

    id: str
    note: Note
    changed_at: float
    superseded_by: str | None = None


class Imported(NamedTuple):
    """What came of importing notes."""

    added: int
    changed: int
    unchanged: int


class RemovedNote(NamedTuple):
    """A note that is gone, and what searches find again because of that."""

    document: Document
    brought_back: list[Document]


class NoteTools(NamedTuple):
    """What notes are made with: where they go, and how they are cut."""

    store: Store
    tokenizer: Embedder  # whose tokens chunks are measured in
    size: ChunkSize


def save_note(note: Note, tools: NoteTools, *, supersedes: str | None = None) -> Document:
    """Store a note, and mark the document it supersedes: the newest, if that one is superseded already."""
    catalog = tools.store.catalog
    old = None if supersedes is None else find_document(supersedes, catalog)
    note = _with_lists(note)
    text = text_of(note)
    document = _described(KeptNote(secrets.token_hex(8), note, time.time()), text, notes_source(catalog))
    _put([document], [text], tools)
    if old:
        catalog.update_documents([replace(_newest(old, catalog), superseded_by=document.id)])
    return document


def edit_note(document_id: str, changes: Mapping[str, Json], tools: NoteTools) -> Document:
    """Replace fields of a note; its id, its path and what it supersedes stay."""
    catalog = tools.store.catalog
    old = document_by_id(catalog, document_id)
    if old is None:
        raise NotFound(
            f"there is no note {document_id!r}", hint=Hint(Action.LIST_NOTES, "{list_notes} gives the ids")
        )
    _check_is_note(old, "edit the file and run {sync}")
    note = note_of(old, catalog)
    if note.title == _title_from_words(note, text_of(note)):
        note = replace(note, title=None)  # it follows the edit
    note = _with_lists(replace(note, **changes))
    text = text_of(note)
    kept = KeptNote(old.id, note, time.time(), old.superseded_by)
    document = replace(_described(kept, text, source_by_id(catalog, old.source_id)), path=old.path)
    _put([document], [text], tools)
    return document


def remove_note(reference: str, store: Store) -> RemovedNote:
    """Delete a note for good; what it superseded comes back, unless something newer supersedes that, too."""
    catalog = store.catalog
    document = find_document(reference, catalog)
    _check_is_note(document, "delete the file and run {sync}")
    older = [] if document.superseded_by else [*catalog.documents(Select(superseded_by=document.id))]
    catalog.delete_documents([document.id])
    store.maintain(silent)
    return RemovedNote(document, [replace(document, superseded_by=None) for document in older])


def note_of(document: Document, catalog: Catalog | None = None) -> Note:
    """Return the fields of a kept note; if they are not stored, as in old stores, its text is its content."""
    fields = document.fields or ({"content": joined(catalog.chunks(document.id))} if catalog else {})
    given = {"content": "", **fields, "title": document.title, "tags": document.tags}
    return convert({**given, "details": document.details}, Note)


def kept_notes(catalog: Catalog) -> Iterator[KeptNote]:
    """Yield every note by path, superseded ones too."""
    for source in catalog.snapshot().sources:
        if source.kind == "notes":
            for document in catalog.documents(Select(source_id=source.id)):
                changed_at = document.mtime_ns / 1e9
                yield KeptNote(document.id, note_of(document, catalog), changed_at, document.superseded_by)


def store_notes(notes: Sequence[KeptNote], tools: NoteTools) -> Imported:
    """Store notes under the ids they have; one that is kept under its id already is replaced.

    What superseded a note does so again if it is there, in the store or among the notes.
    """
    catalog = tools.store.catalog
    texts = {kept.id: text_of(kept.note) for kept in notes}  # all of them first: half an import helps nobody
    known = {document.id: document for document in catalog.documents(Select(ids=[*texts]))}
    for document in known.values():
        if document.type != "note":
            raise BadValue(f"{document.id!r} is the id of a file", hint="give the note another id, or none")
    source = notes_source(catalog)
    changed = []
    for kept in {kept.id: kept for kept in notes}.values():
        newer, old = kept.superseded_by, known.get(kept.id)
        if newer is not None and newer not in texts and document_by_id(catalog, newer) is None:
            kept = kept._replace(superseded_by=None)  # else it would be hidden for good
        made = _described(kept, texts[kept.id], source)
        if old:
            made = replace(made, path=old.path, source_id=old.source_id)
        if old is None or replace(made, indexed_at=old.indexed_at) != old:
            changed.append(made)
    for group in batched(changed, WHOLE_DOCUMENTS):
        _put(group, [texts[document.id] for document in group], tools)
    added = sum(document.id not in known for document in changed)
    return Imported(added, len(changed) - added, len(texts) - len(changed))


def _put(documents: Sequence[Document], texts: Sequence[str], tools: NoteTools) -> None:
    """Store notes with their chunks, and find what they mention."""
    given = [
        (document, chunk(Extracted(text, "markdown"), tools.tokenizer.token_starts, tools.size))
        for document, text in zip(documents, texts, strict=True)
    ]
    tools.store.catalog.put_documents(given)
    find_mentions(tools.store)


def _check_is_note(document: Document, instead: str) -> None:
    if document.type != "note":
        raise BadValue(f"{document.path} is a file, not a note", hint=Hint(Action.SYNC, instead))


def history(document: Document, catalog: Catalog) -> list[Document]:
    """Return everything that a document superseded or is superseded by, oldest first, itself included."""
    newest = _newest(document, catalog)
    found, waiting = {newest.id: newest}, [newest]
    while waiting:
        for older in list(catalog.documents(Select(superseded_by=waiting.pop().id))):
            if older.id not in found:
                found[older.id] = older
                waiting.append(older)
    return list(reversed(found.values()))


def _newest(document: Document, catalog: Catalog) -> Document:
    """Return the end of the chain that a document is in."""
    seen = {document.id}
    while document.superseded_by and document.superseded_by not in seen:
        newer = document_by_id(catalog, document.superseded_by)
        if newer is None:
            break
        document = newer
        seen.add(document.id)
    return document


def text_of(note: Note) -> str:
    """Return the text of a note, clean."""
    if not isinstance(note.content, str):
        raise BadValue(f"the content of a note is {note.content!r}", hint="give text")
    said = NoteText(note.content, note.summary, note.context, note.highlights, note.aliases, note.details)
    text = clean(note_text(said), paged=False).strip()
    if not text:
        raise BadValue("a note needs some text", hint=Hint(Action.NOTE, "give {note} something to remember"))
    return text


def _with_lists(note: Note) -> Note:
    """Return a note whose tags and the like are lists, also where a single text was given."""
    return replace(note, **{name: as_texts(name, getattr(note, name)) for name in _LISTS})


def _described(kept: KeptNote, text: str, source: Source) -> Document:
    note = kept.note
    title = " ".join(clean(note.title or "", paged=False).split()) or _title_from_words(note, text)
    given: dict[str, Json] = {name: to_builtins(getattr(note, name)) for name in _FIELDS}
    return Document(
        id=kept.id,
        source_id=source.id,
        path=f"{source.prefix}/{slug(title)}-{_short(kept.id)}",
        type="note",
        title=title,
        tags=tuple(dict.fromkeys(tag.strip() for tag in note.tags if tag.strip())),
        details=_plain(note.details),
        content_hash=hashlib.sha256(text.encode("utf-8", "replace")).hexdigest(),
        size=len(text.encode("utf-8", "replace")),
        # To the microsecond, which a date in text can say.
        mtime_ns=storable_ns(round(kept.changed_at * 1e6) * 1000),
        superseded_by=kept.superseded_by,
        indexed_at=time.time(),
        fields=_plain({name: value for name, value in given.items() if value or name == "content"}),
    )


def _plain(values: Mapping[str, Json]) -> dict[str, Json]:
    """Return values as every store can keep them: what JSON can say, whole characters, dates as text."""
    try:
        text = json.dumps(dict(values), default=str, allow_nan=False, ensure_ascii=False)
        plain: dict[str, Json] = json.loads(without_lone_surrogates(text))
    except (ValueError, TypeError, RecursionError) as fault:
        raise BadValue(f"a note's details must be JSON: {fault}", hint="no NaN, no loops") from fault
    return plain


def _title_from_words(note: Note, text: str) -> str:
    """Return a title made of a note's first words."""
    line = " ".join((clean(note.content).strip() or text).split("\n", 1)[0].lstrip("# ").split())
    return line if len(line) <= _LONGEST_TITLE else line[:_LONGEST_TITLE].rsplit(" ", 1)[0] + "…"


def slug(title: str) -> str:
    """Return a title as a part of a path."""
    return re.sub(r"[^\w]+", "-", title.lower()).strip("-")[:40] or "note"


def _short(document_id: str) -> str:
    """Return a short form of an id that tells notes apart; ids that others chose may all begin alike."""
    if _OWN_ID.fullmatch(document_id):
        return document_id[:6]
    return hashlib.sha256(document_id.encode("utf-8", "replace")).hexdigest()[:8]
