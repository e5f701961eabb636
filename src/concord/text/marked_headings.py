"""The headings of light markup that is read as text: AsciiDoc, Org, LaTeX, MediaWiki and Textile.

Each has a line of its own, with a mark that tells its level. reStructuredText underlines its headings, as any
text may: those are in `titles.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

# No heading is longer than 200 characters or has more than 20 spaces behind it, and so no line is read again
# from each of its spaces.
_PATTERNS = {
    "asciidoc": r"(?P<mark>={1,6})[ \t]+(?P<words>\S[^\n]{0,200}?)(?:[ \t]{1,20}={1,6})?[ \t]{0,20}+",
    "org": r"(?P<mark>\*{1,8})[ \t]+(?:(?:TODO|DONE|NEXT|WAITING)[ \t]+)?(?:\[#[A-Z0-9]\][ \t]+)?"
    r"(?P<words>[^\s*][^\n]{0,200}?)(?:[ \t]{1,99}:[\w@#%:]{1,200}:)?[ \t]{0,20}+",
    "latex": r"[ \t]*+\\(?P<mark>part|chapter|(?:sub){0,2}section|paragraph)\*?(?:\[[^\]\n]*+\])?"
    r"\{(?P<words>(?:[^{}\n]|\n(?![ \t]*\n)|\{(?:[^{}\n]|\{[^{}\n]*+\})*+\}){1,200}+)\}[^\n]*+",
    "mediawiki": r"(?P<mark>={1,6})[ \t]*+(?P<words>[^=\s][^\n]{0,200}?)[ \t]{0,20}={1,6}[ \t]{0,20}+",
    "textile": r"h(?P<mark>[1-6])(?:[(\[{<>=#][^\s.]{0,200})?\.[ \t]++(?P<words>\S[^\n]{0,200}+)",
}
_LATEX_LEVELS = ("part", "chapter", "section", "subsection", "subsubsection", "paragraph")
_LATEX_COMMAND = re.compile(r"\\(?:label|index|footnote|thanks)\{[^{}]*+\}|\\[a-zA-Z]+\*?|[{}$~]")
# A listing of AsciiDoc stands between two such lines.
_FENCE = re.compile(r"^(?P<fence>-{4,}|\.{4,}|/{4,}|\+{4,})[ \t]*+$", re.MULTILINE)
# Older AsciiDoc underlines its headings, below a blank line or an anchor, with lines that are nearly as long.
_UNDERLINED = re.compile(
    r"(?:\A|(?<=\n\n)|(?<=\]\n))(?P<words>\w[^\n]{0,200})\n(?P<line>([=~^+-])\3{2,200}+)[ \t]*+$",
    re.MULTILINE,
)
_NEARLY = 2  # characters


class MarkedHeading(NamedTuple):
    """A heading and its line."""

    start: int
    end: int  # where what stands under it begins
    level: int  # 0 is the outermost
    words: str


def marked_headings(text: str, markup: str | None) -> Iterator[MarkedHeading]:
    """Yield the headings of a text in a light markup, in order."""
    if markup not in _PATTERNS:
        return
    if markup == "asciidoc":
        yield from _of_asciidoc(text)
    else:
        yield from _marked(text, markup, iter(()))


def _of_asciidoc(text: str) -> Sequence[MarkedHeading]:
    """Return the headings that are marked, outside of listings; none where most are underlined."""
    marked = list(_marked(text, "asciidoc", _listings(text)))
    underlined = sum(map(_is_underlined, _UNDERLINED.finditer(text))) if marked else 0
    return marked if len(marked) >= underlined else []


def _is_underlined(found: re.Match[str]) -> bool:
    return abs(len(found["words"].rstrip()) - len(found["line"])) <= _NEARLY


def _marked(text: str, markup: str, listings: Iterator[tuple[int, int]]) -> Iterator[MarkedHeading]:
    start, end = next(listings, (len(text), len(text)))
    for found in _compiled(markup).finditer(text):
        while found.start() >= end and end < len(text):
            start, end = next(listings, (len(text), len(text)))
        if found.start() < start:
            words = " ".join(_WORDS.get(markup, str)(found["words"]).split())
            yield MarkedHeading(found.start(), found.end(), _level(markup, found["mark"]), words)


def _compiled(markup: str) -> re.Pattern[str]:
    return re.compile(rf"^(?:{_PATTERNS[markup]})(?:\n|\Z)", re.MULTILINE)


def _level(markup: str, mark: str) -> int:
    if markup == "latex":
        return _LATEX_LEVELS.index(mark)
    return int(mark) if mark.isdecimal() else len(mark)


def _listings(text: str) -> Iterator[tuple[int, int]]:
    """Yield the listings of a text, from their first fence to the next line that is the same."""
    headings = {found.start("line") for found in _UNDERLINED.finditer(text) if _is_underlined(found)}
    lines = list(_FENCE.finditer(text))
    ends: dict[str, list[re.Match[str]]] = {}
    for line in reversed(lines):
        ends.setdefault(line["fence"], []).append(line)
    at = 0
    for line in lines:
        same = ends[line["fence"]]
        same.pop()  # this one
        if line.start() >= at and line.start() not in headings and same:
            at = same[-1].end()
            yield line.start(), at


def _latex_words(words: str) -> str:
    return _LATEX_COMMAND.sub(" ", words)


_WORDS: dict[str, Callable[[str], str]] = {"latex": _latex_words}
