"""The contract of the kinds of things that a query can name: each in the table, each told and held alike."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from concord.ranking import named
from concord.ranking.entities import entities
from concord.ranking.missing import missing_things
from concord.ranking.named.kinds import KINDS, FoundTexts, Kind, kinds_in
from concord.text.query_language import parse
from concord.types import Filter, Query

# A kind; a query that names one; a text that has another of its kind; and one that holds what was named,
# as it was typed or in another form.
EXAMPLES = [
    ("quotations", '"grind the grain"', "the grain was ground", "we grind the grain daily"),
    ("days", "meeting on 2024-06-24", "2024-06-25: a meeting", "2024-06-24: a meeting"),
    ("quarters", "revenue in Q2 2023", "revenue in Q2 2024", "revenue in the second quarter of 2023"),
    ("months", "launch in May 2025", "the launch of 2025-04", "the launch of 2025-05"),
    ("years", "revenue in 2021", "revenue in 2022 fell", "revenue in 2021 fell"),
    ("codes", "was BUG-89 fixed", "BUG-90 is fixed", "BUG-89 is fixed"),
    ("versions", "pymill 3.3.0 changes", "## pymill 3.2.0", "## pymill 3.3.0"),
    ("exact_names", "what is max_grain_size", "max_stone_size is 7", "max_grain_size is 7"),
    ("series", "what does ADR 12 decide", "ADR 4 decides on mills", "0012: ADR on stones"),
    ("whole_releases", "upgrade to Mill 17", "upgrade notes of Mill 16", "upgrade notes of Mill 16 and 17"),
    ("options", "mill --retry-count", "mill --dry-run tries", "the setting retry_count of --dry-run"),
]


def query_of(text: str) -> Query:
    asked = parse(text)
    return Query(
        text,
        asked.terms,
        asked.phrases,
        asked.excluded,
        asked.exact,
        asked.loose,
        limit=10,
        candidates=40,
        filter=Filter(),
        entities=entities(text),
    )


def found(text: str, *texts: str) -> FoundTexts:
    """Return what was found for a query, in a store that has nothing else."""
    return FoundTexts(query_of(text), texts, lambda match: ())


@pytest.mark.parametrize(("kind", "query", "other", "holding"), EXAMPLES)
def test_what_is_named_is_missing_until_a_text_holds_it(kind: str, query: str, other: str, holding: str):
    (name,) = missing_things(found(query, other))
    assert name in query
    assert name in [*_kind(kind).named(found(query, other))]
    assert missing_things(found(query, other, holding)) == ()


def test_every_kind_that_tells_what_is_named_has_an_example():
    silent = [row.module for row in KINDS if _kind(row.module).named is Kind().named]
    assert {kind for kind, *_ in EXAMPLES} == {row.module for row in KINDS}.difference(silent)


def test_every_file_with_a_kind_has_a_row_in_the_table():
    files = [path.stem for path in Path(str(named.__file__)).parent.glob("[a-z]*.py")]
    kinds = {name for name in files if isinstance(getattr(_module(name), "KIND", None), Kind)}
    assert kinds == {row.module for row in KINDS}


def test_a_query_that_names_nothing_asks_only_what_may_define_it():
    assert kinds_in(query_of("how does the mill work")) == [_kind("definitions")]


def _kind(name: str) -> Kind:
    kind: Kind = _module(name).KIND
    return kind


def _module(name: str) -> ModuleType:
    return import_module(f"concord.ranking.named.{name}")
