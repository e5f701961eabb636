"""The same quarter of a year in another form: Q2 2023, 2023-Q2, second quarter of 2023, 2. Quartal 2023."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from msgspec import Struct

from concord.text.characters import folded, has_digit
from concord.text.pattern import pattern

# Without their accents, as the index has them; one quarter after the other.
_NAMES = (
    ("first quarter", "1st quarter", "erstes quartal", "ersten quartal", "erste quartal", "1 quartal")
    + ("premier trimestre", "1er trimestre", "primer trimestre"),
    ("second quarter", "2nd quarter", "zweites quartal", "zweiten quartal", "zweite quartal", "2 quartal")
    + ("deuxieme trimestre", "2e trimestre", "segundo trimestre"),
    ("third quarter", "3rd quarter", "drittes quartal", "dritten quartal", "dritte quartal", "3 quartal")
    + ("troisieme trimestre", "3e trimestre", "tercer trimestre"),
    ("fourth quarter", "4th quarter", "viertes quartal", "vierten quartal", "vierte quartal", "4 quartal")
    + ("quatrieme trimestre", "4e trimestre", "cuarto trimestre"),
)
_NUMBER_OF = {name: number for number, names in enumerate(_NAMES, 1) for name in names}
_NUMBER_OF |= {form: number for number in range(1, 5) for form in (f"q{number}", f"{number}q")}

_WHICH = r"(?:Q[1-4]|[1-4]Q|(?:[1-4](?:st|nd|rd|th|er|e|\.)|[^\W\d_]{5,9})[ ](?:quarter|quartal|trimestre))"
_YEAR = r"(?:FY ?)?(?P<y{}>[12][0-9]{{3}})"
_QUARTER = pattern(
    rf"(?<![\w.-])(?:(?P<q>{_WHICH})(?:[ ,/-]{{0,2}}|[ ](?:of|in|de|du|des Jahres)[ ]){_YEAR.format('')}"
    rf"|{_YEAR.format('2')}[ ,/-]{{0,2}}(?P<q2>{_WHICH}))(?!\w|[./-][0-9])",
    re.IGNORECASE,
)
_BARE = pattern(rf"(?<![\w.-]){_WHICH}(?!\w)", re.IGNORECASE)


class Quarter(Struct, frozen=True):
    """A quarter of a year."""

    year: int
    number: int


class WrittenQuarter(Struct, frozen=True):
    """A quarter as it is written in a text."""

    written: str
    quarter: Quarter


def quarters_in(text: str) -> Iterator[WrittenQuarter]:
    """Yield the quarters of a text that have a year."""
    if not has_digit(text):
        return
    for found in _QUARTER.finditer(text):
        if number := _number(found["q"] or found["q2"]):
            yield WrittenQuarter(found[0], Quarter(int(found["y"] or found["y2"]), number))


@lru_cache(maxsize=256)
def quarter_of(text: str) -> Quarter | None:
    """Return the quarter that a text names, if it has nothing else in it."""
    return next((one.quarter for one in quarters_in(text) if one.written == text), None)


def is_of(text: str, quarter: Quarter) -> bool:
    """Whether a text is about a quarter: has it, or has its number and its year apart from each other."""
    if any(one.quarter == quarter for one in quarters_in(text)):
        return True
    rest = _QUARTER.sub(" ", text)
    numbers = {_number(found[0]) for found in _BARE.finditer(rest)}
    return quarter.number in numbers and re.search(rf"\b{quarter.year}\b", rest) is not None


@lru_cache(maxsize=256)
def quarter_forms(quarter: Quarter) -> tuple[str, ...]:
    """Return the ways to write a quarter, as words with spaces between them."""
    year, numbers = quarter.year, (f"q{quarter.number}", f"{quarter.number}q")
    found = [
        form
        for number in numbers
        for form in (f"{number} {year}", f"{year} {number}", f"{number} fy{year}", f"{number} fy {year}")
    ]
    found += [f"{year}{numbers[0]}", f"{numbers[0]}{year}", f"{numbers[0]} of {year}"]
    for name in _NAMES[quarter.number - 1]:
        found += [f"{name} {year}", f"{name} {'of' if name.endswith('r') else 'de'} {year}"]
    return tuple(found)


@lru_cache(maxsize=256)
def numerals(quarter: Quarter) -> tuple[str, ...]:
    """Return the ways to write which quarter of a year it is."""
    return (f"q{quarter.number}", f"{quarter.number}q", *_NAMES[quarter.number - 1])


def _number(written: str) -> int:
    """Return the number of a quarter; 0 for anything else, such as a fiscal quarter."""
    return _NUMBER_OF.get(" ".join(folded(written)), 0)
