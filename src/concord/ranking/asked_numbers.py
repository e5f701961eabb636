"""Which words of a query name one of many by a number, of which texts have another?

Dates, quarters, months, years, versions, and codes such as BUG-89 or E1042.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from concord.ranking.asked_months import asked_months
from concord.ranking.held_releases import other_versions, with_any_number
from concord.ranking.words import bare_words
from concord.text.dates import Dated, dates_in, days_of, is_open_span
from concord.text.identifiers import is_version
from concord.text.pattern import pattern
from concord.text.quarters import Named, quarters_in

_NUMBERED = pattern(r"[A-Z][A-Za-z]*-[0-9]{2,}|[0-9]{4}-[0-9]{2}-[0-9]{2}")  # BUG-89, 2024-03-05
_LETTERED = pattern(r"(?P<letters>[A-Z]{1,3})(?P<digits>[0-9]{3,})")  # E1042, ST012: as many digits as others
# The one year that a query asks about: a number at its end, or after such a word. Of 213 judged questions
# with years it would not have refused one.
_OF_A_YEAR = (
    "after|before|by|during|for|from|in|of|since|until|year|im|jahr|seit|von|dans|depuis|en|del?|desde|año"
    r"|(?:jan|feb|mar|apr|ma[iy]|jun|jul|aug|sep|o[ck]t|nov|de[cz])\w{0,6}"
)
_ASKED_YEAR = pattern(
    rf"\b(?:{_OF_A_YEAR})[ ](?P<y>(?:19|20)[0-9]{{2}})(?![\w%]|[.,:/-]\w)"
    r"|(?<![\w.,:$€£#/-])(?P<y2>(?:19|20)[0-9]{2})\W*$",
    re.IGNORECASE,
)
_YEAR = pattern(r"(?<![\w.,:$€£#/])(?:19|20)[0-9]{2}(?![\w%]|[.,:]\w)")


def with_others(asked: str, texts: Sequence[str]) -> Iterator[str]:
    """Yield the words of a query that name one of many, if a text has the same with another number."""
    yield from _times_with_others(asked, texts)
    yield from _codes_with_others(asked, texts)


def _times_with_others(asked: str, texts: Sequence[str]) -> Iterator[str]:
    """Yield dates, quarters and months, or where a query has none of them its year."""
    dates, quarters = [*dates_in(asked)], [*quarters_in(asked)]
    months = [*asked_months(asked, texts)]
    is_span = is_open_span(asked)
    if not is_span:
        yield from _dates_with_others(dates, texts)
        yield from _quarters_with_others(quarters, texts)
    yield from (one for one, has_others in months if has_others)
    if not dates and not quarters and not months and not is_span:
        yield from _year_with_others(asked, texts)


def _dates_with_others(dates: Sequence[Dated], texts: Sequence[str]) -> Iterator[str]:
    known = {day for text in texts for one in dates_in(text) for day in one.days} if dates else set()
    yield from (one.written for one in dates if known.difference(one.days))


def _quarters_with_others(quarters: Sequence[Named], texts: Sequence[str]) -> Iterator[str]:
    known = {one.quarter for text in texts for one in quarters_in(text)} if quarters else set()
    yield from (one.written for one in quarters if known.difference({one.quarter}))


def _year_with_others(asked: str, texts: Sequence[str]) -> list[str]:
    """Return the year that a query asks about, if it names one and a text has another."""
    found, years = _ASKED_YEAR.search(asked), {*_YEAR.findall(asked)}
    year = (found["y"] or found["y2"]) if found else ""
    if years != {year}:
        return []
    return [year] if any(one != year for text in texts for one in _YEAR.findall(text)) else []


def _codes_with_others(asked: str, texts: Sequence[str]) -> Iterator[str]:
    words = [word for word in bare_words(asked) if not days_of(word)]
    for before, word in dict.fromkeys(pairwise(["", *words])):
        others = _others_of(word, before, asked)
        if others and any(re.search(others, text, re.IGNORECASE | re.MULTILINE) for text in texts):
            yield word


def _others_of(word: str, before: str, asked: str) -> str | None:
    """Return a pattern of what a code or a version is one of; None where a word is neither."""
    if _NUMBERED.fullmatch(word):
        return rf"\b{with_any_number(word)}\b"
    if code := _LETTERED.fullmatch(word):
        return rf"\b(?-i:{code['letters']})[0-9]{{{len(code['digits'])}}}\b"
    if before and is_version(word):  # at such a place, or it would be any number at all
        return other_versions(word, before, asked)
    return None
