"""What is around a document? What it links to, what links to it, which links are broken, what is near it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct
from msgspec.structs import replace

from concord.core.reports import DocumentSlice
from concord.search.grouping import nearest_documents
from concord.store.contract import LinkRow, Select, Store
from concord.text.citations import cite
from concord.types import Document, LinkKind

MOST_LINKS = 8  # on each side, of what is read
BYTES_A_LINK = 500  # of a text for each of these: where there is little room, text comes first
_COMPARED = 30  # linked documents that are compared beside those with near chunks
_LINKED = 0.2  # what links add to a cosine, at most


class LinkEnd(Struct, frozen=True):
    """A link of a document, from either side."""

    kind: LinkKind
    text: str  # that stands for it, or the field or line that holds it
    target: str  # as it is written
    citation: str  # of the passage that holds it
    document_id: str | None  # at the other end; None where there is none
    path: str | None
    title: str | None


class DocumentLinks(Struct, frozen=True):
    """What a document links to, each document once for each kind of link, and what links to it."""

    document: Document | None
    out: tuple[LinkEnd, ...]
    back: tuple[LinkEnd, ...]
    broken: tuple[LinkEnd, ...]


class Near(Struct, frozen=True):
    """A document near another, and why."""

    document: Document
    score: float
    cosine: float | None  # of the means of their vectors; None where one has none
    out: tuple[LinkKind, ...]  # how the other links to it
    back: tuple[LinkKind, ...]


def links_of(document: Document, store: Store) -> DocumentLinks:
    """Return the links of a document, from both sides."""
    rows = [row for row in store.links.outgoing(document.id) if row.document_id != document.id]
    out = _ends((row for row in rows if row.document_id), store, lambda row: row.document_id)
    back = _ends(store.links.incoming(document.id), store, lambda row: row.origin)
    broken = _ends((row for row in rows if row.is_broken), store, lambda row: row.document_id)
    return DocumentLinks(document, out, back, broken)


def with_links(read: DocumentSlice, store: Store, most: int) -> DocumentSlice:
    """Return what was read, with the paths of the first few documents around it."""
    around = links_of(read.document, store)
    out, back = (
        tuple(dict.fromkeys(end.path for end in ends if end.path)) for ends in (around.out, around.back)
    )
    return replace(read, links=out[:most], backlinks=back[:most])


def broken_links(store: Store) -> DocumentLinks:
    """Return all links that lead to no document."""
    return DocumentLinks(None, (), (), _ends(store.links.broken(), store, lambda row: row.document_id))


def _ends(
    rows: Iterable[LinkRow], store: Store, other: Callable[[LinkRow], str | None]
) -> tuple[LinkEnd, ...]:
    unique: dict[tuple[str, str | None, str], LinkRow] = {}
    for row in rows:
        target = "" if other(row) else row.link.target
        unique.setdefault((row.link.kind, other(row), f"{row.origin} {target}"), row)
    places = store.catalog.read([row.chunk_id for row in unique.values()])
    ids = [id for _, id, _ in unique if id]
    documents = {document.id: document for document in store.catalog.documents(Select(ids=ids))}
    ends = []
    for (_, id, _), row in unique.items():
        known = documents.get(id or "")
        if row.chunk_id in places and (known or not id):
            chunk, holder = places[row.chunk_id]
            end = LinkEnd(
                row.link.kind,
                row.link.words,
                row.link.target,
                cite(holder, chunk),
                id,
                known.path if known else None,
                known.title if known else None,
            )
            ends.append(end)
    return tuple(ends)


def related_to(document: Document, store: Store, limit: int) -> list[Near]:
    """Return the nearest documents: by the means of their vectors, and by links."""
    out = _kinds((row.document_id, row.link.kind) for row in store.links.outgoing(document.id))
    back = _kinds((row.origin, row.link.kind) for row in store.links.incoming(document.id))
    cosines: dict[str, float] = {}
    if active := store.catalog.snapshot().active:
        linked, index = sorted({*out, *back})[:_COMPARED], store.models.index(active.identity)
        cosines = nearest_documents(document.id, linked, store.catalog, index)
    near = []
    for known in store.catalog.documents(Select(ids=[*{*cosines, *out, *back} - {document.id}])):
        if known.superseded_by is None:
            ours, theirs = out.get(known.id, ()), back.get(known.id, ())
            score = cosines.get(known.id, 0.0) + _LINKED * (1 - 0.5 ** (len(ours) + len(theirs)))
            near.append(Near(known, score, cosines.get(known.id), ours, theirs))
    return sorted(near, key=lambda row: (-row.score, row.document.path))[:limit]


def _kinds(pairs: Iterable[tuple[str | None, LinkKind]]) -> dict[str, tuple[LinkKind, ...]]:
    kinds: dict[str, dict[LinkKind, None]] = {}
    for id, kind in pairs:
        if id:
            kinds.setdefault(id, {})[kind] = None
    return {id: tuple(held) for id, held in kinds.items()}
