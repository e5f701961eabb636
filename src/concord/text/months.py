"""The same month of a year in another form: May 2025, 2025-05, 05/2025, Mai 2025, or a day of it.

A number alone is a month only where it has two digits: 1/2000 is a share, 2025.05 a version.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain

from msgspec import Struct

from concord.text.dates import MONTHS, dates_in, is_open_span, month_number, without_dates
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
_SPAN = pattern(
    rf"\bfrom\b|\b(?:{_NAME})\.?(?:[ ][12][0-9]{{3}})?\s*(?:to|through|[-–])\s*(?:{_NAME})\b",
    re.IGNORECASE,
)
_MOST_DAYS = 31
_MAY = 5


class Month(Struct, frozen=True):
    """A month of a year."""

    year: int
    number: int


class WrittenMonth(Struct, frozen=True):
    """A month as it is written in a text."""

    written: str
    month: Month


def months_in(text: str) -> Iterator[WrittenMonth]:
    """Yield the months of a text that have a year and no day."""
    for line in filter(_YEAR.search, text.split("\n")):
        for found in _MONTH.finditer(without_dates(line)):
            if month := _month(found):
                yield WrittenMonth(found[0], month)


@lru_cache(maxsize=256)
def month_of(text: str) -> Month | None:
    """Return the month that a text names, if it has nothing else in it."""
    return next((one.month for one in months_in(text) if one.written == text), None)


def months_told(text: str) -> Iterator[Month]:
    """Yield the months that a text has, those of its days first."""
    for line in filter(_YEAR.search, text.split("\n")):
        days = (day for one in dates_in(line) for day in one.days)
        yield from (Month(day.year, day.month) for day in days if day.year)
    yield from (one.month for one in months_in(text))


def is_of(text: str, month: Month) -> bool:
    """Whether a text may be about a month: has it in any form, a day of it, or its name and its year.

    Name and year may stand apart: in a row (April and May 2025), in a table or in a path. That they belong to
    one month is not checked, because to miss what is there is worse.
    """
    has_year = str(month.year) in text
    if has_year and _in_numbers(month).search(text):
        return True
    lowered = text.lower()
    if not any(one in lowered for one in _beginnings(month)):
        return False  # as most: patterns of names are slow
    return (_named(month) if has_year else _shortened(month)).search(text) is not None


def is_span(asked: str) -> bool:
    """Whether a query asks about a time that a month begins or ends: since May 2025, April to May 2025."""
    return is_open_span(asked) or _SPAN.search(asked) is not None


@lru_cache(maxsize=256)
def _named(month: Month) -> re.Pattern[str]:
    """Return a pattern of the names of a month in any case, except for the verb may."""
    names = "|".join(name.translate(_ACCENTED) for name in month_names(month) if name in _NAMES - {"may"})
    verb = r"|(?-i:M(?:ay|AY)|may(?!\s+(?!of\b)[^\W\d]))" if month.number == _MAY else ""
    return re.compile(rf"(?<![^\W_])(?:{names}{verb})(?![^\W_])", re.IGNORECASE)


@lru_cache(maxsize=256)
def _beginnings(month: Month) -> frozenset[str]:
    """Return what the names of a month begin with, with and without accents."""
    plain = {name[:3] for name in month_names(month)}
    return frozenset(plain | {one.translate(str.maketrans("aeu", "äéû")) for one in plain})


@lru_cache(maxsize=256)
def _shortened(month: Month) -> re.Pattern[str]:
    """Return a pattern of a month with two digits of its year: May '25."""
    return re.compile(rf"{_named(month).pattern}\.?,?[ ]?['’]{month.year % 100:02}(?![0-9])", re.IGNORECASE)


@lru_cache(maxsize=256)
def _in_numbers(month: Month) -> re.Pattern[str]:
    """Return a pattern of a month in numbers, with or without a day: 2025-05, 202505, 5/2025, 5/12/2025.

    What stands before a number is looked at after it: patterns that begin with a digit are the quick ones.
    """
    year, number = month.year, month.number
    return re.compile(
        rf"{year}(?<![0-9]{year})(?:[-/._–]0?{number}(?![0-9])|{number:02})"
        rf"|{number}(?<![1-9]{number})[-/._–](?:[0-9]{{1,2}}[-/.])?{year}(?![0-9])"
    )


@lru_cache(maxsize=256)
def month_forms(month: Month) -> tuple[str, ...]:
    """Return the ways to write a month, or an English day of it, as words with spaces between them."""
    year, number = month.year, f"{month.number:02}"
    found = [f"{year} {number}", f"{number} {year}", f"{year}{number}"]
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
    """Return which month it is; None for a verb after a year (in 2025 may be), or two years (2010/11)."""
    year = int(found["y"] or found["y2"] or found["y3"] or found["y4"])
    if name := found["m"] or found["m2"]:
        number = month_number(name) if found["m"] or name[0].isupper() else 0
    else:
        number = int(found["n"] or found["n2"])
        number = 0 if found["n"] and number == (year + 1) % 100 else number
    return Month(year, number) if number else None
