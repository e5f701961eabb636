"""The headings of a PDF, found in its text: by its outline, else by lines in larger letters than the rest."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from itertools import groupby
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
_NUMBER = r"(?:(?:chapter|appendix|part|section)\s+)?(?:[\dA-Z]{1,4}(?:\.\d{1,3}){0,5}[.:)]?\s+)?"
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
        form = re.compile(rf"^{_NUMBER}{spaced}[ \t]*(?:\n|\Z)", re.MULTILINE | re.IGNORECASE)
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
