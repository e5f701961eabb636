"""A code of a query names one of many by its number: BUG-89, E1042, 2025-000123.

It counts where a text has another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from concord.ranking.named.kinds import FoundTexts, Kind
from concord.ranking.word_shapes import is_year
from concord.ranking.words import bare_words
from concord.text.dates import days_of
from concord.text.pattern import pattern

_NUMBERED = pattern(r"[A-Z][A-Za-z]*-[0-9]{2,}|[0-9]{4}-[0-9]{2}-[0-9]{2}")  # BUG-89, 2024-03-05
_LETTERED = pattern(r"(?P<letters>[A-Z]{1,3})(?P<digits>[0-9]{3,})")  # E1042, ST012: as many digits as others
_GROUPED = pattern(r"(?=[0-9-]*[0-9]{3})[0-9]+(?:-[0-9]+)+")  # 2025-000123: groups as long as others have
_DIGITS = pattern("[0-9]+")


def _named(found: FoundTexts) -> Iterator[str]:
    for word in dict.fromkeys(bare_words(found.query.meaning)):
        others = None if days_of(word) else _others(word)
        if others and any(re.search(others, text, re.IGNORECASE) for text in found.texts):
            yield word


def _others(word: str) -> str | None:
    """Return a pattern of all codes of the same form as a word; None if it is no code."""
    if _NUMBERED.fullmatch(word):
        return rf"\b{with_any_number(word)}\b"
    if code := _LETTERED.fullmatch(word):
        return rf"\b(?-i:{code['letters']})[0-9]{{{len(code['digits'])}}}\b"
    if _GROUPED.fullmatch(word) and not is_year(word):
        groups = "-".join(f"[0-9]{{{len(group)}}}" for group in word.split("-"))
        return rf"(?<![\w-]){groups}(?![\w-])"
    return None


def with_any_number(word: str) -> str:
    """Return a pattern of a word with any numbers in the place of its own."""
    return _DIGITS.sub("[0-9]+", re.escape(word))


KIND = Kind(_named)
