"""What the layout of a PDF's pages tells: headings by its outline or by larger letters, tables of numbers.

Headings are looked for in the text. Of tables, PDFium gives a row as its words in order, so a number says
nothing of its column, and each is told with its column's name. Rows are a table only where names, and three
rows below them, stand in columns that do not overlap, and a column holds numbers alone, which no column of
prose does.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import pypdfium2
from pypdfium2 import raw

from concord.text.plain import PlainHeading

MOST = 5_000  # headings of a document
FEWEST_BY_OUTLINE = 3  # found in the text; with fewer of them, sizes may tell more
MOST_PAGES_BY_SIZE = 1_000
_LONGEST = 150  # characters
_DEEPEST = 6
_LARGER = 1.12  # than the body, at least
_MOST_OF_LINES = 0.15  # may be headings: where more lines are large, size means something else
_NUMBERING = r"(?:(?:chapter|appendix|part|section)\s+)?(?:[\dA-Z]{1,4}(?:\.\d{1,3}){0,5}[.:)]?\s+)?"
_QUOTES = "['\"`´‘’“”]{1,2}"  # an outline writes other ones than the page
_ANY_QUOTE = re.compile(_QUOTES)
_WORD = re.compile(r"[^\W\d_]{2}")


class _Named(NamedTuple):
    """A heading that has not been found in the text yet."""

    page: int  # from 0
    level: int
    words: str


def find_headings(document: Any, text: str, starts: Sequence[int]) -> list[PlainHeading]:
    """Return the headings of a document that stand in its text, whose pages begin at these places."""
    by_outline = _found(_outline(document), text, starts)
    if len(by_outline) >= FEWEST_BY_OUTLINE:
        return by_outline
    return _found(_large_lines(document), text, starts) or by_outline


def _found(named: Sequence[_Named], text: str, starts: Sequence[int]) -> list[PlainHeading]:
    """Look for headings in order, each on a line of its own on its page."""
    found: list[PlainHeading] = []
    ends = [*starts[1:], len(text)]
    at = 0
    for page, level, words in named:
        # On its line, or its lines; the outline may leave its number out.
        spaced = r"\s+".join(_ANY_QUOTE.sub(_QUOTES, re.escape(word)) for word in words.split())
        form = re.compile(rf"^{_NUMBERING}{spaced}[ \t]*(?:\n|\Z)", re.MULTILINE | re.IGNORECASE)
        if page < len(starts) and (line := form.search(text, max(at, starts[page]), ends[page])):
            found.append(PlainHeading(line.start(), line.end(), level, words))
            at = line.end()
    return found


def _outline(document: Any) -> list[_Named]:
    """Return what the outline names, in the order of the pages."""
    named: list[_Named] = []
    with suppress(pypdfium2.PdfiumError, ValueError):  # of an outline that is broken half is enough
        for bookmark in document.get_toc(max_depth=_DEEPEST):
            target = bookmark.get_dest()
            page = target.get_index() if target else None
            words = " ".join(bookmark.get_title().replace("\0", " ").split())
            if page is not None and _is_heading(words):
                named.append(_Named(page, bookmark.level + 1, words))
            if len(named) >= MOST:
                break
    return sorted(named, key=lambda heading: heading.page)


def _is_heading(words: str) -> bool:
    return len(words) <= _LONGEST and _WORD.search(words) is not None


def _large_lines(document: Any) -> list[_Named]:
    """Return the lines in larger letters than most; a size that occurs once is left out: the title's."""
    pages = min(len(document), MOST_PAGES_BY_SIZE)
    lines = [(page, *line) for page in range(pages) for line in sized_lines(document, page)]
    letters: Counter[float] = Counter()
    for _, size, words in lines:
        letters[size] += len(words)
    if not lines:
        return []
    least = letters.most_common(1)[0][0] * _LARGER
    runs = [  # lines of one size that follow each other on a page: a long heading takes several
        _Named(page, round(size * 10), " ".join(words for _, _, words in run))
        for (page, size), run in groupby(lines, key=lambda line: line[:2])
        if size >= least
    ]
    often = Counter(heading.level for heading in runs if _is_heading(heading.words))
    sizes = sorted((size for size, count in often.items() if count > 1), reverse=True)
    levels = {size: min(level, _DEEPEST) for level, size in enumerate(sizes, 1)}
    kept = [heading for heading in runs if heading.level in levels and _is_heading(heading.words)]
    if len(kept) > min(MOST, _MOST_OF_LINES * len(lines)):
        return []
    return [heading._replace(level=levels[heading.level]) for heading in kept]


def sized_lines(document: Any, page: int) -> Iterator[tuple[float, str]]:
    """Yield the lines of a page, each with the size of its letters if they are of one size."""
    try:
        with closing(document.get_page(page)) as opened, closing(opened.get_textpage()) as text_page:
            letters = [chr(raw.FPDFText_GetUnicode(text_page, at)) for at in range(text_page.count_chars())]
            for first, last in _ranges(letters):
                sizes = {round(raw.FPDFText_GetFontSize(text_page, at), 1) for at in (first, last)}
                words = " ".join("".join(letters[first : last + 1]).split())
                yield (max(sizes) if len(sizes) == 1 else 0.0), words
    except (pypdfium2.PdfiumError, ValueError):
        return


def _ranges(letters: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last visible letter of each line."""
    visible: list[int] = []
    for at, letter in enumerate([*letters, "\n"]):
        if letter in "\r\n" and visible:
            yield visible[0], visible[-1]
            visible = []
        elif not letter.isspace():
            visible.append(at)


_FEWEST = 3  # columns, and rows below their names
_MOST_LETTERS = 30_000  # of a page, each line of which is looked for; hardly any has a third of that
_ABOVE = 2  # lines over the first with a number may name columns
_GAP = 0.8  # of a letter's height, between cells: words are a third of it apart, in justified lines some more
_NUMBER = re.compile(r"[-+−–(]?[$€£]?\d(?:[\d.,'’]*\d)?[%€)]*")
_LEADERS = re.compile(r"\.[ .]*\.[ .]*\.")  # of a table of contents
_NO_NAME = re.compile(rf"[\W_]{{2,}}|{_NUMBER.pattern}")  # a rule of dashes, or a number
_YEAR = re.compile(r"(?:19|20)\d\d")


class Cell(NamedTuple):
    """What stands in a column of a row."""

    left: float
    right: float
    text: str


Row = list[Cell]


def named_rows(text_page: Any, lines: Sequence[str]) -> dict[int, str]:
    """Return the rows of tables among a page's lines, by number, with the names of their columns."""
    named: dict[int, str] = {}
    at = 0
    with suppress(pypdfium2.PdfiumError, ValueError):
        for first, end in _stretches(lines if sum(map(len, lines)) <= _MOST_LETTERS else ()):
            rows: list[Row] = []
            for line in lines[first:end]:
                row, at = _row(text_page, line.strip(), at) if line.strip() else ([], at)
                rows.append(row)
            named |= {first + n: line for n, line in _named(rows)}
    return named


def _stretches(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield where lines with numbers follow each other, and the lines above: no others are looked at."""
    start, end = None, 0
    for n, line in enumerate([*lines, ""]):
        words = line.split()
        if len(words) > 1 and any(map(_NUMBER.fullmatch, words)) and not _LEADERS.search(line):
            start = n if start is None else start
        elif start is not None:
            if n - start >= _FEWEST:
                yield max(end, start - _ABOVE), n
                end = n
            start = None


def _row(text_page: Any, line: str, at: int) -> tuple[Row, int]:
    """Return the cells of a line that stands on the page after a place, and where it ends."""
    with closing(text_page.search(line, index=at, match_case=True)) as search:
        first, count = search.get_next() or (at, 0)
    cells: Row = []
    space = ""
    for n, letter in enumerate(line if count == len(line) else "", first):
        if letter.isspace():
            space = " "
            continue
        left, bottom, right, top = text_page.get_charbox(n, loose=True)
        if cells and -1 < (left - cells[-1].right) / (top - bottom or 1) < _GAP:
            cells[-1] = Cell(cells[-1].left, right, cells[-1].text + space + letter)
        else:
            cells.append(Cell(left, right, letter))
        space = ""
    return cells, first + count


def _named(rows: Sequence[Row]) -> Iterator[tuple[int, str]]:
    """Yield the rows below the names of columns, if these are among the first rows."""
    for n, names in enumerate(rows[: _ABOVE + 1]):
        below = _below(names, rows[n + 1 :])
        if len(names) >= _FEWEST and len(below) >= _FEWEST and _names_numbers(names, below):
            for number, cells in enumerate(below, n + 1):
                # As a sentence, so that the next row is not taken for its end.
                yield number, "; ".join(f"{names[at].text}: {cells[at].text}" for at in sorted(cells)) + "."
            return


def _below(names: Row, rows: Sequence[Row]) -> list[dict[int, Cell]]:
    """Return the rows that stand in the columns of these names, up to the first that does not."""
    columns, below = names, list[dict[int, Cell]]()
    for row in rows:
        placed = _placed(row, columns)
        if placed is None or len(placed) < 2:
            break
        cells = [placed.get(n, column) for n, column in enumerate(columns)]
        columns = [
            at._replace(left=min(at.left, cell.left), right=max(at.right, cell.right))
            for at, cell in zip(columns, cells, strict=True)
        ]
        if any(left.right >= right.left for left, right in pairwise(columns)):
            break
        below.append(placed)
    return below


def _placed(row: Row, columns: Row) -> dict[int, Cell] | None:
    """Return the cells of a row by their columns; None unless each stands in one, and alone."""
    placed: dict[int, Cell] = {}
    for cell in row:
        over = [n for n, at in enumerate(columns) if cell.left <= at.right and at.left <= cell.right]
        if len(over) != 1 or over[0] in placed:
            return None
        placed[over[0]] = cell
    return placed


def _names_numbers(names: Row, below: Sequence[dict[int, Cell]]) -> bool:
    """Whether these are names, and a column below them has numbers alone; a year names what is no year."""
    if any(_NO_NAME.fullmatch(name.text) and not _YEAR.fullmatch(name.text) for name in names):
        return False
    columns = ([row[n].text for row in below if n in row] for n in range(len(names)))
    return any(
        len(column) >= _FEWEST
        and all(map(_NUMBER.fullmatch, column))
        and not (_YEAR.fullmatch(name.text) and all(map(_YEAR.fullmatch, column)))
        for name, column in zip(names, columns, strict=True)
    )
