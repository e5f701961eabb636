"""Which passages are what was asked for, not just like it: where is a name defined, an option described?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from msgspec import Struct

from concord.answering.understand import is_literal
from concord.ranking.definitions import AskedName, asked_names, defining_line, is_definition
from concord.ranking.options import AskedOption
from concord.text.contains import contains
from concord.types import ChunkId, Query, Survivor

DEFINITION_BOOST = 1.1  # of the range of scores: before all that only mention what a name alone asks for
PLACE_BOOST = 0.5  # for a definition in a place about what the name is of: pg_dump, of pg_dump -j
ENTRY_BOOST = 1.6  # for an option's entry: before summaries, too, and sentences with it at a line's begin

Asked = Literal["release", "definition", "option", "place"]


class Defining(Struct, frozen=True):
    """By how much a passage is lifted, the line it is lifted for, and whether that is what was asked for."""

    lift: float
    line: int | None = None  # where it begins; None where all stands under a heading
    is_asked: bool = True


def defining(survivors: Sequence[Survivor], query: Query) -> dict[ChunkId, Defining]:
    """Return what defines the names that a query asks for."""
    found: dict[ChunkId, Defining] = {}
    for asked in _names(survivors, query):
        found |= {
            one.ranked.chunk_id: _defining(one, asked) for one in survivors if _defines(one, asked, query)
        }
    return found


def defines_missing(survivors: Sequence[Survivor], query: Query) -> Callable[[Survivor], bool] | None:
    """Return what tells whether a passage defines a name that is asked for and that none of these defines.

    None where no name is missing. A word of prose is none if neither code nor settings are among them.
    """
    names = _names(survivors, query)
    if not any(asked.is_sure or asked.is_value for asked in names):
        names = names if any(map(_has_names, survivors)) else ()
    missing = [one for one in names if not any(_defines(survivor, one, query) for survivor in survivors)]
    return (lambda one: any(_defines(one, asked, query) for asked in missing)) if missing else None


def _names(survivors: Sequence[Survivor], query: Query) -> tuple[AskedName, ...]:
    """Return the names that a query asks for; words that a text has as they were asked are none.

    Whoever asks for a value wants the line that sets it, whatever is said about it elsewhere.
    """
    names = asked_names(query.text)
    if not names or " " not in query.text or any(one.is_sure or one.is_value for one in names):
        return names
    prose = (one.chunk.text for one in survivors if not _has_names(one))
    return () if any(contains(text, query.meaning) for text in prose) else names


def _defines(survivor: Survivor, asked: AskedName, query: Query) -> bool:
    """Whether a passage defines a name; words alone make no heading or entry of it."""
    in_words = asked.is_sure or is_literal(query)
    return (in_words or _has_names(survivor)) and is_definition(survivor, asked)


def _has_names(survivor: Survivor) -> bool:
    return survivor.document.type in ("code", "data")


def describing(survivors: Sequence[Survivor], asked: AskedOption) -> dict[ChunkId, Defining]:
    """Return what describes an option: it was asked for where the place is about the words beside it."""
    from concord.text.option_lines import description  # late: few queries ask for an option

    found: dict[ChunkId, Defining] = {}
    for one in survivors:
        if line := description(asked.option, one.chunk.text):
            share = _share_in_place(asked.beside, one)
            is_asked = share > 0 or not asked.beside
            lift = DEFINITION_BOOST + PLACE_BOOST * share + ENTRY_BOOST * line.sureness * is_asked
            found[one.ranked.chunk_id] = Defining(lift, line.start, is_asked)
    return found


def _defining(survivor: Survivor, asked: AskedName) -> Defining:
    lift = DEFINITION_BOOST + PLACE_BOOST * _share_in_place(asked.owners, survivor)
    return Defining(lift, defining_line(survivor, asked))


def _share_in_place(words: Sequence[str], survivor: Survivor) -> float:
    from concord.ranking.places import share_in_place  # late: few queries ask for a name or an option

    return share_in_place(words, survivor)
