"""Books in EPUB as Markdown: their chapters in reading order, each a page of HTML.

A book keeps no lines, so citations count those of the Markdown, which is what `kb get` shows.
"""

from __future__ import annotations

import posixpath
import re
from urllib.parse import unquote
from xml.etree.ElementTree import Element

from concord.core.errors import Encrypted
from concord.core.overriding import override
from concord.core.protocols import Extractor
from concord.extract.decode import decode, with_plain_newlines
from concord.extract.html import markdown_of
from concord.extract.package import Package, checked, opened, said_by
from concord.extract.text import MAX_TITLE, first_heading
from concord.text.word_lists import listed
from concord.types import Extracted, Json

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_PAGES = frozenset({"application/xhtml+xml", "text/html", "text/x-oeb1-document"})
# XML may close any element at once. HTML would take <title/> for the beginning of one that never ends.
_CLOSED_AT_ONCE = re.compile(r"<([A-Za-z][\w:.-]*+)([^<>]*)/>")
_NEVER_CLOSED = listed("area base br col embed hr img input link meta source track wbr")
_DETAILS = {"creator": "author", "language": "language", "publisher": "publisher", "date": "date"}


class BookExtractor(Extractor):
    """Reads .epub."""

    @override
    def extract(self, data: bytes, name: str) -> Extracted:
        with opened(data, "EPUB book") as package:
            root = [file.get("full-path", "") for file in package.read(_CONTAINER).iter("rootfile")][0]
            contents = package.read(root)
            chapters = _chapters(contents, posixpath.dirname(root), package)
            _refuse_locked(package, chapters)
            texts = [_chapter(package.content(part)) for part in chapters]
        told = _told(contents)
        details: dict[str, Json] = {key: told[name] for name, key in _DETAILS.items() if name in told}
        text = checked("\n\n".join(filter(None, texts)))
        title = told.get("title", "")[:MAX_TITLE] or first_heading(text)
        return Extracted(text, "office", title=title, details=details)


def _told(contents: Element) -> dict[str, str]:
    """Return what a book tells of itself; the first title is the book's, later ones are of its parts."""
    return said_by(reversed([element for metadata in contents.iter("metadata") for element in metadata]))


def _chapters(contents: Element, folder: str, package: Package) -> list[str]:
    """Return the parts of the chapters in reading order, without the list of them."""
    pages = {
        item.get("id"): posixpath.normpath(posixpath.join(folder, unquote(item.get("href", ""))))
        for item in contents.iter("item")
        if item.get("media-type") in _PAGES and "nav" not in item.get("properties", "").split()
    }
    order = (pages.get(reference.get("idref"), "") for reference in contents.iter("itemref"))
    return [part for part in dict.fromkeys(order) if part in package]


def _refuse_locked(package: Package, chapters: list[str]) -> None:
    """Refuse a book whose chapters are encrypted; fonts often are, and nobody reads those."""
    if _ENCRYPTION in package:
        locked = {unquote(part.get("URI", "")) for part in package.read(_ENCRYPTION).iter("CipherReference")}
        if not locked.isdisjoint(chapters):
            raise Encrypted("is protected (DRM)", hint="only the program that it was bought for can read it")


def _chapter(data: bytes) -> str:
    source = with_plain_newlines(decode(data))
    return markdown_of(_CLOSED_AT_ONCE.sub(_closed, source), is_all_content=True)


def _closed(element: re.Match[str]) -> str:
    name, attributes = element[1], element[2]
    return element[0] if name.lower() in _NEVER_CLOSED else f"<{name}{attributes}></{name}>"
