"""Matches that are nested too deeply or are too long for an engine, made simpler the same way for all."""

from __future__ import annotations

from concord.types import AllOf, AnyOf, Match, Without


def wanted(match: Match) -> tuple[Match, ...]:
    """Return all words that a match looks for, without those that it excludes: for one nested too deeply."""
    found: list[Match] = []
    waiting = [match]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Without):
            waiting.append(part.keep)
        elif isinstance(part, AllOf | AnyOf):
            waiting.extend(reversed(part.parts))
        else:
            found.append(part)
    return tuple(found)


def kept_and_dropped(match: Without) -> tuple[Match, tuple[Match, ...]]:
    """Return `a NOT b NOT c …` as a and (b, c …), so that many exclusions nest no deeper than one."""
    dropped: list[Match] = []
    keep: Match = match
    while isinstance(keep, Without):
        dropped.append(keep.drop)
        keep = keep.keep
    return keep, tuple(dropped)
