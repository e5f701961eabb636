"""A quarter that a query names is held in whatever form it is written, or by its number and its year."""

from __future__ import annotations

from collections.abc import Iterable

from concord.ranking.named.kinds import FoundTexts, Kind
from concord.text.dates import is_open_span
from concord.text.quarters import Quarter, is_of, numerals, quarter_of, quarters_in
from concord.text.terms import any_of, phrase_match, quarter_matches
from concord.types import AllOf, AnyOf, Match, Word


def _named(found: FoundTexts) -> Iterable[str]:
    """Yield the quarters of a query if a text has other quarters; none if they are the ends of a span."""
    asked = found.query.meaning
    quarters = [*quarters_in(asked)]
    if not quarters or is_open_span(asked):
        return ()
    known = {one.quarter for text in found.texts for one in quarters_in(text)}
    return (one.written for one in quarters if known.difference({one.quarter}))


def _is_held(named: str, found: FoundTexts) -> bool | None:
    if not (quarter := quarter_of(named)):
        return None
    return any(is_of(one, quarter) for one in (*found.texts, *found.holders(_match(quarter))))


def _match(quarter: Quarter) -> Match:
    """Return a match of a quarter in any form, or of its number and year apart, as in a table."""
    number = any_of([match for one in numerals(quarter) if (match := phrase_match(one))])
    apart = [AllOf((number, Word(str(quarter.year))))] if number else []
    return AnyOf((*quarter_matches(quarter), *apart))


KIND = Kind(_named, _is_held)
