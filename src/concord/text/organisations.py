"""What an organisation may be called, the same on every backend and in every face."""

from __future__ import annotations

from concord.core.errors import BadValue

_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.")
_LONGEST = 64


def is_org(name: str) -> bool:
    """Return whether a name could name an organisation everywhere."""
    return _LETTERS.issuperset(name) and 0 < len(name) <= _LONGEST and not name.startswith(".")


def without_org(entry: str) -> tuple[str | None, str]:
    """Return the organisation that an entry `ORG=TEXT` is for, None if it names none, and the text."""
    org, _, text = entry.partition("=")
    return (org, text) if text and is_org(org) else (None, entry)


def check_org(org: str) -> None:
    """Refuse a name that could not name an organisation everywhere.

    Raises:
        BadValue: it is no such name.
    """
    if not is_org(org):
        raise BadValue(
            f"{org!r} cannot name an organisation",
            hint=f"use up to {_LONGEST} letters, digits, - _ and . and begin with none of the dots",
        )
