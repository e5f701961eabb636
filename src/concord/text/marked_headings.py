"""The headings of light markup that is read as text: AsciiDoc, Org, LaTeX, MediaWiki and Textile.

Each has a line of its own, with a mark that tells its level. reStructuredText underlines its headings, as any
text may: those are in `titles.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

# No heading is longer than 200 characters, and so no line is read again from each of its spaces.
_PATTERNS = {
    "asciidoc": r"(?P<mark>={1,6})[ \t]+(?P<words>\S[^\n]{0,200}?)(?:[ \t]+={1,6})?[ \t]*+",
    "org": r"(?P<mark>\*{1,8})[ \t]+(?:(?:TODO|DONE|NEXT|WAITING)[ \t]+)?(?:\[#[A-Z0-9]\][ \t]+)?"
    r"(?P<words>[^\s*][^\n]{0,200}?)(?:[ \t]+:[\w@#%:]{1,200}:)?[ \t]*+",
    "latex": r"[ \t]*+\\(?P<mark>part|chapter|(?:sub){0,2}section|paragraph)\*?(?:\[[^\]\n]*+\])?"
    r"\{(?P<words>(?:[^{}\n]|\{[^{}\n]*+\}){1,200}+)\}[^\n]*+",
    "mediawiki": r"(?P<mark>={1,6})[ \t]*+(?P<words>[^=\s][^\n]{0,200}?)[ \t]*={1,6}[ \t]*+",
    "textile": r"h(?P<mark>[1-6])(?:[(\[{<>=#][^\s.]{0,200})?\.[ \t]++(?P<words>\S[^\n]{0,200}+)",
}
_LATEX_LEVELS = ("part", "chapter", "section", "subsection", "subsubsection", "paragraph")
_LATEX_COMMAND = re.compile(r"\\(?:label|index|footnote|thanks)\{[^{}]*+\}|\\[a-zA-Z]+\*?|[{}$~]")
# A listing of AsciiDoc: its first line stands below a blank one or what tells of it, not below a heading.
_LISTING = re.compile(r"(?:\A|\n[ \t]*\n|\n[.\[][^\n]+\n)(?P<fence>-{4,}|\.{4,}|/{4,}|\+{4,})[ \t]*(?=\n)")


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
    listings = _listings(text) if markup == "asciidoc" else iter(())
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
    at = 0
    while found := _LISTING.search(text, at):
        fence = found["fence"]
        closed = re.compile(rf"^{re.escape(fence)}[ \t]*$", re.MULTILINE).search(text, found.end())
        if closed:
            yield found.start("fence"), closed.end()
        at = closed.end() if closed else found.end()


def _latex_words(words: str) -> str:
    return _LATEX_COMMAND.sub(" ", words)


_WORDS: dict[str, Callable[[str], str]] = {"latex": _latex_words}
