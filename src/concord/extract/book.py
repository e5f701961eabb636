"""Books in EPUB as Markdown: their chapters in reading order, each a page of HTML.

A book keeps no lines, so citations count those of the Markdown, which is what `kb get` shows.
"""

from __future__ import annotations

import posixpath
import re
from urllib.parse import unquote

from concord.core.errors import Encrypted
from concord.core.protocols import Extractor, override
from concord.extract.decode import decode, with_plain_newlines
from concord.extract.html import markdown_of
from concord.extract.package import Attributes, Elements, Package, checked, opened
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
            contents, chapters = _contents(package)
            _refuse_locked(package, chapters)
            texts = [_chapter(package.content(part)) for part in chapters]
        told: dict[str, Json] = {
            key: contents.told[name] for name, key in _DETAILS.items() if name in contents.told
        }
        text = checked("\n\n".join(filter(None, texts)))
        title = contents.told.get("title", "")[:MAX_TITLE] or first_heading(text)
        return Extracted(text, "office", title=title, details=told)


def _contents(package: Package) -> tuple[_Contents, list[str]]:
    """Return what a book tells of itself, and the parts of its chapters in reading order."""
    container = _Container()
    package.read(_CONTAINER, container)
    contents = _Contents()
    package.read(container.root, contents)
    folder = posixpath.dirname(container.root)
    paths = (contents.pages[key] for key in contents.order if key in contents.pages)
    parts = (posixpath.normpath(posixpath.join(folder, unquote(path))) for path in paths)
    return contents, [part for part in dict.fromkeys(parts) if part in package]


def _refuse_locked(package: Package, chapters: list[str]) -> None:
    """Refuse a book whose chapters are encrypted; fonts often are, and nobody reads those."""
    if _ENCRYPTION not in package:
        return
    locked = _Locked()
    package.read(_ENCRYPTION, locked)
    if not locked.parts.isdisjoint(chapters):
        raise Encrypted("is protected (DRM)", hint="only the program that it was bought for can read it")


def _chapter(data: bytes) -> str:
    source = with_plain_newlines(decode(data))
    return markdown_of(_CLOSED_AT_ONCE.sub(_closed, source), is_all_content=True)


def _closed(element: re.Match[str]) -> str:
    name, attributes = element[1], element[2]
    return element[0] if name.lower() in _NEVER_CLOSED else f"<{name}{attributes}></{name}>"


class _Container(Elements):
    """Where a book says what is in it."""

    root = ""

    def start(self, name: str, attributes: Attributes) -> None:
        if name == "rootfile":
            self.root = self.root or attributes.get("full-path", "")


class _Contents(Elements):
    """What a book tells of itself, its pages by their ids, and the order in which they are read."""

    def __init__(self) -> None:
        self.told: dict[str, str] = {}
        self.pages: dict[str, str] = {}
        self.order: list[str] = []
        self._is_told = False
        self._parts: list[str] = []

    def start(self, name: str, attributes: Attributes) -> None:
        self._parts.clear()
        if name == "metadata":
            self._is_told = True
        elif name == "item" and "nav" not in attributes.get("properties", "").split():
            if attributes.get("media-type") in _PAGES:
                self.pages[attributes.get("id", "")] = attributes.get("href", "")
        elif name == "itemref":
            self.order.append(attributes.get("idref", ""))

    def text(self, text: str) -> None:
        self._parts.append(text)

    def end(self, name: str) -> None:
        said = " ".join("".join(self._parts).split())
        self._parts.clear()
        if self._is_told and said:
            self.told.setdefault(name, said)  # the first title is the book's, later ones are of its parts
        if name == "metadata":
            self._is_told = False


class _Locked(Elements):
    """The parts that are encrypted."""

    def __init__(self) -> None:
        self.parts: set[str] = set()

    def start(self, name: str, attributes: Attributes) -> None:
        if name == "CipherReference":
            self.parts.add(unquote(attributes.get("URI", "")))
