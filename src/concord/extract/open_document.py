"""Texts and slides of LibreOffice as Markdown, workbooks of every kind, each sheet a table, and Rich Text.

They keep no lines, or break them where they like: citations count those of the Markdown, which is what
`kb get` shows. A slide is a page. Headings and tables of Rich Text are paragraphs.
"""

from __future__ import annotations

import re
from datetime import date, datetime, time
from io import BytesIO

from python_calamine import CalamineError, CalamineWorkbook, PasswordError
from striprtf.striprtf import rtf_to_text

from concord.core.errors import Damaged, Encrypted
from concord.core.protocols import Extractor, override
from concord.extract.formats import extension
from concord.extract.markdown_writer import LOWEST_HEADING, MAX_COLUMNS, MarkdownLines, escaped
from concord.extract.package import (
    Attributes,
    OfficeText,
    Package,
    checked,
    in_pages,
    opened,
    table_ends,
    table_starts,
)
from concord.extract.text import MAX_TITLE, first_heading
from concord.text.clean import clean
from concord.text.word_lists import listed
from concord.types import Extracted, Json

MAX_SPACES = 100  # that one element may stand for

_CONTENT = "content.xml"
_MANIFEST = "META-INF/manifest.xml"
# Deleted text, controls, lists of what stands elsewhere, descriptions of pictures, and furigana.
_LEFT_OUT = listed(
    "tracked-changes forms table-of-content alphabetical-index illustration-index table-index desc "
    "ruby-text hidden-text hidden-paragraph"
)
# Inside these, <title> is a field that shows the document's title; elsewhere it describes a picture.
_OF_TEXT = listed("p h span a")
_REPEATED = frozenset({"page-number", "date-time", "footer", "header"})  # frames that every slide has


class OpenDocumentExtractor(Extractor):
    """Reads .odt and .odp."""

    @override
    def extract(self, data: bytes, name: str) -> Extracted:
        with opened(data, "OpenDocument file") as package:
            _refuse_locked(package)
            body = _Body()
            package.read(_CONTENT, body)
            title, details = package.properties("meta.xml")
        text, starts = in_pages(body.markdown())
        told, heading = (title or "")[:MAX_TITLE] or None, first_heading(text)
        if not body.is_slides:
            return Extracted(text, "office", title=told or heading, details=details)
        return Extracted(
            text,
            "office",
            title=heading or told,  # as of PowerPoint: what a program noted may be its own name
            details={**details, "pages": len(starts)},
            page_starts=starts,
        )


def _refuse_locked(package: Package) -> None:
    if _MANIFEST in package and b"encryption-data" in package.content(_MANIFEST):
        raise Encrypted("is locked with a password", hint="save a copy without a password")


class _Body(OfficeText):
    """Writes the paragraphs, lists and tables of a document; slides are pages."""

    left_out = _LEFT_OUT

    def __init__(self) -> None:
        super().__init__()
        self.is_slides = False
        self._texts: list[str] = []  # open paragraphs and notes, the innermost last
        self._notes = 0  # how many notes are open
        self._gap = ""  # what goes before the next paragraph of a note
        self._frame = ""  # the purpose of the open frame of a slide
        self._open = [""]  # the open elements that are not left out, the innermost last

    def markdown(self) -> list[str]:
        """Return what was written, a text for each page."""
        first, *slides = [page.markdown() for page in self.pages]
        return slides if self.is_slides else [first]

    def start(self, name: str, attributes: Attributes) -> None:
        super().start(name, attributes)
        if not self.is_skipped:
            self._open.append(name)

    def end(self, name: str) -> None:
        if not self.is_skipped:
            self._open.pop()
        super().end(name)

    def is_left_out(self, name: str, attributes: Attributes) -> bool:
        is_alternative = name == "title" and self._open[-1] not in _OF_TEXT
        is_hidden = bool(self._texts) and attributes.get("display") == "none"
        return is_alternative or is_hidden or super().is_left_out(name, attributes)

    def text(self, text: str) -> None:
        if not self.is_skipped and self._frame not in _REPEATED and self._texts[-1:] == ["paragraph"]:
            self.page.text(text)

    def begin_slides(self, _: Attributes) -> None:
        self.is_slides = True

    def begin_slide(self, _: Attributes) -> None:
        if self.is_slides:
            self.page.end_block()
            self.pages.append(MarkdownLines())

    def begin_frame(self, attributes: Attributes) -> None:
        self._frame = attributes.get("class", "")

    def end_frame(self) -> None:
        self._frame = ""

    def begin_paragraph(self, _: Attributes) -> None:
        self._begin_text("h1" if self._frame == "title" else "p")

    def begin_heading(self, attributes: Attributes) -> None:
        level = attributes.get("outline-level", "1")
        self._begin_text(f"h{min(int(level), LOWEST_HEADING) if level.isdecimal() and int(level) else 1}")

    def _begin_text(self, tag: str) -> None:
        self._texts.append("paragraph")
        if self._notes:
            self.page.text(self._gap)
            self._gap = " "
        else:
            self.page.open(tag, {})

    def end_paragraph(self) -> None:
        self._end_text("h1" if self._frame == "title" else "p")

    def end_heading(self) -> None:
        self._end_text("h1")

    def _end_text(self, tag: str) -> None:
        if self._texts:
            self._texts.pop()
        if not self._notes:
            self.page.close(tag)

    def begin_note(self, _: Attributes) -> None:
        self._texts.append("note")
        self._notes += 1
        self._gap = " ("

    def end_note(self) -> None:
        self._texts.pop()
        self._notes -= 1
        self.page.text(")" if self._gap == " " else "")

    def space(self, attributes: Attributes) -> None:
        count = attributes.get("c", "1")
        self.text(" " * min(int(count) if count.isdecimal() else 1, MAX_SPACES))

    def line_break(self, _: Attributes) -> None:
        if self._texts[-1:] == ["paragraph"]:
            self.page.open("br", {})

    starts = {
        "presentation": begin_slides,
        "page": begin_slide,
        "frame": begin_frame,
        "p": begin_paragraph,
        "h": begin_heading,
        **dict.fromkeys(("note", "annotation"), begin_note),
        "list": lambda body, _: body.page.open("ul", {}),
        **dict.fromkeys(("list-item", "list-header"), lambda body, _: body.page.open("li", {})),
        **dict.fromkeys(("s", "tab"), space),
        "line-break": line_break,
        **table_starts("table", "table-row", "table-cell", "covered-table-cell"),
    }
    ends = {
        "frame": end_frame,
        "p": end_paragraph,
        "h": end_heading,
        **dict.fromkeys(("note", "annotation"), end_note),
        "list": lambda body: body.page.close("ul"),
        **dict.fromkeys(("list-item", "list-header"), lambda body: body.page.close("li")),
        **table_ends(
            *("table", "table-row", "table-cell", "covered-table-cell"), end_row=MarkdownLines.end_filled_row
        ),
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
            page.begin_table()
            is_begun = True
        if cells:
            page.row([*cells[:MAX_COLUMNS], *filter(None, cells[MAX_COLUMNS:])])
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
