"""Presentations of PowerPoint as Markdown: each slide under its title, with its tables and speaker's notes.

A slide is a page: citations name it as they name the pages of a PDF. What repeats on every slide (its number,
the date, the footer) is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from concord.errors import TooLarge
from concord.extract.markdown_writer import MarkdownLines
from concord.extract.package import Attributes, Elements, Package, in_pages, opened
from concord.extract.plain import MAX_TITLE
from concord.types import Extracted

MAX_SLIDES = 5_000

_TITLES = frozenset({"title", "ctrTitle"})
_EVERYWHERE = frozenset({"sldNum", "dt", "ftr", "hdr", "sldImg"})  # placeholders that repeat on every slide
_DRAWN = re.compile(r"/(?:diagrams/data|charts/chart)[^/]*$")  # SmartArt, and the titles of charts
_LEVELS = "012345678"


class SlidesExtractor:
    """Reads .pptx."""

    def extract(self, data: bytes, name: str) -> Extracted:
        """Return the text of all slides, with the offsets at which they begin.

        Raises:
            Encrypted: it needs a password.
            Damaged: it is no presentation.
            TooLarge: it unfolds beyond the limits.
        """
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


class _Slide(Elements):
    """Writes the shapes of a slide; the title comes first, wherever it stands."""

    def __init__(self) -> None:
        self.title = ""
        self._page = MarkdownLines()
        self._shape = ""  # the kind of the open placeholder; empty for a plain text box
        self._level = -1  # level of the open paragraph in a list; -1 if it is in none
        self._lists = 0  # how many lists were opened for the open paragraph
        self._titles: list[str] = []
        self._copies = 0  # how many levels deep in a <Fallback>: it repeats a shape for old programs
        self._is_text = False
        self._is_in_table = False
        self._is_in_notes = False

    def markdown(self) -> str:
        """Return what the slide says."""
        heading = f"# {self.title}" if self.title else ""
        return "\n\n".join(filter(None, (heading, self._page.markdown())))

    def begin_notes(self) -> None:
        """Take what the speaker has noted from here on."""
        self._is_in_notes = True

    def start(self, name: str, attributes: Attributes) -> None:
        if self._copies or name == "Fallback":
            self._copies += 1
        elif action := _START.get(name):
            action(self, attributes)

    def end(self, name: str) -> None:
        if self._copies:
            self._copies -= 1
        elif action := _END.get(name):
            action(self)

    def text(self, text: str) -> None:
        if not self._is_text or self._copies or self._shape in _EVERYWHERE:
            return
        if self._shape in _TITLES and not self._is_in_notes:
            self._titles.append(text)
        else:
            self._page.text(text)

    def begin_shape(self, _: Attributes) -> None:
        self._shape = ""

    def take_placeholder(self, attributes: Attributes) -> None:
        self._shape = attributes.get("type", "body")

    def end_shape(self) -> None:
        self._page.end_block()
        if self._titles and not self.title:
            self.title = " ".join("".join(self._titles).split())
        elif self._titles:  # a slide has one title; another is text
            self._page.text("".join(self._titles))
            self._page.end_block()
        self._titles.clear()
        self._shape = ""

    def begin_paragraph(self, _: Attributes) -> None:
        # A paragraph of a placeholder is a point of a list, unless it says otherwise.
        is_point = self._shape in ("body", "obj") and not self._is_in_table and not self._is_in_notes
        self._level = 0 if is_point else -1

    def take_level(self, attributes: Attributes) -> None:
        if self._level >= 0:
            self._level = max(0, _LEVELS.find(attributes.get("lvl", "0")))

    def take_no_bullet(self, _: Attributes) -> None:
        self._level = -1

    def begin_text(self, _: Attributes) -> None:
        self._is_text = True
        if self._level >= 0 and not self._lists:
            self._lists = self._level + 1
            for tag in (*["ul"] * self._lists, "li"):
                self._page.open(tag, {})

    def end_text(self) -> None:
        self._is_text = False

    def line_break(self, _: Attributes) -> None:
        if self._shape in _TITLES:
            self._titles.append(" ")
        else:
            self._page.open("br", {})

    def end_paragraph(self) -> None:
        if self._titles:
            self._titles.append(" ")
        for tag in (*["li"] * bool(self._lists), *["ul"] * self._lists, "p"):
            self._page.close(tag)
        self._lists = 0

    def begin_table(self, _: Attributes) -> None:
        self._is_in_table = True
        self._page.begin_table()

    def end_table(self) -> None:
        self._is_in_table = False
        self._page.end_block()

    def begin_row(self, _: Attributes) -> None:
        self._page.begin_row()

    def begin_cell(self, _: Attributes) -> None:
        self._page.begin_cell()

    def end_row(self) -> None:
        self._page.end_row()

    def end_cell(self) -> None:
        self._page.end_cell()


_START: dict[str, Callable[[_Slide, Attributes], None]] = {
    "sp": _Slide.begin_shape,
    "ph": _Slide.take_placeholder,
    "p": _Slide.begin_paragraph,
    "pPr": _Slide.take_level,
    "buNone": _Slide.take_no_bullet,
    "t": _Slide.begin_text,
    "br": _Slide.line_break,
    "tbl": _Slide.begin_table,
    "tr": _Slide.begin_row,
    "tc": _Slide.begin_cell,
}
_END: dict[str, Callable[[_Slide], None]] = {
    "sp": _Slide.end_shape,
    "p": _Slide.end_paragraph,
    "t": _Slide.end_text,
    "tbl": _Slide.end_table,
    "tr": _Slide.end_row,
    "tc": _Slide.end_cell,
}
