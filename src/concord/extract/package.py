"""Office files and books are ZIP archives of XML parts: how a part is read without trusting it.

Parts are unpacked and parsed piece by piece, so that what unfolds beyond all measure is noticed before it is
in memory. Parts that declare entities or default attributes are refused, because those unfold while they are
parsed; no Office program declares any. Names of elements and attributes are those without a prefix.
"""

from __future__ import annotations

import posixpath
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from io import BytesIO
from typing import Any
from xml.etree.ElementTree import Element, ParseError, TreeBuilder
from xml.parsers import expat
from zipfile import BadZipFile, ZipFile

from concord.core.errors import Damaged, Encrypted, TooLarge
from concord.extract.markdown_writer import MarkdownLines
from concord.text.clean import clean
from concord.text.word_lists import paired
from concord.types import Json

MAX_XML_BYTES = 200_000_000  # unpacked, all parts together: 3,000 pages of Word have 50 MB
MAX_CHARACTERS = 20_000_000  # of text, as for PDF

_BLOCK = 1 << 16
_BY_MACHINE = "Description automatically generated"
_LOCKED = bytes.fromhex("D0CF11E0A1B11AE1")  # a compound file: what is encrypted is put into one, whole
_BROKEN = (
    BadZipFile, zlib.error, struct.error, expat.ExpatError, ParseError, NotImplementedError, RuntimeError,
)  # fmt: skip
# A part or an encoding that is not there, and a part that is cut off or begins before the file.
_MISSING = (LookupError, EOFError, OSError, ValueError, AttributeError)
# As Microsoft, then as OpenDocument calls them; there, `creator` is who was the last to change it.
_PROPERTIES = paired(
    "creator author initial-creator author subject subject keywords keywords keyword keywords "
    "created created creation-date created modified modified date modified"
)


@contextmanager
def opened(data: bytes, kind: str) -> Iterator[Package]:
    """Open an Office file, called `kind` where it is broken."""
    if data.startswith(_LOCKED):
        raise Encrypted(
            "is locked with a password, or of the format before 2007",
            hint="save a copy without a password, in the newer format",
        )
    try:
        with ZipFile(BytesIO(data)) as archive:
            yield Package(archive)
    except (*_BROKEN, *_MISSING) as fault:
        raise Damaged(
            f"is not a readable {kind}: cut off, damaged or something else",
            hint="open it in its own program, or fetch it again",
        ) from fault


class Package:
    """An open Office file."""

    def __init__(self, archive: ZipFile) -> None:
        self._archive = archive
        self._names = frozenset(archive.namelist())
        self._room = MAX_XML_BYTES

    def __contains__(self, part: str) -> bool:
        return part in self._names

    @property
    def main_part(self) -> str:
        """The part that holds the document itself."""
        return [part for kind, part in self._relations("", "Type") if kind.endswith("/officeDocument")][0]

    def read(self, part: str) -> Element:
        """Return the elements of a part."""
        tree = TreeBuilder()
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.EntityDeclHandler = parser.AttlistDeclHandler = _refuse
        parser.StartElementHandler = lambda name, attributes: tree.start(
            _local(name), {_local(key): value for key, value in attributes.items()}
        )
        parser.EndElementHandler = lambda name: tree.end(_local(name))
        parser.CharacterDataHandler = tree.data
        for block in self._blocks(part):
            parser.Parse(block, False)
        parser.Parse(b"", True)
        return tree.close()

    def content(self, part: str) -> bytes:
        """Return a part as it is."""
        return b"".join(self._blocks(part))

    def _blocks(self, part: str) -> Iterator[bytes]:
        with self._archive.open(part) as file:
            while block := file.read(_BLOCK):
                self._room -= len(block)
                if self._room < 0:
                    raise TooLarge(f"unfolds into more than {MAX_XML_BYTES // 1_000_000} MB")
                yield block

    def targets(self, part: str) -> dict[str, str]:
        """Return the parts that a part refers to, by their id in it."""
        return {key: target for key, target in self._relations(part, "Id") if target in self}

    def _relations(self, part: str, key: str) -> Iterator[tuple[str, str]]:
        folder, name = posixpath.split(part)
        rules = posixpath.join(folder, f"_rels/{name}.rels")
        for relation in self.read(rules).iter("Relationship") if rules in self else ():
            if relation.get("TargetMode") != "External":
                target = posixpath.normpath(posixpath.join("/", folder, relation.get("Target", "")))
                yield relation.get(key, ""), target.lstrip("/")

    def properties(self, part: str = "docProps/core.xml") -> tuple[str | None, dict[str, Json]]:
        """Return the title that somebody gave, and what else is known of the document."""
        texts = said_by(self.read(part).iter()) if part in self else {}
        details: dict[str, Json] = {name: texts[key] for key, name in _PROPERTIES.items() if key in texts}
        return texts.get("title"), details


class OfficeText:
    """Writes what elements say as Markdown, by a table of what each does; others are gone through."""

    actions: Mapping[str, Callable[[Any, Element], None]] = {}
    left_out: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self.page = MarkdownLines()

    def write(self, element: Element) -> None:
        """Write what is in an element."""
        for child in element:
            self.write_child(child)

    def write_child(self, child: Element) -> None:
        """Write an element."""
        if child.tag not in self.left_out:
            self.actions.get(child.tag, type(self).write)(self, child)

    def inline(self, element: Element) -> None:
        """Write the runs of text in a paragraph, for Microsoft's formats."""
        for child in element:
            if child.tag == "t":
                self.page.text(child.text or "")
            elif child.tag in ("br", "cr"):
                self.page.open("br", {})
            elif child.tag in ("tab", "noBreakHyphen"):
                self.page.text(" " if child.tag == "tab" else "-")
            elif child.tag == "docPr":
                self.picture(child)
            elif child.tag not in self.left_out:
                self.inline(child)
                if child.tag == "p":  # of a box in a paragraph
                    self.page.open("br", {})

    def picture(self, element: Element) -> None:
        """Write what was said of a picture, for those who do not see it."""
        said = dict.fromkeys(element.get(name, "").removesuffix(_BY_MACHINE) for name in ("title", "descr"))
        self.page.text(f" {' '.join(filter(None, said))} ")

    def within(self, tags: Sequence[str], write: Callable[[Element], None], element: Element) -> None:
        """Write an element between tags, the outermost first."""
        for tag in tags:
            self.page.open(tag, {})
        write(element)
        for tag in reversed(tags):
            self.page.close(tag)

    def table(self, element: Element) -> None:
        """Write a table."""
        self.within(["table"], self.write, element)

    def row(self, element: Element) -> None:
        """Write a row of a table."""
        self.within(["tr"], self.write, element)

    def cell(self, element: Element) -> None:
        """Write a cell of a table."""
        self.within(["td"], self.write, element)


def said_by(elements: Iterable[Element]) -> dict[str, str]:
    """Return what elements say that say anything, by their names."""
    return {element.tag: words for element in elements if (words := " ".join((element.text or "").split()))}


def _refuse(*_: object) -> None:
    raise Damaged("declares entities or attributes, which no Office program does")


@lru_cache(maxsize=1024)  # a document uses a few dozen names, a million times
def _local(name: str) -> str:
    return name.rpartition(":")[2]


def checked(text: str) -> str:
    """Return a text, if it is not too long to be worth indexing."""
    if len(text) > MAX_CHARACTERS:
        raise TooLarge(f"holds more than {MAX_CHARACTERS} characters", hint="split it into parts")
    return text


def in_pages(pages: Sequence[str]) -> tuple[str, tuple[int, ...]]:
    """Return the text of all pages, and where in it each begins."""
    parts: list[str] = []
    starts: list[int] = []
    length = 0
    for page in map(clean, pages):
        gap = "\n\n" if page and length else ""
        starts.append(length + len(gap))
        parts.append(gap + page)
        length += len(gap) + len(page)
    return checked("".join(parts)), tuple(starts)
