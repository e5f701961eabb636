"""The structure of text without markup: paragraphs, underlined headings, lines of data, unknown code."""

from __future__ import annotations

import re
from collections.abc import Iterator

from concord.text.outline import Block, Kind, Section, open_section

_AFTER_HEADING = 1.0
_WITHIN_DEFINITION = 0.25  # before code that is indented, after a blank line: still inside something

_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*+\n)+")
# One punctuation mark, repeated: what reStructuredText and many a README underline their headings with.
_UNDERLINE = re.compile(r"([=\-~^\"'#*+`:._])\1{2,}$")
_LONGEST_TITLE = 120  # characters
_OVERLINED = 3  # lines of a heading with a line above and below


def read_plain(text: str) -> list[Section]:
    """Return the paragraphs of a text under its underlined headings, if it has any."""
    sections = [Section((), [])]
    styles: list[
        str
    ] = []  # kinds of underline, outermost first: the order in which they appear is their rank
    path: list[str] = []
    for start, end in _paragraphs(text):
        body = start
        if found := _underlined(text, start, end):
            style, title, body = found
            if style not in styles:
                styles.append(style)
            path = [*path[: styles.index(style)], title]
            open_section(sections, tuple(path))
            sections[-1].blocks.append(Block(start, body, "heading"))
        if body < end:
            _append_paragraph(text, sections[-1], body, end)
    return [section for section in sections if section.blocks]


def _append_paragraph(text: str, section: Section, start: int, end: int) -> None:
    after_heading = section.blocks and section.blocks[-1].kind == "heading"
    kind: Kind = "solid" if text.startswith(("  ", "\t"), start) else "prose"
    section.blocks.append(Block(start, end, kind, _AFTER_HEADING if after_heading else 0.0))


def _paragraphs(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges between blank lines, each with the blank lines after it."""
    start = 0
    for gap in _BLANK_LINES.finditer(text):
        if text[start : gap.start()].strip():
            yield start, gap.end()
        start = gap.end()
    if text[start:].strip():
        yield start, len(text)


def _underlined(text: str, start: int, end: int) -> tuple[str, str, int] | None:
    """Return the style and title of the heading that a paragraph begins with, and where its body begins."""
    lines = text[start : min(end, start + 4 * _LONGEST_TITLE)].split("\n", _OVERLINED)
    if len(lines) > 2 and lines[0] and lines[0].rstrip() == lines[2].rstrip():
        above, title, below, used = "overlined", lines[1], lines[2].rstrip(), _OVERLINED
    elif len(lines) > 1 and not lines[0][:1].isspace():
        above, title, below, used = "", lines[0], lines[1].rstrip(), 2
    else:
        return None
    title = title.strip()
    if not 0 < len(title) <= min(len(below), _LONGEST_TITLE) or not _UNDERLINE.match(below):
        return None
    if _UNDERLINE.match(title):
        return None
    body = min(end, start + sum(len(line) + 1 for line in lines[:used]))
    return above + below[0], title, body


def read_records(text: str) -> list[Section]:
    """Return data as one block that may be cut between any two lines."""
    return [Section((), [Block(0, len(text), "records")])]


def read_unknown_code(text: str) -> list[Section]:
    """Return code of a language nobody can parse, in blocks between blank lines."""
    blocks = [
        Block(start, end, "solid", _WITHIN_DEFINITION if text[start].isspace() else 0.0)
        for start, end in _paragraphs(text)
    ]
    return [Section((), blocks)]
