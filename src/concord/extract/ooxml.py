"""Word documents and PowerPoint presentations as Markdown: headings, lists, tables and notes.

Word keeps no lines: citations count those of the Markdown, which is what `kb get` shows. A slide is a page,
which citations name as they do pages of a PDF. What was deleted, and what repeats on every slide, is left
out.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from typing import NamedTuple

from concord.core.errors import TooLarge
from concord.core.protocols import Extractor, override
from concord.extract.markdown_writer import LOWEST_HEADING
from concord.extract.package import (
    Attributes,
    Elements,
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
from concord.types import Extracted

_NOTES = ("footnotes.xml", "endnotes.xml", "comments.xml")  # beside the document
# Earlier versions of text and of formats; <Fallback> repeats a shape for old programs.
_LEFT_OUT = frozenset({"moveFrom", "pPrChange", "Fallback"})
_HEADING_STYLE = re.compile(r"heading ([1-9])$")
_LIST_STYLE = re.compile(r"list (?:bullet|number)")
_LEVELS = "012345678"

MAX_SLIDES = 5_000
_TITLES = frozenset({"title", "ctrTitle"})
_EVERYWHERE = frozenset({"sldNum", "dt", "ftr", "hdr", "sldImg"})  # placeholders that repeat on every slide
_DRAWN = re.compile(r"/(?:diagrams/data|charts/chart)[^/]*$")  # SmartArt, and the titles of charts


class _Style(NamedTuple):
    heading: int = 0  # level as a heading; 0 if it is none
    depth: int = 0  # level in nested lists; 0 if it is in none


class WordExtractor(Extractor):
    """Reads .docx."""

    @override
    def extract(self, data: bytes, name: str) -> Extracted:
        with opened(data, "Word document") as package:
            main = package.main_part
            body = _WordBody(_styles(package, main))
            package.read(main, body)
            for part in (posixpath.join(posixpath.dirname(main), note) for note in _NOTES):
                if part in package:
                    package.read(part, body)
            title, details = package.properties()
        text = checked(clean(body.page.markdown()))
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


class _WordBody(OfficeText):
    """Writes the paragraphs and tables of a part."""

    left_out = _LEFT_OUT

    def __init__(self, styles: Mapping[str, _Style]) -> None:
        super().__init__()
        self.is_text = False
        self._styles = styles
        self._style = _Style()  # of the paragraph that has just begun
        self._closing: list[list[str]] = []  # for each open paragraph, the tags that close it

    def text(self, text: str) -> None:
        if self.is_text and not self.is_skipped:
            self.page.text(text)

    def begin_paragraph(self, _: Attributes) -> None:
        self.page.open("p", {})
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
            self.page.open(tag, {})
        self._closing[-1] = tags[::-1] or ["p"]

    def end_paragraph(self) -> None:
        for tag in self._closing.pop() if self._closing else ():
            self.page.close(tag)

    starts = {
        "p": begin_paragraph,
        "pStyle": take_style,
        "numPr": take_list,
        "ilvl": take_depth,
        "numId": take_numbering,
        "t": OfficeText.begin_text,
        "tab": lambda body, _: body.page.text(" "),
        **dict.fromkeys(("br", "cr"), lambda body, _: body.page.open("br", {})),
        "noBreakHyphen": lambda body, _: body.page.text("-"),
        **table_starts("tbl", "tr", "tc"),
    }
    ends = {
        "p": end_paragraph,
        "pPr": style_paragraph,
        "t": OfficeText.end_text,
        **table_ends("tbl", "tr", "tc"),
    }


class SlidesExtractor(Extractor):
    """Reads .pptx."""

    @override
    def extract(self, data: bytes, name: str) -> Extracted:
        with opened(data, "PowerPoint presentation") as package:
            slides = [_slide(package, part) for part in _parts(package)]
            title, details = package.properties()
        text, starts = in_pages([slide.markdown() for slide in slides])
        # What PowerPoint notes as the title is its own name often enough: how the deck opens comes first.
        told = (slides[0].title if slides else "") or title or next((s.title for s in slides if s.title), "")
        return Extracted(
            text,
            "office",
            title=told[:MAX_TITLE] or None,
            details={**details, "pages": len(slides)},
            page_starts=starts,
        )


def _parts(package: Package) -> list[str]:
    """Return the parts of the slides, in the order in which they are shown."""
    main = package.main_part
    order, parts = _Order(), package.targets(main)
    package.read(main, order)
    if len(order.slides) > MAX_SLIDES:
        raise TooLarge(f"has {len(order.slides)} slides; {MAX_SLIDES} are the limit", hint="split it")
    return [parts[key] for key in order.slides if parts.get(key, "") in package]


def _slide(package: Package, part: str) -> _Slide:
    slide = _Slide()
    package.read(part, slide)
    others = [target for target in package.targets(part).values() if target in package]
    for drawn in (one for one in others if _DRAWN.search(one)):
        package.read(drawn, slide)
    for notes in (one for one in others if "/notesSlides/" in one):
        slide.begin_notes()
        package.read(notes, slide)
    return slide


class _Order(Elements):
    """The ids of the slides."""

    def __init__(self) -> None:
        self.slides: list[str] = []

    def start(self, name: str, attributes: Attributes) -> None:
        if name == "sldId":
            self.slides.append(attributes.get("id", ""))


class _Slide(OfficeText):
    """Writes the shapes of a slide; the title comes first, wherever it stands."""

    left_out = frozenset({"Fallback"})

    def __init__(self) -> None:
        super().__init__()
        self.is_text = False
        self.title = ""
        self._shape = ""  # the kind of the open placeholder; empty for a plain text box
        self._level = -1  # level of the open paragraph in a list; -1 if it is in none
        self._lists = 0  # how many lists were opened for the open paragraph
        self._titles: list[str] = []
        self._is_in_notes = False

    def markdown(self) -> str:
        """Return what the slide says."""
        heading = f"# {self.title}" if self.title else ""
        return "\n\n".join(filter(None, (heading, self.page.markdown())))

    def begin_notes(self) -> None:
        """Take what the speaker has noted from here on."""
        self._is_in_notes = True

    def text(self, text: str) -> None:
        if not self.is_text or self.is_skipped or self._shape in _EVERYWHERE:
            return
        if self._shape in _TITLES and not self._is_in_notes:
            self._titles.append(text)
        else:
            self.page.text(text)

    def begin_shape(self, _: Attributes) -> None:
        self._shape = ""

    def take_placeholder(self, attributes: Attributes) -> None:
        self._shape = attributes.get("type", "body")

    def end_shape(self) -> None:
        self.page.end_block()
        if self._titles and not self.title:
            self.title = " ".join("".join(self._titles).split())
        elif self._titles:  # a slide has one title; another is text
            self.page.text("".join(self._titles))
            self.page.end_block()
        self._titles.clear()
        self._shape = ""

    def begin_paragraph(self, _: Attributes) -> None:
        # A paragraph of a placeholder is a point of a list, unless it says otherwise.
        is_point = self._shape in ("body", "obj") and not self.tables and not self._is_in_notes
        self._level = 0 if is_point else -1

    def take_level(self, attributes: Attributes) -> None:
        if self._level >= 0:
            self._level = max(0, _LEVELS.find(attributes.get("lvl", "0")))

    def take_no_bullet(self, _: Attributes) -> None:
        self._level = -1

    def begin_text(self, _: Attributes) -> None:
        self.is_text = True
        if self._level >= 0 and not self._lists:
            self._lists = self._level + 1
            for tag in (*["ul"] * self._lists, "li"):
                self.page.open(tag, {})

    def line_break(self, _: Attributes) -> None:
        if self._shape in _TITLES:
            self._titles.append(" ")
        else:
            self.page.open("br", {})

    def end_paragraph(self) -> None:
        if self._titles:
            self._titles.append(" ")
        for tag in (*["li"] * bool(self._lists), *["ul"] * self._lists, "p"):
            self.page.close(tag)
        self._lists = 0

    starts = {
        "sp": begin_shape,
        "ph": take_placeholder,
        "p": begin_paragraph,
        "pPr": take_level,
        "buNone": take_no_bullet,
        "t": begin_text,
        "br": line_break,
        **table_starts("tbl", "tr", "tc"),
    }
    ends = {
        "sp": end_shape,
        "p": end_paragraph,
        "t": OfficeText.end_text,
        **table_ends("tbl", "tr", "tc"),
    }
