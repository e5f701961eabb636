"""Running headers, footers and page numbers, which every page has and which say nothing of it.

A line at the edge of a page is furniture when it recurs on most pages (or most left or right ones), with its
numbers either the same everywhere or counting along with the pages: "Report 2021", "Page 3 of 10", "iv".
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_EDGE = 3  # lines at the top and as many at the bottom
_LEAST_PAGES = 3
_SHARE = 0.6  # of the pages on which a line must recur
_IN_STEP = 0.8  # of its occurrences whose numbers must fit

_DIGITS = re.compile(r"\d+")
_MASK = "\0"  # no clean text has one
_ROMAN = re.compile(r"(?=[ivxl])(?:xl|l?x{0,3})(?:i[xv]|v?i{0,3})")
_ROMAN_VALUES = {"i": 1, "v": 5, "x": 10, "l": 50}
_PAGE_NUMBER = re.compile(r"(?:page |seite |p\. ?)\0(?: (?:of|von) \0| ?/ ?\0)?|[-–—] ?\0 ?[-–—]")

Page = list[str]


class _Seen(NamedTuple):
    """A line at an edge: which page, which line of it, the numbers in it."""

    page: int
    line: int
    numbers: tuple[int, ...]


def without_furniture(pages: Sequence[Page]) -> list[Page]:
    """Return the pages without running headers, footers and page numbers; their first occurrence stays."""
    drop: defaultdict[int, set[int]] = defaultdict(set)
    for at_top in (True, False):
        for mask, seen in _edge_lines(pages, at_top=at_top).items():
            for page, line, _ in _furniture(mask, seen, len(pages)):
                drop[page].add(line)
    return [
        [line for index, line in enumerate(page) if index not in drop[number]]
        for number, page in enumerate(pages)
    ]


def _edge_lines(pages: Sequence[Page], *, at_top: bool) -> dict[str, list[_Seen]]:
    """Group the lines at one edge of all pages by their text with the numbers masked."""
    found: defaultdict[str, list[_Seen]] = defaultdict(list)
    for number, page in enumerate(pages):
        full = [index for index, line in enumerate(page) if line.strip()]
        for index in full[:_EDGE] if at_top else full[-_EDGE:]:
            mask, numbers = _masked(page[index])
            found[mask].append(_Seen(number, index, numbers))
    return found


def _masked(line: str) -> tuple[str, tuple[int, ...]]:
    text = " ".join(line.split()).casefold()
    if _ROMAN.fullmatch(text):
        return "roman " + _MASK, (_roman(text),)
    return _DIGITS.sub(_MASK, text), tuple(int(digits[-9:]) for digits in _DIGITS.findall(text))


def _roman(text: str) -> int:
    values = [_ROMAN_VALUES[letter] for letter in text]
    return sum(-a if a < b else a for a, b in zip(values, [*values[1:], 0], strict=True))


def _furniture(mask: str, seen: Sequence[_Seen], pages: int) -> Sequence[_Seen]:
    """Return which occurrences of a line are to go."""
    if _PAGE_NUMBER.fullmatch(mask):
        return seen
    if mask in (_MASK, "roman " + _MASK):
        return list(_page_numbers(seen, pages))
    if not _is_running(seen, pages) or not _numbers_fit(seen):
        return ()
    return seen[1:] if any(map(str.isalpha, mask)) else seen


def _page_numbers(seen: Sequence[_Seen], pages: int) -> Iterator[_Seen]:
    """Yield the lines that are numbers alone and count along with the pages, from wherever they start."""
    offsets = Counter(entry.numbers[0] - entry.page for entry in seen)
    least = min(_LEAST_PAGES, max(2, pages))
    for entry in seen:
        if offsets[entry.numbers[0] - entry.page] >= least:
            yield entry


def _is_running(seen: Sequence[_Seen], pages: int) -> bool:
    on = {entry.page for entry in seen}
    if len(on) < _LEAST_PAGES:
        return False
    for group in (range(pages), range(0, pages, 2), range(1, pages, 2)):
        if len(group) >= _LEAST_PAGES and len(on.intersection(group)) >= _SHARE * len(group):
            return True
    return False


def _numbers_fit(seen: Sequence[_Seen]) -> bool:
    """Whether each number of a line is the same on most pages, or counts along with them."""
    for values in zip(*(entry.numbers for entry in seen), strict=True):
        same = Counter(values).most_common(1)[0][1]
        offsets = Counter(value - entry.page for value, entry in zip(values, seen, strict=True))
        if max(same, offsets.most_common(1)[0][1]) < _IN_STEP * len(seen):
            return False
    return True
