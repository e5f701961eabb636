"""What an organisation may be called, the same on every backend."""

from __future__ import annotations

from concord.errors import BadValue
from concord.text.pattern import pattern

_ORG = pattern(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}")


def check_org(org: str) -> None:
    """Refuse a name that could not name an organisation everywhere.

    Raises:
        BadValue: it is no such name.
    """
    if not _ORG.fullmatch(org):
        raise BadValue(
            f"{org!r} cannot name an organisation",
            hint="use up to 64 letters, digits, - _ and . and begin with none of the dots",
        )
