"""The structure of text without markup, or with little: paragraphs under headings, unknown code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

from concord.text.labels import labels_of
from concord.text.marked_headings import MarkedHeading, marked_headings
from concord.text.outline import Block, Heading, Kind, Section, open_section
from concord.text.releases import is_release
from concord.text.titles import Title, first_title, listings, marked_title, title_readers, without_roles

_AFTER_HEADING = 1.0
_WITHIN_DEFINITION = 0.25  # before code that is indented, after a blank line: still inside something
_BETWEEN_ROWS = 0.15  # of a table that is drawn with lines

# +-----+-----+ between the rows of a table, as reStructuredText has them.
_BORDER = re.compile(r"^[ \t]*+\+(?:[-=]++\+)++[ \t]*+(?:\n|\Z)", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*+\n)+")
_BLANK = re.compile(r"(?:[^\S\n]*+\n)*+")
_VISIBLE = re.compile(r"\S")


class _Headings:
    """Where headings stand: those of one style have one rank, and the first style is the outermost."""

    def __init__(self) -> None:
        self._styles: list[str] = []
        self._path: list[tuple[int, str]] = []  # with their ranks: below an outer one, some may be left out
        self._of_releases = ""  # the style of the first: all of them have one rank, however they are marked

    def place(self, title: Title) -> Heading:
        """Return the path of the next heading."""
        style = title.style
        if is_release(title.words):
            style = self._of_releases = self._of_releases or style
        if style not in self._styles:
            self._styles.append(style)
        rank = self._styles.index(style)
        outer = (one for one in self._path if one[0] < rank)
        self._path = [*outer, (rank, without_roles(title.words))]
        return tuple(words for _, words in self._path)


def read_plain(text: str, markup: str | None = None) -> list[Section]:
    """Return the paragraphs of a text under its headings, if it has any; a light markup has its own."""
    if marked := list(marked_headings(text, markup)):
        return _read_marked(text, marked, markup)
    sections, headings = [Section((), [])], _Headings()
    paragraphs = list(_paragraphs(text))
    readers = title_readers(text, paragraphs)
    in_listings = listings(text, paragraphs)
    for start, end in paragraphs:
        title = None if start in in_listings else first_title(text, start, end, readers)
        while title:
            open_section(sections, headings.place(title), labels_of(text, title.words, markup))
            below = title.end if _VISIBLE.search(text, title.end, end) else end
            _append(sections[-1], start, below, "heading")
            start = below
            title = marked_title(text, start, end, readers)
        if start < end:
            _append_paragraph(sections[-1], text, start, end)
    return [section for section in sections if section.blocks]


def _read_marked(text: str, headings: Sequence[MarkedHeading], markup: str | None) -> list[Section]:
    """Return the paragraphs of a text whose headings are known."""
    sections = [Section((), [])]
    path: list[MarkedHeading] = []
    _append_paragraphs(sections[0], text, 0, headings[0].start)
    for heading, end in zip(headings, [*(one.start for one in headings[1:]), len(text)], strict=True):
        path = [*(one for one in path if one.level < heading.level), heading]
        open_section(sections, tuple(one.words for one in path), labels_of(text, heading.words, markup))
        blank = _BLANK.match(text, heading.end, end)
        below = blank.end() if blank else end
        _append(sections[-1], heading.start, below, "heading")
        _append_paragraphs(sections[-1], text, below, end)
    return [section for section in sections if section.blocks]


def _append_paragraphs(section: Section, text: str, start: int, end: int) -> None:
    for at, below in _paragraphs(text[start:end]):
        _append_paragraph(section, text, start + at, start + below)


def _append_paragraph(section: Section, text: str, start: int, end: int) -> None:
    """Append a paragraph, or each row of a table that is drawn with lines."""
    rows = [start, *_grid_rows(text, start, end), end]
    is_whole = text.startswith(("  ", "\t"), start) or len(rows) > 2
    for at, below in pairwise(rows):
        _append(section, at, below, "solid" if is_whole else "prose", at > start)


def _append(section: Section, start: int, end: int, kind: Kind, is_row: bool = False) -> None:
    after_heading = section.blocks and section.blocks[-1].kind == "heading"
    reluctance = _AFTER_HEADING if after_heading else _BETWEEN_ROWS if is_row else 0.0
    section.blocks.append(Block(start, end, kind, reluctance))


def _grid_rows(text: str, start: int, end: int) -> Iterator[int]:
    """Yield where the rows of a table begin that is drawn with lines; the first stays with the names."""
    borders = _BORDER.finditer(text, start, end) if _BORDER.match(text, start, end) else ()
    return (border.end() for border in islice(borders, 2, None) if border.end() < end)


def _paragraphs(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges between blank lines, each with the blank lines after it."""
    start = 0
    for gap in _BLANK_LINES.finditer(text):
        if text[start : gap.start()].strip():
            yield start, gap.end()
        start = gap.end()
    if text[start:].strip():
        yield start, len(text)


def read_unknown_code(text: str) -> list[Section]:
    """Return code of a language nobody can parse, in blocks between blank lines."""
    blocks = [
        Block(start, end, "solid", _WITHIN_DEFINITION if text[start].isspace() else 0.0)
        for start, end in _paragraphs(text)
    ]
    return [Section((), blocks)]
