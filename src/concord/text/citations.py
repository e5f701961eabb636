"""Citations: the one spelling of "this passage of that document", written and read.

`docs/auth.md:12-31` are lines, `data.json:1:4097-5376` columns of a line, `a.min.js:3:120-7:44` a range that
begins and ends inside lines, `report.pdf:p3` is a page, `report.pdf:p3-4` two of them, and `docs/auth.md` a
whole document. Others write places in other forms (`auth.md#L12-L31`, `client.py:311:8`, `File "client.py",
line 311`), which are only read.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence

from msgspec import Struct

from concord.text.tokens import pattern
from concord.types import Chunk, Document

_NUMBER = r"\d{1,9}"
_COLUMNS = pattern(
    rf"(?P<path>.+):(?P<first>{_NUMBER}):(?P<column>{_NUMBER})"
    rf"-(?:(?P<last>{_NUMBER}):)?(?P<last_column>{_NUMBER})",
    re.DOTALL,
)
_PAGES = pattern(rf"(?P<path>.+):p(?P<first>{_NUMBER})(?:-(?P<last>{_NUMBER}))?", re.DOTALL)
_LINES = pattern(rf"(?P<path>.+):(?P<first>{_NUMBER})(?:-(?P<last>{_NUMBER}))?", re.DOTALL)
# client.py#L12-L31, as links to code are written, and client.py:12:8, as compilers print places
_PLACE = pattern(
    rf"(?P<path>.+?)(?::|#L)(?P<first>{_NUMBER})(?:-L?(?P<last>{_NUMBER}))?(?::{_NUMBER})?:?", re.DOTALL
)

LONGEST = 400  # characters of a path; what is longer is none
MOST_BESIDE = 6  # words beside a place that is what a query asks for
_AROUND = "\"'`“”‘’()[]<>{},;!?"
_FILE = pattern(r"(?:[^:]*[/\\])?[^:/\\]*[\w\])]\.[A-Za-z]\w{0,9}")
_LAST_FRAME_FIRST = "most recent call last"
_HOST = pattern(r"[\w.-]+\.(?:com|org|net|io|edu|gov|local)", re.IGNORECASE)  # with a port: example.com:80
_PRODUCT = pattern(r"[\w.-]+\.(?:js|net|io|ai)", re.IGNORECASE)  # Node.js is more often that than a file

# Documents whose lines are those of a file or of what `kb get` shows of it, unless paged.
OF_LINES = ("code", "data", "markdown", "note", "notebook", "text")
Position = tuple[int, int]  # line and column, from 1


class Citation(Struct, frozen=True):
    """A citation taken apart; it has lines, pages or neither, first and last included."""

    path: str
    lines: tuple[int, int] | None = None
    pages: tuple[int, int] | None = None
    columns: tuple[int, int] | None = None  # of its first line and of its last; None where lines are whole

    @property
    def extent(self) -> tuple[Position, Position]:
        """Where it begins and ends; without lines, at the ends of the document."""
        (first, last), (start, end) = self.lines or (1, sys.maxsize), self.columns or (None, None)
        return (first, start or 1), (last, end or sys.maxsize)

    @property
    def is_reversed(self) -> bool:
        """Whether it ends before it begins."""
        begin, end = self.extent
        return begin > end or self.pages is not None and self.pages[0] > self.pages[1]


def cite(document: Document, chunk: Chunk) -> str:
    """Return the citation of a chunk: its pages where the document has any, else its lines and columns."""
    lines, columns = (chunk.start_line, chunk.end_line), (chunk.start_column, chunk.end_column)
    return citation_of(document.path, chunk.pages, lines, columns)


Reach = tuple[int, int]  # the first and the last


def reach_of(text: str, begin: int, end: int, line: int, column: int | None) -> tuple[Reach, Reach]:
    """Return the first and last line of a part of a text, and its columns; the text begins at these."""
    places = (begin, max(begin, end - 1))
    breaks = [text.rfind("\n", 0, at) for at in places]
    columns = [
        at - last if last >= 0 else at + (column or 1) for at, last in zip(places, breaks, strict=True)
    ]
    lines = [line + text.count("\n", 0, at) for at in places]
    return (lines[0], lines[1]), (columns[0], columns[1])


def citation_of(
    path: str,
    pages: tuple[int, int] | None,
    lines: tuple[int, int],
    columns: tuple[int | None, int | None] = (None, None),
) -> str:
    """Return the citation of a part of a document: its pages if it has any, else its lines and columns."""
    (first, last), (start, end) = lines, columns
    if pages:
        return f"{path}:p{pages[0]}" + (f"-{pages[1]}" if pages[0] < pages[1] else "")
    if start is None or end is None:
        return f"{path}:{first}-{last}"
    return f"{path}:{first}:{start}-{end}" if first == last else f"{path}:{first}:{start}-{last}:{end}"


def extent(chunk: Chunk) -> tuple[Position, Position]:
    """Return where a chunk begins and ends: line and column; a line without columns is there whole."""
    return (chunk.start_line, chunk.start_column or 1), (chunk.end_line, chunk.end_column or sys.maxsize)


def parse_citation(text: str) -> Citation:
    """Take a citation apart; text that names neither lines nor a page is a path."""
    text = text.strip()
    if match := _COLUMNS.fullmatch(text):
        columns = int(match["column"]), int(match["last_column"])
        return Citation(match["path"], lines=_span(match), columns=columns)
    if match := _PAGES.fullmatch(text):
        return Citation(match["path"], pages=_span(match))
    if match := _LINES.fullmatch(text):
        return Citation(match["path"], lines=_span(match))
    return Citation(text)


def readings(text: str) -> list[Citation]:
    """Return what a reference may mean, the likeliest first: the name of a file can end like a citation."""
    text = text.strip()
    lines, place = _LINES.fullmatch(text), _PLACE.fullmatch(text)
    possible = [
        parse_citation(text),
        Citation(lines["path"], lines=_span(lines)) if lines else None,
        Citation(text),
        Citation(place["path"], lines=_span(place)) if place else None,
    ]
    return list(dict.fromkeys(citation for citation in possible if citation))


def places_in(text: str) -> list[Citation]:
    """Return the places that a text names, the likeliest first: where a program has failed.

    The path of a file alone is a place where it is the whole text.
    """
    if not any(mark in text for mark in ".:#"):
        return []
    words = [word.strip(_AROUND) for word in text.split()]
    if len(words) == 1 and _is_file(words[0]) and not _PRODUCT.fullmatch(words[0]):
        return [Citation(words[0].replace("\\", "/"))]
    places = list(dict.fromkeys([*_joined(words), *_apart(words)]))
    # What a compiler or a traceback prints begins with a place.
    beginning = [word.replace("\\", "/") for word in words[:2]]
    is_printed = "\n" in text.strip() or any(w.startswith(p.path) for p in places[:1] for w in beginning)
    if not is_printed and len(words) > MOST_BESIDE + 1:
        return []  # a question that only mentions one
    return places[::-1] if _LAST_FRAME_FIRST in text else places


def _joined(words: Sequence[str]) -> Iterator[Citation]:
    """Yield places that are one word: client.py:311."""
    for word in (word.replace("\\", "/") for word in words if len(word) <= LONGEST):
        if _COLUMNS.fullmatch(word):
            place = parse_citation(word)
        elif match := _PLACE.fullmatch(word):
            first, last = _span(match)
            place = Citation(match["path"], lines=(first, max(first, last)))
        else:
            continue
        if _is_file(place.path) and not _HOST.fullmatch(place.path) and not place.is_reversed:
            yield place


def _apart(words: Sequence[str]) -> Iterator[Citation]:
    """Yield places in several words: client.py, line 311; line 311 of client.py."""
    for at, word in enumerate(words):
        number = words[at + 1].rstrip(".:") if word.lower() == "line" and at + 1 < len(words) else ""
        if not number.isdecimal() or len(number) > 7:
            continue
        before, after = words[at - 1] if at else "", words[at + 3] if at + 3 < len(words) else ""
        path = before if _is_file(before) else after if words[at + 2 : at + 3] in (["of"], ["in"]) else ""
        if _is_file(path):
            yield Citation(path.replace("\\", "/"), lines=(int(number), int(number)))


def _span(match: re.Match[str]) -> tuple[int, int]:
    return int(match["first"]), int(match["last"] or match["first"])


def _is_file(word: str) -> bool:
    return len(word) <= LONGEST and _FILE.fullmatch(word) is not None
