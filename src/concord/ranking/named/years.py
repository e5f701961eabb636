"""The one year that a query asks about, where it names no day, quarter or month."""

from __future__ import annotations

import re
from collections.abc import Iterable

from concord.ranking.named.kinds import FoundTexts, Kind
from concord.text.dates import dates_in, is_open_span
from concord.text.months import months_in
from concord.text.pattern import pattern
from concord.text.quarters import quarters_in

# A number at the end of a query, or after such a word. Of 213 judged questions with years it would not have
# refused one.
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


def _named(found: FoundTexts) -> Iterable[str]:
    """Return the year that a query asks about, if it names no other and a text has another."""
    asked = found.query.meaning
    at, years = _ASKED_YEAR.search(asked), {*_YEAR.findall(asked)}
    year = (at["y"] or at["y2"]) if at else ""
    if years != {year} or is_open_span(asked) or _names_part_of_year(asked):
        return ()
    return [year] if any(one != year for text in found.texts for one in _YEAR.findall(text)) else ()


def _names_part_of_year(asked: str) -> bool:
    return any(True for names in (dates_in, quarters_in, months_in) for _ in names(asked))


KIND = Kind(_named)
