"""Notes: short texts that people and agents keep, stored as documents without a file."""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from collections.abc import Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from concord.errors import BadValue, NotFound
from concord.protocols import Embedder, Store
from concord.sources import notes_source
from concord.text.chunk import ChunkSize, chunk
from concord.text.clean import clean
from concord.types import Document, Extracted, Json, Source


class Note(Struct, frozen=True):
    """What somebody wants kept."""

    content: str
    title: str | None = None
    tags: tuple[str, ...] = ()
    details: Mapping[str, Json] = field(default_factory=dict)


def save_note(
    note: Note, store: Store, measure: Embedder, size: ChunkSize, *, supersedes: str | None = None
) -> Document:
    """Store a note, and mark the document it supersedes.

    Raises:
        BadValue: there is nothing in it.
        NotFound: the document it supersedes does not exist.
    """
    text = clean(note.content, paged=False).strip()
    if not text:
        raise BadValue("a note needs some text", hint='kb note "what to remember"')
    old = _superseded(supersedes, store)
    source = notes_source(store.catalog)
    document = _document(note, text, source)
    pieces = chunk(Extracted(text, "markdown"), measure.token_starts, size)
    store.catalog.put_document(document, pieces)
    if old:
        store.catalog.update_document(replace(old, superseded_by=document.id))
    return document


def _superseded(document_id: str | None, store: Store) -> Document | None:
    if document_id is None:
        return None
    old = store.catalog.document(document_id)
    if old is None:
        raise NotFound(
            f"there is no document {document_id!r} to supersede", hint="search results give document_id"
        )
    return old


def _document(note: Note, text: str, source: Source) -> Document:
    id = secrets.token_hex(8)
    title = (note.title or "").strip() or _first_words(text)
    now = time.time()
    return Document(
        id=id,
        source_id=source.id,
        path=f"{source.prefix}/{_slug(title)}-{id[:6]}",
        type="note",
        title=title,
        tags=tuple(dict.fromkeys(tag.strip() for tag in note.tags if tag.strip())),
        details=note.details,
        content_hash=hashlib.sha256(text.encode("utf-8", "replace")).hexdigest(),
        size=len(text.encode("utf-8", "replace")),
        mtime_ns=int(now * 1e9),
        indexed_at=now,
    )


def _first_words(text: str, most: int = 60) -> str:
    line = " ".join(text.split("\n", 1)[0].lstrip("# ").split())
    return line if len(line) <= most else line[:most].rsplit(" ", 1)[0] + "…"


def _slug(title: str) -> str:
    return re.sub(r"[^\w]+", "-", title.lower()).strip("-")[:40] or "note"
