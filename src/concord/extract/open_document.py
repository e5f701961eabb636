"""Texts of LibreOffice, workbooks of every kind, Rich Text and books in EPUB, as Markdown.

They keep no lines, or break them where they like: citations count those of the Markdown, which is what
`kb get` shows. A sheet is a table, slides of LibreOffice are one text. Headings and tables of Rich Text are
paragraphs.
"""

from __future__ import annotations

import posixpath
import re
from datetime import date, datetime, time
from io import BytesIO
from urllib.parse import unquote
from xml.etree.ElementTree import Element

from python_calamine import CalamineError, CalamineWorkbook, PasswordError
from striprtf.striprtf import rtf_to_text

from concord.core.errors import Damaged, Encrypted
from concord.core.overriding import override
from concord.core.protocols import Extractor
from concord.extract.decode import decode, with_plain_newlines
from concord.extract.formats import extension
from concord.extract.html import markdown_of
from concord.extract.markdown_writer import LOWEST_HEADING, MAX_COLUMNS, MarkdownLines, escaped
from concord.extract.package import OfficeText, Package, checked, opened, said_by
from concord.extract.text import MAX_TITLE, first_heading
from concord.text.clean import clean
from concord.text.word_lists import listed
from concord.types import Extracted, Json

_MANIFEST = "META-INF/manifest.xml"
# Deleted text, controls, lists of what stands elsewhere, descriptions of pictures, and furigana.
_LEFT_OUT = listed(
    "tracked-changes forms table-of-content alphabetical-index illustration-index table-index desc "
    "ruby-text hidden-text hidden-paragraph"
)


class OpenDocumentExtractor(Extractor):
    """Reads .odt and .odp."""

    @override
    def extract(self, data: bytes, name: str) -> Extracted:
        with opened(data, "OpenDocument file") as package:
            if _MANIFEST in package and b"encryption-data" in package.content(_MANIFEST):
                raise Encrypted("is locked with a password", hint="save a copy without a password")
            body = package.read("content.xml")
            text = checked(clean(_Body().written(body)))
            title, details = package.properties("meta.xml")
        return Extracted(
            text, "office", title=(title or "")[:MAX_TITLE] or first_heading(text), details=details
        )


class _Body(OfficeText):
    """Writes the paragraphs, lists and tables of a document."""

    left_out = _LEFT_OUT

    def __init__(self) -> None:
        super().__init__()
        self._is_text = False  # within a paragraph

    def written(self, element: Element) -> str:
        """Return what an element says as Markdown."""
        self.write(element)
        return self.page.markdown()

    @override
    def write(self, element: Element) -> None:
        for text, child in ((element.text, None), *((child.tail, child) for child in element)):
            if child is not None:
                self.write_child(child)
            if self._is_text:
                self.page.text(text or "")

    def frame(self, element: Element) -> None:
        for child in element:
            if child.tag in ("title", "desc"):  # of a picture; elsewhere it is a field: the document's title
                self.page.text(f" {child.text or ''} ")
            else:
                self.write_child(child)

    def paragraph(self, element: Element) -> None:
        self._text("p", element)

    def heading(self, element: Element) -> None:
        level = element.get("outline-level", "1")
        self._text(f"h{min(int(level), LOWEST_HEADING) if level.isdecimal() and int(level) else 1}", element)

    def _text(self, tag: str, element: Element) -> None:
        self._is_text = True
        self.within([tag], self.write, element)
        self._is_text = False

    def note(self, element: Element) -> None:
        words = (" ".join("".join(paragraph.itertext()).split()) for paragraph in element.iter("p"))
        self.page.text(f" ({' '.join(words)})")

    actions = {
        "frame": frame,
        "p": paragraph,
        "h": heading,
        **dict.fromkeys(("note", "annotation"), note),
        "list": lambda body, element: body.within(["ul"], body.write, element),
        **dict.fromkeys(
            ("list-item", "list-header"), lambda body, element: body.within(["li"], body.write, element)
        ),
        **dict.fromkeys(("s", "tab"), lambda body, _: body.page.text(" ")),
        "line-break": lambda body, _: body.page.open("br", {}),
        "table": OfficeText.table,
        "table-row": OfficeText.row,
        **dict.fromkeys(("table-cell", "covered-table-cell"), OfficeText.cell),
    }


class SheetExtractor(Extractor):
    """Reads .xlsx, .xlsb, .xls and .ods."""

    @override
    def extract(self, data: bytes, name: str) -> Extracted:
        page = MarkdownLines()
        title, details = _sheet_properties(data, name)
        try:
            workbook = CalamineWorkbook.from_filelike(BytesIO(data))
            unread = [sheet for sheet in workbook.sheet_names if not _write_sheet(page, sheet, workbook)]
        except PasswordError as fault:
            raise Encrypted("is locked with a password", hint="save a copy without a password") from fault
        except CalamineError as fault:
            raise Damaged(
                "is not a readable workbook: cut off, damaged, locked or something else",
                hint="open it in its own program, save it without a password, or fetch it again",
            ) from fault
        if unread and len(unread) == len(workbook.sheet_names):
            raise Damaged("has no sheet that can be read", hint="save it again in its own program")
        if unread:
            details["unread_sheets"] = list(unread)
        text = checked(clean(page.markdown()))
        return Extracted(text, "office", title=(title or "")[:MAX_TITLE] or None, details=details)


def _sheet_properties(data: bytes, name: str) -> tuple[str | None, dict[str, Json]]:
    if extension(name) == "xls":  # no archive: it keeps its title where no library of ours looks
        return None, {}
    with opened(data, "workbook") as package:
        return package.properties("meta.xml" if "meta.xml" in package else "docProps/core.xml")


def _write_sheet(page: MarkdownLines, sheet: str, workbook: CalamineWorkbook) -> bool:
    """Write what a sheet holds; return whether it can be read, which a single bad cell prevents."""
    try:
        rows = workbook.get_sheet_by_name(sheet).iter_rows()
    except CalamineError:
        return False
    is_begun = False
    for values in rows:
        cells = [_shown(value) for value in values]
        while cells and not cells[-1]:
            cells.pop()
        if cells and not is_begun:
            page.heading(sheet)
            page.open("table", {})
            is_begun = True
        if cells:
            page.row([*cells[:MAX_COLUMNS], *filter(None, cells[MAX_COLUMNS:])])
    if is_begun:
        page.close("table")
    return True


def _shown(value: object) -> str:
    """Return a cell's value as text: numbers without noise, days and times as ISO 8601 has them."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        return f"{value:.15g}"
    if isinstance(value, datetime):
        return value.isoformat(" ", "minutes").removesuffix(" 00:00")
    if isinstance(value, date):
        return value.isoformat()
    return value.isoformat("minutes") if isinstance(value, time) else str(value).strip()


_FOOTNOTE = r"{\footnote"  # which striprtf leaves out
_INFORMATION = re.compile(r"\{\\(title|author)[ ]([^{}]{1,1000})\}")


class RichTextExtractor(Extractor):
    """Reads .rtf."""

    @override
    def extract(self, data: bytes, name: str) -> Extracted:
        source = data.decode("latin-1")
        information = {found[1]: _rich_text(f"{{{found[2]}}}") for found in _INFORMATION.finditer(source)}
        paragraphs = (
            " ".join(line.rstrip("|").replace("|", " | ").split())
            for line in _rich_text(source.replace(_FOOTNOTE, "{ ")).split("\n")
        )
        text = "\n\n".join(escaped(paragraph) for paragraph in paragraphs if paragraph)
        title = information.pop("title", "")[:MAX_TITLE] or None
        return Extracted(checked(clean(text)), "office", title=title, details=information)


def _rich_text(rtf: str) -> str:
    shown: str = rtf_to_text(rtf, errors="replace")  # type: ignore[no-untyped-call]
    return shown.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # pairs are written by halves


_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_CHAPTERS = frozenset({"application/xhtml+xml", "text/html", "text/x-oeb1-document"})
# XML may close any element at once. HTML would take <title/> for the beginning of one that never ends.
_CLOSED_AT_ONCE = re.compile(
    r"<(?!(?i:area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr)\b)([A-Za-z][\w:.-]*+)([^<>]*)/>"
)
_DETAILS = {"creator": "author", "language": "language", "publisher": "publisher", "date": "date"}


class BookExtractor(Extractor):
    """Reads .epub: chapters in reading order, each a page of HTML."""

    @override
    def extract(self, data: bytes, name: str) -> Extracted:
        with opened(data, "EPUB book") as package:
            root = [file.get("full-path", "") for file in package.read(_CONTAINER).iter("rootfile")][0]
            contents = package.read(root)
            chapters = _chapters(contents, posixpath.dirname(root), package)
            if _ENCRYPTION in package:  # fonts often are, and nobody reads those
                parts = package.read(_ENCRYPTION).iter("CipherReference")
                if not {unquote(part.get("URI", "")) for part in parts}.isdisjoint(chapters):
                    hint = "only the program that it was bought for can read it"
                    raise Encrypted("is protected (DRM)", hint=hint)
            sources = [with_plain_newlines(decode(package.content(part))) for part in chapters]
        pages = (_CLOSED_AT_ONCE.sub(r"<\1\2></\1>", source) for source in sources)
        texts = [markdown_of(page, is_all_content=True) for page in pages]
        # The first title is the book's, later ones are of its parts.
        told = said_by(reversed([element for metadata in contents.iter("metadata") for element in metadata]))
        details: dict[str, Json] = {key: told[name] for name, key in _DETAILS.items() if name in told}
        text = checked("\n\n".join(filter(None, texts)))
        title = told.get("title", "")[:MAX_TITLE] or first_heading(text)
        return Extracted(text, "office", title=title, details=details)


def _chapters(contents: Element, folder: str, package: Package) -> list[str]:
    """Return the parts of the chapters in reading order, without the list of them."""
    pages = {
        item.get("id"): posixpath.normpath(posixpath.join(folder, unquote(item.get("href", ""))))
        for item in contents.iter("item")
        if item.get("media-type") in _CHAPTERS and "nav" not in item.get("properties", "").split()
    }
    order = (pages.get(reference.get("idref"), "") for reference in contents.iter("itemref"))
    return [part for part in dict.fromkeys(order) if part in package]
