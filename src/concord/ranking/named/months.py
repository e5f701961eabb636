"""A month that a query names is held in whatever form it is written, by a day of it, or by name and year."""

from __future__ import annotations

from collections.abc import Iterator

from concord.ranking.named.kinds import FoundTexts, Kind
from concord.text.months import (
    Month,
    is_of,
    is_span,
    month_forms,
    month_names,
    month_of,
    months_in,
    months_told,
)
from concord.text.terms import any_of, form_matches
from concord.types import AllOf, AnyOf, Match, Word


def _named(found: FoundTexts) -> Iterator[str]:
    """Yield months of the query that no text found has, though texts have other months.

    A month that only begins or ends a span is left out: the months in between answer the query as well.
    """
    asked, texts = found.query.meaning, found.texts
    months = {one.written: one.month for one in months_in(asked)}
    absent = {month for month in months.values() if not any(is_of(text, month) for text in texts)}
    if absent and (is_span(asked) or not any(True for text in texts for _ in months_told(text))):
        absent = set()
    yield from (written for written, month in months.items() if month in absent)


def _is_held(named: str, found: FoundTexts) -> bool | None:
    if not (month := month_of(named)):
        return None
    if any(is_of(one, month) for one in found.texts):
        return True
    return any(is_of(one, month) for match in _matches(month) for one in found.holders(match))


def _matches(month: Month) -> Iterator[Match | None]:
    """Yield matches of a month in any form, of a day in it, and of its name and year apart, as in a table."""
    year, names = Word(str(month.year)), month_names(month)
    numbers = AnyOf((Word(f"{month.number:02}"), Word(str(month.number))))
    short = form_matches(f"{name} {month.year % 100:02}" for name in names)
    yield any_of(form_matches(month_forms(month)))
    yield AllOf((AnyOf((*map(Word, names),)), year))
    yield AnyOf((AllOf((numbers, year)), *short))


KIND = Kind(_named, _is_held)
