"""Word documents as Markdown: headings, lists, tables and notes; deleted text is left out.

Word keeps no lines, so citations count those of the Markdown, which is what `kb get` shows.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from concord.extract.markdown import first_heading
from concord.extract.markdown_writer import LOWEST_HEADING, MarkdownLines
from concord.extract.package import Attributes, Elements, Package, checked, opened
from concord.extract.plain import MAX_TITLE
from concord.text.clean import clean
from concord.types import Extracted

_NOTES = ("footnotes.xml", "endnotes.xml", "comments.xml")  # beside the document
# Earlier versions of text and of formats; <Fallback> repeats a shape for old programs.
_LEFT_OUT = frozenset({"moveFrom", "pPrChange", "Fallback"})
_HEADING_STYLE = re.compile(r"heading ([1-9])$")
_LIST_STYLE = re.compile(r"list (?:bullet|number)")
_LEVELS = "012345678"


class _Style(NamedTuple):
    heading: int = 0  # level as a heading; 0 if it is none
    depth: int = 0  # level in nested lists; 0 if it is in none


class WordExtractor:
    """Reads .docx."""

    def extract(self, data: bytes, name: str) -> Extracted:
        """Return the document's text.

        Raises:
            Encrypted: it needs a password.
            Damaged: it is no Word document.
            TooLarge: it unfolds beyond the limits.
        """
        with opened(data, "Word document") as package:
            main = package.main_part
            body = _Body(_styles(package, main))
            package.read(main, body)
            for part in (posixpath.join(posixpath.dirname(main), note) for note in _NOTES):
                if part in package:
                    package.read(part, body)
            title, details = package.properties()
        text = checked(clean(body.markdown()))
        return Extracted(
            text, "office", title=(title or "")[:MAX_TITLE] or first_heading(text), details=details
        )


class _Styles(Elements):
    """The styles of paragraphs, which have other names in every language, by their ids."""

    def __init__(self) -> None:
        self.styles: dict[str, _Style] = {}
        self._id = ""

    def start(self, name: str, attributes: Attributes) -> None:
        value = attributes.get("val", "")
        if name == "style":
            self._id = attributes.get("styleId", "")
            self.styles[self._id] = _Style()
        elif name == "name" and self._id:
            self.styles[self._id] = _style_called(value.lower())
        elif name == "outlineLvl" and self._id and value.isdecimal() and int(value) < LOWEST_HEADING:
            self.styles[self._id] = _Style(heading=int(value) + 1)


def _style_called(name: str) -> _Style:
    if name == "title":
        return _Style(heading=1)
    if found := _HEADING_STYLE.match(name):
        return _Style(heading=min(int(found[1]), LOWEST_HEADING))
    return _Style(depth=1) if _LIST_STYLE.match(name) else _Style()


def _styles(package: Package, main: str) -> Mapping[str, _Style]:
    styles = _Styles()
    part = posixpath.join(posixpath.dirname(main), "styles.xml")
    if part in package:
        package.read(part, styles)
    return styles.styles


class _Body(Elements):
    """Writes the paragraphs and tables of a part."""

    def __init__(self, styles: Mapping[str, _Style]) -> None:
        self._styles = styles
        self._page = MarkdownLines()
        self._style = _Style()  # of the paragraph that has just begun
        self._closing: list[list[str]] = []  # for each open paragraph, the tags that close it
        self._tables = 0  # how many tables are open: one inside another is only text
        self._is_text = False
        self._left_out = 0  # how many levels deep in an element that is left out

    def markdown(self) -> str:
        """Return what was written."""
        return self._page.markdown()

    def start(self, name: str, attributes: Attributes) -> None:
        if self._left_out or name in _LEFT_OUT:
            self._left_out += 1
        elif action := _START.get(name):
            action(self, attributes)

    def end(self, name: str) -> None:
        if self._left_out:
            self._left_out -= 1
        elif action := _END.get(name):
            action(self)

    def text(self, text: str) -> None:
        if self._is_text and not self._left_out:
            self._page.text(text)

    def begin_paragraph(self, _: Attributes) -> None:
        self._page.open("p", {})
        self._closing.append(["p"])
        self._style = _Style()

    def take_style(self, attributes: Attributes) -> None:
        self._style = self._styles.get(attributes.get("val", ""), _Style())

    def take_list(self, attributes: Attributes) -> None:
        if self._style.depth == 0:
            self._style = self._style._replace(depth=1)

    def take_depth(self, attributes: Attributes) -> None:
        level = attributes.get("val", "")
        self._style = self._style._replace(depth=_LEVELS.find(level) + 1 or 1)

    def take_numbering(self, attributes: Attributes) -> None:
        if attributes.get("val") == "0":  # how a paragraph says that it is in no list after all
            self._style = self._style._replace(depth=0)

    def style_paragraph(self) -> None:
        if not self._closing:
            return
        tags = [f"h{self._style.heading}"] if self._style.heading else ["ul"] * self._style.depth
        if tags[:1] == ["ul"]:
            tags.append("li")
        for tag in tags:
            self._page.open(tag, {})
        self._closing[-1] = tags[::-1] or ["p"]

    def end_paragraph(self) -> None:
        for tag in self._closing.pop() if self._closing else ():
            self._page.close(tag)

    def begin_table(self, _: Attributes) -> None:
        self._tables += 1
        self._in_outer_table(MarkdownLines.begin_table)

    def end_table(self) -> None:
        self._page.end_block()
        self._tables -= 1

    def begin_text(self, _: Attributes) -> None:
        self._is_text = True

    def end_text(self) -> None:
        self._is_text = False

    def space(self, _: Attributes) -> None:
        self._page.text(" ")

    def line_break(self, _: Attributes) -> None:
        self._page.open("br", {})

    def hyphen(self, _: Attributes) -> None:
        self._page.text("-")

    def begin_row(self, _: Attributes) -> None:
        self._in_outer_table(MarkdownLines.begin_row)

    def begin_cell(self, _: Attributes) -> None:
        self._in_outer_table(MarkdownLines.begin_cell)

    def end_row(self) -> None:
        self._in_outer_table(MarkdownLines.end_row)

    def end_cell(self) -> None:
        self._in_outer_table(MarkdownLines.end_cell)

    def _in_outer_table(self, action: Callable[[MarkdownLines], None]) -> None:
        if self._tables == 1:
            action(self._page)


_START: dict[str, Callable[[_Body, Attributes], None]] = {
    "p": _Body.begin_paragraph,
    "pStyle": _Body.take_style,
    "numPr": _Body.take_list,
    "ilvl": _Body.take_depth,
    "numId": _Body.take_numbering,
    "t": _Body.begin_text,
    "tab": _Body.space,
    "br": _Body.line_break,
    "cr": _Body.line_break,
    "noBreakHyphen": _Body.hyphen,
    "tbl": _Body.begin_table,
    "tr": _Body.begin_row,
    "tc": _Body.begin_cell,
}
_END: dict[str, Callable[[_Body], None]] = {
    "p": _Body.end_paragraph,
    "pPr": _Body.style_paragraph,
    "t": _Body.end_text,
    "tbl": _Body.end_table,
    "tr": _Body.end_row,
    "tc": _Body.end_cell,
}
