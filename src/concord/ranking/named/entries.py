"""By how much is a passage lifted that defines a name or describes an option, and for which of its lines?"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from concord.text.contains import contains
from concord.types import Survivor

# Of the range of scores.
DEFINITION_BOOST = 1.1  # before all that only mention what a name alone asks for
PLACE_BOOST = 0.5  # besides, in a place about what the name is of: pg_dump, of pg_dump -j


class Entry(Struct, frozen=True):
    """By how much a passage is lifted, the line it is lifted for, and whether that is what was asked for."""

    lift: float
    line: int | None = None  # where it begins; None where all stands under a heading
    is_asked: bool = True


def entry_lift(share_in_place: float) -> float:
    """Return the lift of an entry; its place names this share of what the name belongs to."""
    return DEFINITION_BOOST + PLACE_BOOST * share_in_place


def share_in_place(words: Sequence[str], survivor: Survivor) -> float:
    """Return the share of some words that the title, the path or a heading has; 0 if there are none."""
    if not words:
        return 0.0
    place = "\n".join((survivor.document.title, survivor.document.path, *survivor.chunk.heading))
    return sum(contains(place, word) for word in words) / len(words)
