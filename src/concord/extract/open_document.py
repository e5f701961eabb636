"""Texts and slides of LibreOffice (OpenDocument) as Markdown: headings, lists, tables and notes.

They keep no lines, so citations count those of the Markdown, which is what `kb get` shows; a slide is a page.
"""

from __future__ import annotations

from collections.abc import Callable

from concord.errors import Encrypted
from concord.extract.markdown import first_heading
from concord.extract.markdown_writer import LOWEST_HEADING, MarkdownLines
from concord.extract.package import Attributes, Elements, Package, in_pages, opened
from concord.extract.plain import MAX_TITLE
from concord.text.word_lists import listed
from concord.types import Extracted

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


class OpenDocumentExtractor:
    """Reads .odt and .odp."""

    def extract(self, data: bytes, name: str) -> Extracted:
        """Return the document's text.

        Raises:
            Encrypted: it needs a password.
            Damaged: it is no OpenDocument file.
            TooLarge: it unfolds beyond the limits.
        """
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


class _Body(Elements):
    """Writes the paragraphs, lists and tables of a document; slides are pages."""

    def __init__(self) -> None:
        self.is_slides = False
        self._pages = [MarkdownLines()]
        self._texts: list[str] = []  # open paragraphs and notes, the innermost last
        self._notes = 0  # how many notes are open
        self._gap = ""  # what goes before the next paragraph of a note
        self._tables = 0  # how many tables are open: one inside another is only text
        self._frame = ""  # the purpose of the open frame of a slide
        self._left_out = 0  # how many levels deep in an element that is left out
        self._open = [""]  # the open elements that are not left out, the innermost last

    @property
    def _page(self) -> MarkdownLines:
        return self._pages[-1]

    def markdown(self) -> list[str]:
        """Return what was written, a text for each page."""
        first, *slides = [page.markdown() for page in self._pages]
        return slides if self.is_slides else [first]

    def start(self, name: str, attributes: Attributes) -> None:
        if self._left_out or self._is_left_out(name, attributes):
            self._left_out += 1
            return
        self._open.append(name)
        if action := _START.get(name):
            action(self, attributes)

    def end(self, name: str) -> None:
        if self._left_out:
            self._left_out -= 1
            return
        self._open.pop()
        if action := _END.get(name):
            action(self)

    def _is_left_out(self, name: str, attributes: Attributes) -> bool:
        is_alternative = name == "title" and self._open[-1] not in _OF_TEXT
        is_hidden = bool(self._texts) and attributes.get("display") == "none"
        return is_alternative or is_hidden or name in _LEFT_OUT

    def text(self, text: str) -> None:
        if self._left_out or self._frame in _REPEATED or self._texts[-1:] != ["paragraph"]:
            return
        self._page.text(text)

    def begin_slides(self, _: Attributes) -> None:
        self.is_slides = True

    def begin_slide(self, _: Attributes) -> None:
        if self.is_slides:
            self._page.end_block()
            self._pages.append(MarkdownLines())

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
            self._page.text(self._gap)
            self._gap = " "
        else:
            self._page.open(tag, {})

    def end_paragraph(self) -> None:
        self._end_text("h1" if self._frame == "title" else "p")

    def end_heading(self) -> None:
        self._end_text("h1")

    def _end_text(self, tag: str) -> None:
        if self._texts:
            self._texts.pop()
        if not self._notes:
            self._page.close(tag)

    def begin_note(self, _: Attributes) -> None:
        self._texts.append("note")
        self._notes += 1
        self._gap = " ("

    def end_note(self) -> None:
        self._texts.pop()
        self._notes -= 1
        self._page.text(")" if self._gap == " " else "")

    def begin_list(self, _: Attributes) -> None:
        self._page.open("ul", {})

    def end_list(self) -> None:
        self._page.close("ul")

    def begin_item(self, _: Attributes) -> None:
        self._page.open("li", {})

    def end_item(self) -> None:
        self._page.close("li")

    def space(self, attributes: Attributes) -> None:
        count = attributes.get("c", "1")
        self.text(" " * min(int(count) if count.isdecimal() else 1, MAX_SPACES))

    def line_break(self, _: Attributes) -> None:
        if self._texts[-1:] == ["paragraph"]:
            self._page.open("br", {})

    def begin_table(self, _: Attributes) -> None:
        self._tables += 1
        if self._tables == 1:
            self._page.begin_table()

    def end_table(self) -> None:
        self._page.end_block()
        self._tables -= 1

    def begin_row(self, _: Attributes) -> None:
        if self._tables == 1:
            self._page.begin_row()

    def end_row(self) -> None:
        if self._tables == 1:
            self._page.end_row()

    def begin_cell(self, _: Attributes) -> None:
        if self._tables == 1:
            self._page.begin_cell()

    def end_cell(self) -> None:
        if self._tables == 1:
            self._page.end_cell()


_START: dict[str, Callable[[_Body, Attributes], None]] = {
    "presentation": _Body.begin_slides,
    "page": _Body.begin_slide,
    "frame": _Body.begin_frame,
    "p": _Body.begin_paragraph,
    "h": _Body.begin_heading,
    "note": _Body.begin_note,
    "annotation": _Body.begin_note,
    "list": _Body.begin_list,
    "list-item": _Body.begin_item,
    "list-header": _Body.begin_item,
    "s": _Body.space,
    "tab": _Body.space,
    "line-break": _Body.line_break,
    "table": _Body.begin_table,
    "table-row": _Body.begin_row,
    "table-cell": _Body.begin_cell,
    "covered-table-cell": _Body.begin_cell,
}
_END: dict[str, Callable[[_Body], None]] = {
    "frame": _Body.end_frame,
    "p": _Body.end_paragraph,
    "h": _Body.end_heading,
    "note": _Body.end_note,
    "annotation": _Body.end_note,
    "list": _Body.end_list,
    "list-item": _Body.end_item,
    "list-header": _Body.end_item,
    "table": _Body.end_table,
    "table-row": _Body.end_row,
    "table-cell": _Body.end_cell,
    "covered-table-cell": _Body.end_cell,
}
