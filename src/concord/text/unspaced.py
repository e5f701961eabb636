"""Scripts written without spaces between words: Chinese, Japanese, Korean, Thai, Lao, Khmer and Myanmar.

FTS5 sees a whole clause of them as one token, so they are indexed by overlapping pairs of characters. Korean
has spaces, but its particles grow onto its words: pairs find the word inside. Patterns are compiled at first
use; an English query never pays for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from unicodedata import normalize

from msgspec import Struct

from concord.text.characters import is_near, is_token_character

# Vowel signs and tone marks end a token in FTS5, so they are stored as private-use characters, which do not.
# This range counts as unspaced, so that mapping a text twice changes nothing.
_MARKS = "\ue000-\uefff"
UNSPACED = (  # as ranges of a regular expression's class
    "\u0e01-\u0e3a\u0e40-\u0e4e"  # Thai
    "\u0e80-\u0ecf\u0edc-\u0edf"  # Lao
    "\u1000-\u103f\u1050-\u108f\u109a-\u109d\uaa60-\uaa7f"  # Myanmar
    "\u1780-\u17d3\u17d7\u17dc\u17dd"  # Khmer
    "\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3"  # Hangul
    "\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # kana
    "\u3105-\u312f\u31a0-\u31bf"  # Bopomofo
    "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"  # Han
)
_UNSPACED = UNSPACED + _MARKS
_MARKED_SCRIPTS = "\u0e00-\u10ff\u1780-\u17ff\uaa60-\uaa7f\u3099\u309a"
_WIDE = "\uff01-\uffee\uf900-\ufaff"  # full-width and half-width forms, compatibility ideographs
_EMOJI = "\u20bf\U0001f32d-\U0001faff"  # most are later than Unicode 6.1, and FTS5 takes those for letters


class Segment(Struct, frozen=True):
    """A run of one kind of characters."""

    text: str
    is_unspaced: bool
    start: int
    end: int


def is_plain(text: str) -> bool:
    """Whether FTS5's own tokens are enough for a text."""
    return is_near(text) or not _pattern(f"[{_UNSPACED}{_WIDE}{_EMOJI}]").search(text)


def has_unspaced(text: str) -> bool:
    """Whether any character of a text belongs to a script without spaces."""
    return not is_near(text) and _pattern(f"[{_UNSPACED}]").search(text) is not None


def segments(text: str) -> Iterator[Segment]:
    """Yield the runs of unspaced scripts and, between them, words (with a version number after them)."""
    pattern = _pattern(rf"([{_UNSPACED}]+)|[^\W_{_UNSPACED}]+(?:\.[0-9]+)*")
    for found in pattern.finditer(text):
        yield Segment(found[0], found[1] is not None, *found.span())


def narrowed(text: str) -> str:
    """Return a text with its full-width and half-width forms as the usual ones."""
    if is_near(text):
        return text
    return _pattern(f"[{_WIDE}]+").sub(lambda run: normalize("NFKC", run[0]), text)


def characters(run: str) -> list[str]:
    """Return the characters of an unspaced run, each with the vowel signs and tone marks that follow it."""
    if not _pattern(f"[{_MARKED_SCRIPTS}{_MARKS}]").search(run):
        return list(run)
    return _pattern(f"[^{_MARKS}][{_MARKS}]*|[{_MARKS}]+").findall(run.translate(_private_marks()))


def with_marks(token: str) -> str:
    """Return a token with its vowel signs and tone marks as people write them."""
    return token if is_near(token) else token.translate(_public_marks())


def pairs(parts: Sequence[str]) -> list[str]:
    """Return each part together with the next."""
    return [first + second for first, second in pairwise(parts)]


@cache
def _pattern(source: str) -> re.Pattern[str]:
    return re.compile(source)


@cache
def _private_marks() -> dict[int, int]:
    codes = map(ord, _pattern(f"[{_MARKED_SCRIPTS}]").findall("".join(map(chr, range(0x0E00, 0xAA80)))))
    return {code: 0xE000 | code & 0xFFF for code in codes if not is_token_character(chr(code))}


@cache
def _public_marks() -> dict[int, int]:
    return {private: code for code, private in reversed(_private_marks().items())}
