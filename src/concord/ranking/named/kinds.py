"""The kinds of things that a query can name: the shape they share, and the table of them.

A search asks every kind the same three questions. What of your kind does the query name? Does a text hold it?
Which passages are what was asked for, and are lifted? Without this, a search would also be satisfied with
things that look alike: INC-4713 for INC-4712, Q2 2024 for Q2 2023.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from concord.ranking import lift
from concord.ranking.named.entries import Entry
from concord.text.characters import has_digit
from concord.text.contains import contains
from concord.text.terms import word_match
from concord.types import ChunkId, Match, Query, Ranked, Survivor

Sign = Literal["release", "definition", "option", "place"]  # by which a passage is what was asked for


class FoundTexts(Struct, frozen=True):
    """The texts found for a query, and a way to get further texts of the store."""

    query: Query
    texts: Sequence[str]
    holders: Callable[[Match | None], Sequence[str]]  # some texts of the store that match

    def has_words(self, words: str) -> bool:
        """Whether any text, found or further, holds these words as the index would find them."""
        return any(contains(text, words) for text in self.texts) or bool(self.holders(word_match(words)))


class ReadPassages(Struct, frozen=True):
    """The passages that were read for a query."""

    survivors: Sequence[Survivor]
    query: Query
    defining: Mapping[ChunkId, Entry] = {}  # those that define a name which the query asks for


class Lifted(Struct, frozen=True):
    """An order of passages, and which of them are what was asked for."""

    ranked: list[Ranked]
    asked_for: Mapping[ChunkId, Sign] = {}
    line_starts: Mapping[ChunkId, int] = {}  # where in a text the line begins that it was lifted for

    def by(self, shares: Mapping[ChunkId, float]) -> Lifted:
        """Return the order with passages lifted, each by its share of the range of scores."""
        return replace(self, ranked=lift.lifted(self.ranked, shares)) if shares else self

    def by_entries(self, entries: Mapping[ChunkId, Entry]) -> Lifted:
        """Return the order with passages lifted, each for the line that its entry has."""
        starts = {chunk_id: one.line for chunk_id, one in entries.items() if one.line is not None}
        lifted = self.by({chunk_id: one.lift for chunk_id, one in entries.items()})
        return replace(lifted, line_starts={**self.line_starts, **starts})

    def marked(self, chunks: Iterable[ChunkId], sign: Sign) -> Lifted:
        """Return the same order, with some passages marked as what was asked for."""
        return replace(self, asked_for={**self.asked_for, **dict.fromkeys(chunks, sign)})


def _names_none(_: FoundTexts) -> Iterable[str]:
    return ()


def _is_another_kind(_: str, __: FoundTexts) -> None:
    return None


def _lifts_none(lifted: Lifted, _: ReadPassages) -> Lifted:
    return lifted


class Kind(Struct, frozen=True):
    """One kind of thing that a query can name. Each field has a default: that of plain words."""

    # Yields what a query names, as it is written there. Where a word may be such a thing or just a word, it
    # counts as one if some text has another thing of the kind.
    named: Callable[[FoundTexts], Iterable[str]] = _names_none
    # Whether a text holds what was named; None if it is not of this kind.
    is_held: Callable[[str, FoundTexts], bool | None] = _is_another_kind
    lift: Callable[[Lifted, ReadPassages], Lifted] = _lifts_none


class Row(NamedTuple):
    """A kind by its module, loaded only for a query that may name such a thing: most name none."""

    module: str
    may_be_in: Callable[[Query], bool]


def _has_number(query: Query) -> bool:
    return has_digit(query.text)


# In the order in which they are named to the user, and in which a thing that may be of two kinds is tried.
KINDS = (
    Row("quotations", lambda query: bool(query.phrases)),
    Row("days", _has_number),
    Row("quarters", _has_number),
    Row("months", _has_number),
    Row("years", _has_number),
    Row("codes", _has_number),
    Row("versions", lambda query: "." in query.text and _has_number(query)),
    Row("exact_names", lambda query: bool(query.entities)),
    Row("series", _has_number),
    Row("whole_releases", _has_number),
    Row("options", lambda query: "-" in query.text),
    Row("definitions", lambda query: True),
)


def kinds_in(query: Query) -> list[Kind]:
    """Return the kinds of things that a query may name."""
    return [_kind(row.module) for row in KINDS if row.may_be_in(query)]


@cache
def _kind(module: str) -> Kind:
    kind: Kind = import_module(f"concord.ranking.named.{module}").KIND
    return kind
