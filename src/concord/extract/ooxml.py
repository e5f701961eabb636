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
from xml.etree.ElementTree import Element

from concord.core.overriding import override
from concord.core.protocols import Extractor
from concord.extract.markdown_writer import LOWEST_HEADING
from concord.extract.package import OfficeText, Package, checked, in_pages, opened
from concord.extract.text import MAX_TITLE, first_heading
from concord.text.clean import clean
from concord.types import Extracted

_NOTES = ("footnotes.xml", "endnotes.xml", "comments.xml")  # beside the document
# Earlier versions of text; <Fallback> repeats a shape for old programs.
_LEFT_OUT = frozenset({"moveFrom", "Fallback"})
_HEADING_STYLE = re.compile(r"heading ([1-9])$")
_LIST_STYLE = re.compile(r"list (?:bullet|number)")
_LEVELS = "012345678"

_TITLES = frozenset({"title", "ctrTitle"})
_EVERYWHERE = frozenset({"sldNum", "dt", "ftr", "hdr", "sldImg"})  # placeholders that repeat on every slide


class _Style(NamedTuple):
    heading: int = 0  # level as a heading; 0 if it is none
    depth: int = 0  # level in nested lists


class WordExtractor(Extractor):
    """Reads .docx."""

    @override
    def extract(self, data: bytes, name: str) -> Extracted:
        with opened(data, "Word document") as package:
            main = package.main_part
            folder = posixpath.dirname(main)
            styles = posixpath.join(folder, "styles.xml")
            found = package.read(styles).iter("style") if styles in package else ()
            # They have other names in every language.
            body = _WordBody({style.get("styleId", ""): _style(style) for style in found})
            for part in (main, *(posixpath.join(folder, note) for note in _NOTES)):
                if part == main or part in package:
                    body.write(package.read(part))
            title, details = package.properties()
        text = checked(clean(body.page.markdown()))
        return Extracted(
            text, "office", title=(title or "")[:MAX_TITLE] or first_heading(text), details=details
        )


def _style(style: Element) -> _Style:
    level = _value(style, "pPr/outlineLvl")
    if level.isdecimal() and int(level) < LOWEST_HEADING:
        return _Style(heading=int(level) + 1)
    name = _value(style, "name").lower()
    if heading := _HEADING_STYLE.match(name):
        return _Style(heading=min(int(heading[1]), LOWEST_HEADING))
    return _Style(heading=int(name == "title"), depth=int(_LIST_STYLE.match(name) is not None))


def _value(element: Element, path: str) -> str:
    found = element.find(path)
    return "" if found is None else found.get("val", "")


class _WordBody(OfficeText):
    """Writes the paragraphs and tables of a part."""

    left_out = _LEFT_OUT

    def __init__(self, styles: Mapping[str, _Style]) -> None:
        super().__init__()
        self._styles = styles

    def paragraph(self, element: Element) -> None:
        style = self._styles.get(_value(element, "pPr/pStyle"), _Style())
        if element.find("pPr/numPr") is not None:
            level = _LEVELS.find(_value(element, "pPr/numPr/ilvl")) + 1 or style.depth or 1
            # The number 0 is how a paragraph says that it is in no list after all.
            style = style._replace(depth=0 if _value(element, "pPr/numPr/numId") == "0" else level)
        block = f"h{style.heading}" if style.heading else "li" if style.depth else "p"
        self.within([*["ul"] * style.depth, block], self.inline, element)

    actions = {"p": paragraph, "tbl": OfficeText.table, "tr": OfficeText.row, "tc": OfficeText.cell}


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
    parts = package.targets(main)
    order = [slide.get("id", "") for slide in package.read(main).iter("sldId")]
    return [parts[key] for key in order if key in parts]


def _slide(package: Package, part: str) -> _Slide:
    slide = _Slide()
    slide.write(package.read(part))
    others = package.targets(part).values()
    slide.is_in_notes = True
    for notes in (other for other in others if "/notesSlides/" in other):
        slide.write(package.read(notes))
    return slide


class _Slide(OfficeText):
    """Writes the shapes of a slide; the title comes first, wherever it stands."""

    left_out = frozenset({"Fallback"})

    def __init__(self) -> None:
        super().__init__()
        self.title = ""
        self.is_in_notes = False
        self._has_points = False  # whether paragraphs of the open shape are points of a list

    def markdown(self) -> str:
        """Return what the slide says."""
        heading = f"# {self.title}" if self.title else ""
        return "\n\n".join(filter(None, (heading, self.page.markdown())))

    def shape(self, element: Element) -> None:
        placeholder = next(element.iter("ph"), None)
        kind = "" if placeholder is None else placeholder.get("type", "body")
        if kind in _TITLES and not self.title and not self.is_in_notes:
            parts = (part for part in element.iter() if part.tag in ("p", "t", "br"))
            self.title = " ".join("".join(part.text or " " for part in parts).split())
        elif kind not in _EVERYWHERE:
            self._has_points = kind in ("body", "obj") and not self.is_in_notes
            self.write(element)
            self.page.end_block()
            self._has_points = False

    def paragraph(self, element: Element) -> None:
        tags = ["p"]
        if self._has_points and element.find("pPr/buNone") is None:
            properties = element.find("pPr")
            level = "0" if properties is None else properties.get("lvl", "0")
            tags = [*["ul"] * (max(0, _LEVELS.find(level)) + 1), "li"]
        self.within(tags, self.inline, element)

    def described(self, element: Element) -> None:
        self.within(["p"], self.picture, element)

    actions = {
        "sp": shape,
        "cNvPr": described,
        "p": paragraph,
        "tbl": OfficeText.table,
        "tr": OfficeText.row,
        "tc": OfficeText.cell,
    }
