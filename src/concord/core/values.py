"""Values as people and programs give them, the same everywhere: texts, moments, organisations, URLs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, time, timedelta

from concord.core.errors import BadValue, shown

_HOURS = {"h": 1, "d": 24, "w": 7 * 24, "y": 365 * 24}
_GRAIN = timedelta(microseconds=1)  # the finest that a moment is written in
_ORG_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.")
_LONGEST_ORG = 64


def as_texts(name: str, given: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return a tuple of texts; a single text is one of them, not its letters.

    Raises:
        BadValue: something else than text is among them.
    """
    if isinstance(given, str):
        return (given,)
    try:
        texts = tuple(given or ())
    except TypeError:
        raise refused(name, given, "a list of texts") from None
    for text in texts:
        if not isinstance(text, str):
            raise refused(f"one of {name}", text, "text")
    return texts


def refused(name: str, value: object, wanted: str) -> BadValue:
    """Return the error for a value of the wrong kind."""
    return BadValue(f"{name} cannot be {shown(value)}", hint=f"give {wanted}")


def moment(text: str, *, now: float, is_end: bool = False) -> float:
    """Return a moment in seconds since 1970; without a zone, in that of this machine.

    Time ago is counted from `now`. A day is its beginning, or with `is_end` its end: until Friday is Friday
    as well.
    """
    text = text.strip()
    if ago := re.fullmatch(r"(\d{1,6})\s*([hdwy])", text.lower()):
        return now - int(ago[1]) * _HOURS[ago[2]] * 3600
    try:
        begins = datetime.fromisoformat(text)
        ends_a_day = is_end and len(text) <= len("2026-01-31")
        return (begins + timedelta(days=1) - _GRAIN if ends_a_day else begins).timestamp()
    except (ValueError, OverflowError, OSError) as fault:
        raise BadValue(
            f"{text[:60]!r} is no date", hint="such as 2026-01-31, 2026-01-31T09:00, or 12h, 7d, 2w, 1y ago"
        ) from fault


def moment_text(seconds: float) -> str:
    """Return a moment as `moment` reads it, in the zone of this machine; the ends of a day as that day."""
    try:
        local = datetime.fromtimestamp(seconds)
    except (OverflowError, ValueError, OSError):
        return f"{seconds:g} s after 1970"
    is_day = local.time() in (time.min, time.max)
    return local.date().isoformat() if is_day else local.isoformat("T", "minutes")


def iso_time(seconds: float | None) -> str | None:
    """Return a moment as ISO 8601 in UTC; None for one that is not known."""
    if not seconds:
        return None
    try:
        when = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):  # a file may claim any time at all
        return None
    return when.isoformat(timespec="seconds").replace("+00:00", "Z")


def is_org(name: str) -> bool:
    """Whether a name could name an organisation on every backend."""
    return _ORG_LETTERS.issuperset(name) and 0 < len(name) <= _LONGEST_ORG and not name.startswith(".")


def without_org(entry: str) -> tuple[str | None, str]:
    """Return the organisation that an entry `ORG=TEXT` is for, None if it names none, and the text."""
    org, _, text = entry.partition("=")
    return (org, text) if text and is_org(org) else (None, entry)


def check_org(org: str) -> None:
    """Refuse a name that could not name an organisation on every backend."""
    if not is_org(org):
        raise BadValue(
            f"{org!r} cannot name an organisation",
            hint=f"use up to {_LONGEST_ORG} letters, digits, - _ and . and begin with none of the dots",
        )


def without_password(url: str, instead: str = "***") -> str:
    """Return a URL with `instead` in the place of its password; if that is empty, as if it never had one.

    An empty password is not the same: libpq would take it, and not what PGPASSWORD says.
    """
    # What follows the first colon is a password unless it is a port. If somebody forgot to encode a slash or
    # an @ in it, it is no less secret: everything up to the last @ before the options is hidden.
    user = re.compile(r"(?<=://)([^/@:?]*):(?!\d+(?:[/?]|$))[^?]*@")
    if instead:
        return re.sub(r"([?&](?:ssl)?password=)[^&]*", rf"\1{instead}", user.sub(rf"\1:{instead}@", url))
    url = re.sub(r"(?<=[?&])(?:ssl)?password=[^&]*&", "", user.sub(r"\1@", url))
    return re.sub(r"[?&](?:ssl)?password=[^&]*$", "", url)
