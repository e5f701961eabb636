"""The same day in another form: 2025-06-24, 24.06.2025, 6/24/2025, June 24th, 2025, 24. Juni 2025.

A text has one form and a query another, so a query looks for all. In 06/07/2025 either number may be the
month: both are tried. Two digits are no year. A day without a year (24 June) may be of any year.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product

from msgspec import Struct

from concord.text.tokens import folded, has_digit, pattern

# Without their accents, as the index has them; one month after the other.
_ENGLISH = """
    january jan, february feb, march mar, april apr, may, june jun, july jul, august aug, september sep sept,
    october oct, november nov, december dec
"""
_GERMAN_AND_FRENCH = """
    januar janner janvier janv, februar fevrier fevr, marz mars, avril avr, mai, juni juin, juli juillet juil,
    aout, septembre, oktober okt octobre, novembre, dezember dez decembre
"""
_SPANISH = """
    enero ene, febrero, marzo, abril abr, mayo, junio, julio, agosto ago, septiembre setiembre, octubre,
    noviembre, diciembre dic
"""
MONTHS = tuple(
    tuple(tuple(names.split()) for names in language.split(","))
    for language in (_ENGLISH, _GERMAN_AND_FRENCH, _SPANISH)
)
_NUMBER_OF = {
    name: number for language in MONTHS for number, names in enumerate(language, 1) for name in names
}
_MOST_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_SHORTEST, _LONGEST = len("1/1/2025"), len("24 de septiembre de 2025")

_NAME = r"[^\W\d_]{3,10}"

# Of 2024.1.2 the numbers are not filled up: it is a version.
_YEAR_FIRST = (
    r"(?P<y>[12][0-9]{3})(?:(?P<sign>[-/])(?P<m>[0-9]{1,2})(?P=sign)|\.(?P<m2>[0-9]{2})\.(?=[0-9]{2}))"
    r"(?P<d>[0-9]{1,2})"
)
_YEAR_LAST = r"(?P<a>[0-9]{1,2})(?P<mark>[-/.])(?P<b>[0-9]{1,2})(?P=mark)(?P<y2>[12][0-9]{3})"
_DAY_FIRST = (
    rf"(?P<d3>[0-9]{{1,2}})(?:st|nd|rd|th|er|º|\.)?[ -](?:of |de )?(?P<m3>{_NAME})\.?,?[ -](?:del? )?"
    r"(?P<y3>[12][0-9]{3})"
)
_MONTH_FIRST = rf"(?P<m4>{_NAME})\.?[ -](?P<d4>[0-9]{{1,2}})(?:st|nd|rd|th)?,?[ -](?P<y4>[12][0-9]{{3}})"
_DATE = pattern(
    rf"(?<![\w./-])(?:{_YEAR_FIRST}|{_YEAR_LAST}|{_DAY_FIRST}|{_MONTH_FIRST})"
    r"(?!(?!T[0-9])\w|[./-][0-9])",  # a time may follow: 2025-06-24T10:00:03Z
    re.IGNORECASE,
)
_BY_HOUR = "t0", "t1", "t2"  # how such a time begins; in the index it is one word with the day: 24t10
_CENTURIES = "19", "20"
# Without its year, a day of another language than English comes before its month: Mars 2 is a probe.
_ANY_YEAR = pattern(
    rf"(?<![\w./-])(?:(?P<d>[0-9]{{1,2}})(?P<th>st|nd|rd|th|er|º|\.)?[ ](?:of |de )?(?P<m>{_NAME})"
    rf"|(?P<m2>{'|'.join(_ENGLISH.replace(',', '').split())})\.?[ ](?P<d2>[0-9]{{1,2}})(?P<th2>st|nd|rd|th)?)"
    r"(?!\w|[./:-][0-9]|,? [12][0-9]{3}\b)",
    re.IGNORECASE,
)
_OPEN_SPAN = pattern(
    r"\b(?:after|before|between|since|till?|until|ab|bis|nach|seit|vor|zwischen|apr[eè]s|avant|depuis|entre"
    r"|jusqu\w*|antes|desde|despu[eé]s|hasta)\b",
    re.IGNORECASE,
)


class Day(Struct, frozen=True, order=True):
    """A day of the calendar."""

    year: int | None  # None: of any year
    month: int
    day: int


class WrittenDate(Struct, frozen=True):
    """A date as it is written in a text, and the days that it may be."""

    written: str
    days: tuple[Day, ...]


def dates_in(text: str) -> Iterator[WrittenDate]:
    """Yield the dates of a text that have a day, a month and a year."""
    if len(text) < _SHORTEST or not has_digit(text):
        return
    for found in _DATE.finditer(text):
        if days := _days(found):
            yield WrittenDate(found[0], days)


def without_dates(text: str) -> str:
    """Return a text with nothing in the place of what looks like a date."""
    return _DATE.sub(" | ", text)


def yearless_in(text: str) -> Iterator[WrittenDate]:
    """Yield the days of a text that have a month, by its name, and no year."""
    if not has_digit(text):
        return
    for found in _ANY_YEAR.finditer(text):
        name = found["m"] or found["m2"]
        is_verb = name == "may" and not (found["th"] or found["th2"])  # step 3 may fail
        if not is_verb and (days := _valid([(None, month_number(name), int(found["d"] or found["d2"]))])):
            yield WrittenDate(found[0], days)


@lru_cache(maxsize=256)
def days_of(text: str) -> tuple[Day, ...]:
    """Return the days that a text may mean, if it is a date and nothing else."""
    if not _SHORTEST <= len(text) <= _LONGEST or not text[-1].isdigit():
        return ()
    found = _DATE.fullmatch(text)
    return _days(found) if found else ()


@lru_cache(maxsize=256)
def forms(day: Day) -> tuple[str, ...]:
    """Return the ways to write a day, as words with spaces between them."""
    if day.year is None:
        return (f"{day.month:02} {day.day:02}", *named_forms(day))
    year = str(day.year)
    found = [
        form
        for month, number in product(_numerals(day.month), _numerals(day.day))
        for form in (f"{year} {month} {number}", f"{number} {month} {year}", f"{month} {number} {year}")
    ]
    found += [f"{form} {year}" for form in named_forms(day)]
    found += [f"{day.day} de {name} de {year}" for name in MONTHS[-1][day.month - 1]]
    return tuple(dict.fromkeys(found))


@lru_cache(maxsize=256)
def begun_forms(day: Day) -> tuple[str, ...]:
    """Return the beginnings of further ways to write a day, which a time or a year completes."""
    before = f"{day.year} " if day.year else ""
    found = [f"{before}{day.month:02} {day.day:02}{hour}" for hour in _BY_HOUR]
    if day.year is None:
        numerals = [*product(_numerals(day.month), _numerals(day.day))]
        pairs = [pair for month, number in numerals for pair in (f"{number} {month}", f"{month} {number}")]
        found += [f"{pair} {century}" for pair in dict.fromkeys(pairs) for century in _CENTURIES]
    return tuple(found)


def named_forms(day: Day) -> tuple[str, ...]:
    """Return the ways to write a day with the name of its month, without its year."""
    english, german_or_french, spanish = (language[day.month - 1] for language in MONTHS)
    numerals, ordinal = _numerals(day.day), _ordinal(day.day)
    found = [
        form
        for name, number in product(english, [*numerals, ordinal])
        for form in (f"{number} {name}", f"{name} {number}")
    ]
    found += [f"{ordinal} of {name}" for name in english]
    found += [f"{number} {name}" for name in (*german_or_french, *spanish) for number in numerals]
    found += [f"1er {name}" for name in german_or_french if day.day == 1]
    found += [f"{day.day} de {name}" for name in spanish]
    return tuple(found)


def _days(found: re.Match[str]) -> tuple[Day, ...]:
    """Return the days that a date may be; none, where there is no such day."""
    if found["a"]:
        return _either_way(int(found["y2"]), int(found["a"]), int(found["b"]), found["mark"])
    if found["y"]:
        return _valid([(int(found["y"]), int(found["m"] or found["m2"]), int(found["d"]))])
    year, name, day = (found[f"{part}3"] or found[f"{part}4"] for part in "ymd")
    return _valid([(int(year), month_number(name), int(day))])


def month_number(name: str) -> int:
    """Return the number of a month; 0 for what names none."""
    return _NUMBER_OF.get("".join(folded(name)), 0)


def _either_way(year: int, first: int, second: int, mark: str) -> tuple[Day, ...]:
    """Return the days of two numbers and a year; with dots the day comes first, if it can."""
    found = _valid([(year, second, first), (year, first, second)])
    return found[:1] if mark == "." else found


def _valid(read: Sequence[tuple[int | None, int, int]]) -> tuple[Day, ...]:
    days = (Day(*one) for one in read if 1 <= one[1] <= 12 and 1 <= one[2] <= _MOST_DAYS[one[1] - 1])
    return tuple(dict.fromkeys(days))


def _numerals(number: int) -> list[str]:
    """Return a number as it is, and filled up to two digits."""
    return [str(number), f"0{number}"] if number < 10 else [str(number)]


def _ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th") if number // 10 != 1 else "th"
    return f"{number}{ending}"


def is_open_span(asked: str) -> bool:
    """Whether a query asks about a span (before, after, between): then other days answer it, too."""
    return _OPEN_SPAN.search(asked) is not None
