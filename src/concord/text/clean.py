"""Text made fit for an index. Files with lines keep every line; pages, whose lines are layout, are re-flowed.

Nothing here guesses at content: what cannot be told from layout with certainty stays as it is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from concord.text.furniture import without_furniture
from concord.text.reflow import goes_on, reflowed, vocabulary_of
from concord.text.surrogates import without_lone_surrogates

# Control characters but tab and newline, byte order marks and halves of surrogate pairs.
_ODD = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufeff\ud800-\udfff]")
_TERMINAL_CODES = re.compile(r"\x1b(?:\[[0-?]*+[ -/]*+[@-~]|\][^\x07\x1b\n]*+(?:\x07|\x1b\\))")
# Form feeds and other separators: between two words they are a space, elsewhere nothing.
_SEPARATING = re.compile(r"(?<=[^\s\x00-\x1f])[\x0b\x0c\x1c-\x1f\x85]+(?=[^\s\x00-\x1f])")

_LIGATURES = {
    0xFB00: "ff",
    0xFB01: "fi",
    0xFB02: "fl",
    0xFB03: "ffi",
    0xFB04: "ffl",
    0xFB05: "st",
    0xFB06: "st",
}
# What ends a line where a word was divided: PDFium's marks, soft hyphens, and how OCR reads them.
_DIVISION = re.compile(r"(?:[\x02\ufffe\xad]|(?<=[^\W\d_])¬)[ \t]*(?=\r?\n|\r)")
_SOFT_HYPHEN = "\xad"
_LEADERS = re.compile(
    r"(?:[ \t]?[.·]){5,}+[ \t]*+"
)  # to the page in a table of contents: dots, spaced or not
_MARKS_WITHIN_LINES = re.compile(r"[\xad\ufffe](?!\n)")


def clean(text: str, *, paged: bool = False) -> str:
    """Return the text in NFC with plain newlines and without control characters; no line comes or goes.

    With `paged`, form feeds part pages whose lines mean nothing, and the text is re-flowed.
    """
    if paged:
        return clean_pages(text.split("\f"))[0]
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if _ODD.search(text):
        text = _without_odd_characters(text)
    return unicodedata.normalize("NFC", text)


def _without_odd_characters(text: str) -> str:
    if "\x1b" in text:
        text = _TERMINAL_CODES.sub("", text)
    text = _SEPARATING.sub(" ", text)
    return _ODD.sub("", without_lone_surrogates(text))


def clean_pages(pages: Sequence[str]) -> tuple[str, tuple[int, ...]]:
    """Return the text of all pages, re-flowed, and where in it each page begins.

    Headers, footers and page numbers go (the first of each header and footer stays), words that were divided
    at a line's end and sentences that were broken into lines are whole again.
    """
    lines = without_furniture([_page_lines(page) for page in pages])
    vocabulary = vocabulary_of(lines)
    return _joined([reflowed(page, vocabulary) for page in lines])


def _page_lines(page: str) -> list[str]:
    divided = _DIVISION.sub(_SOFT_HYPHEN, page)
    text = clean(divided.translate(_LIGATURES))
    shown = _LEADERS.sub(" … ", _MARKS_WITHIN_LINES.sub("", text))
    return [line.rstrip() for line in shown.split("\n")]


def _joined(pages: Sequence[str]) -> tuple[str, tuple[int, ...]]:
    parts: list[str] = []
    starts: list[int] = []
    length = 0
    before = ""
    for page in pages:
        if page and before:
            gap = "\n" if goes_on(before, page) else "\n\n"
            parts.append(gap)
            length += len(gap)
        starts.append(length)
        parts.append(page)
        length += len(page)
        before = page or before
    return "".join(parts), tuple(starts)
