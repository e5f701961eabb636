"""By how much is a passage lifted that defines a name or describes an option, and for which of its lines?"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from concord.text.contains import contains
from concord.types import Survivor

# Of the range of scores.
DEFINITION_BOOST = 1.1  # before all that only mention what a name alone asks for
PLACE_BOOST = 0.5  # on top, in a place about the name's owner: pg_dump, for pg_dump -j
OWN_BOOST = 1.1  # on top, in a file that is called like the owner: for ssh -J page ssh(1), not sftp(1)


class Entry(Struct, frozen=True):
    """By how much a passage is lifted, the line it is lifted for, and whether that is what was asked for."""

    lift: float
    line: int | None = None  # where it begins; None where all stands under a heading
    is_asked: bool = True


def entry_lift(owners: Sequence[str], survivor: Survivor) -> float:
    """Return the lift of an entry for a name: more, if its title, path or heading names the name's owners."""
    lift = DEFINITION_BOOST + PLACE_BOOST * share_in_place(owners, survivor)
    return lift + OWN_BOOST * _is_called(owners, survivor)


def _is_called(words: Sequence[str], survivor: Survivor) -> bool:
    """Whether a file is called like one of some words, or like all of them: ssh.1.gz, git-commit.1."""
    name = survivor.document.path.rpartition("/")[2].partition(".")[0].casefold()
    lowered = [word.casefold() for word in words]
    if not lowered:  # no words must not equal the empty name before the dot of .envrc
        return False
    return name in lowered or name.replace("_", "-") == "-".join(lowered)


def share_in_place(words: Sequence[str], survivor: Survivor) -> float:
    """Return the share of some words that the title, the path or a heading has; 0 if there are none."""
    if not words:
        return 0.0
    place = "\n".join((survivor.document.title, survivor.document.path, *survivor.chunk.heading))
    return sum(contains(place, word) for word in words) / len(words)
