"""The structure of text with little markup: paragraphs under headings, and code of an unknown language.

Underlined lines are headings in any text, as in reStructuredText, and so are the names of releases in a text
that clearly is a changelog. AsciiDoc and Org mark their headings on a line of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from concord.text.cuts import Range, append_block, open_section
from concord.text.headings import SEVERAL, release_at
from concord.text.tokens import pattern
from concord.types import Block, Section

_WITHIN_DEFINITION = 0.25  # before code that is indented, after a blank line: still inside something

_BLANK_LINES = pattern(r"\n(?:[^\S\n]*+\n)+")
_BLANK = pattern(r"(?:[^\S\n]*+\n)*+")
_VISIBLE = pattern(r"\S")

# One punctuation mark, repeated: what reStructuredText and many a README underline their headings with.
_UNDERLINE = pattern(r"([=\-~^\"'#*+`:._])\1{2,}$")
_RULE = pattern(r"([=\-~*_#])\1{9,}[ \t]*\n")
_LONGEST_TITLE = 120  # characters
_ROLE = pattern(r":[a-z][a-z:+-]*:`[~!]?([^`<>]+?)(?:[ \t]*<[^`<>]*>)?`")

# No heading is longer than 200 characters or has more than 20 spaces behind it, and so no line is read again
# from each of its spaces.
MARKED = {
    "asciidoc": pattern(
        r"^(?P<mark>={1,6})[ \t]+(?P<words>\S[^\n]{0,200}?)(?:[ \t]{1,20}={1,6})?[ \t]{0,20}+(?:\n|\Z)",
        re.MULTILINE,
    ),
    "org": pattern(r"^(?P<mark>\*{1,8})[ \t]+(?P<words>[^\s*][^\n]{0,200}+)(?:\n|\Z)", re.MULTILINE),
}


class PlainHeading(NamedTuple):
    """A heading in a text."""

    start: int
    end: int  # where what stands under it begins
    level: int  # it stands below earlier headings with lower levels
    words: str


class _Title(NamedTuple):
    """A heading that a paragraph begins with; headings of one style have one level."""

    style: str
    words: str
    end: int


def read_plain(text: str, markup: str | None = None) -> list[Section]:
    """Return the paragraphs of a text under its headings, if it has any; a light markup has its own."""
    return under_headings(text, list(headings_of(text, markup)))


def under_headings(text: str, headings: Sequence[PlainHeading]) -> list[Section]:
    """Return the paragraphs of a text under headings whose places are known."""
    sections = [Section((), [])]
    path: list[PlainHeading] = []
    starts = [*(heading.start for heading in headings), len(text)]
    _append_paragraphs(sections[0], text, 0, starts[0])
    for heading, end in zip(headings, starts[1:], strict=True):
        path = [*(outer for outer in path if outer.level < heading.level), heading]
        open_section(sections, tuple(outer.words for outer in path))
        blank = _BLANK.match(text, heading.end, end) if _VISIBLE.search(text, heading.end, end) else None
        below = blank.end() if blank else end
        append_block(sections[-1], heading.start, below, "heading")
        _append_paragraphs(sections[-1], text, below, end)
    return [section for section in sections if section.blocks]


def headings_of(text: str, markup: str | None) -> Iterator[PlainHeading]:
    """Yield the headings of a text: those of its light markup, else what is underlined or names a release."""
    lines = MARKED[markup].finditer(text) if markup in MARKED else ()
    marked = [
        PlainHeading(line.start(), line.end(), len(line["mark"]), " ".join(line["words"].split()))
        for line in lines
    ]
    yield from marked or _unmarked_headings(text)


def read_unknown_code(text: str) -> list[Section]:
    """Return code of a language nobody can parse, in blocks between blank lines."""
    blocks = [
        Block(start, end, "solid", _WITHIN_DEFINITION if text[start].isspace() else 0.0)
        for start, end in _paragraphs(text)
    ]
    return [Section((), blocks)]


def _append_paragraphs(section: Section, text: str, start: int, end: int) -> None:
    for first, last in _paragraphs(text[start:end]):
        is_solid = text.startswith(("  ", "\t", "+-"), start + first)
        append_block(section, start + first, start + last, "solid" if is_solid else "prose")


def _paragraphs(text: str) -> Iterator[Range]:
    """Yield the ranges between blank lines, each with the blank lines after it."""
    start = 0
    for gap in _BLANK_LINES.finditer(text):
        if text[start : gap.start()].strip():
            yield start, gap.end()
        start = gap.end()
    if text[start:].strip():
        yield start, len(text)


def _unmarked_headings(text: str) -> Iterator[PlainHeading]:
    """Yield what is underlined or names a release; the first style is the outermost.

    All releases have the level of the first, however they are marked.
    """
    paragraphs = list(_paragraphs(text))
    releases = {title.words for reach in paragraphs if (title := _release(text, *reach))}
    is_changelog = len(releases) >= SEVERAL
    levels: dict[str, int] = {}
    of_releases = ""
    for start, end in paragraphs:
        title = _underlined(text, start, end) or (_release(text, start, end) if is_changelog else None)
        while title:
            style = title.style
            if release_at(title.words):
                style = of_releases = of_releases or style
            level = levels.setdefault(style, len(levels))
            # As people read it: subprocess for :mod:`subprocess`, run for :func:`run <pool.run>`.
            yield PlainHeading(start, title.end, level, _ROLE.sub(r"\1", title.words))
            start = title.end
            title = _release(text, start, end) if is_changelog else None


def _underlined(text: str, start: int, end: int) -> _Title | None:
    lines = text[start : min(end, start + 4 * _LONGEST_TITLE)].split("\n", 3)
    if len(lines) > 2 and lines[0] and lines[0].rstrip() == lines[2].rstrip():
        style, title, below, used = "overlined", lines[1].strip(), lines[2].rstrip(), 3
    elif len(lines) > 1 and not lines[0][:1].isspace():
        style, title, below, used = "", lines[0].strip(), lines[1].rstrip(), 2
    else:
        return None
    if not 0 < len(title) <= min(len(below), _LONGEST_TITLE) or not _UNDERLINE.match(below):
        return None
    if _UNDERLINE.match(title):
        return None
    return _Title(style + below[0], title, min(end, start + sum(len(line) + 1 for line in lines[:used])))


def _release(text: str, start: int, end: int) -> _Title | None:
    """Return a first line that is the name of a release and no more; there may be a rule above it."""
    rule = _RULE.match(text, start, end)
    name = release_at(text, rule.end() if rule else start, end)
    return name and _Title("release", " ".join(name[0].strip("* \t:.").split()), min(end, name.end() + 1))
