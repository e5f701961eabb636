"""The times that a query names, as they are written, and what finds the same time in any form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from concord.text.dates import dates_in, yearless_in
from concord.text.months import month_forms, months_in
from concord.text.quarters import quarters_in
from concord.text.terms import any_of, day_matches, form_matches, quarter_matches
from concord.types import Match

Written = tuple[str, list[Match]]


def times_in(text: str) -> Iterator[tuple[str, Match]]:
    """Yield the dates of several words, the quarters and the months of a text, and what else to look for."""
    for kind in _KINDS:
        for written, forms in kind(text):
            if match := any_of(forms):
                yield written, match


def _dates(text: str) -> Iterable[Written]:
    """Yield dates of several words: one that is a single word is looked for in any form already."""
    for one in (*dates_in(text), *yearless_in(text)):
        if " " in one.written:
            yield one.written, [form for day in one.days for form in day_matches(day)]


def _quarters(text: str) -> Iterable[Written]:
    return ((one.written, quarter_matches(one.quarter)) for one in quarters_in(text))


def _months(text: str) -> Iterable[Written]:
    return ((one.written, form_matches(month_forms(one.month))) for one in months_in(text))


_KINDS = (_dates, _quarters, _months)
