"""What happens to supersession when documents are deleted: the same on every backend."""

from __future__ import annotations

from collections.abc import Collection, Mapping


def rerouted(superseded_by: Mapping[str, str], doomed: Collection[str]) -> dict[str, str | None]:
    """Return the documents whose superseder is deleted, with their new one; None means superseded no more.

    `superseded_by` holds every superseded document. A chain through doomed documents is followed to the first
    that stays; if it ends among them, or leads back to its start, there is no new superseder.
    """
    return {
        old: _first_that_stays(old, superseded_by, doomed)
        for old, new in superseded_by.items()
        if new in doomed and old not in doomed
    }


def _first_that_stays(old: str, superseded_by: Mapping[str, str], doomed: Collection[str]) -> str | None:
    passed: set[str] = set()
    at = superseded_by.get(old)
    while at is not None and at in doomed and at not in passed:
        passed.add(at)
        at = superseded_by.get(at)
    return None if at in passed or at == old else at
