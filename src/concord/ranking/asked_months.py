"""Which month of a year does a query ask about, and does a text hold it?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from concord.text.months import Month, is_of, is_span, month_forms, month_names, months_in, months_told
from concord.text.terms import any_of, form_matches
from concord.types import AllOf, AnyOf, Match, Word


def asked_months(asked: str, texts: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yield the months of a query as they are written, and whether texts have others in the place of one.

    A month that only begins or ends what is asked for is one of many, and the others answer as well.
    """
    months = {one.written: one.month for one in months_in(asked)}
    absent = {month for month in months.values() if not any(is_of(text, month) for text in texts)}
    if absent and (is_span(asked) or not any(True for text in texts for _ in months_told(text))):
        absent = set()
    yield from ((written, month in absent) for written, month in months.items())


def holds_month(month: Month, texts: Sequence[str], holders: Callable[[Match | None], Sequence[str]]) -> bool:
    """Whether a text has a month in any form, a day of it, or its name and its year: of a table, say."""
    year, names = Word(str(month.year)), month_names(month)
    numbers = AnyOf((Word(f"{month.number:02}"), Word(str(month.number))))
    short = form_matches(f"{name} {month.year % 100:02}" for name in names)
    matches = (
        any_of(form_matches(month_forms(month))),
        AllOf((AnyOf((*map(Word, names),)), year)),
        AnyOf((AllOf((numbers, year)), *short)),
    )
    return any(is_of(one, month) for one in texts) or any(
        is_of(one, month) for match in matches for one in holders(match)
    )
