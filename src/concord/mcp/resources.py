"""Documents as resources: `kb://documents/` and a citation. Listed in pages, read whole or in part."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from mcp_types import ListResourcesResult, Resource

from concord.core.errors import BadValue, NotFound
from concord.text.clean import encodable
from concord.types import Document, DocumentType

if TYPE_CHECKING:
    from concord.knowledge import KnowledgeBase

PREFIX = "kb://documents/"
TEMPLATE = PREFIX + "{+citation}"
_AFTER = "after:"
PAGE = 200  # documents in one page of the listing
MAX_BYTES = 1_000_000  # of one reading: no client wants more at once, and kb_get reads in pages

# What the text of a document is after it was read: HTML and Word files have become Markdown.
MIME_TYPES: dict[DocumentType, str] = {
    "markdown": "text/markdown",
    "html": "text/markdown",
    "office": "text/markdown",
    "mail": "text/markdown",
    "notebook": "text/markdown",
    "note": "text/markdown",
}


def listing(kb: KnowledgeBase, cursor: str | None) -> ListResourcesResult:
    """Return a page of the documents, in order of path; the cursor is the last path of the page before.

    Raises:
        BadValue: the cursor is none of ours.
    """
    after = name_before(cursor)
    found = list(islice(_following(kb, after), PAGE + 1))
    more = cursor_after(found[PAGE - 1].path) if len(found) > PAGE else None
    return ListResourcesResult(resources=[_resource(document) for document in found[:PAGE]], next_cursor=more)


def read(kb: KnowledgeBase, uri: str) -> tuple[str, str]:
    """Return the text that a URI stands for, and its MIME type.

    Raises:
        NotFound: nothing of that name is indexed.
        BadValue: the text is too long to be read at once.
    """
    if not uri.startswith(PREFIX):
        raise NotFound(f"there is no resource {uri!r}", hint=f"documents are {TEMPLATE}")
    page = kb.page(cited_by(uri), max_bytes=MAX_BYTES)
    if page.next_cursor is not None:
        path = page.slice.document.path
        raise BadValue(f"{path} is too long to be read at once", hint="kb_get reads it in pages")
    return page.slice.text, MIME_TYPES.get(page.slice.document.type, "text/plain")


def cited_by(uri: str) -> str:
    """Return the citation that a URI of ours stands for; what is none stays as it is."""
    return unquote(uri.removeprefix(PREFIX)) if uri.startswith(PREFIX) else uri


def cursor_after(name: str) -> str:
    """Return the cursor of the page that follows a name, so that changes meanwhile shift nothing."""
    return encodable(_AFTER + name)


def name_before(cursor: str | None) -> str:
    """Return the name that a page follows; none is before the first page.

    Raises:
        BadValue: the cursor is none of ours.
    """
    if cursor is None:
        return ""
    if not cursor.startswith(_AFTER):
        raise BadValue("this is not a cursor that was given here", hint="pass the next cursor as it is")
    return cursor.removeprefix(_AFTER)


def uri_of(citation: str) -> str:
    """Return the URI of a document or passage."""
    return PREFIX + quote(citation.encode("utf-8", "replace"), safe="/:")


def _following(kb: KnowledgeBase, after: str) -> Iterator[Document]:
    return (document for document in kb.documents() if document.path > after)


def _resource(document: Document) -> Resource:
    return Resource(
        uri=uri_of(document.path),
        name=encodable(document.path),
        title=encodable(document.title),
        mime_type=MIME_TYPES.get(document.type, "text/plain"),
        size=document.size or None,
    )
