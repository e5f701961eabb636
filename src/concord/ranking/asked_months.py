"""Which month of a year does a query ask about, and does a text hold it?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from concord.text.months import Month, is_of, month_forms, month_names, months_in, months_told
from concord.text.terms import any_of, form_matches
from concord.types import AllOf, AnyOf, Match, Word


def asked_months(asked: str, texts: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yield the months of a query as they are written, and whether some text has another."""
    for one in months_in(asked):
        others = (month for text in texts for month in months_told(text) if month != one.month)
        yield one.written, next(others, None) is not None


def holds_month(month: Month, texts: Sequence[str], holders: Callable[[Match | None], Sequence[str]]) -> bool:
    """Whether a text has a month in any form, a day of it, or its name and its year: of a table, say."""
    year, number = Word(str(month.year)), f"{month.number:02}"
    names = AnyOf((*map(Word, month_names(month)), Word(number), Word(str(month.number))))
    matches = any_of(form_matches(month_forms(month))), AllOf((names, year))
    return any(is_of(one, month) for one in texts) or any(
        is_of(one, month) for match in matches for one in holders(match)
    )
