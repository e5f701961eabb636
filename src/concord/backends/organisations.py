"""What an organisation may be called, the same on every backend."""

from __future__ import annotations

from concord.errors import BadValue

_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.")
_LONGEST = 64


def check_org(org: str) -> None:
    """Refuse a name that could not name an organisation everywhere.

    Raises:
        BadValue: it is no such name.
    """
    if not _LETTERS.issuperset(org) or not 0 < len(org) <= _LONGEST or org.startswith("."):
        raise BadValue(
            f"{org!r} cannot name an organisation",
            hint="use up to 64 letters, digits, - _ and . and begin with none of the dots",
        )
