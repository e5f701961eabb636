"""Office files and books are ZIP archives of XML parts: how a part is read without trusting it.

Parts are unpacked and parsed piece by piece, so that what unfolds beyond all measure is noticed before it is
in memory. Parts that declare entities or default attributes are refused, because those unfold while they are
parsed; no Office program declares any.
"""

from __future__ import annotations

import posixpath
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from io import BytesIO
from typing import Any
from xml.parsers import expat
from zipfile import BadZipFile, ZipFile

from concord.core.errors import Damaged, Encrypted, TooLarge
from concord.extract.markdown_writer import MarkdownLines
from concord.text.clean import clean
from concord.types import Json

MAX_XML_BYTES = 200_000_000  # unpacked, all parts together: 3,000 pages of Word have 50 MB
MAX_CHARACTERS = 20_000_000  # of text, as for PDF

_BLOCK = 1 << 16
_LOCKED = bytes.fromhex("D0CF11E0A1B11AE1")  # a compound file: what is encrypted is put into one, whole
_BROKEN = (BadZipFile, zlib.error, struct.error, expat.ExpatError, NotImplementedError, RuntimeError)
# A part or an encoding that is not there, and a part that is cut off or begins before the file.
_MISSING = (LookupError, EOFError, OSError, ValueError)
# As Microsoft, then as OpenDocument calls them; there, `creator` is who was the last to change it.
_PROPERTIES = {
    "creator": "author",
    "initial-creator": "author",
    "subject": "subject",
    "keywords": "keywords",
    "keyword": "keywords",
    "created": "created",
    "creation-date": "created",
    "modified": "modified",
    "date": "modified",
}

Attributes = Mapping[str, str]


class Elements:
    """Takes the elements of a part as they come, by their names without a prefix."""

    def start(self, name: str, attributes: Attributes) -> None:
        """Take the start of an element."""

    def end(self, name: str) -> None:
        """Take the end of an element."""

    def text(self, text: str) -> None:
        """Take text."""


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
        kinds = _Relationships("", by="Type")
        self.read("_rels/.rels", kinds)
        for kind, part in kinds.targets.items():
            if kind.endswith("/officeDocument"):
                return part
        raise KeyError("officeDocument")

    def read(self, part: str, elements: Elements) -> None:
        """Hand over the elements of a part."""
        parser = _parser(elements)
        for block in self._blocks(part):
            parser.Parse(block, False)
        parser.Parse(b"", True)

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
        folder, name = posixpath.split(part)
        found = _Relationships(folder, by="Id")
        rules = f"{folder}/_rels/{name}.rels"
        if rules in self:
            self.read(rules, found)
        return found.targets

    def properties(self, part: str = "docProps/core.xml") -> tuple[str | None, dict[str, Json]]:
        """Return the title that somebody gave, and what else is known of the document."""
        found = _Texts()
        if part in self:
            self.read(part, found)
        told = {name: found.texts[key] for key, name in _PROPERTIES.items() if found.texts.get(key)}
        return found.texts.get("title") or None, dict(told)


class OfficeText(Elements):
    """Writes what a part says as Markdown; `starts` and `ends` are what each element does."""

    starts: Mapping[str, Callable[[Any, Attributes], None]] = {}
    ends: Mapping[str, Callable[[Any], None]] = {}
    left_out: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self.pages = [MarkdownLines()]
        self.tables = 0  # how many tables are open: one inside another is only text
        self.is_text = True  # whether text is taken here
        self._skipped = 0  # how many levels deep in an element that is left out

    @property
    def page(self) -> MarkdownLines:
        """What is written to."""
        return self.pages[-1]

    @property
    def is_skipped(self) -> bool:
        """Whether the open element is left out."""
        return self._skipped > 0

    def is_left_out(self, name: str, attributes: Attributes) -> bool:
        """Whether an element and all that is in it are left out."""
        return name in self.left_out

    def start(self, name: str, attributes: Attributes) -> None:
        """Do what the table says of the start of an element."""
        if self._skipped or self.is_left_out(name, attributes):
            self._skipped += 1
        elif action := self.starts.get(name):
            action(self, attributes)

    def end(self, name: str) -> None:
        """Do what the table says of the end of an element."""
        if self._skipped:
            self._skipped -= 1
        elif action := self.ends.get(name):
            action(self)

    def begin_text(self, _: Attributes) -> None:
        """Take text from here on."""
        self.is_text = True

    def end_text(self) -> None:
        """Take no more text."""
        self.is_text = False

    def begin_table(self, _: Attributes) -> None:
        """Begin a table."""
        self.tables += 1
        if self.tables == 1:
            self.page.begin_table()

    def end_table(self) -> None:
        """End a table."""
        self.page.end_block()
        self.tables -= 1


def table_starts(table: str, row: str, *cells: str) -> dict[str, Callable[[Any, Attributes], None]]:
    """Return what the starts of a table's elements do, by their names."""
    return {
        table: OfficeText.begin_table,
        row: lambda text, _: _in_outer(text, MarkdownLines.begin_row),
        **{cell: lambda text, _: _in_outer(text, MarkdownLines.begin_cell) for cell in cells},
    }


def table_ends(
    table: str, row: str, *cells: str, end_row: Callable[[MarkdownLines], None] = MarkdownLines.end_row
) -> dict[str, Callable[[Any], None]]:
    """Return what the ends of a table's elements do, by their names."""
    return {
        table: OfficeText.end_table,
        row: lambda text: _in_outer(text, end_row),
        **{cell: lambda text: _in_outer(text, MarkdownLines.end_cell) for cell in cells},
    }


def _in_outer(text: OfficeText, action: Callable[[MarkdownLines], None]) -> None:
    if text.tables == 1:
        action(text.page)


def _parser(elements: Elements) -> expat.XMLParserType:
    def start(name: str, attributes: dict[str, str]) -> None:
        elements.start(_local(name), {_local(key): value for key, value in attributes.items()})

    def refuse(*_: object) -> None:
        raise Damaged("declares entities or attributes, which no Office program does")

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.EntityDeclHandler = parser.AttlistDeclHandler = refuse
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda name: elements.end(_local(name))
    parser.CharacterDataHandler = elements.text
    return parser


@lru_cache(maxsize=1024)  # a document uses a few dozen names, a million times
def _local(name: str) -> str:
    return name.rpartition(":")[2]


class _Relationships(Elements):
    def __init__(self, folder: str, *, by: str) -> None:
        self._folder = folder
        self._by = by
        self.targets: dict[str, str] = {}

    def start(self, name: str, attributes: Attributes) -> None:
        if name == "Relationship" and attributes.get("TargetMode") != "External":
            target = posixpath.normpath(posixpath.join("/", self._folder, attributes.get("Target", "")))
            self.targets[attributes.get(self._by, "")] = target.lstrip("/")


class _Texts(Elements):
    """The text of each element that holds nothing else."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self._parts: list[str] = []

    def start(self, name: str, attributes: Attributes) -> None:
        self._parts.clear()

    def end(self, name: str) -> None:
        self.texts[name] = " ".join("".join(self._parts).split())
        self._parts.clear()

    def text(self, text: str) -> None:
        self._parts.append(text)


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
