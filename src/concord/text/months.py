"""The same month of a year in another form: May 2025, 2025-05, 05/2025, Mai 2025, or a day of it.

A number alone is a month only where it has two digits: 1/2000 is a share, 2025.05 a version.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain

from msgspec import Struct

from concord.text.dates import MONTHS, dates_in, month_number, without_dates
from concord.text.pattern import pattern

_ACCENTED = str.maketrans({"a": "[aä]", "e": "[eé]", "u": "[uû]"})
_NAMES = {name for language in MONTHS for names in language for name in names} - {"ago"}  # which is English
_NAME = "|".join(sorted(_NAMES, key=len, reverse=True)).translate(_ACCENTED)
_TWO_DIGITS = r"0[1-9]|1[0-2]"
_CENTURY_YEAR = r"(?:19|20)[0-9]{2}"
_MONTH = pattern(
    rf"(?<![\w./-])(?:(?P<m>{_NAME})\.?,?[ -](?:of |del? )?(?P<y>[12][0-9]{{3}})"
    rf"|(?P<y2>{_CENTURY_YEAR})[ -](?P<m2>{_NAME})"
    rf"|(?P<y3>{_CENTURY_YEAR})[-/–](?P<n>{_TWO_DIGITS})"
    rf"|(?P<n2>{_TWO_DIGITS})/(?P<y4>{_CENTURY_YEAR}))"
    r"(?!\w|[./-][0-9])",
    re.IGNORECASE,
)
_YEAR = pattern(r"(?<![0-9])[12][0-9]{3}(?![0-9])")
_MOST_DAYS = 31


class Month(Struct, frozen=True):
    """A month of a year."""

    year: int
    number: int


class Named(Struct, frozen=True):
    """A month as it is written in a text."""

    written: str
    month: Month


def months_in(text: str) -> Iterator[Named]:
    """Yield the months of a text that have a year and no day."""
    for line in filter(_YEAR.search, text.split("\n")):
        for found in _MONTH.finditer(without_dates(line)):
            if month := _month(found):
                yield Named(found[0], month)


@lru_cache(maxsize=256)
def month_of(text: str) -> Month | None:
    """Return the month that a text is, if it is that and nothing else."""
    return next((one.month for one in months_in(text) if one.written == text), None)


def months_told(text: str) -> Iterator[Month]:
    """Yield the months that a text has, those of its days first."""
    for line in filter(_YEAR.search, text.split("\n")):
        days = (day for one in dates_in(line) for day in one.days)
        yield from (Month(day.year, day.month) for day in days if day.year)
    yield from (one.month for one in months_in(text))


def is_of(text: str, month: Month) -> bool:
    """Whether a text is about a month: has it, or a day of it, or its name and its year apart from others."""
    if str(month.year) not in text:
        return False
    filed = f"{month.year}-{month.number:02}", f"{month.year}/{month.number:02}"  # as in a path
    if any(one in text for one in filed) or month in months_told(text):
        return True
    if not _capitalised(month).search(text):
        return False
    rest = "\n".join(
        _MONTH.sub(" ", without_dates(one)) if _YEAR.search(one) else one for one in text.split("\n")
    )
    is_named = _capitalised(month).search(rest) is not None
    return is_named and re.search(rf"\b{month.year}\b", rest) is not None


@lru_cache(maxsize=256)
def _capitalised(month: Month) -> re.Pattern[str]:
    """Return a pattern of the names of a month, as no verb is written: May, and not may."""
    names = "|".join(name.capitalize().translate(_ACCENTED) for name in month_names(month))
    return re.compile(rf"\b(?:{names})\b")


@lru_cache(maxsize=256)
def month_forms(month: Month) -> tuple[str, ...]:
    """Return the ways to write a month, or an English day of it, as words with spaces between them."""
    year, number = month.year, f"{month.number:02}"
    found = [f"{year} {number}", f"{number} {year}"]
    for name in month_names(month):
        found += [f"{name} {year}", f"{year} {name}"]
    english, *_, spanish = (language[month.number - 1] for language in MONTHS)
    found += [f"{spanish[0]} de {year}", f"{english[0]} of {year}"]
    found += [f"{english[0]} {day} {year}" for day in range(1, _MOST_DAYS + 1)]
    return tuple(found)


@lru_cache(maxsize=256)
def month_names(month: Month) -> tuple[str, ...]:
    """Return the names of a month, in all languages."""
    return tuple(dict.fromkeys(chain.from_iterable(language[month.number - 1] for language in MONTHS)))


def _month(found: re.Match[str]) -> Month | None:
    """Return which month it is; None for a verb after a year (in 2025 may be)."""
    year = int(found["y"] or found["y2"] or found["y3"] or found["y4"])
    if name := found["m"] or found["m2"]:
        number = month_number(name) if found["m"] or name[0].isupper() else 0
    else:
        number = int(found["n"] or found["n2"])
    return Month(year, number) if number else None
