"""A day that a query names is held in whatever form it is written, by a text or by the path of its file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from concord.ranking.named.kinds import FoundTexts, Kind
from concord.text.dates import Day, dates_in, days_of, is_open_span, named_forms
from concord.text.terms import any_of, day_matches
from concord.types import AllOf, AnyOf, Match, Phrase, Word


def _named(found: FoundTexts) -> Iterable[str]:
    """Yield the days of a query if a text has other days; none if they are the ends of a span."""
    asked = found.query.meaning
    dates = [*dates_in(asked)]
    if not dates or is_open_span(asked):
        return ()
    known = {day for text in found.texts for one in dates_in(text) for day in one.days}
    return (one.written for one in dates if known.difference(one.days))


def _is_held(named: str, found: FoundTexts) -> bool | None:
    if not (days := days_of(named)):
        return None
    return _is_in_path(days, found.texts) or bool(found.holders(any_of([*map(_match, days)])))


def _is_in_path(days: Sequence[Day], texts: Sequence[str]) -> bool:
    """Whether one of some days stands in the path of a text: paths are not in the index of words."""
    written = [f"{day.year}-{day.month:02}-{day.day:02}" for day in days]
    return any(one in text for one in written for text in texts)


def _match(day: Day) -> Match:
    """Return a match of a day in any form; if its month is written as a name, the year may stand apart."""
    named = AnyOf(tuple(map(Phrase, named_forms(day))))
    return AnyOf((*day_matches(day), AllOf((named, Word(str(day.year))))))


KIND = Kind(_named, _is_held)
