"""Moments as people write them: a day, a day with a time, or how long ago."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta

from concord.core.errors import BadValue
from concord.text.tokens import pattern

_AGO = pattern(r"(\d{1,6})\s*([hdwy])")
_HOURS = {"h": 1, "d": 24, "w": 7 * 24, "y": 365 * 24}
_GRAIN = timedelta(microseconds=1)  # the finest that a moment is written in


def moment(text: str, *, now: float, is_end: bool = False) -> float:
    """Return a moment in seconds since 1970; what names no zone is in that of this machine.

    How long ago is counted from `now`. A day without a time is its beginning, or with `is_end` its end: until
    Friday is Friday as well.

    Raises:
        BadValue: it is neither a date nor a time ago.
    """
    text = text.strip()
    if ago := _AGO.fullmatch(text.lower()):
        return now - int(ago[1]) * _HOURS[ago[2]] * 3600
    try:
        begins = datetime.fromisoformat(text)
        is_day = is_end and _is_day(text)
        return (begins + timedelta(days=1) - _GRAIN if is_day else begins).timestamp()
    except (ValueError, OverflowError, OSError) as fault:
        raise BadValue(
            f"{text[:60]!r} is no date", hint="such as 2026-01-31, 2026-01-31T09:00, or 12h, 7d, 2w, 1y ago"
        ) from fault


def _is_day(text: str) -> bool:
    """Whether a date says no more than a day."""
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def told(seconds: float) -> str:
    """Return a moment as `moment` takes it, in the zone of this machine; the ends of a day as that day."""
    try:
        given = datetime.fromtimestamp(seconds)
    except (OverflowError, ValueError, OSError):
        return f"{seconds:g} s after 1970"
    is_day = given.time() in (time.min, time.max)
    return given.date().isoformat() if is_day else given.isoformat("T", "minutes")
